//! The Python face of the core: converts arguments, maps errors, releases the GIL, and nothing else.
//!
//! **Invariant: no logic lives here; what Python gets, another Rust caller could get from the crates below.**

#![allow(missing_docs, reason = "the names in elephan/_native.pyi have docstrings there")]

mod backup_versions;
mod bpf;
mod change_detection;
mod congestion_controls;
mod copy_end;
mod detection;
mod diagnose;
mod disk;
mod emulator;
mod error;
mod fc_port;
mod gateway;
mod interruptible;
mod iscsi;
mod line_port;
mod measure;
mod on_hosts;
mod on_kernel;
mod parity;
mod progress;
mod quantity;
mod simulate;
mod simulate_path_test;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    backup_versions::register(module)?;
    bpf::register(module)?;
    change_detection::register(module)?;
    copy_end::register(module)?;
    detection::register(module)?;
    diagnose::register(module)?;
    disk::register(module)?;
    emulator::register(module)?;
    error::register(module)?;
    fc_port::register(module)?;
    gateway::register(module)?;
    line_port::register(module)?;
    measure::register(module)?;
    on_hosts::register(module)?;
    on_kernel::register(module)?;
    parity::register(module)?;
    iscsi::register(module)?;
    quantity::register(module)?;
    congestion_controls::register(module)?;
    simulate::register(module)?;
    simulate_path_test::register(module)
}
