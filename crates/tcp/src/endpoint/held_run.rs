//! A run of segments behind a hole, each of which is acknowledged at once: nearly all the work of a receiver while the
//! sender repairs losses, unless SACK compression holds ACKs back, as it does by default with RACK.
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
        let compresses_acks = rx.sack_compression && self.recovery == Recovery::Rack;
        !rx.ofo.is_empty()
            && self.only_receives()
            && !(rx.ack_scheduled || compresses_acks)
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
        let timestamps = if self.timestamps { flags::TIMESTAMPS } else { 0 };
        let (nxt, right) = (self.rx.nxt, self.rx.nxt + self.rx.wnd);
        let mut seg = Segment {
            seq: self.nxt,
            ack: nxt,
            window: self.rx.wnd as u32,
            flags: flags::ACK | timestamps,
            ts_ecr: if self.timestamps { self.rx.ts_recent } else { 0 },
            ..Segment::default()
        };
        let mut taken = 0;
        let mut last_ns = self.now;
        for a in arrivals {
            let end = a.seq + u64::from(a.len);
            let plain = a.flags & !flags::PSH == flags::ACK | timestamps
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
            let goes_on = (self.rx.sacks[0].start, end) == block && self.rx.fresh[..] == [(a.seq, end)];
            if taken > 1 && self.rx.sacks[0].end == a.seq && goes_on {
                self.rx.sacks[0].end = end;
                seg.sacks[0].end = end;
            } else {
                self.rx.update_sacks(block.0, block.1);
                self.rx.write_sacks(&mut seg, self.timestamps, u32::MAX);
            }
            if self.timestamps {
                seg.ts_val = Self::timestamp_at(last_ns);
            }
            output.send(a.at, &seg, 1);
        }
        if taken > 0 {
            self.set_now(Time(last_ns));
            self.rx.last_data_ns = last_ns;
            if self.rx.delayed_ack && self.rx.hole != nxt {
                (self.rx.hole, self.rx.hole_acks) = (nxt, 0);
            }
            self.timers.delack = u64::MAX;
            self.stats.data_segments_received += taken as u64;
            self.stats.out_of_order_segments += taken as u64;
            self.stats.segments_sent += taken as u64;
            self.stats.acks_sent += taken as u64;
            self.stats.duplicate_acks_sent += if nxt > 1 { taken as u64 } else { 0 };
        }
        taken
    }
}
