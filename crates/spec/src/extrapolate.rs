//! A long copy of which a part is simulated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds of the simulated part of a copy whose rest may be extrapolated from its steady state; see
/// `experiment::steady`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtrapolateSpec {
    /// Begin of the observation, ns: all connections are open.
    pub from_ns: u64,
    /// Time between two observations, ns.
    pub interval_ns: u64,
    /// Data packets delivered before the first assessment; the next ones are after twice as many each.
    pub first_packets: u64,
    /// Data packets after which there is no extrapolation.
    pub most_packets: u64,
    /// Time after which there is none either, ns; absent = none, only packets count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
    /// Least episodes of loss recovery in the steady part.
    pub least_episodes: u64,
    /// Half of the goodput's 95 % interval that ends the simulation before `most_packets`, parts per million.
    pub error_ppm: u32,
}
