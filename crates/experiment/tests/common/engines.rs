//! Comparison of the two engines: everything that a run gives back.

#![allow(dead_code, reason = "each user takes its own part")]

use experiment::{simulate_with_engine, without_horizons, Engine, Outcome, RunError};
use spec::RunSpec;
use std::ops::ControlFlow;

/// Outcome of a run by both engines.
pub struct Comparison {
    pub outcome: Outcome,
    /// Reason for which it has no horizons.
    pub without_horizons: Option<String>,
    /// Lines in which the two outcomes differ.
    pub differences: Vec<String>,
}

/// Runs `spec` by both engines. Errors: what refuses it.
pub fn compare(spec: &RunSpec) -> Result<Comparison, RunError> {
    let without_horizons = without_horizons(spec)?;
    let run = |engine| simulate_with_engine(spec, engine, &mut |_| ControlFlow::Continue(()));
    let outcome = run(Engine::Chosen)?;
    // As text, in which different numbers are different.
    let (chosen, events) = (format!("{outcome:#?}"), format!("{:#?}", run(Engine::Events)?));
    let pairs = chosen.lines().zip(events.lines()).enumerate().filter(|(_, (chosen, events))| chosen != events);
    let line = |(line, (chosen, events)): (usize, (&str, &str))| {
        format!("line {}: {} instead of {}", line + 1, chosen.trim(), events.trim())
    };
    let mut differences: Vec<_> = pairs.map(line).collect();
    if chosen.len() != events.len() && differences.is_empty() {
        differences.push("one has more lines than the other".to_owned());
    }
    Ok(Comparison { outcome, without_horizons, differences })
}
