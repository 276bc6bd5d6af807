//! Lost retransmissions, without RACK.

use super::copies_state::Copy;
use crate::config::{LostRetransmissions, Recovery};
use crate::endpoint::Endpoint;
use crate::ranges::RangeSet;
use crate::scoreboard::tag;
use crate::segment::{SackBlock, MAX_SACK_BLOCKS};
use congestion::CaState;

/// Copies of ns-2's TCP-Linux that must have arrived above one, beside the threshold of duplicate ACKs
/// (scoreboard1.cc, UpdateScoreBoard).
const COPIES_ABOVE: u64 = 1;

impl Endpoint {
    /// The entry at `index` is sent again.
    pub(crate) fn note_copy(&mut self, index: u64) {
        if self.cfg.lost_retransmissions == LostRetransmissions::Never {
            return;
        }
        let copies = &mut self.copies;
        copies.sent.push_back(Copy { index, nxt: self.nxt });
        if self.cfg.lost_retransmissions == LostRetransmissions::Repeatedly {
            copies.last += 1;
            copies.numbers.insert(index, copies.last);
        }
    }

    /// The entry at `index`, a copy in flight, has arrived.
    pub(crate) fn copy_arrived(&mut self, index: u64) {
        if let Some(number) = self.copies.numbers.remove(&index) {
            self.copies.arrived = self.copies.arrived.max(number);
        }
    }

    /// Returns whether loss is judged as by ns-2's TCP-Linux.
    pub(crate) fn is_like_ns2(&self) -> bool {
        self.recovery == Recovery::Sack && self.cfg.lost_retransmissions == LostRetransmissions::Repeatedly
    }

    /// ns-2's TCP-Linux at the end of a recovery or of a time-out (tcp-linux.cc, tcp_fastretrans_alert): all in flight
    /// counts as never SACKed, lost or sent again. One walk per episode.
    pub(crate) fn forget_scoreboard(&mut self) {
        self.lost.clear();
        self.copies.clear();
        for index in self.ring.head()..self.ring.tail() {
            self.stats.scoreboard_steps += 1;
            self.ring.get_mut(index).flags &= !(tag::SACKED | tag::LOST | tag::RETRANS);
        }
        self.sacked = RangeSet::default();
        self.last_sacks = [SackBlock::default(); MAX_SACK_BLOCKS];
        self.mark_cursor = self.ring.head();
        self.sacked_above = 0;
        let s = self.sock();
        (s.sacked_out, s.lost_out, s.retrans_out) = (0, 0, 0);
    }

    /// A copy is lost once the peer holds something that was sent for the first time after it (Linux 2.6.22
    /// tcp_sacktag_write_queue, from 2.6.24 tcp_mark_lost_retrans). Where reordering has been seen, `reordering`
    /// segments must lie between: Linux has switched FACK off then. Returns whether one was.
    pub(crate) fn mark_lost_copies(&mut self) -> bool {
        if self.recovery != Recovery::Sack || self.copies.sent.is_empty() {
            return false;
        }
        let like_ns2 = self.is_like_ns2();
        if !like_ns2 && self.ca_state() != CaState::Recovery as u8 {
            return false;
        }
        let reordered = self.reordering > self.cfg.reordering;
        let slack = if reordered { u64::from(self.reordering) * u64::from(self.mss) } else { 1 };
        let highest = self.highest_sack();
        // Numbers go up with the queue, by one for each copy that was not judged.
        let overtaken = self.copies.arrived.saturating_sub(u64::from(self.reordering) + COPIES_ABOVE);
        let mut found = false;
        while let Some(&Copy { index, nxt }) = self.copies.sent.front() {
            self.stats.scoreboard_steps += 1;
            let both = tag::LOST | tag::RETRANS;
            if index >= self.ring.head() && self.ring.get(index).flags & (both | tag::SACKED) == both {
                let number = if like_ns2 { self.copies.numbers.get(&index).copied() } else { None };
                if highest < nxt + slack && number.is_none_or(|number| number >= overtaken) {
                    break;
                }
                self.copies.numbers.remove(&index);
                self.mark_lost(index);
                found = true;
            }
            self.copies.sent.pop_front();
        }
        found
    }
}
