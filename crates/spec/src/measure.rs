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
}
