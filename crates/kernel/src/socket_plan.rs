//! Options of a connection's sockets.

use serde::Deserialize;

/// Options of the sockets of a connection; null leaves the host's. Those of the other end are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SocketPlan {
    /// `TCP_CONGESTION` of both ends.
    pub congestion_control: Option<String>,
    /// `TCP_WINDOW_CLAMP` of the receiver, bytes.
    pub window_clamp_bytes: Option<u64>,
    /// `SO_RCVBUFFORCE` before listening, bytes, or `SO_RCVBUF` without CAP_NET_ADMIN; null = the kernel's autotuning.
    pub receive_buffer_bytes: Option<u64>,
    /// `SO_SNDBUFFORCE`, bytes, or `SO_SNDBUF` without CAP_NET_ADMIN; null = the kernel's autotuning.
    pub send_buffer_bytes: Option<u64>,
    /// `TCP_MAXSEG`, bytes; null = from the MTU.
    pub max_segment_bytes: Option<u32>,
    /// Paced by the kernel always.
    pub pacing: bool,
    /// `SO_MAX_PACING_RATE`, bit/s; null = none.
    pub max_pacing_bps: Option<u64>,
    /// `TCP_RTO_MAX_MS`; null = the kernel's.
    pub rto_max_ms: Option<u32>,
}
