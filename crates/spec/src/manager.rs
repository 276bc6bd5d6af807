//! The manager of a hybrid network and the lightpaths that it may use.

use crate::MitigationSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The operator's policy; see `te::Policy`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManagerSpec {
    /// Time between two looks, ns.
    pub interval_ns: u64,
    /// One packet in so many is sampled; 1 = all are counted.
    pub sampling_rate: u64,
    /// Flows in the table at most.
    pub flow_table_size: usize,
    /// A flow of which nothing is seen for so long is over, ns.
    pub inactive_timeout_ns: u64,
    /// Rate of an elephant, bit/s of IP packets.
    pub rate_bps: u64,
    /// Volume of an elephant, bytes of IP packets.
    pub volume_bytes: u64,
    /// Standard errors taken off an estimate before it is compared, thousandths.
    pub confidence_sigmas_e3: u32,
    /// Rate below which a moved flow goes back, bit/s.
    pub return_rate_bps: u64,
    /// A flow stays where it is after a move, ns.
    pub min_dwell_time_ns: u64,
    /// A lightpath that carries nothing is kept, ns.
    pub lightpath_timeout_ns: u64,
    /// Lightpaths set up at once at most.
    pub lightpaths_max: usize,
    /// Part of a lightpath's capacity that is given away, parts per million.
    pub max_utilization_ppm: u32,
    /// Worth of a byte taken off the IP level, parts per million of one delivered.
    pub offload_weight_ppm: u32,
    /// Load of the bypassed IP way from which that worth is one, parts per million.
    pub congestion_threshold_ppm: u32,
    /// Refuse moves that are forecast to cost more than they gain.
    pub refuse: bool,
    /// Time after a move during which what a flow lacks is the move's cost, ns.
    pub observation_window_ns: u64,
    /// Part of the window that congestion controls keep at a loss, parts per million.
    pub cc_beta_ppm: u32,
    /// Index of the Pareto tail of flows' sizes, thousandths.
    #[serde(default = "as_much_again", skip_serializing_if = "is_as_much_again")]
    #[schemars(extend("default" = as_much_again()))]
    pub pareto_shape_e3: u32,
    /// What may be done about moves to lightpaths; empty: flows are moved as they are.
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

/// What may be done about the moves of flows of one way to one lightpath.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathMitigationSpec {
    /// The flows' way over IP: links for data.
    pub route: Vec<usize>,
    /// Index into `lightpaths`.
    pub lightpath: usize,
    /// As of a move by an event; nobody is made patient.
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
    /// What it carries, bit/s.
    pub capacity_bps: u64,
    /// From the decision to set it up to the first packet, ns.
    pub set_up_ns: u64,
    /// Bytes that a set-up must gain before it is worth it.
    pub cost_bytes: u64,
}
