//! Traffic without congestion control.

use crate::active::ActiveSpec;
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
    /// Exact periods; left out: it sends, or draws its periods, all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveSpec>,
    /// On before an event says so.
    pub enabled: bool,
    /// Frames by size, in place of packets that are all alike; left out where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FramesSpec>,
    /// Speech that its packets carry, as those of one call or of several alike; left out: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub codec: Option<CodecSpec>,
}

/// Codec of speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodecSpec {
    /// G.711 at 64 kbit/s, whose receiver conceals losses (appendix I).
    G711,
    /// G.711 without that.
    G711WithoutPlc,
    /// G.729A at 8 kbit/s, with voice activity detection.
    G729a,
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
