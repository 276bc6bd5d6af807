//! Mitigations of a move.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done at the moving router and at the senders so that a move hurts less.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MitigationSpec {
    /// The moving router keeps packets back.
    pub hold_buffer: Option<HoldBufferSpec>,
    /// Senders shrink their windows before.
    pub cwnd_reduction: Option<CwndReductionSpec>,
    /// Senders wait longer before they take a packet that is late for lost.
    pub reordering_tolerance: Option<ReorderingToleranceSpec>,
}

/// A delay line at the moving router; see `link::Hold`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBufferSpec {
    /// What it begins with, ns: by how much the old way is longer, as the router believes.
    pub delay_ns: u64,
    /// Links of the old way whose queues, at the moment of the move, are added to that.
    pub queues: Vec<QueueDelaySpec>,
    /// By how much more than comes leaves it while it is shortened, parts per million; null = all at once after the
    /// delay.
    pub share_ppm: Option<u32>,
    /// How fast it lets go at most, bit/s: as the line behind it sends, or slower.
    pub rate_bps: u64,
    /// Link for whose line it lets go: gates of one link and rate take turns; absent = it has that rate for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Bytes that it holds at most; null = no bound.
    pub limit_bytes: Option<u64>,
}

/// A queue and the line that empties it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueDelaySpec {
    /// Index into `links`.
    pub link: usize,
    /// Its rate as the moving router knows it, bit/s.
    pub rate_bps: u64,
}

/// A window that is told to shrink.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CwndReductionSpec {
    /// By how much the new way is shorter, ns, as the sender is told.
    pub delay_ns: u64,
    /// Part of the window that is kept, parts per million; null = (RTT - delay) / RTT by the sender's own RTT.
    pub cwnd_fraction_ppm: Option<u32>,
    /// From telling the sender to the move, ns.
    pub lead_ns: u64,
    /// From the move to giving the window back, ns; null = it is left to the congestion control.
    pub restore_ns: Option<u64>,
}

/// Patience with late packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReorderingToleranceSpec {
    /// How late, ns; 0 = as RACK waits by itself.
    pub delay_ns: u64,
    /// For how long, ns; null = twice the sender's RTT and the delay.
    pub duration_ns: Option<u64>,
}
