//! Settings of TCP.

use serde::Deserialize;

/// Transport of a flow. See `tcp::Config` for ranges and Linux's defaults.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportSpec {
    /// Built-in algorithm's name, or the absolute path of a user's .c file.
    pub congestion_control: String,
    /// Values of the algorithm's parameters by name; those absent keep the default.
    /// Fractions are handed over as the integer that the parameter's declared unit asks for.
    pub parameters: std::collections::BTreeMap<String, i64>,
    /// "newreno", "sack" or "rack".
    pub recovery: String,
    /// Segments.
    pub initial_cwnd: u32,
    /// Segments; null = infinite.
    pub initial_ssthresh: Option<u32>,
    /// Receive window limit, bytes.
    pub window_bytes: u64,
    /// Negotiate window scaling.
    pub window_scaling: bool,
    /// Whether RFC 7323's largest shift of 14, a window of 1.07 GB, holds; if not, 15. Absent in specifications of
    /// before, where it did, as the next two.
    #[serde(default = "yes")]
    pub window_bound: bool,
    /// Forced shift.
    pub window_scale: Option<u8>,
    /// Grow the advertised window with use.
    pub receive_autotuning: bool,
    /// Send buffer, bytes; null = unlimited.
    pub send_buffer_bytes: Option<u64>,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Negotiate timestamps.
    pub timestamps: bool,
    /// Delay ACKs.
    pub delayed_ack: bool,
    /// Hold back duplicate ACKs, with "rack"; absent in specifications from before it was there, which did not.
    #[serde(default)]
    pub sack_compression: bool,
    /// Segments acknowledged at once at the start.
    pub quickack_segments: u32,
    /// Negotiate ECN.
    pub ecn: bool,
    /// Pace always.
    pub pacing: bool,
    /// Restart after idle.
    pub slow_start_after_idle: bool,
    /// ns.
    pub rto_min_ns: u64,
    /// ns.
    pub rto_max_ns: u64,
    /// Duplicate ACK threshold at the start.
    pub reordering: u32,
    /// Largest threshold that reordering may raise it to.
    #[serde(default = "linux_max_reordering")]
    pub max_reordering: u32,
    /// Take back reductions that were proven wrong.
    #[serde(default = "yes")]
    pub undo: bool,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// RFC 5682.
    pub frto: bool,
    /// Off: only the time-out repairs.
    pub fast_retransmit: bool,
    /// Segments; null = unlimited.
    pub cwnd_clamp: Option<u32>,
}

fn yes() -> bool {
    true
}

fn linux_max_reordering() -> u32 {
    tcp::config::MAX_REORDERING
}
