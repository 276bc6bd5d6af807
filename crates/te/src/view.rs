//! What the manager can see of the network when it decides: counters of links, delays of ways.

use crate::mitigation::Means;
use crate::FlowKey;
use units::{Rate, Size, Span};

/// A link as its counters show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkView {
    /// Rate of the line.
    pub capacity: Rate,
    /// What it carried in the latest interval.
    pub load: Rate,
    /// What waits before it, on average over the latest interval.
    pub queue: Size,
    /// What fits there.
    pub queue_limit: Size,
    /// Packets lost there since the start.
    pub dropped: u64,
}

impl LinkView {
    /// Time that a packet waits in that queue.
    pub fn wait(&self) -> Span {
        self.capacity.time_for(self.queue)
    }

    /// Load as parts per million of the capacity.
    pub fn load_ppm(&self) -> u64 {
        (u128::from(self.load.0) * 1_000_000 / u128::from(self.capacity.0.max(1))) as u64
    }
}

/// The two ways of a flow between the routers that a lightpath joins, and what lies before and behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// One-way delay of the whole way over IP without queues.
    pub ip_delay: Span,
    /// One-way delay of the whole way over the lightpath.
    pub lightpath_delay: Span,
    /// One-way delay of the way back, which stays.
    pub return_delay: Span,
    /// The slowest link before the ways part, where there is one.
    pub ingress: Option<LinkView>,
    /// The slowest link of the IP way between the two routers.
    pub core: LinkView,
    /// The slowest link after the ways have met again, where there is one: its queue is at the merging router.
    pub egress: Option<LinkView>,
    /// Size of the flow's full packets, bytes.
    pub packet: Size,
    /// What may be done about a move from IP to the lightpath.
    pub means: Means,
}

/// The network, asked when an interval ends.
pub trait View {
    /// The operator's priority of `flow`; more goes first.
    fn priority(&self, flow: FlowKey) -> i32;
    /// The ways of `flow` with and without lightpath `lightpath`; None where it does not help: it joins routers that the flow
    /// does not pass in that order.
    fn ways(&self, flow: FlowKey, lightpath: usize) -> Option<Ways>;
    /// Whether `lightpath` could be set up: no alarm stands on it.
    fn available(&self, lightpath: usize) -> bool;
    /// The slowest link of the IP way between the routers that `lightpath` joins.
    fn bypassed(&self, lightpath: usize) -> LinkView;
}
