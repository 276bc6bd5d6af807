//! What comes out of the manager.

use crate::mitigation::Plan;
use crate::FlowKey;
use units::Rate;

/// What the network is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Set a lightpath up; [`crate::Manager::handle_lightpath_up`] when it is.
    SetUp {
        /// Which.
        lightpath: usize,
    },
    /// Send a flow's data over a lightpath from now on.
    Move {
        /// Which flow.
        flow: FlowKey,
        /// Where to.
        lightpath: usize,
        /// What is done so that it does not hurt.
        plan: Plan,
        /// Its place in the ledger, for [`crate::Manager::handle_held`].
        entry: usize,
    },
    /// Let go what is kept back for the lines of a number at this rate altogether; what no longer waits there has no part in it.
    Pace {
        /// The number, of [`crate::Pacing`].
        number: usize,
        /// How fast.
        rate: Rate,
    },
    /// Send a flow's data over IP again.
    Return {
        /// Which flow.
        flow: FlowKey,
        /// From where.
        lightpath: usize,
    },
    /// Give a lightpath back; [`crate::Manager::handle_lightpath_down`] when it is.
    Release {
        /// Which.
        lightpath: usize,
    },
}

/// Where a flow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the IP way.
    Ip,
    /// There, while a lightpath is set up for it.
    Waiting(usize),
    /// On a lightpath.
    On(usize),
}
