//! Measurements in the course of a run, each with its own schedule.

use std::ops::ControlFlow;
use units::Time;

/// A flow as a probe sees it: counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowObservation {
    /// Payload delivered, bytes.
    pub received_bytes: u64,
    /// Data packets delivered.
    pub packets: u64,
    /// Episodes of loss recovery, time-outs among them.
    pub episodes: u64,
    /// Sent and not acknowledged, bytes.
    pub in_flight_bytes: u64,
}

/// A queue as a probe sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueObservation {
    /// Packets waiting.
    pub packets: u64,
    /// Bytes waiting.
    pub bytes: u64,
}

/// The state that a probe may read.
pub trait ProbeView {
    /// Flows of the specification.
    fn flows(&self) -> usize;
    /// One of them.
    fn flow(&self, index: usize) -> FlowObservation;
    /// The queue before link `index` of the specification.
    fn queue(&mut self, index: usize) -> QueueObservation;
}

/// A measurement. A probe changes nothing of the run; it is called by its schedule and not by packet.
pub trait Probe {
    /// Returns the time of the next measurement; [`Time::NEVER`]: no more.
    fn poll_timeout(&self) -> Time;
    /// Measures. Break: the run may end, since the probe has its result.
    fn handle_timeout(&mut self, now: Time, view: &mut dyn ProbeView) -> ControlFlow<()>;
}
