//! A Fibre Channel link without I/O: two ports, the rate of their line, its length, and buffer-to-buffer credits
//! (FC-FS-2, clauses 5 and 18).
//!
//! A caller hands in frames at either end ([`Link::handle_frame`]), takes out those that arrived
//! ([`Link::poll_frame`]), says when the receiver's buffer is empty again ([`Link::handle_release`]), and comes back at
//! [`Link::poll_timeout`]. A port without a credit waits: a link loses and reorders nothing.

mod direction;
mod engine;
mod settings;
mod speed;
#[cfg(test)]
mod tests;

pub use direction::Counters;
pub use engine::{End, Link};
pub use settings::{Settings, WrongCredits};
pub use speed::{PortSpeed, UnknownSpeed, LINE_OVERHEAD_BYTES};
