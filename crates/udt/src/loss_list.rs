//! Numbers of lost packets, as ranges.

use std::collections::BTreeMap;
use units::{Span, Time};

/// Ranges of lost packets, in order. What is done costs the logarithm of the number of ranges.
#[derive(Clone, Debug, Default)]
pub struct LossList {
    /// By first number.
    ranges: BTreeMap<u64, Range>,
    packets: u64,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    last: u64,
    reported_at: Time,
    reports: u64,
}

impl LossList {
    /// Adds those of `first..=last` that are not there, as reported once at `now`; returns their number.
    pub fn insert(&mut self, now: Time, first: u64, last: u64) -> u64 {
        let before = self.packets;
        let mut next = first;
        while next <= last {
            let covering = self.ranges.range(..=next).next_back().map(|(_, range)| range.last);
            if let Some(end) = covering.filter(|&end| end >= next) {
                next = end + 1;
                continue;
            }
            let end = self.ranges.range(next..).next().map_or(last, |(&start, _)| last.min(start - 1));
            self.ranges.insert(next, Range { last: end, reported_at: now, reports: 1 });
            self.packets += end - next + 1;
            next = end + 1;
        }
        self.packets - before
    }

    /// Takes out `number`; returns whether it was there.
    pub fn remove(&mut self, number: u64) -> bool {
        let Some((&first, &range)) = self.ranges.range(..=number).next_back() else { return false };
        if range.last < number {
            return false;
        }
        self.packets -= 1;
        self.ranges.remove(&first);
        if first < number {
            self.ranges.insert(first, Range { last: number - 1, ..range });
        }
        if number < range.last {
            self.ranges.insert(number + 1, range);
        }
        true
    }

    /// Takes out all numbers below `number`.
    pub fn remove_below(&mut self, number: u64) {
        while let Some(entry) = self.ranges.first_entry().filter(|entry| *entry.key() < number) {
            let (first, range) = entry.remove_entry();
            let last = range.last.min(number - 1);
            self.packets -= last - first + 1;
            if range.last > last {
                self.ranges.insert(number, range);
            }
        }
    }

    /// Takes out the least number.
    pub fn pop_first(&mut self) -> Option<u64> {
        let (first, range) = self.ranges.pop_first()?;
        self.packets -= 1;
        if first < range.last {
            self.ranges.insert(first + 1, range);
        }
        Some(first)
    }

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns true if there is nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Gives `report` up to `most` ranges whose last report is older than `rtt` times their number of reports, and
    /// counts this report. In order of their numbers.
    pub fn report(&mut self, now: Time, rtt: Span, most: usize, mut report: impl FnMut(u64, u64)) {
        let is_due = |range: &Range| now.since(range.reported_at).0 > range.reports.saturating_mul(rtt.0);
        for (&first, range) in self.ranges.iter_mut().filter(|(_, range)| is_due(range)).take(most) {
            range.reported_at = now;
            range.reports += 1;
            report(first, range.last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_numbers(steps in proptest::collection::vec((0u8..4, 0u64..60, 0u64..12), 1..80)) {
            let (mut list, mut set) = (LossList::default(), BTreeSet::new());
            for (what, number, length) in steps {
                match what {
                    0 => {
                        let fresh = (number..=number + length).filter(|&n| set.insert(n)).count() as u64;
                        prop_assert_eq!(list.insert(Time::ZERO, number, number + length), fresh);
                    }
                    1 => prop_assert_eq!(list.remove(number), set.remove(&number)),
                    2 => {
                        list.remove_below(number);
                        set.retain(|&n| n >= number);
                    }
                    _ => prop_assert_eq!(list.pop_first(), set.pop_first()),
                }
                prop_assert_eq!(list.packets(), set.len() as u64);
                prop_assert_eq!(list.is_empty(), set.is_empty());
            }
        }
    }

    #[test]
    fn a_range_is_reported_again_after_longer_and_longer() {
        let (mut list, rtt) = (LossList::default(), Span::from_millis(10));
        list.insert(Time::ZERO, 5, 7);
        let mut reported_ms = vec![];
        for ms in 0..100 {
            list.report(Time::ZERO + Span::from_millis(ms), rtt, 9, |first, last| reported_ms.push((ms, first, last)));
        }
        assert_eq!(reported_ms, [(11, 5, 7), (32, 5, 7), (63, 5, 7)]);
    }
}
