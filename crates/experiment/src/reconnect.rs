//! A TCP connection in place of a lost one, with the counters of the endpoints before it.
//!
//! The endpoints of a flow are those of one connection at a time: what is still on its way from an earlier one finds
//! nobody, as a segment to a port that is closed ([`crate::transport::SegmentPool::begin_connection`]). A host would
//! answer it with a RST; nobody is there any more who would read that.

use tcp::Stats;

/// Counters of the endpoints of a flow's earlier connections, by side.
#[derive(Default)]
pub struct Earlier {
    pub stats: [Stats; 2],
    pub received: [u64; 2],
}
