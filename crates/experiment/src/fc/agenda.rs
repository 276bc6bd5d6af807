//! Times at which each of many parties has something to do.

use std::collections::BTreeSet;
use units::Time;

/// A time per party; the earliest costs the logarithm of their number.
pub struct Agenda {
    ordered: BTreeSet<(Time, usize)>,
    /// By party.
    times: Vec<Time>,
}

impl Agenda {
    /// `parties` of which none has anything to do.
    pub fn new(parties: usize) -> Agenda {
        Agenda { ordered: BTreeSet::new(), times: vec![Time::NEVER; parties] }
    }

    /// `party` has something to do at `time`, and no more at its time before.
    pub fn set(&mut self, party: usize, time: Time) {
        let before = std::mem::replace(&mut self.times[party], time);
        if before == time {
            return;
        }
        if before != Time::NEVER {
            self.ordered.remove(&(before, party));
        }
        if time != Time::NEVER {
            self.ordered.insert((time, party));
        }
    }

    /// Returns the earliest time.
    pub fn poll_timeout(&self) -> Time {
        self.ordered.first().map_or(Time::NEVER, |&(time, _)| time)
    }

    /// Returns the party that is to act first, if that is by `now`.
    pub fn due(&self, now: Time) -> Option<usize> {
        self.ordered.first().filter(|&&(time, _)| time <= now).map(|&(_, party)| party)
    }
}
