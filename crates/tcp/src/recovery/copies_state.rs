//! Retransmissions whose fate is not known, without RACK.

use std::collections::{BTreeMap, VecDeque};

/// Room that is kept when no retransmission is in flight; more is given back.
const KEPT: usize = 4096;

/// A retransmission that awaits its fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub index: u64,
    /// Next byte to send for the first time when it went.
    pub nxt: u64,
}

/// Retransmissions in the order of their sending, which is that of `nxt`, too: only the front is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    pub sent: VecDeque<Copy>,
    /// Number of the copy that was sent last; counted only for ns-2's TCP-Linux, as the two below.
    pub last: u64,
    /// That of the copy that arrived last.
    pub arrived: u64,
    /// Numbers by entry, of those that have not arrived.
    pub numbers: BTreeMap<u64, u64>,
}

impl Copies {
    /// Returns whether there is none.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sent.clear();
        self.sent.shrink_to(KEPT);
        self.numbers.clear();
        (self.last, self.arrived) = (0, 0);
    }
}
