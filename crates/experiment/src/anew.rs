//! A TCP connection in place of a lost one: fresh endpoints for a flow, and what those before them had counted.
//!
//! The endpoints of a flow are those of one connection at a time: what is still on its way from an earlier one finds nobody, as a
//! segment to a port that is closed. A host would answer it with a RST; nobody is there any more who would read that.

use crate::flow::{Flow, Side};
use tcp::segment::Segment;
use tcp::{Endpoint, Stats};

/// Bits of a segment's number from here on tell the connections of a flow apart; 2^56 bytes are left for each.
const SHIFT: u32 = 56;

/// What the endpoints of earlier connections of a flow had come to, by side.
#[derive(Default)]
pub struct Earlier {
    stats: [Stats; 2],
    received: [u64; 2],
}

impl Flow {
    /// Puts fresh endpoints in place of those that are there.
    pub fn make_anew(&mut self, sender: Endpoint, receiver: Endpoint) {
        let before = Earlier {
            stats: [self.stats(Side::Sender), self.stats(Side::Receiver)],
            received: [self.received(Side::Sender), self.received(Side::Receiver)],
        };
        (self.sender, self.receiver) = (sender, receiver);
        self.earlier = Some(Box::new(before));
        // A packet would have to stay on its way while 256 connections come and go.
        self.connection = self.connection.wrapping_add(1);
    }

    /// Payload that an end has received, over all connections, bytes.
    pub fn received(&self, side: Side) -> u64 {
        let now = match side {
            Side::Sender => self.sender.bytes_received(),
            Side::Receiver => self.receiver.bytes_received(),
        };
        now + self.earlier.as_ref().map_or(0, |earlier| earlier.received[side as usize])
    }

    /// What an end has counted, over all connections.
    pub fn stats(&self, side: Side) -> Stats {
        let now = match side {
            Side::Sender => self.sender.stats(),
            Side::Receiver => self.receiver.stats(),
        };
        self.earlier.as_ref().map_or(*now, |earlier| earlier.stats[side as usize].plus(now))
    }

    /// Marks a segment that goes out as one of the present connection.
    #[inline]
    pub fn mark(&self, segment: &mut Segment) {
        segment.seq |= u64::from(self.connection) << SHIFT;
    }

    /// Takes the mark off a segment that came; false: it is one of an earlier connection.
    pub fn unmark(&self, segment: &mut Segment) -> bool {
        let own = segment.seq >> SHIFT == u64::from(self.connection);
        segment.seq &= (1 << SHIFT) - 1;
        own
    }
}
