//! Tests of the crate `copy-net`.

mod copies;
mod destination;
mod devices;
mod ends;
mod folders;
mod hostile;
mod interruptions;
mod journal;
mod kills;
mod local_copy;
mod power_cut;
mod quic_copies;
mod races;
mod relay;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod source;
mod strangers;
mod versions;
