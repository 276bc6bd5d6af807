//! All tests of this folder, in one binary.

mod fibre_channel;
mod fibre_channel_tshark;
mod isns;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod tshark;
