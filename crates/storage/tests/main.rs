//! Disks, traces and the order of their requests, in one binary: each is linked once.

mod drives;
mod order;
mod real_traces;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod write_cache;
