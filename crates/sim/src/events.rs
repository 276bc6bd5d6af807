//! The event queue: an indexed 4-ary heap in which every source has at most one pending event.

use units::Time;

/// Children per heap node: four 16-byte entries fill one cache line, which halves the depth of a binary heap.
const ARITY: usize = 4;

/// Position of a source that has nothing pending.
const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// ns
    time: u64,
    /// Tie-break: of two events at one time the lower source goes first. Range: u32 but [`ABSENT`].
    source: u32,
}

impl Entry {
    #[inline]
    fn before(self, other: Entry) -> bool {
        // Branch-free on the common case of different times.
        (self.time, self.source) < (other.time, other.source)
    }
}

/// Pending events of a fixed set of sources, ordered by (time, source).
pub struct EventQueue {
    heap: Vec<Entry>,
    /// Index into `heap` per source, or [`ABSENT`].
    position: Vec<u32>,
}

impl EventQueue {
    /// A queue for sources `0..sources`, all idle.
    pub fn new(sources: usize) -> EventQueue {
        assert!(sources < ABSENT as usize, "too many event sources");
        EventQueue { heap: Vec::with_capacity(sources), position: vec![ABSENT; sources] }
    }

    /// Number of sources.
    pub fn sources(&self) -> usize {
        self.position.len()
    }

    /// The earliest event, if any.
    #[inline]
    pub fn peek(&self) -> Option<(Time, u32)> {
        self.heap.first().map(|e| (Time(e.time), e.source))
    }

    /// When `source` is due; [`Time::NEVER`] when it is idle.
    #[inline]
    pub fn due(&self, source: u32) -> Time {
        match self.position[source as usize] {
            ABSENT => Time::NEVER,
            at => Time(self.heap[at as usize].time),
        }
    }

    /// Makes `source` due at `time`, replacing what was pending; [`Time::NEVER`] makes it idle.
    #[inline]
    pub fn schedule(&mut self, source: u32, time: Time) {
        let at = self.position[source as usize];
        if time == Time::NEVER {
            if at != ABSENT {
                self.remove(at as usize);
            }
            return;
        }
        let entry = Entry { time: time.0, source };
        if at == ABSENT {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        } else if entry.before(self.heap[at as usize]) {
            self.sift_up(at as usize, entry);
        } else {
            self.sift_down(at as usize, entry);
        }
    }

    fn remove(&mut self, at: usize) {
        self.position[self.heap[at].source as usize] = ABSENT;
        let last = self.heap.pop().expect("a position implies an entry");
        if at < self.heap.len() {
            if last.before(self.heap[at]) {
                self.sift_up(at, last);
            } else {
                self.sift_down(at, last);
            }
        }
    }

    /// Puts `entry` at `at` or above, moving later parents down.
    #[inline]
    fn sift_up(&mut self, mut at: usize, entry: Entry) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if !entry.before(self.heap[parent]) {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    /// Puts `entry` at `at` or below, moving earlier children up.
    #[inline]
    fn sift_down(&mut self, mut at: usize, entry: Entry) {
        loop {
            let first = at * ARITY + 1;
            let end = (first + ARITY).min(self.heap.len());
            if first >= end {
                break;
            }
            let mut child = first;
            for candidate in first + 1..end {
                if self.heap[candidate].before(self.heap[child]) {
                    child = candidate;
                }
            }
            if !self.heap[child].before(entry) {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    #[inline]
    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.position[entry.source as usize] = at as u32;
    }
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
        /// The heap agrees with an ordered set under any sequence of schedules and cancellations.
        #[test]
        fn agrees_with_an_ordered_set(steps in prop::collection::vec((0u32..20, prop::option::of(0u64..50)), 0..400)) {
            let mut queue = EventQueue::new(20);
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
