//! Tests of the crate `copy-net`.

mod copies;
mod destination;
mod ends;
mod folders;
mod journal;
mod local_copy;
mod races;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod source;
mod versions;
