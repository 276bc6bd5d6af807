//! Runs one spec and prints its cost as one JSON line: `cargo run --release -p experiment --example bench --
//! SPEC.json [events]`. `events`: one event after the other.

use experiment::Engine;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, engine) = match arguments.as_slice() {
        [path] => (path, Engine::Chosen),
        [path, engine] if engine == "events" => (path, Engine::Events),
        _ => {
            eprintln!("usage: bench SPEC.json [events]");
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
    let before = cpu_seconds()?;
    let outcome = experiment::simulate_with_engine(&spec, engine, &mut |_| std::ops::ControlFlow::Continue(()))?;
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
    line.insert("peak_rss_bytes".to_owned(), serde_json::json!(peak_rss_bytes()?));
    Ok(serde_json::Value::Object(line).to_string())
}

/// User and system time of this process, s. Linux counts it in ns behind /proc/self/schedstat's first field.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = text.split_whitespace().next().ok_or("empty /proc/self/schedstat")?.parse()?;
    Ok(ns as f64 / 1e9)
}

/// Largest resident size of this process, bytes (VmHWM).
fn peak_rss_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|l| l.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no VmHWM")?.parse()?;
    Ok(kib * 1024)
}
