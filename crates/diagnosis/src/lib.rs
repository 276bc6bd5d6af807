//! What limits a TCP flow, told from samples of its TCP_INFO, without I/O.
//!
//! **Invariant: a diagnosis names the counters that it rests on, and says when they do not decide.**

mod sample;

pub use sample::{Flow, Sample};
