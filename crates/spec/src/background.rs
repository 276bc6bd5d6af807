//! Traffic without congestion control.

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
    /// Rate while on, bit/s of IP packets.
    pub rate_bps: u64,
    /// Bytes of an IP packet.
    pub packet_bytes: u32,
    /// First on, ns.
    pub start_ns: u64,
    /// Last off, ns; null = the end of the run.
    pub stop_ns: Option<u64>,
    /// Mean time on, ns, and mean time off, ns, both exponential; null = constantly on.
    pub on_off_ns: Option<[u64; 2]>,
    /// On before an event says so.
    pub enabled: bool,
}
