//! All tests of this folder, in one binary.

mod bbr;
mod bic;
mod bpf;
mod common;
mod compound;
mod cubic;
mod fast;
mod highspeed;
mod htcp;
mod illinois;
mod ledbat_plus_plus;
mod mistakes;
mod own;
mod properties;
mod reno;
mod scalable;
#[path = "../../../tests/rust/skip.rs"]
mod skip;
mod storage_friendly;
mod vegas;
mod westwood;
