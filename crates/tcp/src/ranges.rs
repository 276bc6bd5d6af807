//! Disjoint ranges of byte numbers, ordered: what the receiver holds out of order, and what the sender knows of it.
//!
//! As many entries as there are holes, whatever the window.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// A set of half-open ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Whether there is no range.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// End of the highest range; 0 when empty.
    #[inline]
    pub fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first_key_value().map(|(&start, &end)| (start, end))
    }

    /// The range that covers all of `start..end`.
    pub fn covering(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (&s, &e) = self.ranges.range(..=start).next_back()?;
        (e >= end).then_some((s, e))
    }

    /// Adds `start..end`; appends to `fresh` the parts that were not held before, ascending; returns the merged range.
    pub fn insert(&mut self, start: u64, end: u64, fresh: &mut Vec<(u64, u64)>) -> (u64, u64) {
        debug_assert!(start < end);
        let (mut low, mut high, mut cursor) = (start, end, start);
        if let Some((&s, e)) = self.ranges.range_mut(..=start).next_back() {
            if *e >= end {
                return (s, *e);
            }
            if *e >= start {
                low = s;
                cursor = *e;
            }
        }
        while let Some((&s, &e)) = self.ranges.range((Excluded(start), Unbounded)).next() {
            if s > end {
                break;
            }
            if s > cursor {
                fresh.push((cursor, s));
            }
            cursor = cursor.max(e);
            high = high.max(e);
            self.ranges.remove(&s);
        }
        if cursor < end {
            fresh.push((cursor, end));
        }
        self.ranges.insert(low, high);
        (low, high)
    }

    /// Removes and returns the lowest range if it begins at or below `point`.
    #[inline]
    pub fn pop_reached(&mut self, point: u64) -> Option<(u64, u64)> {
        match self.first() {
            Some((start, end)) if start <= point => {
                self.ranges.remove(&start);
                Some((start, end))
            }
            _ => None,
        }
    }

    /// Forgets everything below `point`.
    #[inline]
    pub fn remove_below(&mut self, point: u64) {
        while let Some((start, end)) = self.first() {
            if start >= point {
                break;
            }
            self.ranges.remove(&start);
            if end > point {
                self.ranges.insert(point, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_reported() {
        let mut set = RangeSet::default();
        let mut fresh = Vec::new();
        assert_eq!(set.insert(10, 20, &mut fresh), (10, 20));
        assert_eq!(set.insert(30, 40, &mut fresh), (30, 40));
        assert_eq!(fresh, [(10, 20), (30, 40)]);
        fresh.clear();
        assert_eq!(set.insert(12, 18, &mut fresh), (10, 20));
        assert!(fresh.is_empty());
        assert_eq!(set.insert(15, 35, &mut fresh), (10, 40));
        assert_eq!(fresh, [(20, 30)]);
        fresh.clear();
        assert_eq!(set.insert(0, 50, &mut fresh), (0, 50));
        assert_eq!(fresh, [(0, 10), (40, 50)]);
        assert_eq!(set.ranges.len(), 1);
    }

    #[test]
    fn touching_ranges_merge_and_reached_ones_leave() {
        let mut set = RangeSet::default();
        let mut fresh = Vec::new();
        set.insert(10, 20, &mut fresh);
        assert_eq!(set.insert(20, 30, &mut fresh), (10, 30));
        assert_eq!(set.insert(5, 10, &mut fresh), (5, 30));
        assert_eq!(set.pop_reached(4), None);
        assert_eq!(set.pop_reached(5), Some((5, 30)));
        set.insert(40, 60, &mut fresh);
        set.remove_below(50);
        assert_eq!(set.first(), Some((50, 60)));
        assert_eq!(set.end(), 60);
    }
}
