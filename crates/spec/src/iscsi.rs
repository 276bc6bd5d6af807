//! A workload over iSCSI: one session, its requests, the disk behind.

use crate::block::{DiskSpec, SourceSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A session of one or more connections. Every flow of a group has the same one; each flow is one of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IscsiSpec {
    /// InitialR2T: nothing but immediate data goes before an R2T.
    pub initial_r2t: bool,
    /// ImmediateData: data may ride on a command.
    pub immediate_data: bool,
    /// MaxBurstLength, bytes: 512 to 2^24 - 1.
    pub max_burst_bytes: u32,
    /// FirstBurstLength, bytes: 512 to `max_burst_bytes`.
    pub first_burst_bytes: u32,
    /// MaxRecvDataSegmentLength of the initiator, bytes: 512 to 2^24 - 1.
    pub initiator_max_recv_bytes: u32,
    /// MaxRecvDataSegmentLength of the target, bytes: 512 to 2^24 - 1.
    pub target_max_recv_bytes: u32,
    /// MaxOutstandingR2T: 1 to 65535.
    pub max_outstanding_r2t: u32,
    /// CRC32C over headers.
    pub header_digest: bool,
    /// CRC32C over data.
    pub data_digest: bool,
    /// Commands in flight that the target allows a session: 1 to 4096.
    pub command_window: u32,
    /// Requests in flight of the initiator's host; at least 1.
    pub queue_depth: u32,
    /// Choice of the connection for a command.
    pub allegiance: AllegianceSpec,
    /// The disk behind the target.
    pub disk: DiskSpec,
    /// Source of the requests.
    pub source: SourceSpec,
}

/// Choice of the connection for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllegianceSpec {
    /// One after the other.
    RoundRobin,
    /// The one with the fewest commands in flight.
    LeastOutstanding,
}
