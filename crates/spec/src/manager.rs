//! The manager of a hybrid network and the lightpaths that it may use.

use crate::mitigation::MitigationSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's policy; see `te::Policy`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManagerSpec {
    /// Interval of the decisions, ns.
    pub interval_ns: u64,
    /// One packet in so many is sampled; 1 = all are counted.
    pub sampling_rate: u64,
    /// Most flows in the flow table.
    pub flow_table_size: usize,
    /// Time without packets after which a flow is over, ns.
    pub inactive_timeout_ns: u64,
    /// Rate of an elephant, bit/s of IP packets.
    pub rate_bps: u64,
    /// Volume of an elephant, bytes of IP packets.
    pub volume_bytes: u64,
    /// Standard errors subtracted from an estimate before a comparison, thousandths.
    pub confidence_sigmas_e3: u32,
    /// Rate below which a moved flow returns, bit/s.
    pub return_rate_bps: u64,
    /// Least time between two moves of a flow, ns.
    pub min_dwell_time_ns: u64,
    /// Time that an unused lightpath is kept, ns.
    pub lightpath_timeout_ns: u64,
    /// Most lightpaths set up at once.
    pub lightpaths_max: usize,
    /// Largest utilization of a lightpath, parts per million.
    pub max_utilization_ppm: u32,
    /// Weight of a byte taken off the IP level, parts per million of a byte delivered.
    pub offload_weight_ppm: u32,
    /// Load of the bypassed IP path from which that weight is one, parts per million.
    pub congestion_threshold_ppm: u32,
    /// Refuse moves whose forecast cost exceeds the gain.
    pub refuse: bool,
    /// Time after a move during which a flow's deficit counts as the move's cost, ns.
    pub observation_window_ns: u64,
    /// Part of the window that the congestion control keeps at a loss, parts per million.
    pub cc_beta_ppm: u32,
    /// Index of the Pareto tail of flows' sizes, thousandths.
    #[serde(default = "as_much_again", skip_serializing_if = "is_as_much_again")]
    #[schemars(extend("default" = as_much_again()))]
    pub pareto_shape_e3: u32,
    /// Allowed mitigations of moves to lightpaths; absent = none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mitigations: Vec<PathMitigationSpec>,
    /// Priority of each flow, in the order of `flows`.
    pub priorities: Vec<i32>,
    /// Lightpaths, in the order in which they are preferred.
    pub lightpaths: Vec<LightpathSpec>,
}

/// A flow is expected to send as much again as it has sent.
fn as_much_again() -> u32 {
    2000
}

fn is_as_much_again(shape_e3: &u32) -> bool {
    *shape_e3 == as_much_again()
}

/// Allowed mitigation of moves from one path to one lightpath.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathMitigationSpec {
    /// Path of the flows over IP: links for data.
    pub route: Vec<usize>,
    /// Index into `lightpaths`.
    pub lightpath: usize,
    /// As of a move by an event; without reordering tolerance.
    pub mitigation: MitigationSpec,
}

/// A lightpath: links between two routers that carry nothing until the manager moves a flow there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LightpathSpec {
    /// Name, unique.
    pub name: String,
    /// Links for data, in order.
    pub route: Vec<usize>,
    /// Capacity, bit/s.
    pub capacity_bps: u64,
    /// Time from the decision to the first packet, ns.
    pub set_up_ns: u64,
    /// Cost of a set-up, as bytes that a move has to gain.
    pub cost_bytes: u64,
}
