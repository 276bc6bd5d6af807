//! Discrete-event engine: an event queue with a total order, a topology of links, a run loop.
//!
//! What it does: moves packets hop by hop along routes through [`link::Link`]s in virtual time, and fires timers. What it
//! does not: it knows no protocol, reads no clock, draws no random number; hosts and packets are the caller's types.
//!
//! **Invariant: events happen in the order (time, source number), and time never goes back.** The order is deliberate:
//! timers of changes come before links, links before timers of endpoints (see [`Network::new`]), so that two runs of the
//! same input take the same steps whatever the machine.
//!
//! Cost: one pending event per link and per timer, never one per packet. A packet costs one queue operation per link; none for
//! a link that is a passage ([`Link::pass`](link::Link::pass)) and leads to one that nothing else leads to.

#![forbid(unsafe_code)]

mod events;
mod network;
mod routes;
#[cfg(test)]
mod tests;

pub use events::EventQueue;
pub use network::{Hosts, Network, Progress, SendError};
pub use routes::{Hop, RouteId, Routed, Routes};
