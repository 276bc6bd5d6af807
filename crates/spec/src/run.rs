//! One run: nodes, links, traffic, and events and measurements.

use crate::background::BackgroundSpec;
use crate::event::EventSpec;
use crate::extrapolate::ExtrapolateSpec;
use crate::flow::FlowSpec;
use crate::gateway::GatewaySpec;
use crate::link::LinkSpec;
use crate::manager::ManagerSpec;
use crate::measure::MeasureSpec;
use crate::short_flows::ShortFlowsSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form that this version writes and reads.
pub const FORMAT: u32 = 2;

/// One point of a scenario with one seed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Form of this structure; [`FORMAT`].
    #[schemars(extend("const" = FORMAT))]
    pub format: u32,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated time after which the run ends, ns. Flows that finish earlier end it earlier when `stop_when_done`.
    pub duration_ns: u64,
    /// End as soon as every flow with a finite workload has delivered it, and no other flow exists.
    pub stop_when_done: bool,
    /// Nodes; everything else names them by index.
    pub nodes: Vec<String>,
    /// One-way links.
    pub links: Vec<LinkSpec>,
    /// Emulator of the backend kernel; absent = elephan's. The simulator ignores it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSpec>,
    /// Nodes that are Fibre Channel gateways; absent = none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewaySpec>,
    /// TCP flows, one entry per connection.
    pub flows: Vec<FlowSpec>,
    /// Short flows that come and go; absent = none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_flows: Vec<ShortFlowsSpec>,
    /// Manager of lightpaths; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<ManagerSpec>,
    /// Bounds of the simulated part of a long copy; absent = all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extrapolate: Option<ExtrapolateSpec>,
    /// Traffic without congestion control.
    pub background: Vec<BackgroundSpec>,
    /// Changes in time.
    pub events: Vec<EventSpec>,
    /// Count constant traffic in closed form where no packet needs another: the counters are those of its packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed_form: bool,
    /// Observation.
    pub measure: MeasureSpec,
}

/// Emulator in place of elephan's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmulatorSpec {
    /// The kernel's sch_netem.
    Netem,
}
