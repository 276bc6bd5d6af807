//! Changes in the measurements of a path: its benchmark, its daily pattern, and when its level has left them.
//!
//! [`Detector`] follows one quantity of one path. [`cause::likely_cause`] reads changes of several quantities together.
//!
//! **Invariant: a detector sees one sample at a time, with its time as an argument, and its state is data that a
//! restart goes on from.**

pub mod cause;
mod change;
mod config;
mod detector;
mod discrete;
mod level;
mod loss;
mod profile;
mod tail;

pub use change::{Change, Kind};
pub use config::{Config, ConfigError};
pub use detector::{Detector, StateError};
