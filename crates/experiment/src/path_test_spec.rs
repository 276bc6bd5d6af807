//! The place of a path test in a run.

use serde::{Deserialize, Serialize};

/// A path test's place in a run, and its receiver's clock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PathTestSpec {
    /// Links to the far end; null: those of the run's first flow, or first background source.
    #[serde(default)]
    pub route: Option<Vec<usize>>,
    /// Links back; null: those of the run's first flow.
    #[serde(default)]
    pub return_route: Option<Vec<usize>>,
    /// First poll of the estimator, ns.
    #[serde(default)]
    pub start_ns: u64,
    /// Steps of the receiver's time stamps, ns; 0 is 1.
    #[serde(default)]
    pub stamp_step_ns: u64,
    /// Receiver's clock less the sender's at time 0, ns.
    #[serde(default)]
    pub clock_offset_ns: i64,
    /// Rate of the receiver's clock beside the sender's, less one, 10^-9.
    #[serde(default)]
    pub clock_skew_e9: i32,
}
