//! The event queue: a tournament over a fixed set of sources, each with at most one pending event.
//!
//! Why not a heap: every heap operation mispredicts a branch at most levels. Here a match is a scan of eight times, one cache
//! line, without a branch; the dozen sources of a dumbbell need two levels, a thousand flows five.

use units::Time;

/// Contestants of a match: eight u64 are a cache line.
const WAY: usize = 8;

/// Times of up to eight contestants, ns; `u64::MAX` = nothing pending.
#[derive(Clone)]
#[repr(align(64))]
struct Match([u64; WAY]);

/// One round of matches; the last round is a single match.
struct Round {
    matches: Vec<Match>,
    /// The source behind each contestant's time.
    sources: Vec<[u32; WAY]>,
}

/// Pending events of a fixed set of sources, ordered by (time, source).
pub struct EventQueue {
    /// Round 0 holds the sources themselves, round n + 1 the winners of round n.
    rounds: Vec<Round>,
    sources: usize,
}

impl EventQueue {
    /// A queue for sources `0..sources`, all idle. Range: fewer than 2^32 sources.
    pub fn new(sources: usize) -> EventQueue {
        assert!(u32::try_from(sources).is_ok(), "too many event sources");
        let mut rounds = vec![];
        let mut contestants = sources.max(1);
        let mut stride = 1;
        loop {
            let count = contestants.div_ceil(WAY);
            let source = |match_, way| ((match_ * WAY + way) * stride) as u32;
            rounds.push(Round {
                matches: vec![Match([u64::MAX; WAY]); count],
                sources: (0..count).map(|m| std::array::from_fn(|way| source(m, way))).collect(),
            });
            if count == 1 {
                break;
            }
            contestants = count;
            stride *= WAY;
        }
        EventQueue { rounds, sources }
    }

    /// Number of sources.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// The earliest event, if any; of several at one time that of the lowest source.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        let last = self.rounds.last()?;
        let (time, way) = winner(&last.matches[0]);
        (time != u64::MAX).then(|| (Time(time), last.sources[0][way]))
    }

    /// When `source` is due; [`Time::NEVER`] when it is idle.
    #[inline]
    pub fn due(&self, source: u32) -> Time {
        let source = source as usize;
        Time(self.rounds[0].matches[source / WAY].0[source % WAY])
    }

    /// Makes `source` due at `time`, replacing what was pending; [`Time::NEVER`] makes it idle.
    #[inline]
    pub fn schedule(&mut self, source: u32, time: Time) {
        let mut at = source as usize;
        let (mut time, mut source) = (time.0, source);
        for round in &mut self.rounds {
            let (index, way) = (at / WAY, at % WAY);
            let (times, sources) = (&mut round.matches[index], &mut round.sources[index]);
            if times.0[way] == time && sources[way] == source {
                // No later match can end differently.
                return;
            }
            times.0[way] = time;
            sources[way] = source;
            let (won, by) = winner(times);
            (time, source) = (won, sources[by]);
            at = index;
        }
    }
}

/// The earliest time and who has it; of several at one time the first, which has the lowest source.
#[inline]
fn winner(contestants: &Match) -> (u64, usize) {
    let (mut time, mut way) = (contestants.0[0], 0);
    for (other, &candidate) in contestants.0.iter().enumerate().skip(1) {
        let earlier = candidate < time;
        time = if earlier { candidate } else { time };
        way = if earlier { other } else { way };
    }
    (time, way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn ties_go_to_the_lower_source() {
        let mut queue = EventQueue::new(3);
        queue.schedule(2, Time(5));
        queue.schedule(0, Time(5));
        queue.schedule(1, Time(5));
        let mut order = vec![];
        while let Some((_, source)) = queue.peek() {
            order.push(source);
            queue.schedule(source, Time::NEVER);
        }
        assert_eq!(order, [0, 1, 2]);
    }

    proptest! {
        /// The tournament agrees with an ordered set under any sequence of schedules and cancellations.
        #[test]
        fn agrees_with_an_ordered_set(steps in prop::collection::vec((0u32..100, prop::option::of(0u64..50)), 0..400)) {
            let mut queue = EventQueue::new(100);
            let mut model = BTreeSet::new();
            for (source, time) in steps {
                model.retain(|&(_, s)| s != source);
                if let Some(time) = time {
                    model.insert((time, source));
                }
                queue.schedule(source, time.map_or(Time::NEVER, Time));
                prop_assert_eq!(queue.peek(), model.first().map(|&(t, s)| (Time(t), s)));
                prop_assert_eq!(queue.due(source), time.map_or(Time::NEVER, Time));
            }
        }
    }
}
