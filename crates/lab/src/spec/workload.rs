//! What flows carry.

use super::IscsiSpec;
use serde::Deserialize;

/// Whose the workload is, where a flow has several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DistributionSpec {
    /// Each connection carries the whole workload.
    #[default]
    Each,
    /// The workload is one, over all connections of the group.
    Striped,
}

/// What a flow carries.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// As much as the connection takes.
    Bulk {
        /// Bytes; null = until the end.
        bytes: Option<u64>,
    },
    /// Constant load: one frame every so often, each frame's latency measured (the dsan paper's FC generator).
    Offered {
        /// Payload bytes of a frame written to the connection.
        frame_bytes: u64,
        /// Offered load of frames, bit/s.
        rate_bps: u64,
        /// Frames the generator may have outstanding (FC buffer credits); null = unlimited backlog.
        credits: Option<u64>,
    },
    /// A real program, where there are sockets; simulated, as bulk.
    Program {
        /// Its name.
        program: String,
        /// Bytes that it is told to send; null = until the end.
        bytes: Option<u64>,
    },
    /// Writes of a block trace, mirrored.
    Replicate {
        /// The trace and how it is played.
        trace: TraceSpec,
    },
    /// A connection of an iSCSI session: the flows of a group, in their order, are its connections.
    Iscsi(Box<IscsiSpec>),
}

/// Where a trace comes from and how it is played.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Absolute path.
    pub path: String,
    /// A name of `storage::Format`, or "auto": told by the content.
    pub format: String,
    /// Factor on all times, parts per million: 1_000_000 = as recorded, 2_000_000 = half as fast.
    pub slowdown_e6: u64,
    /// Start again at the end.
    pub looped: bool,
    /// Bytes sent beside each write's data (replication header).
    pub header_bytes: u32,
}
