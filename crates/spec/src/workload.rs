//! What flows carry.

use crate::IscsiSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose the workload is, where a flow has several connections.
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
    /// Whether each connection carries the whole workload.
    pub fn is_each(&self) -> bool {
        *self == DistributionSpec::Each
    }
}

/// What a flow carries.
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
        /// Which one.
        program: ProgramName,
        /// Bytes that it is told to send; null = until the end.
        bytes: Option<u64>,
    },
    /// Mirrored writes: exactly one of the two says which.
    #[schemars(title = "ReplicateSpec")]
    Replicate {
        /// Those of a block trace, and how it is played.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceSpec>,
        /// Those that are drawn.
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

/// Where a trace comes from and how it is played.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Absolute path.
    pub path: String,
    /// How it is written.
    pub format: TraceFormatSpec,
    /// Factor on all times, parts per million: 1_000_000 = as recorded, 2_000_000 = half as fast.
    pub time_scale_e6: u64,
    /// Start again at the end.
    pub looped: bool,
    /// Bytes sent beside each write's data (replication header).
    pub header_bytes: u32,
}

/// How a trace is written; see `storage::Format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormatSpec {
    /// Told by the content.
    Auto,
    /// Events of Linux's block layer as `blkparse` prints them.
    Blkparse,
    /// DiskSim's ascii.
    Disksim,
    /// DiskSim's validation traces.
    DisksimValidate,
    /// fio's I/O log.
    Fio,
    /// Hewlett-Packard's SRT.
    HpSrt,
    /// The MQSim project's.
    Mqsim,
    /// Microsoft Research Cambridge's, as SNIA keeps them.
    Msr,
    /// The Storage Performance Council's.
    Spc,
}

/// Writes that are drawn at a mean rate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritesSpec {
    /// Mean rate of their data, bit/s.
    pub rate_bps: u64,
    /// Bytes of each.
    pub sizes: WriteSizesSpec,
    /// When they are issued.
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

/// When writes are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "process", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// Each when the one before would have passed a line of the rate.
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
