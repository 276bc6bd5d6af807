//! An FCP initiator without I/O: commands for units of targets, each in an exchange of its own (FCP-3).
//!
//! Targets come and go ([`Initiator::attach`], [`Initiator::detach`]). A command is handed in
//! ([`Initiator::submit`]) and ends at [`Initiator::poll_completion`], with the target's answer or a failure. An
//! exchange whose frames were lost, as a gap, the answer to REC or a time-out shows, is aborted (ABTS); then the
//! command is sent again, in a new exchange, a bounded number of times. The old numbers rest for R_A_TOV and are given
//! back by RRQ.
//!
//! **Invariant: a read ends with all of its data in order, or not as done; a number is not used again while frames of
//! its aborted exchange may live.**

mod engine;
mod exchange;
mod input;
mod numbers;
mod recovery;
mod settings;

pub use engine::{Asked, Counters, Initiator};
pub use settings::Settings;
