//! Runs one spec and prints its cost as one JSON line: `cargo run --release -p experiment --example bench --
//! SPEC.json [events | WORKERS]`. `events`: one event after the other; WORKERS: threads that share the run. `cpu_s` is
//! the CPU time of all threads, `wall_s` the time until the outcome is there.

use experiment::Engine;
use std::num::NonZeroUsize;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, engine) = match arguments.as_slice() {
        [path] => (path, Engine::Chosen),
        [path, engine] if engine == "events" => (path, Engine::Events),
        [path, workers] if workers.parse::<NonZeroUsize>().is_ok() => {
            (path, workers.parse().map_or(Engine::Chosen, Engine::Workers))
        }
        _ => {
            eprintln!("usage: bench SPEC.json [events | WORKERS]");
            return ExitCode::from(2);
        }
    };
    match run(path, engine) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(path: &str, engine: Engine) -> Result<String, Box<dyn std::error::Error>> {
    let spec: spec::RunSpec = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let cpu_seconds = if matches!(engine, Engine::Workers(_)) { cpu_seconds_of_all } else { cpu_seconds };
    let before = cpu_seconds()?;
    #[allow(clippy::disallowed_types, reason = "it measures a run from outside")]
    let begin = std::time::Instant::now();
    let outcome = experiment::simulate_with_engine(&spec, engine, &mut |_| std::ops::ControlFlow::Continue(()))?;
    let wall_s = begin.elapsed().as_secs_f64();
    let cpu_s = cpu_seconds()? - before;
    let mut line = serde_json::Map::new();
    for (name, value) in &outcome.metrics {
        let value = match value {
            experiment::Metric::Integer(v) => serde_json::json!(v),
            experiment::Metric::Real(v) => serde_json::json!(v),
            experiment::Metric::Text(v) => serde_json::json!(v),
            experiment::Metric::Table(v) => serde_json::json!(v),
        };
        line.insert((*name).to_owned(), value);
    }
    line.insert("cpu_s".to_owned(), serde_json::json!(cpu_s));
    line.insert("wall_s".to_owned(), serde_json::json!(wall_s));
    line.insert("peak_rss_bytes".to_owned(), serde_json::json!(peak_rss_bytes()?));
    Ok(serde_json::Value::Object(line).to_string())
}

/// User and system time of this thread, s. Linux counts it in ns behind /proc/self/schedstat's first field.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split_whitespace().next().ok_or("empty /proc/self/schedstat")?.parse()?;
    Ok(ns as f64 / 1e9)
}

/// The same of all threads, those that have ended as well: of Linux's accounts, in steps of 10 ms.
fn cpu_seconds_of_all() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // Behind the name, which may have spaces: state is the third field, user and system time the 14th and 15th.
    let fields = text.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    Ok(ticks as f64 / 100.0)
}

/// Largest resident size of this process, bytes (VmHWM).
fn peak_rss_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no VmHWM")?.parse()?;
    Ok(kib * 1024)
}
