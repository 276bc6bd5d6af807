//! Fibre Channel as state machines without I/O: the services of a fabric, for ports that real wires or the simulator
//! attach.
//!
//! **Invariant: what an attached port sends can end its own logins, and nothing else; what is kept for it is bounded.**

pub mod fabric;
pub mod fcp;
pub mod fcip;
pub mod forwarder;
pub mod generator;
pub mod ifcp;
pub mod link;
pub mod nport;
pub mod isns;
mod sequence;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use sequence::{frames_of, Collected, Collector, CollectorBounds};
