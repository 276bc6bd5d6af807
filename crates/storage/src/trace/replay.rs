//! A trace's writes as a timetable.

use super::error::TraceError;
use super::request::{Kind, Request};
use std::sync::Arc;

/// One write to be mirrored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// Time at which it is issued, ns since the replay began.
    pub at_ns: u64,
    /// Amount of data, bytes.
    pub bytes: u64,
}

/// The writes of a trace, 16 bytes each. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writes {
    /// (ns since the trace's first request, bytes).
    at: Arc<[(u64, u32)]>,
    /// Requests of the trace, reads among them.
    requests: u64,
    /// From the first arrival to the last, ns.
    span_ns: u64,
}

impl Writes {
    /// Takes the writes out of a trace that is read request by request.
    ///
    /// # Errors
    /// The first that the trace has.
    pub fn read(trace: impl Iterator<Item = Result<Request, TraceError>>) -> Result<Writes, TraceError> {
        let (mut at, mut requests, mut first, mut last) = (Vec::new(), 0, 0, 0);
        for request in trace {
            let request = request?;
            if requests == 0 {
                first = request.arrival_ns;
            }
            requests += 1;
            last = request.arrival_ns;
            if request.kind == Kind::Write {
                at.push((request.arrival_ns - first, request.bytes));
            }
        }
        Ok(Writes { at: at.into(), requests, span_ns: last - first })
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns whether the trace only reads.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
}

/// Plays the writes of a trace: time 0 is the arrival of the trace's first request (read or write).
///
/// Times are scaled by `time_scale_e6` / 10^6 and rounded down; each is computed from the trace, not from the one
/// before, so that nothing drifts. A looped trace starts again one period after it began: its span plus its mean gap
/// between requests (rounded down), so that the end joins the beginning as requests join each other. A trace that
/// lasts no time has no rate to go on with, and is played once.
#[derive(Clone, Debug)]
pub struct Replay {
    writes: Writes,
    rounds: ReplaySchedule,
    round: u64,
    next: usize,
}

/// Times at which requests of a trace are issued in a replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaySchedule {
    time_scale_e6: u64,
    /// Length of a round as recorded, ns; 0: there is one round.
    pub(super) period_ns: u64,
}

impl ReplaySchedule {
    /// Of a trace of `requests` from the first to the last of which it is `span_ns`.
    pub(super) fn new(span_ns: u64, requests: u64, time_scale_e6: u64, looped: bool) -> ReplaySchedule {
        let mean_gap = span_ns.checked_div(requests.saturating_sub(1)).unwrap_or(0);
        ReplaySchedule { time_scale_e6, period_ns: if looped { span_ns.saturating_add(mean_gap) } else { 0 } }
    }

    /// Time at which it is `offset` ns into a round, ns.
    pub(super) fn at(&self, round: u64, offset: u64) -> u64 {
        self.scale(u128::from(round) * u128::from(self.period_ns) + u128::from(offset))
    }

    fn scale(&self, ns: u128) -> u64 {
        // Beyond u64 (584 years) the time is "never"; so it is where the product leaves u128.
        let scaled = ns.checked_mul(u128::from(self.time_scale_e6)).map(|product| product / 1_000_000);
        scaled.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(u64::MAX)
    }
}

impl Replay {
    /// A replay from its beginning. `time_scale_e6`: 1,000,000 plays as recorded, 2,000,000 half as fast.
    pub fn new(writes: Writes, time_scale_e6: u64, looped: bool) -> Replay {
        let rounds = ReplaySchedule::new(writes.span_ns, writes.requests, time_scale_e6, looped);
        Replay { writes, rounds, round: 0, next: 0 }
    }

    /// Length of a round as it is played, ns, rounded down; None when there is but one.
    pub fn period_ns(&self) -> Option<u64> {
        (self.rounds.period_ns > 0).then(|| self.rounds.at(1, 0))
    }
}

impl Iterator for Replay {
    type Item = Write;

    fn next(&mut self) -> Option<Write> {
        if self.next == self.writes.len() {
            if self.rounds.period_ns == 0 || self.writes.is_empty() {
                return None;
            }
            self.next = 0;
            self.round += 1;
        }
        let (offset, bytes) = self.writes.at[self.next];
        self.next += 1;
        Some(Write { at_ns: self.rounds.at(self.round, offset), bytes: u64::from(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trace(text: &str) -> Writes {
        let reader = crate::TraceReader::new("t", Some(crate::Format::Mqsim), text.as_bytes());
        Writes::read(reader.ok().unwrap()).unwrap()
    }

    const THREE: &str = "1000 0 0 8 0\n1100 0 0 16 1\n1300 0 0 24 0\n";

    fn times(replay: Replay, n: usize) -> Vec<u64> {
        replay.take(n).map(|w| w.at_ns).collect()
    }

    #[test]
    fn only_writes_from_time_zero() {
        let writes: Vec<_> = Replay::new(trace(THREE), 1_000_000, false).collect();
        assert_eq!(writes, [Write { at_ns: 0, bytes: 4096 }, Write { at_ns: 300, bytes: 12288 }]);
    }

    #[test]
    fn a_loop_closes_with_the_mean_gap() {
        // Span 300, two gaps: mean 150, period 450.
        let replay = Replay::new(trace(THREE), 1_000_000, true);
        assert_eq!(replay.period_ns(), Some(450));
        assert_eq!(times(replay, 5), [0, 300, 450, 750, 900]);
        assert_eq!(times(Replay::new(trace(THREE), 3_000_000, true), 4), [0, 900, 1350, 2250]);
    }

    #[test]
    fn a_slow_replay_does_not_drift() {
        // A period of 450 ns played 1.3333333 times slower is 599.999985 ns: a million rounds lose 15 us, not a ns
        // each.
        let mut replay = Replay::new(trace(THREE), 1_333_333, true);
        let last = replay.nth(2_000_000).unwrap();
        assert_eq!(last.at_ns, 450 * 1_333_333);
    }

    #[test]
    fn what_cannot_loop_ends() {
        assert_eq!(times(Replay::new(trace("5 0 0 8 0\n5 0 0 8 0\n"), 1_000_000, true), 9), [0, 0]);
        assert_eq!(times(Replay::new(trace("5 0 0 8 1\n9 0 0 8 1\n"), 1_000_000, true), 9), []);
    }

    #[test]
    fn far_times_saturate() {
        let mut replay = Replay::new(trace("0 0 0 8 0\n18446744073709551615 0 0 8 0\n"), 1_000_000, true);
        replay.round = u64::MAX - 1;
        replay.next = 2;
        assert_eq!(replay.next().unwrap().at_ns, u64::MAX);
    }

    proptest! {
        #[test]
        fn times_never_go_back(gaps in prop::collection::vec(0u64..1_000_000, 1..40), slowdown in 1u64..100_000_000) {
            let mut at = 7;
            let lines = gaps.iter().map(|gap| { at += gap; format!("{at} 0 0 8 0\n") });
            let text: String = lines.collect();
            let all = times(Replay::new(trace(&text), slowdown, true), 200);
            prop_assert!(all.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
