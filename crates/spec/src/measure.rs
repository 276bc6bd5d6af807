//! Observation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observation of a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// Interval of the series, ns; null = none.
    pub series_interval_ns: Option<u64>,
    /// Start of the interval over which goodput and shares are counted, ns (warm-up before it).
    pub warmup_ns: u64,
    /// pcapng file to write, absolute path; null = none.
    pub pcap: Option<String>,
    /// Index of the node whose view the capture takes: packets it sends and receives.
    pub pcap_node: usize,
    /// Packets captured at most (headers alone, but between Fibre Channel gateways); null = no bound.
    pub pcap_packets: Option<u64>,
    /// Intervals with metrics of their own; absent = none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSpec>,
}

/// Interval of a run with metrics of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowSpec {
    /// Name, unique.
    pub name: String,
    /// Index into `events` of the event from which the times count; absent = the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<usize>,
    /// Beginning, ns.
    pub from_ns: u64,
    /// End, ns.
    pub to_ns: u64,
}
