//! Measurement of an IP path without I/O: STAMP (RFC 8762, RFC 8972), packet trains and what they tell about capacity,
//! available bandwidth, queues, policers, hops and MTU.
//!
//! **Invariant: nothing here reads a clock, a socket or a file; the simulator, an emulated path and a real path drive
//! the same estimators, and an estimate states its interval and its cost or says why there is none.**

pub mod available;
mod budget;
pub mod capacity;
pub mod clock;
mod dispersion;
pub mod estimate;
mod first_capacity;
pub mod hops;
pub mod loss;
pub mod mtu;
pub mod policer;
pub mod queue;
pub mod reflector;
pub mod registry;
pub mod session;
pub mod settings;
pub mod stamp;
pub mod stamp_tlv;
pub mod statistics;
pub mod train;
mod trend;
