//! A run of ACKs, each of which lets full segments go: what a sender with much to send does nearly all the time.
//!
//! The same steps in the same order as in `fast_path`, `train` and `output`. What stays true from one ACK to the next is
//! found out once, and what only repeats is left out. A test compares with one call per segment.

use super::timer_state::Pending;
use super::{Arrival, Endpoint, Phase, Rexmit};
use crate::config::Recovery;
use crate::consts::{ecn, NS_PER_US, TIMEOUT_MIN};
use crate::scoreboard::Entry;
use crate::segment::{flags, Segment};
use congestion::{ack_flags, AckSample, CaState};
use units::Time;

impl Endpoint {
    /// Returns whether ACKs may be taken by [`Endpoint::take_acks`]: this end sends, nothing is SACKed, lost or sent
    /// again, and every segment tells the peer the same.
    #[inline]
    pub(super) fn may_take_acks(&self) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        let s = self.cc.sock();
        let rx = &self.rx;
        self.phase == Phase::Open
            && self.una < self.nxt
            && s.ca_state == CaState::Open as u8
            && s.sacked_out | s.lost_out | s.retrans_out == 0
            && self.recovery == Recovery::Rack
            && self.fast_retransmit
            && !self.old_growth
            && !self.cc.has_cong_control()
            && self.tlp_high_seq == 0
            && self.una >= self.retrans_end
            && !self.rack.dsack_seen
            && self.rack.reo_wnd_steps == 1
            && self.rexmit == Rexmit::None
            && !(self.tlp_probe | self.probe_pending | self.fin_queued | self.nospace)
            // Nothing is owed to the peer, and a header changes nothing at the receiving half.
            && !(rx.ack_now | rx.ack_first | rx.ack_scheduled)
            && !rx.has_sacks()
            && (rx.ato_ns == 0 || rx.pingpong)
            && rx.compressed == 0
            && self.timers.delack == u64::MAX
            && rx.wup == rx.nxt
            && rx.offer() == rx.wnd
    }

    /// See [`Endpoint::handle_run`].
    #[inline]
    pub(super) fn take_acks(
        &mut self,
        until: Time,
        arrivals: impl Iterator<Item = Arrival>,
        mut send: impl FnMut(Time, &Segment, u32),
    ) -> usize {
        let timestamps = if self.timestamps { flags::TIMESTAMPS } else { 0 };
        let peer = self.rx.nxt;
        let mut seg = Segment {
            ack: peer,
            window: self.rx.wnd as u32,
            flags: flags::ACK | timestamps,
            len: self.mss,
            ..Segment::default()
        };
        let mut taken = 0;
        for a in arrivals {
            let plain = a.flags == flags::ACK | timestamps
                && a.len == 0
                && a.sack_count == 0
                && a.seq == peer
                && u64::from(a.window) == self.snd_wnd
                && a.ack > self.una
                // One that acknowledges all leaves nothing to which a timer could belong.
                && a.ack < self.nxt;
            if !plain || a.at >= until || a.at.0 >= self.timers.wake {
                break;
            }
            let Some((room, head_tx_ns)) = self.take_ack(&a) else { break };
            taken += 1;
            let segments = self.full_segments(room);
            let all = segments == room;
            // What stops a train is the congestion window, or the peer's, which has no room for a full segment.
            let closed = all
                || (self.nxt + (u64::from(segments) + 1) * u64::from(self.mss) > self.wnd_end
                    && self.wnd_end < self.write_seq);
            if segments == 0 || !closed {
                if !self.transmit_and_go_on(a.at, &mut send) {
                    break;
                }
                continue;
            }
            self.append_train(segments);
            seg.seq = self.nxt - u64::from(segments) * u64::from(self.mss);
            if self.timestamps {
                seg.ts_val = self.timestamp();
                seg.ts_ecr = self.rx.ts_recent;
            }
            send(a.at, &seg, segments);
            self.end_train(all, head_tx_ns);
        }
        taken
    }

    /// Takes an ACK (see `handle_fast_path_ack`); returns the segments that the congestion window has room for, or 0
    /// where more than that is to be looked at, and the transmission time of the oldest segment, ns. None, and nothing
    /// is changed, where it ends within that.
    #[inline]
    fn take_ack(&mut self, a: &Arrival) -> Option<(u32, u64)> {
        let popped = self.ring.pop_some(a.ack)?;
        self.set_now(a.at);
        if self.timestamps {
            self.rx.ts_recent = a.ts_val;
            self.last_ecr = a.ts_ecr;
        } else {
            self.last_ecr = 0;
        }
        self.retransmits = 0;
        self.snd_wl1 = a.seq;
        self.una = a.ack;
        self.wnd_end = a.ack + self.snd_wnd;
        let in_flight = self.cc.sock().packets_out;
        self.sock().snd_una = a.ack as u32;
        self.cc.in_ack_event(ack_flags::WIN_UPDATE);

        let last = popped.last;
        self.mark_cursor = self.mark_cursor.max(self.ring.head());
        self.rack.advanced = true;
        self.rack.rtt_ns = self.now - last.tx_ns;
        if last.tx_ns >= self.rack.xmit_ns {
            self.rack.xmit_ns = last.tx_ns;
            self.rack.end_seq = last.end();
        }
        let rtt_us = (self.now - popped.first_tx_ns) / NS_PER_US;
        let newest_us = (self.now - last.tx_ns) / NS_PER_US;
        self.rtt.sample_min(self.now_us, newest_us);
        self.rtt.sample(rtt_us, a.ack, self.nxt);
        self.timers.rto_shift = 0;
        self.stats.rtt_sample(rtt_us);
        let (srtt, min, now_us) = (self.rtt.srtt_us8(), self.rtt.min_us(), self.now_us);
        let s = self.cc.sock_mut();
        s.packets_out -= popped.count;
        s.delivered = s.delivered.wrapping_add(popped.count);
        s.srtt_us = srtt;
        s.min_rtt_us = min;
        if s.app_limited != 0 && (s.delivered.wrapping_sub(s.app_limited) as i32) > 0 {
            s.app_limited = 0;
        }
        s.first_tx_mstamp_us = last.tx_ns / NS_PER_US;
        let sample =
            AckSample { pkts_acked: popped.count, rtt_us: i32::try_from(newest_us).unwrap_or(i32::MAX), in_flight };
        self.cc.pkts_acked(&sample);
        let rto = self.rtt.rto_ns();
        self.arm_loss_probe(self.now + rto);
        self.sock().delivered_mstamp_us = now_us;
        self.cc.cong_avoid(a.ack as u32, popped.count);
        self.clamp_cwnd();
        self.refresh_pacing_rate();
        let s = self.cc.sock();
        let goes = s.packets_out < s.snd_cwnd && s.ecn_flags & ecn::OK == 0 && !self.is_pacing();
        Some((if goes { s.snd_cwnd - s.packets_out } else { 0 }, popped.next_tx_ns))
    }

    /// Arms the probe at its time, or at `rto` if that is before (see `schedule_loss_probe`).
    #[inline]
    fn arm_loss_probe(&mut self, rto: u64) {
        let wait = u64::from(self.rtt.srtt_us8() >> 2) * 1_000;
        let more = if self.cc.sock().packets_out == 1 { self.cfg.rto_min.0 } else { TIMEOUT_MIN.0 };
        let mut deadline = self.now + wait + more;
        if rto > self.now {
            deadline = deadline.min(rto);
        }
        self.timers.arm_xmit(Pending::LossProbe, deadline);
    }

    /// Puts `segments` on the scoreboard (see `transmit_train`).
    #[inline]
    fn append_train(&mut self, segments: u32) {
        let (seq, len) = (self.nxt, self.mss);
        let now_us = self.now_us;
        self.sock().lsndtime_us = now_us;
        let mut entry = Entry { seq, tx_ns: self.now, len: len as u16, ..Entry::default() };
        let rate = self.rate_sent(&mut entry);
        self.ring.push(entry, rate, segments);
        self.nxt += u64::from(segments) * u64::from(len);
        let nxt = self.nxt as u32;
        let s = self.cc.sock_mut();
        s.snd_nxt = nxt;
        s.packets_out += segments;
        self.stats.data_segments_sent += u64::from(segments);
        self.stats.segments_sent += u64::from(segments);
    }

    /// Nothing more goes after a train (see `rearm_rto` and `end_burst`); `limited`: by the congestion window.
    #[inline]
    fn end_train(&mut self, limited: bool, head_tx_ns: u64) {
        let rto = head_tx_ns.saturating_add(self.rtt.rto_ns());
        self.timers.wake = self.timers.wake.min(rto.max(self.now + 1));
        self.burst = false;
        self.cwnd_validate(limited);
        self.arm_loss_probe(rto);
    }

    /// Sends by [`Endpoint::poll_train`]; returns whether a further ACK may be taken.
    #[inline(never)]
    fn transmit_and_go_on(&mut self, now: Time, send: &mut impl FnMut(Time, &Segment, u32)) -> bool {
        let mut seg = Segment::default();
        loop {
            let train = self.poll_train(now, &mut seg, u32::MAX);
            if train.segments > 0 {
                send(now, &seg, train.segments);
            }
            if !train.more || train.segments == 0 {
                return self.may_take_acks();
            }
        }
    }
}
