//! Output, in this order: retransmissions, new data, probes, acknowledgments.

use super::timer_state::Pending;
use super::{Endpoint, Rexmit, Train};
use crate::config::Recovery;
use crate::consts::*;
use crate::recovery::rack_state::Resent;
use crate::scoreboard::{tag, Entry};
use crate::segment::{flags, Segment};
use congestion::{CaEvent, CaState};
use units::growth::reserve;

impl Endpoint {
    // Once per segment. A burst ends once: with its last segment, or when a caller that asks again gets none.
    #[inline(always)]
    pub(super) fn transmit_open(&mut self, seg: &mut Segment, max_segments: u32, asks_again: bool) -> Train {
        if self.rx.ack_first {
            self.rx.ack_first = false;
            self.write_ack(seg);
            return Train::ONE;
        }
        let sends = self.nxt != self.write_seq || !self.ring.is_empty() || self.fin_queued;
        if sends {
            let room = self.train_room();
            if room > 0 {
                return self.transmit_train(seg, room, max_segments, asks_again);
            }
            if self.transmit_data(seg) {
                if asks_again {
                    return Train::ONE;
                }
                // As the next call would find.
                if self.must_wait_for_pace() {
                    self.timers.arm_pace(self.pace_next_ns);
                } else if !self.has_sent_all() {
                    return Train::ONE;
                }
                self.end_burst();
                return Train { segments: 1, more: false };
            }
            self.end_burst();
        }
        if self.rx.ack_now {
            self.write_ack(seg);
            return Train { segments: 1, more: sends };
        }
        Train::NONE
    }

    /// Returns whether nothing but pacing decides on what goes next, and lets nothing go now.
    #[inline]
    pub(super) fn must_wait_for_pace(&self) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        self.pace_next_ns > self.now
            && self.is_pacing()
            && !self.is_burst_open()
            && self.nxt < self.write_seq
            && self.rexmit != Rexmit::New
            && !(self.tlp_probe | self.probe_pending | self.rx.ack_now)
    }

    /// Returns whether there is nothing more to send before something else happens, not even an acknowledgment.
    #[inline]
    fn has_sent_all(&self) -> bool {
        self.nxt == self.write_seq && !(self.rx.ack_now | self.rx.ack_first | self.fin_queued) && self.has_nothing_due()
    }

    /// Returns whether a sender that has sent all that was written has nothing to repair, to probe or to conclude.
    #[inline]
    pub(super) fn waits_for_acks(&self) -> bool {
        let s = self.cc.sock();
        !self.burst && self.has_nothing_due() && s.in_flight() < s.snd_cwnd
    }

    /// Returns whether neither a repair nor a probe is to be sent.
    #[inline]
    fn has_nothing_due(&self) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        !(self.tlp_probe | self.probe_pending) && self.rexmit == Rexmit::None
    }

    #[inline]
    fn transmit_data(&mut self, seg: &mut Segment) -> bool {
        if self.tlp_probe {
            self.tlp_probe = false;
            if self.transmit_loss_probe(seg) {
                return true;
            }
        }
        if self.rexmit == Rexmit::Lost && self.transmit_lost(seg) {
            return true;
        }
        if self.transmit_new(seg, false) {
            return true;
        }
        if self.rexmit == Rexmit::New {
            // F-RTO: no new data could be sent, so the conventional recovery goes on.
            if self.nxt > self.high_seq {
                self.rexmit = Rexmit::None;
            } else {
                self.frto = false;
                self.rexmit = Rexmit::Lost;
                return self.transmit_lost(seg);
            }
        }
        if self.probe_pending {
            self.probe_pending = false;
            self.transmit_window_probe(seg);
            return true;
        }
        false
    }

    /// As [`Endpoint::poll_transmit`] would send, but sends nothing: a sender that takes its time before a packet asks.
    pub(super) fn wants_to_transmit(&mut self) -> bool {
        self.rx.ack_first || self.rx.ack_now || self.wants_to_transmit_data()
    }

    /// The conditions of [`Endpoint::transmit_data`], in its order.
    fn wants_to_transmit_data(&mut self) -> bool {
        let sends = self.nxt != self.write_seq || !self.ring.is_empty() || self.fin_queued;
        sends
            && (self.tlp_probe
                || (self.rexmit == Rexmit::Lost && self.lost_segment().is_some())
                || self.new_segment(false).is_some()
                || (self.rexmit == Rexmit::New && self.nxt <= self.high_seq && self.lost_segment().is_some())
                || self.probe_pending)
    }

    /// Returns whether neither data nor a FIN waits to be sent for the first time.
    #[inline]
    pub(super) fn nothing_to_send(&self) -> bool {
        self.nxt >= self.write_seq && (!self.fin_queued || self.fin_sent)
    }

    /// Fields that every segment carries, the acknowledgment among them.
    #[inline(always)]
    pub(super) fn write_header(&mut self, seg: &mut Segment, seq: u64, len: u32, bits: u16) {
        seg.seq = seq;
        seg.len = len;
        seg.ack = self.rx.nxt;
        seg.window = self.rx.select_window();
        seg.mss = 0;
        seg.wscale = None;
        seg.flags = flags::ACK | bits | self.ip_flags();
        if self.timestamps {
            seg.flags |= flags::TIMESTAMPS;
            seg.ts_val = self.timestamp();
            seg.ts_ecr = self.rx.ts_recent;
        } else {
            seg.ts_val = 0;
            seg.ts_ecr = 0;
        }
        seg.sack_count = 0;
        let mut owed = false;
        if self.rx.has_sacks() && !self.is_reno() {
            // A segment that is sent again was cut before there were blocks to tell of: those that do not fit follow
            // in an ACK of their own (Linux cuts the segment anew, tcp_retransmit_skb).
            let room = if len == 0 { u32::MAX } else { self.mss.saturating_sub(len) };
            owed = !self.rx.write_sacks(seg, self.timestamps, room) && self.rx.ack_now;
        }
        if self.cc.sock().ecn_flags & (ecn::OK | ecn::DEMAND_CWR) == ecn::OK | ecn::DEMAND_CWR {
            seg.flags |= flags::ECE;
        }
        self.rx.ack_sent();
        self.rx.ack_now = owed;
        self.timers.delack = u64::MAX;
        self.stats.segments_sent += 1;
    }

    #[inline]
    fn write_ack(&mut self, seg: &mut Segment) {
        let (acked, window) = (self.rx.wup, self.rx.wnd);
        let nxt = self.nxt;
        self.write_header(seg, nxt, 0, 0);
        self.stats.acks_sent += 1;
        // RFC 5681, 2: the same number and window again. The handshake's ACK repeats nothing.
        if acked == self.rx.nxt && window == self.rx.wnd && acked > 1 {
            self.stats.duplicate_acks_sent += 1;
        }
    }

    /// New data, as the windows allow (Linux tcp_write_xmit). A probe ignores the congestion window.
    #[inline(always)]
    fn transmit_new(&mut self, seg: &mut Segment, probe: bool) -> bool {
        let Some((len, fin)) = self.new_segment(probe) else { return false };
        self.emit_new(seg, len, fin);
        true
    }

    /// Length of the segment of new data that may go now, and whether it carries the FIN.
    #[inline(always)]
    fn new_segment(&mut self, probe: bool) -> Option<(u32, bool)> {
        let unsent = self.write_seq - self.nxt.min(self.write_seq);
        let fin = self.fin_queued && !self.fin_sent;
        if unsent == 0 && !fin {
            return None;
        }
        if !self.pacing_allows(self.nxt) {
            return None;
        }
        let s = self.cc.sock();
        if s.in_flight() >= s.snd_cwnd || self.beyond_limited_transmit() {
            // The FIN alone is not held back (Linux tcp_cwnd_test).
            if !probe && unsent > 0 {
                return None;
            }
        }
        let mut most = self.mss;
        if self.rx.has_sacks() && !self.is_reno() {
            // SACK blocks take their place from the payload.
            most -= self.rx.sack_option_bytes(self.timestamps).min(most - 1);
        }
        let len = unsent.min(u64::from(most)) as u32;
        let fin = fin && u64::from(len) == unsent;
        if len < most && !probe && self.is_held_by_nagle(fin) {
            return None;
        }
        let end = self.nxt + u64::from(len) + u64::from(fin);
        if end - u64::from(fin) > self.wnd_end || !(probe || len == 0 || self.may_go_on()) {
            return None;
        }
        Some((len, fin))
    }

    /// RFC 896, RFC 1122, 4.2.3.4: a short segment waits while data is unacknowledged; a FIN does not (Linux
    /// tcp_nagle_test).
    fn is_held_by_nagle(&self, fin: bool) -> bool {
        self.cfg.nagle && !fin && self.una < self.nxt
    }

    /// Returns whether a bound of its own holds for new data on the first duplicate ACKs. Linux knows none while RACK
    /// will soon decide; without one the flow of duplicate ACKs would go on for ever.
    #[inline]
    pub(super) fn has_limited_transmit(&self) -> bool {
        self.cc.sock().ca_state == CaState::Disorder as u8 && !(self.cfg.limited_transmit && self.fast_retransmit)
    }

    /// RFC 3042: at most two segments beyond the window on the first duplicate ACKs.
    #[inline]
    fn beyond_limited_transmit(&self) -> bool {
        if !self.has_limited_transmit() {
            return false;
        }
        let s = self.cc.sock();
        let more = if self.cfg.limited_transmit { LIMITED_TRANSMIT_SEGMENTS } else { 0 };
        s.packets_out >= s.snd_cwnd.saturating_add(more)
    }

    #[inline(always)]
    fn emit_new(&mut self, seg: &mut Segment, len: u32, fin: bool) {
        let mut bits = 0;
        if fin {
            bits |= flags::FIN;
            self.fin_sent = true;
        }
        if self.nxt + u64::from(len) >= self.write_seq {
            bits |= flags::PSH;
        }
        let ecn_flags = self.cc.sock().ecn_flags;
        if ecn_flags & ecn::OK != 0 && len > 0 {
            bits |= flags::ECT;
            if ecn_flags & ecn::QUEUE_CWR != 0 {
                bits |= flags::CWR;
                self.sock().ecn_flags &= !ecn::QUEUE_CWR;
            }
        }
        let seq = self.nxt;
        self.event_data_sent();
        let mut entry = Entry {
            seq,
            tx_ns: self.now,
            len: (len + u32::from(fin)) as u16,
            flags: if fin { tag::FIN } else { 0 },
            ..Entry::default()
        };
        let rate = self.rate_sent(&mut entry);
        self.nxt = entry.end();
        let nxt = self.nxt as u32;
        let reducing = self.in_cwnd_reduction();
        let s = self.cc.sock_mut();
        let first = s.packets_out == 0;
        s.snd_nxt = nxt;
        s.packets_out += 1;
        self.ring.push(entry, rate, 1);
        if first || self.timers.pending == Pending::LossProbe {
            self.rearm_rto();
        }
        if reducing {
            self.prr_out += 1;
        }
        self.burst = true;
        self.stats.data_segments_sent += 1;
        self.burst_sent(self.now, seq, self.nxt, 1);
        self.pacing_sent(len, 1);
        self.write_header(seg, seq, len, bits);
    }

    /// Before a segment with data goes (Linux tcp_event_data_sent).
    #[inline]
    pub(super) fn event_data_sent(&mut self) {
        if self.cc.sock().in_flight() == 0 {
            self.cc.cwnd_event(CaEvent::TxStart);
        }
        let now_us = self.now_us;
        self.sock().lsndtime_us = now_us;
        // An answer within the delayed ACK's time: the flow is interactive.
        if self.rx.ato_ns != 0 && self.now - self.rx.last_data_ns < self.rx.ato_ns {
            self.rx.pingpong = true;
        }
    }

    /// The lowest lost segment, if the window allows (Linux tcp_xmit_retransmit_queue).
    #[inline(never)]
    fn transmit_lost(&mut self, seg: &mut Segment) -> bool {
        let Some(index) = self.lost_segment() else { return false };
        self.lost.pop();
        self.forced = self.forced.saturating_sub(1);
        if self.in_cwnd_reduction() {
            self.prr_out += 1;
        }
        self.retransmit(index, seg);
        if index == self.ring.head() && self.timers.pending != Pending::Reordering {
            let deadline = self.now + self.rto_now();
            self.timers.arm_xmit(Pending::Retrans, deadline);
        }
        true
    }

    /// The entry of the lost segment that may go now, which stays the next in `lost`.
    fn lost_segment(&mut self) -> Option<u64> {
        let s = self.cc.sock();
        if s.lost_out == 0 || (s.in_flight() >= s.snd_cwnd && self.forced == 0) {
            return None;
        }
        // Within a burst it depends on the segment.
        if !self.is_burst_open() && !self.pacing_allows(self.una) {
            return None;
        }
        loop {
            let index = self.lost.peek()?;
            self.stats.scoreboard_steps += 1;
            let stale = index < self.ring.head()
                || self.ring.get(index).flags & (tag::LOST | tag::RETRANS | tag::SACKED) != tag::LOST;
            if stale {
                self.lost.pop();
                continue;
            }
            let seq = self.ring.get(index).seq;
            let beyond = seq >= self.wnd_end && seq > self.una;
            return if beyond || !self.pacing_allows(seq) { None } else { Some(index) };
        }
    }

    /// Sends an entry again (Linux tcp_retransmit_skb). Retransmissions are never ECN-capable (RFC 3168, 6.1.5).
    fn retransmit(&mut self, index: u64, seg: &mut Segment) {
        self.event_data_sent();
        let mut entry = *self.ring.get(index);
        let rate = self.rate_sent(&mut entry);
        entry.tx_ns = self.now;
        if entry.flags & tag::RETRANS == 0 {
            self.sock().retrans_out += 1;
        }
        entry.flags |= tag::RETRANS | tag::EVER_RETRANS;
        entry.retrans = entry.retrans.saturating_add(1);
        *self.ring.get_mut(index) = entry;
        self.ring.set_rate(index, rate);
        match self.recovery {
            Recovery::Rack => {
                reserve(&mut self.rack.resent, 1);
                self.rack.resent.push_back(Resent { index, tx_ns: self.now });
            }
            Recovery::Sack => self.note_copy(index),
            Recovery::Reno | Recovery::NewReno => {}
        }
        if self.retrans_stamp == 0 {
            self.retrans_stamp = self.timestamp();
        }
        self.undo_retrans = self.undo_retrans.max(0) + 1;
        self.total_retrans += 1;
        self.retrans_end = self.retrans_end.max(entry.end());
        let fin = entry.flags & tag::FIN != 0;
        let len = u32::from(entry.len) - u32::from(fin);
        self.stats.data_segments_sent += 1;
        self.stats.retransmitted_segments += 1;
        self.stats.retransmitted_bytes += u64::from(len);
        self.burst_sent_again(&entry);
        self.pacing_sent(len, 1);
        self.write_header(seg, entry.seq, len, if fin { flags::FIN } else { 0 });
    }

    /// The tail loss probe: one new segment whatever the window, else the last one again.
    #[inline(never)]
    fn transmit_loss_probe(&mut self, seg: &mut Segment) -> bool {
        if self.ring.is_empty() {
            return false;
        }
        if !self.transmit_new(seg, true) {
            let last = self.ring.tail() - 1;
            if self.ring.get(last).flags & tag::SACKED != 0 {
                return false;
            }
            self.tlp_retrans = true;
            self.retransmit(last, seg);
        }
        self.tlp_high_seq = self.nxt;
        self.burst = false;
        self.rearm_rto();
        true
    }

    /// A zero-window probe: data that fits the window, else an old sequence number without data (Linux
    /// tcp_write_wakeup).
    #[inline(never)]
    fn transmit_window_probe(&mut self, seg: &mut Segment) {
        self.stats.zero_window_probes += 1;
        let room = self.wnd_end.saturating_sub(self.nxt).min(u64::from(self.mss));
        let unsent = self.write_seq - self.nxt.min(self.write_seq);
        let len = unsent.min(room) as u32;
        if len > 0 {
            self.emit_new(seg, len, false);
        } else {
            let una = self.una;
            self.write_header(seg, una - 1, 0, 0);
        }
    }

    /// Nothing more can be sent now (the end of Linux's tcp_write_xmit).
    #[inline]
    pub(super) fn end_burst(&mut self) {
        let s = self.cc.sock();
        let limited = s.in_flight() >= s.snd_cwnd || self.bursts.is_cwnd_limited();
        if self.burst || limited {
            self.cwnd_validate(limited);
        }
        if self.burst {
            self.burst = false;
            self.schedule_loss_probe(false);
        } else if self.ring.is_empty() && self.timers.pending == Pending::None && !self.nothing_to_send() {
            // Data waits and nothing is in flight: the peer's window is too small. Unless pacing holds it back.
            if self.timers.pace == u64::MAX {
                self.stats.persists += 1;
                self.backoff = 0;
                self.arm_window_probe();
            }
        }
    }
}
