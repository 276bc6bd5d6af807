//! The receiver's history of arrivals: how fast packets come, and how fast the path could carry them.

use crate::config::{Version, PROBE_INTERVAL};
use units::Time;

/// Intervals between arrivals that are looked at (draft-gg-udt-03, 6.2).
const ARRIVALS: usize = 16;
/// Intervals within pairs that are looked at: draft-gg-udt-03, 6.2.
const PAIRS: usize = 16;
/// The same in libudt 4.11.
const PAIRS_UDT4: usize = 64;
/// First values of the two histories, us (libudt: a speed of 1 packet/s, a capacity of 1000).
const FIRST_ARRIVAL_US: u64 = 1_000_000;
const FIRST_PAIR_US: u64 = 1_000;

/// Times between arrivals in whole microseconds, which is what the libraries' clocks read.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    intervals: History,
    pairs: History,
    last_us: u64,
    probe_us: u64,
}

impl Arrivals {
    pub(crate) fn new(version: Version, now: Time) -> Arrivals {
        let pairs = match version {
            Version::Udt2003 => PAIRS,
            Version::Udt4 => PAIRS_UDT4,
        };
        Arrivals {
            intervals: History::new(ARRIVALS, FIRST_ARRIVAL_US),
            pairs: History::new(pairs, FIRST_PAIR_US),
            last_us: micros(now),
            probe_us: micros(now),
        }
    }

    /// Data packet `number` has arrived.
    pub(crate) fn add(&mut self, now: Time, number: u64) {
        let now_us = micros(now);
        self.intervals.put(now_us - self.last_us);
        self.last_us = now_us;
        match number % PROBE_INTERVAL {
            0 => self.probe_us = now_us,
            1 => self.pairs.put(now_us - self.probe_us),
            _ => {}
        }
    }

    /// Arrival speed, packets/s; 0 if too few of the intervals are near their median.
    pub(crate) fn speed(&self) -> u32 {
        let (sum, count) = self.intervals.near_median();
        // The libraries divide whole microseconds here.
        match sum.checked_div(count) {
            Some(mean) if 2 * count > ARRIVALS as u64 && mean > 0 => to_rate(1_000_000u64.div_ceil(mean)),
            _ => 0,
        }
    }

    /// Estimated capacity of the path, packets/s.
    pub(crate) fn capacity(&self) -> u32 {
        let (sum, count) = self.pairs.near_median();
        let (sum, count) = (sum + self.pairs.median(), count + 1);
        // Two packets within a microsecond: the clock of the libraries gives no better bound.
        to_rate((1_000_000 * count).div_ceil(sum.max(1)))
    }
}

fn micros(time: Time) -> u64 {
    time.0 / 1_000
}

fn to_rate(packets: u64) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

#[derive(Clone, Debug)]
struct History {
    values: Vec<u64>,
    next: usize,
}

impl History {
    fn new(length: usize, first: u64) -> History {
        History { values: vec![first; length], next: 0 }
    }

    fn put(&mut self, value: u64) {
        self.values[self.next] = value;
        self.next = (self.next + 1) % self.values.len();
    }

    fn median(&self) -> u64 {
        let mut sorted = [0; PAIRS_UDT4];
        let sorted = &mut sorted[..self.values.len()];
        sorted.copy_from_slice(&self.values);
        *sorted.select_nth_unstable(self.values.len() / 2).1
    }

    /// Sum and number of the values between an eighth of the median and eight times it.
    fn near_median(&self) -> (u64, u64) {
        let median = self.median();
        let near = self.values.iter().filter(|&&value| value < median << 3 && value > median >> 3);
        near.fold((0, 0), |(sum, count), value| (sum + value, count + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    fn every(version: Version, us: u64, pair_us: u64, packets: u64) -> Arrivals {
        let (mut arrivals, mut now) = (Arrivals::new(version, Time::ZERO), Time::ZERO);
        for number in 1..=packets {
            now += Span::from_micros(if number % PROBE_INTERVAL == 1 { pair_us } else { us });
            arrivals.add(now, number);
        }
        arrivals
    }

    #[test]
    fn speed_and_capacity_are_those_of_the_intervals() {
        let arrivals = every(Version::Udt4, 120, 12, 2000);
        // The interval within a pair is a tenth of the others: beyond an eighth of the median, and left out.
        assert_eq!(arrivals.speed(), 8334);
        assert_eq!(arrivals.capacity(), 83_334);
    }

    #[test]
    fn an_outlier_does_not_count() {
        let (mut arrivals, now) = (every(Version::Udt2003, 100, 100, 400), Time::ZERO + Span::from_secs(9));
        arrivals.add(now, 402);
        assert_eq!(arrivals.speed(), 10_000);
    }

    #[test]
    fn no_speed_is_known_of_too_few_like_intervals() {
        let (mut arrivals, mut now) = (Arrivals::new(Version::Udt4, Time::ZERO), Time::ZERO);
        for number in 1..=16u32 {
            now += Span::from_micros(1 << number);
            arrivals.add(now, u64::from(number));
        }
        assert_eq!(arrivals.speed(), 0);
    }
}
