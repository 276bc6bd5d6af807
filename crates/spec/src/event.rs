//! Changes in time.

use crate::link::LossSpec;
use crate::mitigation::MitigationSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// Time or condition.
    pub when: WhenSpec,
    /// Change.
    pub action: ActionSpec,
}

/// Time or condition of an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WhenSpec {
    /// A time.
    #[schemars(title = "AtSpec")]
    At {
        /// Time, ns.
        time_ns: u64,
    },
    /// The first time that a flow's delivered rate over `window_ns` reaches a rate.
    #[schemars(title = "FlowReachesSpec")]
    FlowReaches {
        /// Index into `flows`.
        flow: usize,
        /// Rate, bit/s of payload.
        rate_bps: u64,
        /// Averaging window, ns.
        window_ns: u64,
        /// Time for which it keeps the rate in every averaging window and sends nothing again, ns; absent = 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        settled_ns: u64,
    },
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// Change by an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ActionSpec {
    /// New rate of a link.
    #[schemars(title = "RateActionSpec")]
    Rate {
        /// Index into `links`.
        link: usize,
        /// Rate, bit/s.
        rate_bps: u64,
    },
    /// New delay of a link.
    #[schemars(title = "DelayActionSpec")]
    Delay {
        /// Index into `links`.
        link: usize,
        /// Propagation delay, ns.
        delay_ns: u64,
    },
    /// New loss model of a link.
    #[schemars(title = "LossActionSpec")]
    Loss {
        /// Index into `links`.
        link: usize,
        /// Loss model.
        loss: LossSpec,
    },
    /// The link carries nothing: packets on the line are lost, the queue waits.
    #[schemars(title = "LinkDownSpec")]
    LinkDown {
        /// Index into `links`.
        link: usize,
    },
    /// The link carries again.
    #[schemars(title = "LinkUpSpec")]
    LinkUp {
        /// Index into `links`.
        link: usize,
    },
    /// A background source starts.
    #[schemars(title = "BackgroundOnSpec")]
    BackgroundOn {
        /// Index into `background`.
        source: usize,
    },
    /// A background source stops.
    #[schemars(title = "BackgroundOffSpec")]
    BackgroundOff {
        /// Index into `background`.
        source: usize,
    },
    /// Connections change their path at the router where the old and the new one part. Packets past that router, or in
    /// its queue, stay on the old path.
    #[schemars(title = "MoveSpec")]
    Move {
        /// Indices into `flows`.
        flows: Vec<usize>,
        /// Links for data, in order; null = data stays where it is.
        route: Option<Vec<usize>>,
        /// Links for ACKs, in order; null = ACKs stay where they are.
        return_route: Option<Vec<usize>>,
        /// Mitigation of the data's move; absent = none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mitigation: Option<MitigationSpec>,
    },
    /// Background sources change their path, as [`ActionSpec::Move`].
    #[schemars(title = "MoveBackgroundSpec")]
    MoveBackground {
        /// Indices into `background`.
        sources: Vec<usize>,
        /// Links, in order.
        route: Vec<usize>,
        /// Mitigation of the move, of which only the hold buffer counts; absent = none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mitigation: Option<MitigationSpec>,
    },
}

impl ActionSpec {
    /// Returns the index of the link that it changes.
    pub fn link(&self) -> Option<usize> {
        match *self {
            ActionSpec::Rate { link, .. }
            | ActionSpec::Delay { link, .. }
            | ActionSpec::Loss { link, .. }
            | ActionSpec::LinkDown { link }
            | ActionSpec::LinkUp { link } => Some(link),
            ActionSpec::BackgroundOn { .. }
            | ActionSpec::BackgroundOff { .. }
            | ActionSpec::Move { .. }
            | ActionSpec::MoveBackground { .. } => None,
        }
    }
}
