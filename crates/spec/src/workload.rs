//! Workloads of flows.

use crate::iscsi::IscsiSpec;
use crate::trace::TraceSpec;
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
    },
    /// Constant load: one frame every so often, each frame's latency measured (the dsan paper's FC generator).
    #[schemars(title = "ConstantRateSpec")]
    ConstantRate {
        /// Payload bytes of a frame written to the connection.
        frame_bytes: u64,
        /// Offered load of frames, bit/s.
        rate_bps: u64,
        /// Frames the generator may have outstanding (FC buffer credits); null = unlimited backlog.
        credits: Option<u64>,
    },
    /// A real program, where there are sockets; simulated, as bulk.
    #[schemars(title = "ProgramSpec")]
    Program {
        /// Name of the program.
        program: ProgramName,
        /// Bytes to send; null = until the end.
        bytes: Option<u64>,
    },
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
    /// A connection of an iSCSI session: the flows of a group, in their order, are its connections.
    #[schemars(title = "IscsiWorkloadSpec")]
    Iscsi(Box<IscsiSpec>),
}

/// A program that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramName {
    /// iperf3, client and server.
    Iperf3,
    /// scp, to an sshd.
    Scp,
    /// curl, to a vsftpd.
    Ftp,
}

impl ProgramName {
    /// Its name as a user writes it.
    pub fn name(self) -> &'static str {
        match self {
            ProgramName::Iperf3 => "iperf3",
            ProgramName::Scp => "scp",
            ProgramName::Ftp => "ftp",
        }
    }
}

/// Writes that are drawn at a mean rate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritesSpec {
    /// Mean rate of their data, bit/s.
    pub rate_bps: u64,
    /// Bytes of each.
    pub sizes: WriteSizesSpec,
    /// Times of issue.
    pub arrivals: ArrivalsSpec,
    /// Bytes sent beside each write's data (replication header).
    pub header_bytes: u32,
}

/// Distribution of the sizes of writes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WriteSizesSpec {
    /// All of one size.
    #[schemars(title = "FixedSizeSpec")]
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Of several sizes.
    #[schemars(title = "MixedSizesSpec")]
    Mix {
        /// (bytes, weight), each below 2^32.
        sizes: Vec<[u64; 2]>,
    },
    /// Lognormal.
    #[schemars(title = "LognormalSizesSpec")]
    Lognormal {
        /// Half are below it, bytes.
        median_bytes: u64,
        /// Standard deviation of the natural logarithm, thousandths.
        sigma_e3: u32,
    },
    /// Bounded Pareto.
    #[schemars(title = "ParetoSizesSpec")]
    Pareto {
        /// Tail index, thousandths.
        shape_e3: u32,
        /// Least, bytes.
        min_bytes: u64,
        /// Most, bytes.
        max_bytes: u64,
    },
}

/// Times at which writes are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "process", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// Each after the transmission time of the one before at the rate.
    #[schemars(title = "ConstantArrivalsSpec")]
    Constant,
    /// Independently of each other.
    #[schemars(title = "PoissonArrivalsSpec")]
    Poisson,
    /// Poisson while on, none while off.
    #[schemars(title = "OnOffArrivalsSpec")]
    OnOff {
        /// Mean time on, ns.
        on_ns: u64,
        /// Mean time off, ns.
        off_ns: u64,
        /// Tail index of the times on and off, thousandths, above 1000; null = exponential.
        pareto_shape_e3: Option<u32>,
    },
}
