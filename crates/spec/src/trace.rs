//! Block traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A trace and its replay.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Absolute path.
    pub path: String,
    /// With format "columns": the meaning of each field (docs/reference/traces.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// Format of the file.
    pub format: TraceFormatSpec,
    /// Factor on all times, parts per million: 1_000_000 = as recorded, 2_000_000 = half as fast.
    pub time_scale_e6: u64,
    /// Start again at the end.
    pub looped: bool,
    /// Bytes sent beside each write's data (replication header).
    pub header_bytes: u32,
}

impl TraceSpec {
    /// All that decides on the requests that are read.
    pub fn content(&self) -> TraceContent {
        (self.path.clone(), self.format, self.columns.clone())
    }
}

/// Path, format and columns of a trace.
pub type TraceContent = (String, TraceFormatSpec, Option<String>);

/// Format of a trace; see `storage::Format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormatSpec {
    /// Told by the content.
    Auto,
    /// Alibaba's block storage.
    Alibaba,
    /// Events of Linux's block layer as `blkparse` prints them.
    Blkparse,
    /// Delimited fields, named by the key `columns`.
    Columns,
    /// DiskSim's ascii.
    Disksim,
    /// DiskSim's validation traces.
    DisksimValidate,
    /// fio's I/O log.
    Fio,
    /// Florida International University's.
    Fiu,
    /// Hewlett-Packard's SRT.
    HpSrt,
    /// The MQSim project's.
    Mqsim,
    /// Microsoft Research Cambridge's, as SNIA keeps them.
    Msr,
    /// The Storage Performance Council's.
    Spc,
    /// The virtual desktops of SYSTOR '17.
    Systor,
    /// Tencent's block storage.
    Tencent,
}
