//! The manager of a hybrid network and the lightpaths that it may use.

use super::RemedySpec;
use serde::Deserialize;

/// The operator's policy; see `te::Policy`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerSpec {
    /// Time between two looks, ns.
    pub interval_ns: u64,
    /// One packet in so many is sampled; 1 = all are counted.
    pub one_in: u64,
    /// Flows in the table at most.
    pub memory: usize,
    /// A flow of which nothing is seen for so long is over, ns.
    pub idle_ns: u64,
    /// Rate of an elephant, bit/s of IP packets.
    pub rate_bps: u64,
    /// Volume of an elephant, bytes of IP packets.
    pub volume_bytes: u64,
    /// Standard errors taken off an estimate before it is compared, thousandths.
    pub standard_errors_e3: u32,
    /// Rate below which a moved flow goes back, bit/s.
    pub back_below_bps: u64,
    /// A flow stays where it is after a move, ns.
    pub minimum_stay_ns: u64,
    /// A lightpath that carries nothing is kept, ns.
    pub linger_ns: u64,
    /// Lightpaths set up at once at most.
    pub lightpaths_max: usize,
    /// Part of a lightpath's capacity that is given away, parts per million.
    pub fill_ppm: u32,
    /// Worth of a byte taken off the IP level, parts per million of one delivered.
    pub offload_worth_ppm: u32,
    /// Load of the bypassed IP way from which that worth is one, parts per million.
    pub busy_ppm: u32,
    /// Refuse moves that are forecast to cost more than they gain.
    pub refuse: bool,
    /// Time after a move during which what a flow lacks is the move's cost, ns.
    pub watch_ns: u64,
    /// Part of the window that congestion controls keep at a loss, parts per million.
    pub keep_ppm: u32,
    /// Index of the Pareto tail of flows' sizes, thousandths.
    #[serde(default = "as_much_again")]
    pub tail_e3: u32,
    /// What may be done about moves to lightpaths; empty: flows are moved as they are.
    #[serde(default)]
    pub remedies: Vec<WayRemedySpec>,
    /// Priority of each flow, in the order of `flows`.
    pub priorities: Vec<i32>,
    /// Lightpaths, in the order in which they are preferred.
    pub lightpaths: Vec<LightpathSpec>,
}

/// A flow is expected to send as much again as it has sent.
fn as_much_again() -> u32 {
    2000
}

/// What may be done about the moves of flows of one way to one lightpath.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WayRemedySpec {
    /// The flows' way over IP: links for data.
    pub route: Vec<usize>,
    /// Index into `lightpaths`.
    pub lightpath: usize,
    /// As of a move by an event; nobody is made patient.
    pub remedy: RemedySpec,
}

/// A lightpath: links between two routers that carry nothing until the manager moves a flow there.
#[derive(Clone, Debug, Deserialize)]
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
