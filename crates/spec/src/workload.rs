//! Workloads of flows.

use crate::active::ActiveSpec;
use crate::copy::CopySpec;
use crate::fc::FcSpec;
use crate::fcp::FcpSpec;
use crate::iscsi::IscsiSpec;
use crate::program::ProgramSpec;
use crate::trace::TraceSpec;
use crate::writes::WritesSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Owner of the workload, where a flow has several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DistributionSpec {
    /// Each connection carries the whole workload.
    #[default]
    Each,
    /// The workload is one, over all connections of the group.
    Striped,
}

impl DistributionSpec {
    /// Returns true if each connection carries the whole workload.
    pub fn is_each(&self) -> bool {
        *self == DistributionSpec::Each
    }
}

/// Workload of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkloadSpec {
    /// As much as the connection takes.
    #[schemars(title = "BulkSpec")]
    Bulk {
        /// Bytes; null = until the end.
        bytes: Option<u64>,
        /// Most bytes of a write to a socket, where there are sockets; absent = as many as it takes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        buffer_bytes: Option<u64>,
    },
    /// Constant load: one frame every so often, each frame's latency measured (the dsan paper's FC generator).
    #[schemars(title = "ConstantRateSpec")]
    ConstantRate {
        /// Payload bytes of a frame written to the connection.
        frame_bytes: u64,
        /// Offered load of frames while active, bit/s.
        rate_bps: u64,
        /// Frames the generator may have outstanding (FC buffer credits); null = unlimited backlog.
        credits: Option<u64>,
        /// Exact periods; left out: frames are issued all the time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active: Option<ActiveSpec>,
    },
    /// A real program, where there are sockets; simulated, as bulk.
    #[schemars(title = "ProgramWorkloadSpec")]
    Program(ProgramSpec),
    /// Mirrored writes: of exactly one of the two sources.
    #[schemars(title = "ReplicateSpec")]
    Replicate {
        /// Writes of a block trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceSpec>,
        /// Writes drawn at random.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writes: Option<WritesSpec>,
    },
    /// A stream of a copy of files: the flows of a group share them.
    #[schemars(title = "CopyWorkloadSpec")]
    Copy(Box<CopySpec>),
    /// A connection of an iSCSI session: the flows of a group, in their order, are its connections.
    #[schemars(title = "IscsiWorkloadSpec")]
    Iscsi(Box<IscsiSpec>),
    /// A connection between two Fibre Channel gateways: the flows of a group carry its pairs of N_Ports.
    #[schemars(title = "FcWorkloadSpec")]
    Fc(Box<FcSpec>),
    /// The same, with SCSI initiators and targets.
    #[schemars(title = "FcpWorkloadSpec")]
    Fcp(Box<FcpSpec>),
}
