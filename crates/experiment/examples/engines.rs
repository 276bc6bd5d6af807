//! Runs specs by horizons, on one core and on several, and one event after the other, and compares everything that
//! these give: `cargo run --release -p experiment --example engines -- SPEC.json ...`, or `... --random FIRST COUNT
//! FOLDER` for runs that are drawn from numbers, of which those that differ are written to FOLDER; `... --print SEED`
//! prints such a run. Exit code 1: there are differences; the first lines of each are printed.

#[path = "../tests/common/engines.rs"]
mod engines;
#[path = "../tests/common/random_runs.rs"]
mod random_runs;

use engines::Comparison;
use spec::RunSpec;
use std::collections::BTreeMap;
use std::error::Error;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

/// Lines of a difference that are printed.
const SHOWN: usize = 12;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [random, first, count, folder] if random == "--random" => compare_random(first, count, Path::new(folder)),
        [print, seed] if print == "--print" => print_random(seed).map(|()| 0),
        paths => Ok(paths.iter().filter(|path| !compare_file(path)).count()),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether both engines give the same of the spec in `path`.
fn compare_file(path: &str) -> bool {
    let found = read(path).and_then(|spec| Ok(engines::compare(&spec)?));
    match found {
        Ok(Comparison { without_horizons, is_shared, differences, .. }) => {
            let by_horizons = if is_shared { "horizons, shared by workers" } else { "horizons" };
            let engine = without_horizons.map_or(by_horizons.to_owned(), |why| format!("events: {why}"));
            println!("{}  {path}  ({engine})", if differences.is_empty() { "same" } else { "DIFFERENT" });
            show(&differences);
            differences.is_empty()
        }
        Err(error) => {
            println!("refused  {path}: {error}");
            true
        }
    }
}

fn read(path: &str) -> Result<RunSpec, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn show(differences: &[String]) {
    for line in differences.iter().take(SHOWN) {
        println!("  {line}");
    }
}

fn print_random(seed: &str) -> Result<(), Box<dyn Error>> {
    println!("{}", serde_json::to_string(&random_runs::random_run(seed.parse()?))?);
    Ok(())
}

/// Returns how many of the runs differ or panic.
fn compare_random(first: &str, count: &str, folder: &Path) -> Result<usize, Box<dyn Error>> {
    let (first, count): (u64, u64) = (first.parse()?, count.parse()?);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut failures = 0;
    for seed in first..first + count {
        let spec = random_runs::random_run(seed);
        let compared = catch_unwind(|| engines::compare(&spec));
        let (kind, differences) = match compared {
            Ok(Ok(found)) => {
                let by_horizons = if found.is_shared { "horizons, shared by workers" } else { "horizons" };
                (found.without_horizons.unwrap_or(by_horizons.to_owned()), found.differences)
            }
            Ok(Err(error)) => (format!("refused: {error}"), vec![]),
            Err(_) => ("panicked".to_owned(), vec!["it panicked".to_owned()]),
        };
        *kinds.entry(kind).or_default() += 1;
        if !differences.is_empty() {
            failures += 1;
            let file = folder.join(format!("engines-{seed}.json"));
            std::fs::write(&file, serde_json::to_string(&spec)?)?;
            println!("seed {seed}: {}", file.display());
            show(&differences);
        }
    }
    for (kind, count) in kinds {
        println!("{count} runs: {kind}");
    }
    Ok(failures)
}
