//! A run of timers: nearly all the work of a sender that paces, whose segments each wait for one.

use super::timer_state::NEVER;
use super::{Endpoint, Output, Phase, Rexmit};
use crate::consts::{ecn, NS_PER_US, PACING_FREE_SEGMENTS};
use crate::scoreboard::Entry;
use crate::segment::Segment;
use units::Time;

impl Endpoint {
    /// Calls [`Endpoint::handle_timeout`] at `now`, then at each time of [`Endpoint::poll_timeout`] before `until`, and
    /// after each [`Endpoint::poll_train`] until there is no more, which `output` gets: the time, the first segment and
    /// the number of each train. Returns the time of the last call and the number of calls.
    pub fn handle_timer_run(&mut self, now: Time, until: Time, mut output: impl Output) -> (Time, u64) {
        let mut seg = Segment::default();
        let (mut at, mut calls) = (now, 0);
        loop {
            let segments = if self.may_send_paced(at.0) { self.paced_burst(at) } else { 0 };
            if segments > 0 {
                self.send_paced(at, &mut seg, segments);
                output.send(at, &seg, segments);
            } else {
                self.handle_timeout(at);
                self.transmit_all(at, &mut seg, &mut output);
            }
            calls += 1;
            let due = self.poll_timeout();
            // One that is due at once has its turn behind all else at this time.
            if due >= until || due <= at {
                #[cfg(debug_assertions)]
                self.check_invariants();
                return (at, calls);
            }
            at = due;
        }
    }

    /// Hands all that is to be sent at `now` to `output`.
    pub(super) fn transmit_all(&mut self, now: Time, seg: &mut Segment, output: &mut impl Output) {
        loop {
            let train = self.poll_train(now, seg, u32::MAX);
            if train.segments > 0 {
                output.send(now, seg, train.segments);
            }
            if !train.more || train.segments == 0 {
                return;
            }
        }
    }

    /// Returns whether all that is to be done at `at` is to send a full segment of new data, for which pacing has
    /// waited, and to wait for the next one.
    #[inline]
    fn may_send_paced(&self, at: u64) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        let (s, timers) = (self.cc.sock(), &self.timers);
        let end = self.nxt + u64::from(self.mss);
        let in_flight = s.in_flight();
        timers.pace == at
            && self.pace_next_ns == at
            && timers.xmit > at
            && timers.delack & timers.syn == NEVER
            && self.is_pacing()
            && self.phase == Phase::Open
            && end < self.write_seq
            && end <= self.wnd_end
            && 0 < in_flight
            && in_flight < s.snd_cwnd
            && s.ecn_flags & ecn::OK == 0
            && self.stats.data_segments_sent + 1 >= PACING_FREE_SEGMENTS
            // The next one waits for a ns at least.
            && (1..=u64::from(self.mss) * 1_000_000_000).contains(&self.paced_rate())
            && (self.rexmit == Rexmit::None || self.repairs_are_sent())
            && !(self.tlp_probe | self.probe_pending)
            && !self.has_limited_transmit()
            && self.rx.owes_nothing()
    }

    /// Length of the burst that goes at `at`: full segments, without the last that was written; 0 where there is more
    /// to look at.
    #[inline]
    fn paced_burst(&mut self, at: Time) -> u32 {
        if self.bursts.max_bytes == 0 {
            return 1;
        }
        self.set_now(at);
        self.bursts.end_deferral();
        let segments = self.burst_room();
        let end = self.nxt + u64::from(segments) * u64::from(self.mss);
        if end < self.write_seq && end <= self.wnd_end {
            segments
        } else {
            0
        }
    }

    /// Does what `run_timers`, `transmit_new` and `end_burst` do then, without a search for a further segment.
    #[inline]
    fn send_paced(&mut self, at: Time, seg: &mut Segment, segments: u32) {
        self.set_now(at);
        // The timer of pacing has fired.
        self.timers.pace = NEVER;
        self.timers.wake = self.timers.xmit;
        let (seq, len, now_us) = (self.nxt, self.mss, self.now_us);
        let mut entry = Entry { seq, tx_ns: at.0, len: len as u16, ..Entry::default() };
        let rate = self.rate_sent(&mut entry);
        self.nxt = seq + u64::from(segments) * u64::from(len);
        self.burst_sent(at.0, seq, self.nxt, segments);
        let nxt = self.nxt as u32;
        let paced_rate = self.paced_rate();
        let s = self.cc.sock_mut();
        s.lsndtime_us = now_us;
        s.snd_nxt = nxt;
        s.packets_out += segments;
        let limited = s.in_flight() >= s.snd_cwnd;
        let gap = u64::from(len) * 1_000_000_000 / paced_rate;
        self.pace_next_ns = at.0 + u64::from(segments) * gap;
        self.bursts.late_ns = 0;
        s.next_send_us = self.pace_next_ns / NS_PER_US;
        self.ring.push(entry, rate, segments);
        if self.in_cwnd_reduction() {
            self.prr_out += segments;
        }
        self.stats.data_segments_sent += u64::from(segments);
        self.stats.segments_sent += u64::from(segments - 1);
        self.write_header(seg, seq, len, 0);
        self.cwnd_validate(limited);
        self.burst = false;
        self.rearm_after_burst();
        self.timers.arm_pace(self.pace_next_ns);
    }
}
