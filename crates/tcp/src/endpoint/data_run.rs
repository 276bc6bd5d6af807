//! A run of full segments in order, of which every second is acknowledged: nearly all the work of a receiver of much
//! data.
//!
//! The same steps in the same order as in `receive`, `receiver` and `output`. Conditions that stay true from one
//! segment to the next are checked once. A test compares with one call per segment.

use super::receiver::Receiver;
use super::{Arrival, Endpoint, Output, Phase};
use crate::consts::{ecn, ATO_MIN, MSS_MIN};
use crate::segment::{flags, Segment};
use units::Time;

impl Endpoint {
    /// Returns whether this end only receives: it sends nothing, owes no answer at once, and offers the same window
    /// whatever comes.
    #[inline]
    pub(super) fn only_receives(&self) -> bool {
        #[cfg(test)]
        if self.slow_path_only {
            return false;
        }
        let rx = &self.rx;
        self.phase == Phase::Open
            && self.una == self.nxt
            && self.nxt == self.write_seq
            && !self.fin_queued
            && !(rx.ack_now | rx.ack_first | rx.autotuning)
            && rx.quick == 0
            && rx.offer() == rx.wnd
            && self.cc.sock().ecn_flags & ecn::OK == 0
    }

    /// Returns whether data may be taken by [`Endpoint::take_data`]: this end only receives, and misses nothing.
    #[inline]
    pub(super) fn may_take_data(&self) -> bool {
        let rx = &self.rx;
        rx.ofo.is_empty()
            && self.only_receives()
            && rx.compressed == 0
            && !rx.manual
            && !rx.has_sacks()
            && rx.ato_ns != 0
            && rx.rcv_mss <= rx.advmss.max(MSS_MIN)
    }

    /// See [`Endpoint::handle_run`].
    #[inline]
    pub(super) fn take_data(
        &mut self,
        until: Time,
        arrivals: impl Iterator<Item = Arrival>,
        mut output: impl Output,
    ) -> usize {
        let plain_flags = self.plain_flags();
        let full = self.rx.rcv_mss;
        let mut seg = Segment { seq: self.nxt, window: self.rx.wnd as u32, flags: plain_flags, ..Segment::default() };
        // Unacknowledged bytes of which one more make an ACK due.
        let owed = if self.rx.delayed_ack { u64::from(full) } else { 0 };
        let (mut nxt, mut wup, mut last_ns) = (self.rx.nxt, self.rx.wup, self.rx.last_data_ns);
        let (mut delack, mut wake) = (self.timers.delack, self.timers.wake);
        let (mut ato, mut wait) = (self.rx.ato_ns, self.ack_delay(self.rx.ato_ns));
        let rto = self.rto_now();
        let mut ts_recent = self.rx.ts_recent;
        let (mut taken, mut acks) = (0, 0);
        for a in arrivals {
            let plain = a.flags & !flags::PSH == plain_flags
                && a.len == full
                && a.sack_count == 0
                && a.seq == nxt
                && a.ack == self.una
                && u64::from(a.window) == self.snd_wnd
                && nxt < wup + self.rx.wnd
                // After a longer pause ACKs go at once for a while.
                && a.at.0 - last_ns <= rto;
            if !plain || a.at >= until || a.at.0 >= wake {
                break;
            }
            debug_assert!(a.at.0 >= self.now.max(last_ns), "time goes back");
            taken += 1;
            if self.timestamps && a.seq <= wup {
                ts_recent = a.ts_val;
            }
            let gap = a.at.0 - last_ns;
            if ato != ATO_MIN.0 || gap > ATO_MIN.0 / 2 {
                ato = Receiver::ato_after(ato, gap, rto);
                wait = self.ack_delay(ato);
            }
            last_ns = a.at.0;
            nxt += u64::from(full);
            if nxt - wup <= owed && delack > last_ns + (ato >> 2) {
                let deadline = last_ns + wait;
                if delack == u64::MAX || delack > deadline {
                    delack = deadline;
                    wake = wake.min(deadline);
                }
                continue;
            }
            wup = nxt;
            delack = u64::MAX;
            acks += 1;
            seg.ack = nxt;
            if self.timestamps {
                seg.ts_val = Self::timestamp_at(last_ns);
                seg.ts_ecr = ts_recent;
            }
            output.send(a.at, &seg, 1);
        }
        if taken > 0 {
            self.set_now(Time(last_ns));
            self.stats.data_segments_received += taken as u64;
            self.stats.segments_sent += acks;
            self.stats.acks_sent += acks;
            self.rx.ack_scheduled = wup != nxt;
            (self.rx.nxt, self.rx.wup, self.rx.last_data_ns) = (nxt, wup, last_ns);
            (self.rx.ts_recent, self.rx.ato_ns) = (ts_recent, ato);
            (self.timers.delack, self.timers.wake) = (delack, wake);
        }
        taken
    }
}
