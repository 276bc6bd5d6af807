//! Fibre Channel as state machines without I/O: the services of a fabric, for ports that real wires or the simulator
//! attach.
//!
//! **Invariant: what an attached port sends can end its own logins, and nothing else; what is kept for it is bounded.**

pub mod enode;
pub mod fabric;
pub mod fcip;
pub mod fcp;
pub mod forwarder;
pub mod generator;
pub mod ifcp;
pub mod isns;
pub mod link;
pub mod nport;
mod sequence;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use sequence::{frames_of, Collected, Collector, CollectorBounds};
