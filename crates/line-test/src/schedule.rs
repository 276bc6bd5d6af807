//! Times at which frames are due: a constant rate, after a rise to it.

use crate::ethernet::LINE_OVERHEAD_BYTES;
use units::{Rate, Span};

const NS_PER_S: u128 = 1_000_000_000;
/// Time that a sender which was held back may catch up without a gap, ns. Frames beyond are left out: a line that is
/// tested at a rate must not get a burst above it for long.
const CATCH_UP_NS: u64 = 1_000_000;
/// Share of the rate with which it begins to rise: 1 in 100.
const RAMP_FROM: u64 = 100;

/// A schedule of frames, each followed by the gap that makes its share of the line's time.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Rate,
    ramp_ns: u64,
    start_ns: u64,
    next_ns: u64,
    /// Fraction of a nanosecond beyond `next_ns`, in 1 / rate.
    fraction: u128,
    left_out_ns: u64,
}

impl Schedule {
    /// A schedule whose first frame is due at `start_ns` and whose rate rises for `ramp`.
    ///
    /// # Panics
    /// When the rate is 0.
    pub fn new(rate: Rate, ramp: Span, start_ns: u64) -> Schedule {
        assert!(rate.0 > 0, "a rate above 0");
        Schedule { rate, ramp_ns: ramp.0, start_ns, next_ns: start_ns, fraction: 0, left_out_ns: 0 }
    }

    /// Time of the next frame, ns.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// True while the rate rises.
    #[inline]
    pub fn is_rising(&self) -> bool {
        self.next_ns < self.start_ns + self.ramp_ns
    }

    /// Time that was left out because the sender was held back, ns.
    pub fn left_out_ns(&self) -> u64 {
        self.left_out_ns
    }

    /// Leaves out what a sender that was held back until `now_ns` may not catch up, up to the schedule's end.
    #[inline]
    pub fn leave_out(&mut self, now_ns: u64, end_ns: u64) {
        let latest = now_ns.saturating_sub(CATCH_UP_NS).min(end_ns);
        if self.next_ns < latest {
            // Of the rise nothing is counted.
            let counted_from = self.next_ns.max(self.start_ns + self.ramp_ns);
            self.left_out_ns += latest.saturating_sub(counted_from);
            (self.next_ns, self.fraction) = (latest, 0);
        }
    }

    /// Skips what is due until `now_ns`, up to the schedule's end, without the rise; returns its time, ns.
    pub fn skip(&mut self, now_ns: u64, end_ns: u64) -> u64 {
        let until = now_ns.min(end_ns);
        if self.next_ns >= until {
            return 0;
        }
        let from = self.next_ns.max(self.start_ns + self.ramp_ns);
        (self.next_ns, self.fraction) = (until, 0);
        until.saturating_sub(from)
    }

    /// Takes the next frame, of so many bytes with its check sequence, at `now_ns`, when it is due; returns by how many
    /// ns it is late.
    #[inline]
    pub fn take(&mut self, frame_bytes: u32, now_ns: u64) -> u64 {
        let late_ns = now_ns.saturating_sub(self.next_ns);
        let rate = self.rate_at(self.next_ns);
        let sum = u128::from(u64::from(frame_bytes) + LINE_OVERHEAD_BYTES) * 8 * NS_PER_S + self.fraction;
        let (whole, rest) = match u64::try_from(sum) {
            // Divisions of 64 bits take a third of the time.
            Ok(sum) => (sum / rate, u128::from(sum % rate)),
            Err(_) => ((sum / u128::from(rate)) as u64, sum % u128::from(rate)),
        };
        // The rest is in parts of the rate that holds now; while the rate rises, no more than 1 ns is wrong.
        (self.next_ns, self.fraction) = (self.next_ns + whole, rest);
        late_ns
    }

    fn rate_at(&self, at_ns: u64) -> u64 {
        let since = at_ns.saturating_sub(self.start_ns);
        if since >= self.ramp_ns {
            return self.rate.0;
        }
        let from = self.rate.0 / RAMP_FROM;
        let risen = u128::from(self.rate.0 - from) * u128::from(since) / u128::from(self.ramp_ns);
        (from + risen as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_take_exactly_the_rate(rate in 1_000_000u64..400_000_000_000, bytes in 64u32..9252) {
            let mut schedule = Schedule::new(Rate(rate), Span::ZERO, 5);
            for _ in 0..10_000 {
                schedule.take(bytes, schedule.next_ns());
            }
            let exact = u128::from(u64::from(bytes) + LINE_OVERHEAD_BYTES) * 8 * NS_PER_S * 10_000 / u128::from(rate);
            prop_assert_eq!(u128::from(schedule.next_ns() - 5), exact);
        }
    }

    #[test]
    fn the_rate_rises_from_a_hundredth() {
        let mut schedule = Schedule::new(Rate(1_000_000_000), Span::from_secs(1), 0);
        let mut by_tenth = [0u64; 12];
        while schedule.next_ns() < 1_200_000_000 {
            by_tenth[(schedule.next_ns() / 100_000_000) as usize] += 1;
            schedule.take(1230, schedule.next_ns());
        }
        // 10 us a frame at the full rate, and the middle of each tenth of the rise.
        assert_eq!(by_tenth[10], 10_000);
        for (tenth, count) in by_tenth[..10].iter().enumerate() {
            let expected = (0.01 + 0.99 * (tenth as f64 + 0.5) / 10.0) * 10_000.0;
            assert!((*count as f64 - expected).abs() < 0.03 * expected + 20.0, "{tenth}: {count}, not {expected}");
        }
    }

    #[test]
    fn a_sender_that_was_held_back_catches_up_for_a_while_and_leaves_the_rest_out() {
        let mut schedule = Schedule::new(Rate(1_000_000_000), Span::ZERO, 0);
        assert_eq!(schedule.take(1230, 0), 0);
        // 10 ms late: 1 ms is caught up, what is between is left out.
        schedule.leave_out(10_010_000, u64::MAX);
        assert_eq!(schedule.take(1230, 10_010_000), CATCH_UP_NS);
        assert_eq!((schedule.left_out_ns(), schedule.next_ns()), (9_000_000, 9_020_000));
        schedule.leave_out(10_010_000, u64::MAX);
        assert_eq!(schedule.take(1230, 10_010_000), CATCH_UP_NS - 10_000);
        assert_eq!(schedule.left_out_ns(), 9_000_000);
        // Nothing is due behind the end, however late it is.
        schedule.leave_out(1_000_000_000, 9_500_000);
        assert_eq!((schedule.left_out_ns(), schedule.next_ns()), (9_470_000, 9_500_000));
    }
}
