//! An FCoE forwarder (FCF) without I/O: a fabric's ports on an Ethernet, with FIP (FC-BB-5, clause 7).
//!
//! A caller hands in each Ethernet frame with the time ([`Forwarder::handle_ethernet`]), takes out those that leave
//! ([`Forwarder::poll_transmit`]), and comes back at [`Forwarder::poll_timeout`]. Frames to and from ports that a
//! gateway presents cross at [`Forwarder::poll_remote`] and [`Forwarder::handle_remote`].
//!
//! **Invariant: a frame reaches the fabric only from the Ethernet address that the fabric gave to its sender.**

mod engine;
mod node;
mod settings;
#[cfg(test)]
mod tests;

pub use engine::{Counters, Forwarder};
pub use settings::{KeepAliveTooShort, Settings, KEEP_ALIVE_MS_MIN};
