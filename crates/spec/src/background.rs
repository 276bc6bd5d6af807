//! Traffic without congestion control.

use crate::link::FramingSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Traffic that does not react, on a route of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackgroundSpec {
    /// Name, unique.
    pub name: String,
    /// Links, in order.
    pub route: Vec<usize>,
    /// Rate while on, bit/s: of IP packets, or with `frames` of their frames and what lies between these.
    pub rate_bps: u64,
    /// Bytes of an IP packet; with `frames` of the largest.
    pub packet_bytes: u32,
    /// First on, ns.
    pub start_ns: u64,
    /// Last off, ns; null = the end of the run.
    pub stop_ns: Option<u64>,
    /// Mean time on, ns, and mean time off, ns, both exponential; null = constantly on.
    pub on_off_ns: Option<[u64; 2]>,
    /// On before an event says so.
    pub enabled: bool,
    /// Frames by size, in place of packets that are all alike; left out where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FramesSpec>,
}

/// Frames of a source: a round of sizes over and over, each begun when its predecessor's time at the source's rate is
/// over.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramesSpec {
    /// IP packets of a round, bytes.
    pub packets_bytes: Vec<u32>,
    /// Frame around each, as the rate counts it.
    pub framing: FramingSpec,
}
