//! Comparison of the two engines, and of one worker and several: everything that a run gives back.

#![allow(dead_code, reason = "each user takes its own part")]

use experiment::{is_shared, simulate_with_engine, without_horizons, Engine, Outcome, RunError};
use spec::RunSpec;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use units::Span;

/// Workers that share runs with a number of workers.
const WORKERS: [NonZeroUsize; 2] = [NonZeroUsize::new(2).unwrap(), NonZeroUsize::new(3).unwrap()];

/// Outcome of a run by both engines.
pub struct Comparison {
    pub outcome: Outcome,
    /// Reason for which it has no horizons.
    pub without_horizons: Option<String>,
    /// Several workers share it.
    pub is_shared: bool,
    /// Lines in which the outcomes differ.
    pub differences: Vec<String>,
}

/// Runs `spec` by both engines, and by several workers; a capture goes to a file that does not stay. Errors: what
/// refuses it.
pub fn compare(spec: &RunSpec) -> Result<Comparison, RunError> {
    let mut spec = spec.clone();
    if let Some(path) = &mut spec.measure.pcap {
        let name = format!("elephan-{}-{}.pcapng", std::process::id(), spec.seed);
        *path = std::env::temp_dir().join(name).to_string_lossy().into_owned();
    }
    let without_horizons = without_horizons(&spec)?;
    let run = |engine| -> Result<_, RunError> {
        let mut outcome = simulate_with_engine(&spec, engine, &mut |_| ControlFlow::Continue(()))?;
        outcome.other_threads_cpu = Span(0);
        let captured = spec.measure.pcap.as_ref().map(|path| {
            let bytes = std::fs::read(path).expect("a run writes its capture");
            std::fs::remove_file(path).expect("the capture is ours");
            bytes
        });
        Ok((outcome, captured))
    };
    // By horizons even where single events are chosen because they take less time.
    let (outcome, captured) = run(Engine::Workers(NonZeroUsize::MIN))?;
    let (by_events, captured_by_events) = run(Engine::Events)?;
    // As text, in which different numbers are different.
    let (by_horizons, events) = (format!("{outcome:#?}"), format!("{by_events:#?}"));
    let mut differences = differences(&by_horizons, &events);
    if captured != captured_by_events {
        differences.push("the captures differ".to_owned());
    }
    let is_shared = is_shared(&spec, WORKERS[0])?;
    if is_shared {
        for workers in WORKERS {
            let found = format!("{:#?}", run(Engine::Workers(workers))?.0);
            let of_these = self::differences(&found, &events).into_iter();
            differences.extend(of_these.map(|line| format!("{workers} workers: {line}")));
        }
    }
    Ok(Comparison { outcome, without_horizons, is_shared, differences })
}

fn differences(found: &str, expected: &str) -> Vec<String> {
    let pairs = found.lines().zip(expected.lines()).enumerate().filter(|(_, (found, expected))| found != expected);
    let line = |(line, (found, expected)): (usize, (&str, &str))| {
        format!("line {}: {} instead of {}", line + 1, found.trim(), expected.trim())
    };
    let mut lines: Vec<_> = pairs.map(line).collect();
    if found.len() != expected.len() && lines.is_empty() {
        lines.push("one has more lines than the other".to_owned());
    }
    lines
}
