//! Headers as bytes, in one binary: each is linked once.

mod fibre_channel;
mod fibre_channel_tshark;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod tshark;
