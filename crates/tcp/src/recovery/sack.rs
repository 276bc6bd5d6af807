//! SACK processing (RFC 2018, RFC 2883) and the marking of losses by it (RFC 6675).

use crate::config::Recovery;
use crate::endpoint::ack_state::{flag, AckState};
use crate::endpoint::Endpoint;
use crate::scoreboard::tag;
use crate::segment::{SackBlock, Segment};

impl Endpoint {
    /// Byte after the highest SACKed one, else the first unacknowledged (tcp_highest_sack_seq).
    #[inline]
    pub(crate) fn highest_sack(&self) -> u64 {
        if self.cc.sock().sacked_out == 0 || self.is_reno() {
            self.una
        } else {
            self.sacked.end()
        }
    }

    /// Takes in the SACK blocks of an ACK (tcp_sacktag_write_queue). Each segment is touched once in its life here.
    pub(crate) fn sacktag(&mut self, seg: &Segment, a: &mut AckState) {
        let count = usize::from(seg.sack_count).min(seg.sacks.len());
        let blocks = &seg.sacks[..count];
        let dsack = self.is_dsack(seg.ack, blocks);
        if dsack {
            self.take_dsack(blocks[0], a);
        }
        if self.ring.is_empty() {
            return;
        }
        let mut sorted = seg.sacks;
        let sorted = &mut sorted[usize::from(dsack)..count];
        sorted.sort_unstable_by_key(|block| block.start);
        let mut highest = self.highest_sack();
        for block in sorted.iter() {
            if !self.last_sacks.contains(block) {
                self.sack_block(*block, a, &mut highest);
            }
        }
        if a.flag & flag::DSACKING_ACK != 0 && blocks[0].end > self.una {
            self.sack_block(blocks[0], a, &mut highest);
            self.dsack_in_flight(blocks[0]);
        }
        self.last_sacks = [SackBlock::default(); crate::segment::MAX_SACK_BLOCKS];
        self.last_sacks[..count].copy_from_slice(blocks);
        if self.mark_lost_copies() && self.is_like_ns2() {
            // Reduces again after a time-out (tcp-linux.cc, tcp_fastretrans_alert).
            a.flag |= flag::LOST_RETRANS;
        }
        if self.ca_state() != congestion::CaState::Loss as u8 || self.undo_marker != 0 {
            self.check_sack_reordering(a.reord);
        }
    }

    /// RFC 2883, 4: the first block is below the ACK or within the second.
    fn is_dsack(&self, ack: u64, blocks: &[SackBlock]) -> bool {
        let Some(first) = blocks.first() else { return false };
        first.start < ack || blocks.get(1).is_some_and(|b| b.start <= first.start && first.end <= b.end)
    }

    /// A segment arrived twice (tcp_check_dsack, tcp_dsack_seen).
    fn take_dsack(&mut self, block: SackBlock, a: &mut AckState) {
        let segments = ((block.end - block.start) / u64::from(self.mss.max(1))).max(1);
        self.stats.dsacks_received += 1;
        self.dsack_dups += segments;
        if self.dsack_dups > self.total_retrans {
            // The network made the copy, not we.
            return;
        }
        if self.tlp_high_seq != 0 && self.tlp_retrans && block.end == self.tlp_high_seq {
            a.flag |= flag::DSACK_TLP;
        }
        // Only RACK takes it back, and common ACKs wait for that.
        if self.recovery == Recovery::Rack && self.reord_seen && a.flag & flag::DSACK_TLP == 0 {
            self.rack.dsack_seen = true;
        }
        a.flag |= flag::DSACKING_ACK;
        if self.undo_marker != 0 && self.undo_retrans > 0 && block.end > self.undo_marker {
            self.undo_retrans = (self.undo_retrans - segments as i64).max(0);
        }
    }

    /// A copy in flight that is reported as a duplicate is in flight no more.
    fn dsack_in_flight(&mut self, block: SackBlock) {
        let mut index = self.ring.find(block.start.max(self.una), self.mss);
        while index < self.ring.tail() {
            let e = self.ring.get_mut(index);
            if e.end() > block.end {
                break;
            }
            if e.flags & tag::SACKED != 0 && e.flags & tag::RETRANS != 0 {
                e.flags &= !tag::RETRANS;
                self.cc.sock_mut().retrans_out -= 1;
            }
            index += 1;
        }
    }

    fn sack_block(&mut self, block: SackBlock, a: &mut AckState, highest: &mut u64) {
        let start = block.start.max(self.una);
        if block.end > self.nxt || start >= block.end {
            return;
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.clear();
        let (low, high) = self.sacked.insert(start, block.end, &mut fresh);
        for &(from, to) in &fresh {
            // Nearly always the block goes on where the one before it ended.
            let (seq, next) = self.sack_hint;
            let mut index = if seq == from { next } else { self.ring.find(from, self.mss) };
            while index < self.ring.tail() {
                let e = self.ring.get(index);
                if e.seq >= to || e.end() > high {
                    break;
                }
                self.sack_hint = (e.end(), index + 1);
                if e.seq >= low && e.flags & tag::SACKED == 0 {
                    self.sack_segment(index, a, highest);
                }
                index += 1;
            }
        }
        self.fresh = fresh;
    }

    /// One segment is newly SACKed (tcp_sacktag_one).
    fn sack_segment(&mut self, index: u64, a: &mut AckState, highest: &mut u64) {
        let e = *self.ring.get(index);
        self.stats.scoreboard_steps += 1;
        if self.recovery == Recovery::Rack {
            self.rack_advance(&e);
        }
        let mut flags = e.flags;
        if flags & tag::RETRANS != 0 && self.recovery == Recovery::Sack {
            self.copy_arrived(index);
        }
        let s = self.cc.sock_mut();
        if flags & tag::RETRANS != 0 {
            // Not marked lost: the copy is believed to be still in flight.
            if flags & tag::LOST != 0 {
                flags &= !(tag::LOST | tag::RETRANS);
                s.lost_out -= 1;
                s.retrans_out -= 1;
            }
        } else {
            if flags & tag::EVER_RETRANS == 0 {
                // An original that arrives after later ones: reordering.
                if e.seq < *highest {
                    a.reord = a.reord.min(e.seq);
                }
                if e.end() <= self.high_seq {
                    a.flag |= flag::ORIG_SACK_ACKED;
                }
                if a.first_sackt == 0 {
                    a.first_sackt = e.tx_ns;
                }
                a.last_sackt = e.tx_ns;
            }
            if flags & tag::LOST != 0 {
                flags &= !tag::LOST;
                s.lost_out -= 1;
            }
        }
        a.flag |= flag::DATA_SACKED;
        s.sacked_out += 1;
        s.delivered = s.delivered.wrapping_add(1);
        a.newest.delivered(&e, self.ring.rate(index));
        self.ring.get_mut(index).flags = flags | tag::SACKED | tag::RATED;
        *highest = (*highest).max(e.end());
        if index >= self.mark_cursor {
            self.sacked_above += 1;
        }
        self.stats.segments_sacked += 1;
    }

    /// Sets the extent of reordering, in segments, as the new duplicate ACK threshold (tcp_check_sack_reordering).
    pub(crate) fn check_sack_reordering(&mut self, low: u64) {
        let fack = self.highest_sack();
        if low >= fack || self.is_like_ns2() {
            return;
        }
        let degree = (fack - low).div_ceil(u64::from(self.mss.max(1)));
        if degree > u64::from(self.reordering) {
            self.reordering = degree.min(u64::from(self.cfg.max_reordering)) as u32;
        }
        self.reord_seen = true;
        self.stats.reordering_seen += 1;
    }

    /// Marks by duplicate ACKs or SACKs where RACK does not (tcp_update_scoreboard).
    pub(crate) fn update_scoreboard(&mut self, entered: bool) {
        if self.is_reno() || self.ring.is_empty() || !self.fast_retransmit {
            return;
        }
        let marked = self.mark_by_sack();
        if entered && !marked {
            let head = self.ring.head();
            if self.ring.get(head).flags & (tag::SACKED | tag::LOST) == 0 {
                self.mark_lost(head);
            }
        }
    }

    /// RFC 6675, 4, IsLost: `reordering` SACKed segments above. The cursor only moves up: each segment is judged once.
    fn mark_by_sack(&mut self) -> bool {
        let mut marked = false;
        let below = self.lost_below_in_ns2();
        self.mark_cursor = self.mark_cursor.max(self.ring.head());
        while self.mark_cursor < self.ring.tail() {
            let index = self.mark_cursor;
            let flags = self.ring.get(index).flags;
            self.stats.scoreboard_steps += 1;
            if flags & tag::SACKED != 0 {
                self.sacked_above -= 1;
            } else if below.map_or(self.sacked_above >= self.dupthresh(), |below| index < below) {
                // A retransmission is not judged by what was SACKed before it went.
                if flags & (tag::LOST | tag::RETRANS) == 0 {
                    self.mark_lost(index);
                    marked = true;
                }
            } else {
                break;
            }
            self.mark_cursor += 1;
        }
        marked
    }

    /// First entry that ns-2's TCP-Linux does not count as lost: that four below the highest SACKed one (FACK;
    /// scoreboard1.cc, UpdateScoreBoard). None with other senders.
    pub(crate) fn lost_below_in_ns2(&self) -> Option<u64> {
        self.is_like_ns2().then(|| {
            let highest = self.ring.find(self.highest_sack().saturating_sub(1), self.mss);
            highest.saturating_sub(u64::from(self.dupthresh()))
        })
    }

    /// The network has lost it, or its copy (tcp_mark_skb_lost).
    pub(crate) fn mark_lost(&mut self, index: u64) {
        let e = self.ring.get_mut(index);
        if e.flags & tag::SACKED != 0 {
            return;
        }
        let s = self.cc.sock_mut();
        if e.flags & tag::LOST != 0 {
            if e.flags & tag::RETRANS == 0 {
                return;
            }
            e.flags &= !tag::RETRANS;
            s.retrans_out -= 1;
            self.stats.lost_retransmissions += 1;
        } else {
            e.flags |= tag::LOST;
            s.lost_out += 1;
        }
        s.lost = s.lost.wrapping_add(1);
        self.stats.segments_marked_lost += 1;
        if e.flags & tag::RETRANS == 0 {
            self.lost.push(index);
        }
    }
}
