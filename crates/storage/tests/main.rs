//! All tests of this folder, in one binary.

mod drives;
mod hostile;
mod ifcp;
#[path = "../../../tests/rust/isns_server.rs"]
mod isns_server;
mod open_isns;
mod order;
mod real_traces;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod write_cache;
