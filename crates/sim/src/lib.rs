//! Discrete-event engine: an event queue with a total order, a topology of links, a run loop.
//!
//! The engine moves packets hop by hop along routes through [`link::Link`]s in virtual time, and fires timers. It
//! knows no protocol, reads no clock and draws no random number; hosts and packets are the caller's types.
//!
//! **Invariant: events happen in the order (time, source number), and time never goes back.** The order is deliberate:
//! timers of changes come before links, links before timers of endpoints (see [`Network::new`]), so that two runs of
//! the same input take the same steps whatever the machine.
//!
//! [`Network::run_horizons`] handles the same events in another order, many at a time, where nobody can tell.
//!
//! Cost of single events: one pending event per link and per timer, never one per packet. A packet costs one queue
//! operation per link; none for a [`PrecomputedLink`](link::PrecomputedLink) that is the only link upstream of another
//! one.

#![forbid(unsafe_code)]

mod events;
mod groups;
mod horizon;
mod network;
mod routes;
#[cfg(test)]
mod tests;

pub use events::EventQueue;
pub use groups::Groups;
pub use horizon::{Departures, Processes, Shards, Team, TimerScope, Unfit};
pub use network::{FixedLink, Hosts, Network, Progress, SendError};
pub use routes::{Hop, RouteId, Routed, Routes, Train};
