//! One end of a measurement between real hosts: a process that the front starts over SSH and that ends with it.
//!
//! It takes requests as frames on standard input and answers on standard output ([docs/design/agent.md]); says what
//! its host is ([`check`]); runs one end of a specification by the crate `kernel` ([`run`]); sets sysctls and registers
//! controls for a run, and undoes it ([`journal`], [`guard`]); gives programs folders and files ([`site`]), and runs
//! them apart from the host ([`apart`]); measures the CPU time of packets ([`host_cost`]); reflects and makes
//! path tests ([`reflect`]); runs one end of a copy ([`mod@copy`]). It does not parse scenarios, store results, keep
//! anything between two sessions but a copy's journal, which the same copy goes on from.
//!
//! **Invariant: when it has ended, however it ended, its host is as it was.**
//!
//! [docs/design/agent.md]: ../../../docs/design/agent.md

#![cfg(target_os = "linux")]

mod apart;
mod changes;
mod check;
mod controls;
mod copy;
mod cpu;
mod error;
mod files;
mod folder;
mod frame;
mod guard;
mod hex;
mod host_cost;
mod input;
mod journal;
mod output;
mod ports;
mod probe;
mod reflect;
mod rights;
mod run;
mod session;
mod site;
mod site_files;
mod sysctl;
mod versions;

use std::io;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => session::serve(io::stdin(), io::stdout()),
        ["--version"] => {
            println!("elephan-agent {}, protocol {}", env!("CARGO_PKG_VERSION"), session::PROTOCOL);
            ExitCode::SUCCESS
        }
        [guard::ARGUMENT, journal] => {
            guard::watch(Path::new(journal));
            ExitCode::SUCCESS
        }
        [apart::ARGUMENT, plan, ref words @ ..] => apart::enter(plan, words),
        _ => {
            eprintln!("elephan-agent: no arguments, but frames on standard input; --version tells the version");
            ExitCode::from(error::WRONG)
        }
    }
}
