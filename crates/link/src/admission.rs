//! The outcome of a packet's arrival at a link.

use crate::counters::DropReason;
use units::Time;

/// A link's answer to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission<P> {
    /// The packet is inside: the link delivers it later, or reports it by [`crate::Link::poll_dropped`].
    Queued {
        /// [`crate::Link::poll_timeout`] when this packet may have changed it.
        next_event: Option<Time>,
    },
    /// The link refused the packet, and does not report it again.
    Dropped(P, DropReason),
}
