//! All tests of this folder, in one binary.

mod common;
mod gateway;
#[path = "../../../tests/rust/isns_server.rs"]
mod isns_server;
mod lost;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod sockets;
