//! A workload over Fibre Channel gateways: SCSI initiators and targets with disks.

use crate::block::{DiskSpec, SourceSpec};
use crate::fc::FcProtocolSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pairs of N_Ports: an FCP initiator behind the gateway that the flow leaves, a target with disks behind the other.
/// Every flow of a group has the same.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FcpSpec {
    /// Protocol between the gateways.
    pub protocol: FcProtocolSpec,
    /// Pairs of N_Ports of the group: as many as its connections with iFCP, at least as many with FCIP.
    pub pairs: u32,
    /// Longest payload of a frame that a port takes, bytes: 256 to 2112, a multiple of 4.
    pub frame_bytes: u32,
    /// Data that one FCP_XFER_RDY asks for, bytes: at least 512.
    pub max_burst_bytes: u32,
    /// Requests in flight of each initiator's host; at least 1.
    pub queue_depth: u32,
    /// The gateway at the initiator answers a write with FCP_XFER_RDY in the target's name.
    pub write_acceleration: bool,
    /// The disk behind each target.
    pub disk: DiskSpec,
    /// Source of each initiator's requests.
    pub source: SourceSpec,
}
