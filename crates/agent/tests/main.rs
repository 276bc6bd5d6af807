//! All tests of this folder, in one binary: the agent as a process, spoken to as the front does.

mod changes;
mod common;
mod copies;
mod costs;
mod measures;
mod probes;
mod protocol;
mod runs;
mod same_as_kernel;
mod sites;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod tokens;
