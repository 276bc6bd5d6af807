//! A TCP endpoint that behaves as Linux's, without I/O.
//!
//! Implemented: handshake with options, slow start and congestion avoidance through a [`congestion::Controller`], loss
//! detection and recovery of three generations ([`config::Recovery`]), RTO, tail loss probes, undo of spurious
//! reductions, delayed ACKs, receive window with autotuning and zero-window probes, cwnd validation, ECN, pacing, FIN,
//! SACK compression, Nagle's algorithm. Not implemented: payload (only its length), reset of connections, urgent data,
//! path MTU discovery. An endpoint reads no clock, no socket and no random number.
//!
//! **Invariant: an endpoint's behaviour is a function of its configuration and of the calls on it, with their times;
//! the cost of a call does not grow with the window.**
//!
//! Four kinds of methods ([`Endpoint`]):
//! - commands of the application: `connect`, `write`, `read`, `close`, `abort`;
//! - inputs: `handle_segment`, `handle_run` (many at once, with the outputs), `handle_timeout`;
//! - outputs: `poll_transmit` (segments to send now; `poll_train`: several alike at once), `poll_timeout` (when to call
//!   `handle_timeout`);
//! - getters, which change nothing.
//!
//! Order: after every command and every input call `poll_transmit` until it returns false, or `poll_train` until it
//! says that there is no more; then read `poll_timeout`. Both give the same. Time never goes back between calls. A
//! timeout may be earlier than needed, never later: `handle_timeout` before anything is due is harmless.
//!
//! Linux's tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_rate.c and tcp_timer.c are the reference of behaviour; no
//! line is taken from them. Comments name their functions.

#![forbid(unsafe_code)]

mod blocks;
pub mod config;
mod consts;
mod endpoint;
mod pacing;
mod ranges;
mod recovery;
mod rtt;
mod scoreboard;
pub mod segment;
mod stats;
mod window_use;

pub use endpoint::{Arrival, CwndReduction, Endpoint, Output, State, Train};
pub use pacing::pacing_rate;
pub use recovery::{prr_window, PrrStep};
pub use rtt::RttEstimator;
pub use stats::Stats;
pub use window_use::{halve_per_idle_rto, note_window_use};
