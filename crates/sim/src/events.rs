//! The event queue: a heap of (time, source) in which a source has one valid entry at most.
//!
//! A source that is rescheduled leaves its old entry in the heap: the queue skips it as stale, because its time is not
//! the source's. Sources rarely do so (a link's head keeps its time, timers may fire early), so this is cheaper than
//! an index of positions that each sift step would have to update.

use units::Time;

/// Children per node: the four entries of a family fill one cache line, and the depth is half that of a binary heap.
const ARITY: usize = 4;

/// Time (ns, high 64 bits) and source (low 64): one number that orders events, compared by two instructions without a
/// branch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    #[inline]
    fn new(time: u64, source: u32) -> Entry {
        Entry(u128::from(time) << 64 | u128::from(source))
    }

    #[inline]
    fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline]
    fn source(self) -> u32 {
        self.0 as u32
    }
}

/// Later than every event: pads the last family, so that the minimum of four never needs a bound.
const VACANT: Entry = Entry(u128::MAX);

/// Pending events of a fixed set of sources, ordered by (time, source).
pub struct EventQueue {
    /// Entries `0..len`, then [`VACANT`] up to a full family.
    heap: Vec<Entry>,
    len: usize,
    /// Time at which each source is due, ns; `u64::MAX` = idle. An entry of another time is stale.
    due: Vec<u64>,
}

impl EventQueue {
    /// A queue for sources `0..sources`, all idle. Range: fewer than 2^32 sources.
    pub fn new(sources: usize) -> EventQueue {
        assert!(u32::try_from(sources).is_ok(), "too many event sources");
        EventQueue { heap: vec![VACANT; 1 + ARITY], len: 0, due: vec![u64::MAX; sources] }
    }

    /// The earliest event, if any; of several at one time that of the lowest source.
    #[inline]
    pub fn peek(&mut self) -> Option<(Time, u32)> {
        loop {
            let top = &self.heap[0];
            // Halves, as they were written: reading both as one word just after would stall the processor.
            let (time, source) = (top.time(), top.source());
            if time == u64::MAX {
                return None;
            }
            if self.due[source as usize] == time {
                return Some((Time(time), source));
            }
            self.drop_top();
        }
    }

    /// Time at which `source` is due; [`Time::NEVER`] when it is idle.
    #[inline]
    pub fn due(&self, source: u32) -> Time {
        Time(self.due[source as usize])
    }

    /// Makes `source` due at `time`, replacing what was pending; [`Time::NEVER`] makes it idle.
    #[inline]
    pub fn schedule(&mut self, source: u32, time: Time) {
        let due = &mut self.due[source as usize];
        if *due == time.0 {
            return;
        }
        *due = time.0;
        if time != Time::NEVER {
            self.push(Entry::new(time.0, source));
        }
    }

    /// The event that [`EventQueue::peek`] gave happens: its source is due at `next` from here on, or idle.
    #[inline]
    pub fn reschedule_top(&mut self, next: Time) {
        let source = self.heap[0].source();
        self.due[source as usize] = next.0;
        if next == Time::NEVER {
            self.drop_top();
        } else {
            self.sift_down(Entry::new(next.0, source));
        }
    }

    #[inline]
    fn drop_top(&mut self) {
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[self.len], VACANT);
        if self.len > 0 {
            self.sift_down(last);
        }
    }

    #[inline]
    fn push(&mut self, entry: Entry) {
        if self.len == self.heap.len() {
            self.heap.extend([VACANT; ARITY]);
        }
        let mut at = self.len;
        self.len += 1;
        let heap = self.heap.as_mut_slice();
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if heap[parent] <= entry {
                break;
            }
            heap[at] = heap[parent];
            at = parent;
        }
        heap[at] = entry;
    }

    /// Puts `entry` in place of the first and lets it sink.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        while let Some(family) = heap.get(at * ARITY + 1..at * ARITY + 1 + ARITY) {
            let (left, l) = lesser((family[0], 0), (family[1], 1));
            let (right, r) = lesser((family[2], 2), (family[3], 3));
            let (least, child) = lesser((left, l), (right, r));
            if entry <= least {
                break;
            }
            heap[at] = least;
            at = at * ARITY + 1 + child;
        }
        heap[at] = entry;
    }
}

/// The earlier of two, with its place; written so that it compiles to conditional moves.
#[inline]
fn lesser(a: (Entry, usize), b: (Entry, usize)) -> (Entry, usize) {
    let second = b.0 < a.0;
    (if second { b.0 } else { a.0 }, if second { b.1 } else { a.1 })
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
