//! A run of segments behind a hole: nearly all the work of a receiver while the sender repairs losses. Each is
//! acknowledged at once, or one in many where SACK compression holds ACKs back, as it does by default with RACK.
//!
//! The same steps in the same order as in `receive`, `receiver` and `output`. A test compares with one call per
//! segment.

use super::{Arrival, Endpoint, Output};
use crate::config::Recovery;
use crate::segment::{flags, Segment};
use units::Time;

impl Endpoint {
    /// Returns whether segments behind a hole may be taken by [`Endpoint::take_held`]: this end only receives, and
    /// owes nothing.
    #[inline]
    pub(super) fn may_take_held(&self) -> bool {
        let rx = &self.rx;
        !rx.ofo.is_empty()
            && self.only_receives()
            // An ACK that waits is one of those that compression holds back, if there are any.
            && rx.ack_scheduled == (rx.compressed > 0)
            && rx.dsack.is_none()
            && rx.fin_at.is_none()
            && rx.wup == rx.nxt
            && !self.is_reno()
    }

    /// See [`Endpoint::handle_run`].
    pub(super) fn take_held(
        &mut self,
        until: Time,
        arrivals: impl Iterator<Item = Arrival>,
        mut output: impl Output,
    ) -> usize {
        let plain_flags = self.plain_flags();
        let (nxt, right) = (self.rx.nxt, self.rx.nxt + self.rx.wnd);
        let mut seg = Segment {
            seq: self.nxt,
            ack: nxt,
            window: self.rx.wnd as u32,
            flags: plain_flags,
            ts_ecr: if self.timestamps { self.rx.ts_recent } else { 0 },
            ..Segment::default()
        };
        let compresses = self.rx.sack_compression && self.rx.delayed_ack && self.recovery == Recovery::Rack;
        let (mut taken, mut acks) = (0, 0);
        let mut last_ns = self.now;
        let mut is_written = false;
        for a in arrivals {
            let end = a.seq + u64::from(a.len);
            let plain = a.flags & !flags::PSH == plain_flags
                && a.len > 0
                && a.sack_count == 0
                && a.seq > nxt
                && a.seq < right
                && a.ack == self.una
                && u64::from(a.window) == self.snd_wnd;
            if !plain || a.at >= until || a.at.0 >= self.timers.wake || self.rx.ofo.covering(a.seq, end).is_some() {
                break;
            }
            debug_assert!(a.at.0 >= last_ns, "time goes back");
            last_ns = a.at.0;
            taken += 1;
            self.rx.fresh.clear();
            let block = self.rx.ofo.insert(a.seq, end, &mut self.rx.fresh);
            // Nearly always the first block gets longer, and no other one becomes a part of it.
            let goes_on = taken > 1
                && self.rx.sacks[0].end == a.seq
                && (self.rx.sacks[0].start, end) == block
                && self.rx.fresh[..] == [(a.seq, end)];
            let mut is_crowded = false;
            if goes_on {
                self.rx.sacks[0].end = end;
            } else {
                is_crowded = self.rx.update_sacks(block.0, block.1);
                is_written = false;
            }
            if compresses && self.holds_ack_back(a.at, is_crowded) {
                continue;
            }
            acks += 1;
            if is_written {
                seg.sacks[0].end = end;
            } else {
                self.rx.write_sacks(&mut seg, self.timestamps, u32::MAX);
                is_written = true;
            }
            if self.timestamps {
                seg.ts_val = Self::timestamp_at(last_ns);
            }
            output.send(a.at, &seg, 1);
        }
        if taken > 0 {
            self.set_now(Time(last_ns));
            self.rx.last_data_ns = last_ns;
            if !compresses {
                if self.rx.delayed_ack && self.rx.hole != nxt {
                    (self.rx.hole, self.rx.hole_acks) = (nxt, 0);
                }
                self.timers.delack = u64::MAX;
            }
            self.stats.data_segments_received += taken as u64;
            self.stats.out_of_order_segments += taken as u64;
            self.stats.segments_sent += acks;
            self.stats.acks_sent += acks;
            self.stats.duplicate_acks_sent += if nxt > 1 { acks } else { 0 };
        }
        taken
    }

    /// Returns whether SACK compression holds back the ACK of a segment that came at `at`; notes it as sent otherwise.
    #[inline]
    fn holds_ack_back(&mut self, at: Time, is_crowded: bool) -> bool {
        self.set_now(at);
        if !is_crowded || self.rx.compressed == 0 {
            self.compress_ack();
            if !self.rx.ack_now {
                self.rx.ack_scheduled = true;
                return true;
            }
        }
        (self.rx.ack_scheduled, self.rx.ack_now, self.rx.compressed) = (false, false, 0);
        self.timers.delack = u64::MAX;
        false
    }
}
