//! Periods of a source of traffic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Periods of a source, all alike: it sends for `on_ns` of each, then rests for `off_ns`. Its rate is that while it
/// sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActiveSpec {
    /// Time on, ns, above zero.
    pub on_ns: u64,
    /// Time off, ns, above zero; both together are below 2^63.
    pub off_ns: u64,
    /// Part of its first period that has passed when the source starts, ns; below `on_ns` + `off_ns`.
    pub phase_ns: u64,
}
