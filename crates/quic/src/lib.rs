//! QUIC (RFC 9000, by quinn) under the congestion controls of `congestion/`: the same C file that the simulator runs.
//!
//! **Invariant: a control sees in QUIC what Linux's TCP would show it, as far as QUIC has it; docs/design/quic.md says
//! where it has not.**

mod adapter;
mod bursts;
mod control;

pub use control::{Control, Shown};
