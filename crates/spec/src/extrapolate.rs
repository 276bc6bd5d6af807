//! A long copy of which a part is simulated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a copy is simulated until the rest may be extrapolated from its steady state; see `experiment::steady`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtrapolateSpec {
    /// From when on it is observed, ns: all connections are open.
    pub from_ns: u64,
    /// Time between two observations, ns.
    pub interval_ns: u64,
    /// Data packets delivered before it is looked at first; then after twice as many, and so on.
    pub first_packets: u64,
    /// Data packets after which it is given up.
    pub most_packets: u64,
    /// Episodes of loss recovery that the steady part must have.
    pub least_episodes: u64,
    /// Half of the 95 % interval of the goodput with which one is content before `most_packets`, parts per million.
    pub error_ppm: u32,
}
