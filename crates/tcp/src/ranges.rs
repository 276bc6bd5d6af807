//! Disjoint ranges of byte numbers, ordered: what the receiver holds out of order, and what the sender knows of it.
//!
//! As many entries as there are holes, whatever the window.

use std::collections::VecDeque;
use units::growth::{fit, reserve};

/// A set of half-open ranges that neither overlap nor touch.
///
/// The highest one, where nearly all happens, is kept apart: with one hole there is no list at all. The others begin
/// and end where a queue is cheap: new ones come at its end, and holes are filled from its beginning on. A segment that
/// is late, or lost once more, changes something further inside and moves what lies before it or behind it, whichever
/// is less.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct RangeSet {
    top: Option<(u64, u64)>,
    /// All but the highest, ascending.
    lower: VecDeque<(u64, u64)>,
}

impl RangeSet {
    /// Returns whether there is no range.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.top.is_none()
    }

    /// End of the highest range; 0 when empty.
    #[inline]
    pub fn end(&self) -> u64 {
        self.top.map_or(0, |(_, end)| end)
    }

    /// The lowest range.
    #[inline]
    pub fn first(&self) -> Option<(u64, u64)> {
        self.lower.front().copied().or(self.top)
    }

    /// Number of the lower ranges that begin at or below `start`.
    #[inline]
    fn count_begun(&self, start: u64) -> usize {
        self.lower.partition_point(|range| range.0 <= start)
    }

    /// The range that covers all of `start..end`.
    #[inline]
    pub fn covering(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (s, e) = match self.top {
            Some(top) if top.0 <= start => top,
            _ => self.lower[self.count_begun(start).checked_sub(1)?],
        };
        (e >= end).then_some((s, e))
    }

    /// Adds `start..end`; appends to `fresh` the parts that were not held before, ascending; returns the merged range.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64, fresh: &mut Vec<(u64, u64)>) -> (u64, u64) {
        debug_assert!(start < end);
        match &mut self.top {
            Some(top) if start < top.0 => self.insert_lower(start, end, fresh),
            Some(top) if start <= top.1 => {
                if end > top.1 {
                    fresh.push((top.1, end));
                    top.1 = end;
                }
                *top
            }
            _ => {
                if let Some(second) = self.top.replace((start, end)) {
                    reserve(&mut self.lower, 1);
                    self.lower.push_back(second);
                }
                fresh.push((start, end));
                (start, end)
            }
        }
    }

    /// The same, where it begins below the highest range.
    fn insert_lower(&mut self, start: u64, end: u64, fresh: &mut Vec<(u64, u64)>) -> (u64, u64) {
        let (mut low, mut high, mut cursor) = (start, end, start);
        // Those from `first` to `last` become a part of it.
        let mut first = self.count_begun(start);
        let mut last = first;
        if let Some(before) = first.checked_sub(1) {
            let (s, e) = self.lower[before];
            if e >= end {
                return (s, e);
            }
            if e >= start {
                (low, cursor, first) = (s, e, before);
            }
        }
        let mut take = |(s, e): (u64, u64)| {
            if s > cursor {
                fresh.push((cursor, s));
            }
            cursor = cursor.max(e);
            high = high.max(e);
        };
        while let Some(&range) = self.lower.get(last).filter(|range| range.0 <= end) {
            take(range);
            last += 1;
        }
        let reached = self.top.filter(|top| top.0 <= end);
        reached.into_iter().for_each(&mut take);
        if cursor < end {
            fresh.push((cursor, end));
        }
        if reached.is_some() {
            self.lower.drain(first..last);
            self.top = Some((low, high));
        } else if first < last {
            self.lower[first] = (low, high);
            self.lower.drain(first + 1..last);
        } else {
            reserve(&mut self.lower, 1);
            self.lower.insert(first, (low, high));
        }
        (low, high)
    }

    fn remove_first(&mut self) {
        if self.lower.pop_front().is_none() {
            self.top = None;
        } else {
            fit(&mut self.lower);
        }
    }

    /// Removes and returns the lowest range if it begins at or below `point`.
    #[inline]
    pub fn pop_reached(&mut self, point: u64) -> Option<(u64, u64)> {
        let first = self.first().filter(|first| first.0 <= point)?;
        self.remove_first();
        Some(first)
    }

    /// Forgets everything below `point`.
    #[inline]
    pub fn remove_below(&mut self, point: u64) {
        while let Some((_, end)) = self.first().filter(|first| first.0 < point) {
            if end <= point {
                self.remove_first();
                continue;
            }
            if let Some(first) = self.lower.front_mut().or(self.top.as_mut()) {
                first.0 = point;
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
        assert!(set.lower.is_empty());
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

    /// Against a set of single numbers.
    #[test]
    fn any_order_of_insertions_gives_the_same_union() {
        let mut lottery = 1u64;
        let mut draw = move |n: u64| {
            lottery = lottery.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (lottery >> 33) % n
        };
        for _ in 0..2_000 {
            let mut set = RangeSet::default();
            let mut held = [false; 64];
            for _ in 0..20 {
                let start = draw(60);
                let end = (start + 1 + draw(12)).min(64);
                let mut fresh = Vec::new();
                let (low, high) = set.insert(start, end, &mut fresh);
                let new: Vec<u64> = (start..end).filter(|&n| !held[n as usize]).collect();
                let numbers: Vec<u64> = fresh.iter().flat_map(|&(a, b)| a..b).collect();
                assert_eq!(new, numbers);
                held[start as usize..end as usize].fill(true);
                assert!(held[low as usize..high as usize].iter().all(|&h| h));
                assert!(low == 0 || !held[low as usize - 1]);
                assert!(high == 64 || !held[high as usize]);
                assert_eq!(set.covering(start, end), Some((low, high)));
                assert_eq!(set.end() as usize, held.iter().rposition(|&h| h).expect("something") + 1);
                if draw(4) == 0 {
                    let point = draw(64);
                    set.remove_below(point);
                    held[..point as usize].fill(false);
                }
            }
            let mut left = Vec::new();
            while let Some((a, b)) = set.pop_reached(u64::MAX) {
                left.extend(a..b);
            }
            assert!(set.is_empty());
            assert_eq!(left, (0..64).filter(|&n| held[n as usize]).collect::<Vec<_>>());
        }
    }
}
