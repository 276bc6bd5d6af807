//! All tests of this folder, in one binary.

mod common;
mod kernel;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
