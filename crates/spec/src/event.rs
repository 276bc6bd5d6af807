//! Changes in time.

use crate::{LossSpec, MitigationSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// When.
    pub when: WhenSpec,
    /// What.
    pub action: ActionSpec,
}

/// When an event happens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WhenSpec {
    /// At a time.
    #[schemars(title = "AtSpec")]
    At {
        /// ns.
        time_ns: u64,
    },
    /// When a flow's delivered rate over `window_ns` first reaches a rate.
    #[schemars(title = "FlowReachesSpec")]
    FlowReaches {
        /// Index into `flows`.
        flow: usize,
        /// bit/s of payload.
        rate_bps: u64,
        /// Averaging window, ns.
        window_ns: u64,
    },
}

/// What an event does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ActionSpec {
    /// New rate of a link.
    #[schemars(title = "RateActionSpec")]
    Rate {
        /// Index into `links`.
        link: usize,
        /// bit/s.
        rate_bps: u64,
    },
    /// New delay of a link.
    #[schemars(title = "DelayActionSpec")]
    Delay {
        /// Index into `links`.
        link: usize,
        /// ns.
        delay_ns: u64,
    },
    /// New loss model of a link.
    #[schemars(title = "LossActionSpec")]
    Loss {
        /// Index into `links`.
        link: usize,
        /// The model.
        loss: LossSpec,
    },
    /// The link carries nothing; what is on the line is lost, the queue waits.
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
    /// Connections change their way, each packet from the router on where its way and the new one part; what is past
    /// that router, or waits in its queue, stays on the old way.
    #[schemars(title = "MoveSpec")]
    Move {
        /// Indices into `flows`.
        flows: Vec<usize>,
        /// Links for data, in order; null = data stays where it is.
        route: Option<Vec<usize>>,
        /// Links for ACKs, in order; null = ACKs stay where they are.
        return_route: Option<Vec<usize>>,
        /// What keeps the data's move from hurting; absent = nothing does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mitigation: Option<MitigationSpec>,
    },
    /// Background sources change their way, as [`ActionSpec::Move`].
    #[schemars(title = "MoveBackgroundSpec")]
    MoveBackground {
        /// Indices into `background`.
        sources: Vec<usize>,
        /// Links, in order.
        route: Vec<usize>,
        /// What keeps the move from hurting; only its hold buffer counts; absent = nothing does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mitigation: Option<MitigationSpec>,
    },
}

impl ActionSpec {
    /// The link that it changes, by its index.
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
