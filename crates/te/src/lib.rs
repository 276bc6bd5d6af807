//! Traffic engineering of a hybrid network: which flows go over a lightpath, when, and at what cost.
//!
//! The manager keeps a flow table of bounded size from packet counts or from packets sampled 1 in N, and detects
//! elephants. It forecasts cost and gain of a move with each mitigation that the operator allows, sets lightpaths up
//! and releases them, moves flows to lightpaths and back, and logs forecast and outcome of each move. It moves no
//! packet, reads no clock, and knows the network only through [`View`]: observations go in, decisions come out, so
//! that the same loop runs in the simulator, on the kernel backend, or beside real routers.
//!
//! **Invariant: under any sequence of rates a flow is moved at most once per minimum dwell time, except off failed
//! lightpaths, and no lightpath exceeds its maximum utilization at the time of a move.**
//!
//! Use: [`Manager::handle_counters`] or [`Manager::handle_sample`] for observed packets, [`Manager::handle_interval`]
//! when the time of [`Manager::poll_timeout`] has come, then [`Manager::poll_decision`] until None;
//! [`Manager::handle_hold_stats`] for the counters of hold buffers; [`Manager::handle_lightpath_up`],
//! [`Manager::handle_lightpath_down`] and [`Manager::handle_lightpath_failed`] for lightpaths.
//!
//! Cost: an observation is O(log m) for a table of m flows; an interval is O(m log m), whatever the number of flows in
//! the traffic.

#![forbid(unsafe_code)]

mod decision;
pub mod evaluation;
mod flow_key;
pub mod forecast;
mod lightpath;
mod limit;
mod link_view;
mod manager;
mod mitigation;
mod move_log;
mod plan;
mod policy;
mod residual;
mod sampling;
mod space_saving;
mod table;
pub mod traffic_model;
mod view;

pub use decision::{Decision, Place};
pub use flow_key::FlowKey;
pub use forecast::{forecast, Case, Forecast};
pub use lightpath::{LightpathSample, State};
pub use limit::Limit;
pub use link_view::LinkView;
pub use manager::Manager;
pub use mitigation::{AllowedMitigations, HoldConfig, HoldStats, Mitigation, Pacing};
pub use move_log::{MoveLog, MoveRecord, Observation, Reason, Totals};
pub use plan::{plan, Plan};
pub use policy::{LightpathConfig, Policy, Thresholds};
pub use sampling::{Estimate, Sampled, Sampler};
pub use space_saving::{Counter, SpaceSaving};
pub use table::{Activity, FlowTable};
pub use view::{Paths, View};
