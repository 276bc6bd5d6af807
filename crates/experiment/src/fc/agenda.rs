//! Times at which each of many parties has something to do.

use units::Time;

/// A time per party; a change costs the logarithm of their number.
pub struct Agenda {
    /// A tree in rows: entry `n` is the earlier of entries `2 n` and `2 n + 1`, and the last row has the parties in
    /// their order, then some that never act. Entry 0 is unused.
    tree: Vec<(Time, usize)>,
    /// The first entry of the last row.
    base: usize,
}

impl Agenda {
    /// `parties` of which none has anything to do.
    pub fn new(parties: usize) -> Agenda {
        let base = parties.next_power_of_two();
        let mut agenda = Agenda { tree: vec![(Time::NEVER, 0); 2 * base], base };
        (0..base).for_each(|party| agenda.tree[base + party].1 = party);
        (1..base).rev().for_each(|entry| agenda.tree[entry] = agenda.earlier(entry));
        agenda
    }

    /// The earlier of the two entries below `entry`; of equal ones that of the smaller number.
    #[inline]
    fn earlier(&self, entry: usize) -> (Time, usize) {
        self.tree[2 * entry].min(self.tree[2 * entry + 1])
    }

    /// `party` has something to do at `time`, and no more at its time before.
    #[inline]
    pub fn set(&mut self, party: usize, time: Time) {
        let mut entry = self.base + party;
        if self.tree[entry].0 == time {
            return;
        }
        self.tree[entry].0 = time;
        while entry > 1 {
            entry /= 2;
            let earlier = self.earlier(entry);
            // Nothing changes further up.
            if self.tree[entry] == earlier {
                return;
            }
            self.tree[entry] = earlier;
        }
    }

    /// Returns the earliest time.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.tree[1].0
    }

    /// Returns the party that is to act first, if that is by `now`.
    #[inline]
    pub fn due(&self, now: Time) -> Option<usize> {
        let (time, party) = self.tree[1];
        (time <= now && time != Time::NEVER).then_some(party)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::random::Random;

    #[test]
    fn the_first_party_of_the_earliest_time_is_due() {
        let mut random = Random::new(1);
        for parties in 0..20 {
            let mut agenda = Agenda::new(parties);
            let mut times = vec![Time::NEVER; parties];
            for _ in 0..50 * parties {
                let (party, time) = (random.below(parties as u64) as usize, random.below(6));
                times[party] = if time == 0 { Time::NEVER } else { Time(time) };
                agenda.set(party, times[party]);
                let first = times.iter().copied().zip(0..).min().unwrap();
                assert_eq!(agenda.poll_timeout(), first.0);
                assert_eq!(agenda.due(Time(3)), (first.0 <= Time(3)).then_some(first.1));
            }
            assert!(parties > 0 || agenda.due(Time(u64::MAX)).is_none());
        }
    }
}
