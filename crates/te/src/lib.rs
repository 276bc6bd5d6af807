//! The loop that moves elephants: which flows of a hybrid network go over a lightpath, when, and what it cost.
//!
//! What it does: keeps a flow table of bounded memory from packet counts or from packets sampled 1 in N, tells elephants from
//! mice, forecasts what moving one would cost and gain with each mitigation that the operator allows, sets lightpaths up and releases them,
//! moves flows there and back, and keeps a ledger of what each move was thought to do and did. What it does not: it moves no packet, reads no clock, and knows
//! no network but through [`View`]: observations go in, decisions come out, so that the same loop runs in the simulator, on the
//! kernel ground, or beside real routers.
//!
//! **Invariant: under any sequence of rates a flow is moved at most once per minimum stay, lightpaths that fail apart, and no
//! lightpath is given more than its share of capacity at the time of a move.**
//!
//! Use: [`Manager::handle_counters`] or [`Manager::handle_sample`] for what passed, [`Manager::handle_interval`] when the time of
//! [`Manager::poll_timeout`] has come, then [`Manager::poll_decision`] until it gives nothing;
//! [`Manager::handle_held`] for what a moving router kept back, [`Manager::handle_lightpath_up`] and [`Manager::handle_lightpath_failed`] when the network says so.
//!
//! Cost: an observation is O(log m) for a table of m flows; an interval is O(m log m), whatever the number of flows that passed.

#![forbid(unsafe_code)]

mod decision;
pub mod forecast;
mod ledger;
mod lightpath;
mod manager;
mod mitigation;
pub mod mix;
mod policy;
mod sampling;
mod space_saving;
mod table;
pub mod trial;
mod view;

pub use decision::{Decision, Place};
pub use forecast::{forecast, Case, Forecast, Limit};
pub use ledger::{Entry, Ledger, Reason, Seen, Totals};
pub use lightpath::{Row, State};
pub use manager::Manager;
pub use mitigation::{plan, Held, Keeping, Means, Mitigation, Pacing, Plan};
pub use policy::{LightpathConfig, Policy, Thresholds};
pub use sampling::{Estimate, Sampled, Sampler};
pub use space_saving::{Counter, SpaceSaving};
pub use table::{Activity, FlowTable};
pub use view::{LinkView, View, Ways};

/// A flow as the manager names it; whoever feeds it says what a number means.
pub type FlowKey = u64;
