//! Block requests, and the disk behind a target: of iSCSI and of FCP.

use crate::trace::TraceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The disk behind the target.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// A name of `storage::disk::NAMES`, or the absolute path of a DiskSim file; null = a medium that takes no time.
    pub model: Option<String>,
    /// Name of the drive in the file; null = the only one.
    pub drive: Option<String>,
    /// Order of requests; null = that of the disk's description.
    pub scheduler: Option<SchedulerSpec>,
    /// Number of striped disks; 1 without a model.
    pub count: u32,
    /// Bytes on one disk before the next; a multiple of 512.
    pub stripe_bytes: u64,
    /// Size of the unit without a model, bytes.
    pub size_bytes: u64,
}

/// Order of requests at a disk; see `storage::disk::Scheduler`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerSpec {
    /// First come, first served.
    Fcfs,
    /// Shortest seek time first.
    Sstf,
    /// To and fro, as far as there are requests.
    Look,
    /// One way, then back to the first.
    CLook,
    /// Shortest positioning time first: seek and rotation.
    Sptf,
}

/// Source of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SourceSpec {
    /// Requests of one size, as many in flight as the queue depth.
    #[schemars(title = "MixSourceSpec")]
    Mix {
        /// Share of reads, parts per million.
        reads_e6: u32,
        /// A request, bytes; a multiple of 512.
        request_bytes: u32,
        /// Anywhere, or one after the other.
        random: bool,
        /// Time between the end of a request and the next one that takes its place, ns.
        think_ns: u64,
        /// Requests in all; null = without end.
        requests: Option<u64>,
        /// Part of the unit that is used, from its beginning, bytes; null = all of it.
        span_bytes: Option<u64>,
    },
    /// Postmark's pattern of a file server, as many clients as the queue depth.
    #[schemars(title = "PostmarkSourceSpec")]
    Postmark {
        /// Files at the start.
        files: u32,
        /// Size of the smallest file, bytes.
        smallest_bytes: u32,
        /// Size of the largest file, bytes.
        largest_bytes: u32,
        /// Transactions in all; null = without end.
        transactions: Option<u64>,
    },
    /// Requests of a block trace.
    #[schemars(title = "TraceSourceSpec")]
    Trace {
        /// The trace and its replay; without a header.
        trace: TraceSpec,
        /// Recorded times; else as fast as the queue depth allows.
        timed: bool,
        /// Only requests to this device of the trace; null = all.
        device: Option<u32>,
        /// Treatment of a request beyond the unit.
        out_of_range: OutOfRangeSpec,
    },
}

/// Treatment of a request beyond the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutOfRangeSpec {
    /// The run does not begin.
    Refuse,
    /// It is left out.
    Skip,
    /// Its block number is taken modulo the unit's size.
    Wrap,
}
