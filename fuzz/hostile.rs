//! One program for all functions of `tests/hostile` in `crates/storage` and `crates/copy`: `ELEPHAN_FUZZ` names the one
//! to run.

#![no_main]

#[path = "../crates/storage/tests/hostile/mod.rs"]
mod hostile;

#[path = "../crates/copy/tests/hostile/mod.rs"]
mod copy_hostile;

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

static FUNCTION: OnceLock<fn(&[u8])> = OnceLock::new();

fn chosen() -> fn(&[u8]) {
    let name = std::env::var("ELEPHAN_FUZZ").unwrap_or_default();
    match hostile::ALL.iter().chain(&copy_hostile::ALL).find(|(known, _)| *known == name) {
        Some((_, function)) => *function,
        None => {
            let names: Vec<&str> = hostile::ALL.iter().chain(&copy_hostile::ALL).map(|(known, _)| *known).collect();
            eprintln!("ELEPHAN_FUZZ={name:?}: one of {} is needed", names.join(", "));
            std::process::exit(2);
        }
    }
}

fuzz_target!(|data: &[u8]| (FUNCTION.get_or_init(chosen))(data));
