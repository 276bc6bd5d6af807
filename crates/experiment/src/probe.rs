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
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Packets of either direction lost on the way.
    pub dropped_packets: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Times that a loss or ECN-Echo made the control reduce its window; None: the transport has none.
    pub cwnd_reductions: Option<u64>,
    /// Congestion window, segments; None: the flow has not begun, or its connection is over.
    pub cwnd_packets: Option<u32>,
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
