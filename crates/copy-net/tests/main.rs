//! Tests of the crate `copy-net`.

mod destination;
mod devices;
mod ends;
mod folders;
mod interruptions;
mod journal;
mod local_copy;
mod power_cut;
mod races;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod source;
mod versions;
