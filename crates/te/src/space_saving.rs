//! Heavy hitters in bounded memory: Space-Saving with weights.

use std::collections::BTreeMap;

/// A key, its count, and the largest error of the count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter<K> {
    /// The key.
    pub key: K,
    /// At least the key's true weight, at most `error` more.
    pub count: u64,
    /// The count inherited from the evicted key.
    pub error: u64,
}

impl<K> Counter<K> {
    /// Lower bound of the key's weight.
    pub fn guaranteed(&self) -> u64 {
        self.count - self.error
    }
}

/// At most `capacity` counters over any number of keys (Metwally, Agrawal, El Abbadi 2005): a key that is not held
/// takes the place of the one counted least, and its count as an error.
///
/// Every key whose true weight is above (total weight) / capacity is held, and no count is wrong by more than that.
/// Adding costs O(log capacity): a heap by count, with each key's place in it.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K> {
    capacity: usize,
    /// Heap: no count is below its parent's; ties go to the key that is less, so that the order of insertion does not
    /// matter.
    heap: Vec<Counter<K>>,
    position: BTreeMap<K, usize>,
}

impl<K: Copy + Ord> SpaceSaving<K> {
    /// An empty summary of `capacity` counters, at least one.
    pub fn new(capacity: usize) -> SpaceSaving<K> {
        SpaceSaving { capacity: capacity.max(1), heap: vec![], position: BTreeMap::new() }
    }

    /// `weight` more for `key`; returns the evicted key, if any.
    pub fn add(&mut self, key: K, weight: u64) -> Option<K> {
        if let Some(&at) = self.position.get(&key) {
            self.heap[at].count = self.heap[at].count.saturating_add(weight);
            self.sift_down(at);
            return None;
        }
        if self.heap.len() < self.capacity {
            self.heap.push(Counter { key, count: weight, error: 0 });
            self.position.insert(key, self.heap.len() - 1);
            self.sift_up(self.heap.len() - 1);
            return None;
        }
        let least = self.heap[0];
        self.heap[0] = Counter { key, count: least.count.saturating_add(weight), error: least.count };
        self.position.remove(&least.key);
        self.position.insert(key, 0);
        self.sift_down(0);
        Some(least.key)
    }

    /// The counter of `key`, if there is one.
    pub fn get(&self, key: K) -> Option<&Counter<K>> {
        self.position.get(&key).map(|&at| &self.heap[at])
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: K) {
        let Some(at) = self.position.remove(&key) else { return };
        self.heap.swap_remove(at);
        if let Some(moved) = self.heap.get(at) {
            self.position.insert(moved.key, at);
            self.sift_up(at);
            self.sift_down(at);
        }
    }

    /// All counters, by key.
    pub fn iter(&self) -> impl Iterator<Item = &Counter<K>> {
        self.position.values().map(|&at| &self.heap[at])
    }

    /// Keys held.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns whether none is held.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn less(&self, a: usize, b: usize) -> bool {
        (self.heap[a].count, self.heap[a].key) < (self.heap[b].count, self.heap[b].key)
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.position.insert(self.heap[a].key, a);
        self.position.insert(self.heap[b].key, b);
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 && self.less(at, (at - 1) / 2) {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            if left >= self.heap.len() {
                return;
            }
            let child = if right < self.heap.len() && self.less(right, left) { right } else { left };
            if !self.less(child, at) {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newcomer_takes_the_place_and_the_count_of_the_least() {
        let mut summary = SpaceSaving::new(2);
        assert_eq!(summary.add('a', 5), None);
        assert_eq!(summary.add('b', 3), None);
        assert_eq!(summary.add('c', 4), Some('b'));
        assert_eq!(summary.get('c'), Some(&Counter { key: 'c', count: 7, error: 3 }));
        assert_eq!(summary.get('c').unwrap().guaranteed(), 4);
        assert_eq!(summary.get('b'), None);
        summary.remove('a');
        assert_eq!((summary.len(), summary.add('d', 1)), (1, None));
    }

    proptest! {
        /// The promises of the paper against exact counts, under any sequence: counts bound the truth from above,
        /// guaranteed ones from below, and whoever has more than total / capacity is held.
        #[test]
        fn counts_bound_the_truth_and_no_heavy_hitter_is_missing(
            capacity in 1usize..20,
            steps in prop::collection::vec((0u8..60, 0u64..1000), 0..400),
        ) {
            let mut summary = SpaceSaving::new(capacity);
            let mut exact = BTreeMap::new();
            for &(key, weight) in &steps {
                summary.add(key, weight);
                *exact.entry(key).or_insert(0) += weight;
            }
            let total: u64 = exact.values().sum();
            prop_assert!(summary.len() <= capacity);
            prop_assert_eq!(summary.iter().map(|c| c.count).sum::<u64>(), total);
            for counter in summary.iter() {
                let truth = exact[&counter.key];
                prop_assert!(counter.guaranteed() <= truth && truth <= counter.count);
                prop_assert!(counter.error <= total / capacity as u64);
            }
            for (key, weight) in exact {
                prop_assert!(weight <= total / capacity as u64 || summary.get(key).is_some());
            }
        }

        /// Removing leaves a heap that still finds the least.
        #[test]
        fn the_least_is_evicted_after_any_removals(
            steps in prop::collection::vec((0u8..30, 1u64..100, any::<bool>()), 0..300),
        ) {
            let mut summary = SpaceSaving::new(8);
            for (key, weight, remove) in steps {
                if remove {
                    summary.remove(key);
                    continue;
                }
                let least = summary.iter().map(|c| (c.count, c.key)).min();
                let evicted = summary.add(key, weight);
                if let Some(evicted) = evicted {
                    prop_assert_eq!(Some(evicted), least.map(|(_, k)| k));
                }
            }
        }
    }
}
