//! The manager's decisions.

use crate::flow_key::FlowKey;
use crate::plan::Plan;
use units::Rate;

/// An action that the network has to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Set a lightpath up; [`crate::Manager::handle_lightpath_up`] once it is up.
    SetUp {
        /// The lightpath.
        lightpath: usize,
    },
    /// Send a flow's data over a lightpath from now on.
    Move {
        /// The flow.
        flow: FlowKey,
        /// The new lightpath.
        lightpath: usize,
        /// The mitigation.
        plan: Plan,
        /// Its index in the move log, for [`crate::Manager::handle_hold_stats`].
        record: usize,
    },
    /// Set the rate of a pacer of hold buffers.
    Pace {
        /// The pacer, of [`crate::Pacing`].
        pacer: usize,
        /// Its rate.
        rate: Rate,
    },
    /// Send a flow's data over IP again.
    Return {
        /// The flow.
        flow: FlowKey,
        /// From where.
        lightpath: usize,
    },
    /// Release a lightpath; [`crate::Manager::handle_lightpath_down`] once it is down.
    Release {
        /// The lightpath.
        lightpath: usize,
    },
}

/// The path of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the IP path.
    Ip,
    /// On the IP path, while a lightpath is set up for it.
    Waiting(usize),
    /// On a lightpath.
    On(usize),
}
