//! The manager's view of the network: counters of links, delays of paths.

use crate::flow_key::FlowKey;
use crate::link_view::LinkView;
use crate::mitigation::AllowedMitigations;
use units::{Size, Span};

/// The two paths of a flow between the routers that a lightpath joins, and the links before and behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paths {
    /// One-way delay of the whole path over IP without queues.
    pub ip_delay: Span,
    /// One-way delay of the whole path over the lightpath.
    pub lightpath_delay: Span,
    /// One-way delay of the return path, which does not change.
    pub return_delay: Span,
    /// The slowest link before the paths part, where there is one.
    pub ingress: Option<LinkView>,
    /// The slowest link of the IP path between the two routers.
    pub core: LinkView,
    /// The slowest link after the paths merge, where there is one: its queue is at the merging router.
    pub egress: Option<LinkView>,
    /// Size of the flow's full packets, bytes.
    pub packet: Size,
    /// Mitigations allowed for a move from IP to the lightpath.
    pub allowed: AllowedMitigations,
}

/// The network, asked when an interval ends.
pub trait View {
    /// The operator's priority of `flow`; a higher one goes first.
    fn priority(&self, flow: FlowKey) -> i32;
    /// The paths of `flow` with and without lightpath `lightpath`; None where the lightpath joins routers that the
    /// flow does not pass in that order.
    fn paths(&self, flow: FlowKey, lightpath: usize) -> Option<Paths>;
    /// Returns whether `lightpath` could be set up: no alarm stands on it.
    fn available(&self, lightpath: usize) -> bool;
    /// The slowest link of the IP path between the routers that `lightpath` joins.
    fn bypassed(&self, lightpath: usize) -> LinkView;
}
