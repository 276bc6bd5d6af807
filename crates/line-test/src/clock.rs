//! Offset of the other end's clock, by questions and answers that cross the line.

use serde::Serialize;
use std::collections::VecDeque;

/// Samples of which the best counts: those of the last questions, so that an old one does not hide that clocks drift.
const SAMPLES: usize = 16;

/// A clock's offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ClockEstimate {
    /// The other end's clock less this one's, ns.
    pub offset_ns: i64,
    /// The largest error that it may have, ns: half of the round trip, whichever way took it, and half of the drift.
    pub error_ns: u64,
}

/// Estimator of an offset.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Least and largest offset, and the largest error, of the best of the last samples, at any time.
    bounds: Option<(i64, i64, u64)>,
    samples: VecDeque<ClockEstimate>,
    taken: usize,
    is_same: bool,
}

impl Clock {
    /// The other end reads the same clock: nothing is to be estimated.
    pub fn set_same(&mut self) {
        self.is_same = true;
    }

    /// Takes a question's four times, ns (RFC 5905, 8): sent and answered here, come and answered there.
    pub fn handle_sample(&mut self, sent_ns: u64, came_ns: u64, answered_ns: u64, back_ns: u64) {
        let there = came_ns.wrapping_sub(sent_ns) as i64;
        let back = answered_ns.wrapping_sub(back_ns) as i64;
        let offset_ns = ((i128::from(there) + i128::from(back)) / 2) as i64;
        let round_trip = i128::from(there) - i128::from(back);
        let error_ns = (round_trip.max(0) as u128).div_ceil(2) as u64;
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(ClockEstimate { offset_ns, error_ns });
        self.taken += 1;
        // Of the first samples the best is known when all are there.
        if self.taken >= SAMPLES {
            self.bounds = self.widened();
        }
    }

    fn best(&self) -> Option<ClockEstimate> {
        self.samples.iter().min_by_key(|sample| sample.error_ns).copied()
    }

    /// The bounds, with those of the best of the last samples.
    fn widened(&self) -> Option<(i64, i64, u64)> {
        let best = self.best()?;
        let (least, most, error_ns) = self.bounds.unwrap_or((best.offset_ns, best.offset_ns, best.error_ns));
        Some((least.min(best.offset_ns), most.max(best.offset_ns), error_ns.max(best.error_ns)))
    }

    /// The offset over the time of all samples; None: there was none.
    pub fn estimate(&self) -> Option<ClockEstimate> {
        if self.is_same {
            return Some(ClockEstimate::default());
        }
        let (least, most, error_ns) = self.widened()?;
        Some(ClockEstimate {
            offset_ns: ((i128::from(least) + i128::from(most)) / 2) as i64,
            error_ns: error_ns.saturating_add(most.abs_diff(least).div_ceil(2)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_error(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            ways in proptest::collection::vec((0u64..50_000_000, 0u64..50_000_000), 1..40),
        ) {
            let mut clock = Clock::default();
            for (number, (there, back)) in (0u64..).zip(ways) {
                let sent = 1_700_000_000_000_000_000 + number * 1_000_000_000;
                let far = |here: u64| here.wrapping_add_signed(offset);
                let (came, answered) = (sent + there, sent + there + 1000);
                clock.handle_sample(sent, far(came), far(answered), answered + back);
            }
            let found = clock.estimate().unwrap();
            prop_assert!(found.offset_ns.abs_diff(offset) <= found.error_ns, "{:?}", found);
        }
    }

    #[test]
    fn a_clock_that_drifts_has_a_larger_error() {
        let mut clock = Clock::default();
        for second in 0..100 {
            // 10 us a second, over ways of 1 ms.
            let (sent, ahead) = (second * 1_000_000_000, second * 10_000);
            clock.handle_sample(sent, sent + 1_000_000 + ahead, sent + 1_000_000 + ahead, sent + 2_000_000);
        }
        let found = clock.estimate().unwrap();
        assert!(found.error_ns > 1_300_000 && found.offset_ns > 300_000, "{found:?}");
    }

    #[test]
    fn one_clock_has_no_offset() {
        let mut clock = Clock::default();
        assert_eq!(clock.estimate(), None);
        clock.set_same();
        assert_eq!(clock.estimate(), Some(ClockEstimate::default()));
    }
}
