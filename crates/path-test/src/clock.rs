//! Offset and skew of the far end's clock, from the four times of packets that went both ways.
//!
//! A packet that left at t1 and arrived at t2 bounds the offset from above by t2 - t1, and its reply, that left at t3
//! and was back at t4, from below by t3 - t4. The lower hull of the first, and the upper hull of the second, over a
//! window
//! (Moon, Skelly and Towsley, INFOCOM 1999), are lines along packets that met no queue. The offset is midway between
//! both. Its error is half of the distance, since all of that may be delay of one direction, and what the hulls' slopes
//! differ by.

use serde::Serialize;
use std::collections::VecDeque;

/// Pieces of the window. Of each the best packet of each direction counts, so that memory and time do not grow.
const PIECES: usize = 32;
/// Time that a clock is allowed to drift against another without a step, as a share of time, parts per million: quartz
/// has 100, adjtime slews by 500 (adjtimex(2)).
const DRIFT_PPM: u64 = 700;
/// Differences that are no step, ns: what an interrupt may delay a stamp of the kernel.
const STEP_MIN_NS: i64 = 200_000;
/// Packets in turn that must contradict the window: one may carry a wrong time stamp.
const STEP_PACKETS: usize = 2;

/// The far end's clock.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ClockState {
    /// Far end's clock less this one's, ns.
    pub offset_ns: i64,
    /// The largest error of the offset, ns, while both clocks run evenly.
    pub error_ns: u64,
    /// The far end's clock gains this, parts per billion.
    pub skew_ppb: i64,
    /// Steps so far.
    pub steps: u32,
    /// The latest step, ns; 0: none.
    pub last_step_ns: i64,
}

/// Best packets of a piece of time: (time of this clock, bound of the offset), ns.
#[derive(Clone, Copy, Debug)]
struct Piece {
    begin_ns: u64,
    upper: (u64, i64),
    lower: (u64, i64),
}

/// Estimator of a far end's clock, over a sliding window.
#[derive(Clone, Debug)]
pub struct FarClock {
    piece_ns: u64,
    pieces: VecDeque<Piece>,
    /// Bounds of packets that contradict the window, latest last.
    against: Vec<(u64, i64, i64)>,
    steps: u32,
    last_step_ns: i64,
}

impl FarClock {
    /// With a window of so many ns.
    pub fn new(window_ns: u64) -> FarClock {
        let piece_ns = (window_ns / PIECES as u64).max(1);
        FarClock { piece_ns, pieces: VecDeque::with_capacity(PIECES), against: vec![], steps: 0, last_step_ns: 0 }
    }

    /// Takes the times of a packet, ns: sent here, arrived there, answered there, back here. Returns true if the far
    /// end's clock has made a step.
    pub fn handle_times(&mut self, sent_ns: u64, came_ns: u64, answered_ns: u64, back_ns: u64) -> bool {
        let upper = came_ns.wrapping_sub(sent_ns) as i64;
        let lower = answered_ns.wrapping_sub(back_ns) as i64;
        let mut stepped = false;
        if self.contradicts(back_ns, upper, lower) {
            self.against.push((sent_ns, upper, lower));
            if self.against.len() < STEP_PACKETS {
                return false;
            }
            let before = self.state(back_ns).map_or(0, |state| state.offset_ns);
            self.pieces.clear();
            let latest = std::mem::take(&mut self.against);
            latest.iter().for_each(|&(at, upper, lower)| self.take(at, upper, lower));
            self.steps += 1;
            self.last_step_ns = self.state(back_ns).map_or(0, |state| state.offset_ns).saturating_sub(before);
            stepped = true;
        } else {
            self.against.clear();
            self.take(sent_ns, upper, lower);
        }
        stepped
    }

    /// True for bounds that no clock without a step can have: they do not overlap with those of the window.
    fn contradicts(&self, now_ns: u64, upper: i64, lower: i64) -> bool {
        let allowed = |at: u64| {
            let drift = u128::from(now_ns.saturating_sub(at)) * u128::from(DRIFT_PPM) / 1_000_000;
            STEP_MIN_NS.saturating_add(i64::try_from(drift).unwrap_or(i64::MAX))
        };
        // The latest piece may hold this packet alone; any of the window's bounds is good for the test.
        self.pieces.iter().any(|piece| {
            lower > piece.upper.1.saturating_add(allowed(piece.upper.0))
                || upper < piece.lower.1.saturating_sub(allowed(piece.lower.0))
        })
    }

    fn take(&mut self, at_ns: u64, upper: i64, lower: i64) {
        match self.pieces.back_mut() {
            Some(piece) if at_ns < piece.begin_ns.saturating_add(self.piece_ns) => {
                if upper < piece.upper.1 {
                    piece.upper = (at_ns, upper);
                }
                if lower > piece.lower.1 {
                    piece.lower = (at_ns, lower);
                }
            }
            _ => {
                if self.pieces.len() == PIECES {
                    self.pieces.pop_front();
                }
                self.pieces.push_back(Piece { begin_ns: at_ns, upper: (at_ns, upper), lower: (at_ns, lower) });
            }
        }
    }

    /// The clock at a time of this end, ns; None: no packet has come back yet.
    pub fn state(&self, at_ns: u64) -> Option<ClockState> {
        let origin = self.pieces.front()?.begin_ns;
        let point = |(at, bound): (u64, i64)| (at.wrapping_sub(origin) as i64 as f64, bound);
        let first = self.pieces.front()?.upper.1;
        let relative = |bound: i64| bound.wrapping_sub(first) as f64;
        let upper = self.pieces.iter().map(|piece| point(piece.upper)).map(|(at, bound)| (at, relative(bound)));
        let lower = self.pieces.iter().map(|piece| point(piece.lower)).map(|(at, bound)| (at, -relative(bound)));
        let (above, below) = (Line::under(upper), Line::under(lower));
        let at = at_ns.wrapping_sub(origin) as i64 as f64;
        let (high, low) = (above.at(at), -below.at(at));
        let skew = (above.slope - below.slope) / 2.0;
        // Both lines would be parallel if the clocks alone had made them.
        let differ = (above.slope + below.slope).abs() / 2.0 * (at - above.middle).abs();
        let middle = (high + low) / 2.0;
        // Bounds that cross are of a clock that wanders or has made a small step: the latest packets alone bound it.
        let wander = match self.pieces.back() {
            Some(latest) if high < low => {
                (relative(latest.upper.1) - middle).abs().max((middle - relative(latest.lower.1)).abs())
            }
            _ => 0.0,
        };
        Some(ClockState {
            offset_ns: first.saturating_add(middle as i64),
            error_ns: ((((high - low).abs() / 2.0).max(wander) + differ) as u64).saturating_add(1),
            skew_ppb: (skew * 1e9) as i64,
            steps: self.steps,
            last_step_ns: self.last_step_ns,
        })
    }
}

/// A line below all points of a set.
#[derive(Clone, Copy, Debug)]
struct Line {
    middle: f64,
    value: f64,
    slope: f64,
}

impl Line {
    /// The line below all points that is nearest to them: the edge of their lower hull at their mean time. It has no
    /// slope with fewer than four points, whose edges are made of noise.
    fn under(points: impl Iterator<Item = (f64, f64)>) -> Line {
        let mut hull: Vec<(f64, f64)> = Vec::with_capacity(PIECES);
        let (mut sum, mut count) = (0.0, 0u32);
        let mut least = f64::INFINITY;
        for point in points {
            sum += point.0;
            count += 1;
            least = least.min(point.1);
            while let [.., before, last] = hull[..] {
                let turns = (last.0 - before.0) * (point.1 - before.1) - (last.1 - before.1) * (point.0 - before.0);
                if turns > 0.0 {
                    break;
                }
                hull.pop();
            }
            hull.push(point);
        }
        let middle = sum / f64::from(count.max(1));
        let edge = hull.windows(2).find(|edge| edge[0].0 <= middle && middle <= edge[1].0 && edge[0].0 < edge[1].0);
        match edge {
            Some(edge) if count >= 4 => {
                let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0);
                Line { middle, value: edge[0].1 + slope * (middle - edge[0].0), slope }
            }
            _ => Line { middle, value: least, slope: 0.0 },
        }
    }

    fn at(self, time: f64) -> f64 {
        self.value + self.slope * (time - self.middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Packets each 100 ms over ways of `ways` ns, against a clock that is `offset` ahead and gains `ppb`.
    fn run(clock: &mut FarClock, from: u64, offset: i64, ppb: i64, ways: &[(u64, u64)]) -> u64 {
        let mut at = from;
        for &(there, back) in ways {
            let far = |here: u64| {
                here.wrapping_add_signed(offset + (i128::from(here - from) * i128::from(ppb) / 1_000_000_000) as i64)
            };
            clock.handle_times(at, far(at + there), far(at + there + 5000), at + there + 5000 + back);
            at += 100_000_000;
        }
        at
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_error(
            offset in -1_000_000_000_000_000i64..1_000_000_000_000_000,
            ways in proptest::collection::vec((1_000_000u64..9_000_000, 1_000_000u64..9_000_000), 1..300),
        ) {
            let mut clock = FarClock::new(60_000_000_000);
            let at = run(&mut clock, 5_000_000_000, offset, 0, &ways);
            let state = clock.state(at).unwrap();
            prop_assert_eq!(state.steps, 0);
            prop_assert!(state.offset_ns.abs_diff(offset) <= state.error_ns, "{:?}", state);
        }

        #[test]
        fn times_of_any_value_do_no_harm(times in proptest::collection::vec(any::<[u64; 4]>(), 0..50)) {
            let mut clock = FarClock::new(60_000_000_000);
            for [sent, came, answered, back] in times {
                clock.handle_times(sent, came, answered, back);
                clock.state(back);
            }
        }
    }

    #[test]
    fn skew_is_found_below_queues() {
        let mut clock = FarClock::new(60_000_000_000);
        // 5 ms each way, and queues of up to 3 ms on most packets.
        let ways: Vec<_> = (0..600u64)
            .map(|i| (5_000_000 + i * 7919 % 30 * 100_000, 5_000_000 + i * 104_729 % 30 * 100_000))
            .collect();
        let at = run(&mut clock, 1_000_000_000, 77_000_000, 20_000, &ways);
        let state = clock.state(at).unwrap();
        assert!((state.skew_ppb - 20_000).abs() < 1500, "{state:?}");
        let truth = 77_000_000 + 20_000 * 60;
        assert!((state.offset_ns - truth).abs() < 100_000, "{state:?}, {truth}");
        assert!((5_000_000..5_400_000).contains(&state.error_ns), "{state:?}");
    }

    #[test]
    fn a_step_is_noticed_and_a_single_wrong_stamp_is_not_one() {
        let mut clock = FarClock::new(60_000_000_000);
        let ways = [(2_000_000, 2_000_000); 50];
        let at = run(&mut clock, 1_000_000_000, 0, 0, &ways);
        clock.handle_times(at, at + 50_000_000_000, at + 50_000_000_000, at + 4_000_000);
        let at = run(&mut clock, at + 100_000_000, 0, 0, &ways);
        assert_eq!(clock.state(at).unwrap().steps, 0);
        let at = run(&mut clock, at, 30_000_000, 0, &ways);
        let state = clock.state(at).unwrap();
        assert_eq!(state.steps, 1);
        assert!(state.offset_ns.abs_diff(30_000_000) < 10_000, "{state:?}");
        assert!(state.last_step_ns.abs_diff(30_000_000) < 10_000, "{state:?}");
    }
}
