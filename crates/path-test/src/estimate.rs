//! Answers of an estimator, and the interface of all of them.

use crate::train::{Train, TrainReport};
use serde::Serialize;

/// Load that a measurement put on the path.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Cost {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, from the IP headers on.
    pub bytes: u64,
    /// From the first packet to the answer, s.
    pub seconds: f64,
}

/// A quantity with its interval.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// Name, as in `capacity_bps`, `available_bps`, `queue_bytes`; the unit ends the name.
    pub quantity: &'static str,
    /// In that unit.
    pub value: f64,
    /// The interval that holds the true value in 95 of 100 measurements, as far as the method can tell.
    pub low: f64,
    /// Its end.
    pub high: f64,
}

/// The end of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// Quantities found; empty where the method refused.
    pub estimates: Vec<Estimate>,
    /// Reason of a refusal: the assumption that did not hold, with the number that shows it.
    pub refused: Option<String>,
    /// Remarks for a reader, one line each.
    pub notes: Vec<String>,
    /// Its load on the path.
    pub cost: Cost,
}

/// Next act of an estimator.
#[derive(Clone, PartialEq, Debug)]
pub enum Next {
    /// This train, not before `at_ns` of the sender's clock, so that the path has come to rest.
    Send {
        /// ns of the sender's clock.
        at_ns: u64,
        /// To be sent.
        train: Train,
    },
    /// It is done.
    Done(Outcome),
}

/// A method of measurement: it asks for trains, one at a time, and hears how each went.
pub trait Estimator {
    /// Returns the next train, or the outcome.
    fn poll_next(&mut self, now_ns: u64) -> Next;
    /// The train it asked for is over.
    fn handle_report(&mut self, now_ns: u64, report: &TrainReport);
}
