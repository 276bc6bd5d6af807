//! Mitigations of a move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mitigation of a move, at the moving router and at the senders.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MitigationSpec {
    /// Hold buffer at the moving router.
    pub hold_buffer: Option<HoldBufferSpec>,
    /// Reduction of the senders' windows before the move.
    pub cwnd_reduction: Option<CwndReductionSpec>,
    /// Tolerance of the senders for late packets.
    pub reordering_tolerance: Option<ReorderingToleranceSpec>,
}

/// A delay line at the moving router; see `link::HoldBuffer`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBufferSpec {
    /// Initial delay, ns: the difference of the two paths as the router knows it.
    pub delay_ns: u64,
    /// Links of the old path whose queuing delay at the move is added.
    pub queues: Vec<QueueDelaySpec>,
    /// Share by which the departure rate exceeds the arrival rate while the delay shrinks, parts per million; null =
    /// all at once after the delay.
    pub share_ppm: Option<u32>,
    /// Highest release rate, bit/s: at most that of the line behind it.
    pub rate_bps: u64,
    /// Link whose line it feeds; hold buffers of one link and rate take turns. Absent = it has the rate for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Capacity, bytes; null = no bound.
    pub limit_bytes: Option<u64>,
}

/// A queue and the line that empties it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueDelaySpec {
    /// Index into `links`.
    pub link: usize,
    /// Rate of the link as the moving router knows it, bit/s.
    pub rate_bps: u64,
}

/// A reduction of the congestion window before a move.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CwndReductionSpec {
    /// Difference of the two paths' delays as the sender gets it, ns.
    pub delay_ns: u64,
    /// Part of the window that remains, parts per million; null = (RTT - delay) / RTT by the sender's own RTT.
    pub cwnd_fraction_ppm: Option<u32>,
    /// Time from the sender's notice to the move, ns.
    pub lead_ns: u64,
    /// Time from the move to the window's restoration, ns; null = the congestion control restores it.
    pub restore_ns: Option<u64>,
}

/// Tolerance for late packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderingToleranceSpec {
    /// Tolerated lateness, ns; 0 = RACK's own reordering window.
    pub delay_ns: u64,
    /// Duration, ns; null = twice the sender's RTT and the delay.
    pub duration_ns: Option<u64>,
}
