//! The common case of sending: full segments of new data, as many as the window has room for, alike but for their
//! numbers.
//!
//! The same steps as in `output` for each segment, but those that every further segment would repeat without effect are
//! taken once. A test sends the same transfer both ways and compares.

use super::timer_state::Pending;
use super::{Endpoint, Rexmit, Train};
use crate::consts::ecn;
use crate::scoreboard::Entry;
use crate::segment::Segment;
use congestion::CaState;

impl Endpoint {
    /// Returns the number of such segments that may go now; 0 if anything else has to go first or goes along.
    ///
    /// Something is in flight, so that none of them starts a flight. The last bytes written are left to `output`: the
    /// segment with them may be shorter, is pushed, and may carry the FIN.
    #[inline]
    pub(super) fn train_room(&mut self) -> u32 {
        #[cfg(test)]
        if self.slow_path_only {
            return 0;
        }
        let s = self.cc.sock();
        let in_flight = s.in_flight();
        let is_calm = s.ca_state == CaState::Open as u8 && self.rexmit == Rexmit::None;
        let alike = (is_calm || self.repairs_are_sent())
            && s.ecn_flags & ecn::OK == 0
            && in_flight > 0
            && in_flight < s.snd_cwnd
            && !(self.tlp_probe | self.probe_pending)
            && !self.rx.has_sacks();
        if !alike || !self.pacing_allows(self.nxt) {
            return 0;
        }
        let room = self.cc.sock().snd_cwnd - in_flight;
        let bytes = self.wnd_end.min(self.write_seq - 1).saturating_sub(self.nxt);
        let room = if u64::from(room) * u64::from(self.mss) <= bytes {
            room
        } else {
            // Fewer than `room`, hence in 32 bits.
            (bytes / u64::from(self.mss)) as u32
        };
        if room == 0 {
            0
        } else if self.bursts.max_bytes > 0 {
            room.min(self.burst_room())
        } else if self.is_pacing() {
            // Pacing spaces segments that go alone.
            1
        } else {
            room
        }
    }

    /// Returns whether a sender that repairs losses goes on with new data: all that is lost has been sent again.
    #[inline]
    pub(super) fn repairs_are_sent(&self) -> bool {
        self.rexmit != Rexmit::New && self.lost.peek().is_none() && !self.has_limited_transmit()
    }

    /// Sends up to `max_segments` of the `room` segments; `asks_again` as in `transmit_open`.
    #[inline]
    pub(super) fn transmit_train(
        &mut self,
        seg: &mut Segment,
        room: u32,
        max_segments: u32,
        asks_again: bool,
    ) -> Train {
        let segments = room.min(max_segments);
        let (seq, len) = (self.nxt, self.mss);
        self.event_data_sent();
        let mut entry = Entry { seq, tx_ns: self.now, len: len as u16, ..Entry::default() };
        let rate = self.rate_sent(&mut entry);
        if self.ring.is_rated() {
            self.ring.push(entry, rate, segments);
        } else {
            self.ring.push_plain(entry, segments);
        }
        self.nxt += u64::from(segments) * u64::from(len);
        let nxt = self.nxt as u32;
        let s = self.cc.sock_mut();
        s.snd_nxt = nxt;
        s.packets_out += segments;
        let full = s.in_flight() >= s.snd_cwnd;
        self.burst_sent(self.now, seq, self.nxt, segments);
        if self.in_cwnd_reduction() {
            self.prr_out += segments;
        }
        self.stats.data_segments_sent += u64::from(segments);
        self.stats.segments_sent += u64::from(segments - 1);
        self.pacing_sent(len, segments);
        self.write_header(seg, seq, len, 0);
        // The next one would end beyond the peer's window.
        let window_ends = full || self.wnd_end < self.write_seq.min(self.nxt + u64::from(len));
        let waits = !asks_again && self.must_wait_for_pace();
        if waits {
            self.timers.arm_pace(self.pace_next_ns);
        }
        let is_last = waits || (!asks_again && (window_ends || !self.may_go_on()));
        self.burst = !is_last;
        if is_last {
            // Nothing more goes, not even an acknowledgment, which these segments carry: as `end_burst`.
            self.cwnd_validate(full || self.bursts.is_cwnd_limited());
            self.rearm_after_burst();
        } else if self.timers.pending == Pending::LossProbe {
            self.rearm_rto();
        }
        Train { segments, more: !is_last }
    }
}
