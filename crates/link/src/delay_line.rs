//! Packets on the line, in the order of arrival at the far end.

use crate::ring::Ring;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A time that does not come.
const NEVER: u64 = u64::MAX;

pub(crate) enum DelayLine<P> {
    /// Packets keep their order.
    Ordered {
        ring: Ring<P>,
        /// Latest arrival so far: nothing arrives before what was sent before it.
        last: u64,
    },
    /// Packets may overtake.
    Reordering {
        heap: BinaryHeap<Entry<P>>,
        /// Those that were foreseen, in their order: they go before all others.
        foreseen: VecDeque<Entry<P>>,
        /// Packets so far; breaks ties in the order of sending.
        number: u64,
    },
}

pub(crate) struct Entry<P> {
    due: u64,
    number: u64,
    bytes: u32,
    packet: P,
}

impl<P> DelayLine<P> {
    pub fn new(reordering: bool) -> DelayLine<P> {
        if reordering {
            DelayLine::Reordering { heap: BinaryHeap::new(), foreseen: VecDeque::new(), number: 0 }
        } else {
            DelayLine::Ordered { ring: Ring::new(), last: 0 }
        }
    }

    pub fn len(&self) -> u64 {
        match self {
            DelayLine::Ordered { ring, .. } => ring.len(),
            DelayLine::Reordering { heap, foreseen, .. } => (heap.len() + foreseen.len()) as u64,
        }
    }

    /// Time at which the next packet arrives.
    pub fn due(&self) -> u64 {
        match self {
            DelayLine::Ordered { ring, .. } => ring.head_time(),
            DelayLine::Reordering { heap, foreseen, .. } => foreseen.front().or(heap.peek()).map_or(NEVER, |e| e.due),
        }
    }

    pub fn push(&mut self, due: u64, bytes: u32, packet: P) {
        match self {
            DelayLine::Ordered { ring, last } => {
                *last = due.max(*last);
                ring.push(*last, bytes, packet, false);
            }
            DelayLine::Reordering { heap, number, .. } => {
                heap.push(Entry { due, number: *number, bytes, packet });
                *number += 1;
            }
        }
    }

    /// A packet that would have arrived at `due` is lost. Packets behind it do not arrive before `due`.
    pub fn lose(&mut self, due: u64) {
        if let DelayLine::Ordered { last, .. } = self {
            *last = due.max(*last);
        }
    }

    pub fn pop(&mut self) -> Option<(u32, P)> {
        match self {
            DelayLine::Ordered { ring, .. } => {
                let bytes = ring.head_bytes();
                ring.pop().map(|packet| (bytes, packet))
            }
            DelayLine::Reordering { heap, foreseen, .. } => {
                foreseen.pop_front().or_else(|| heap.pop()).map(|e| (e.bytes, e.packet))
            }
        }
    }

    /// Hands over copies of the packets that arrive before `before`, with their times, each once. None that comes later
    /// may arrive before that.
    pub fn foresee(&mut self, before: u64, mut hand: impl FnMut(u64, &P)) {
        match self {
            DelayLine::Ordered { ring, .. } => {
                ring.read(0, |due, _, packet| {
                    let is_known = due < before;
                    if is_known {
                        hand(due, packet);
                    }
                    is_known
                });
            }
            DelayLine::Reordering { heap, foreseen, .. } => {
                while heap.peek().is_some_and(|first| first.due < before) {
                    let Some(entry) = heap.pop() else { return };
                    hand(entry.due, &entry.packet);
                    foreseen.push_back(entry);
                }
            }
        }
    }

    /// Nothing is on the line any more: the next packet need not wait for earlier ones.
    pub fn clear_order(&mut self) {
        if let DelayLine::Ordered { last, .. } = self {
            *last = 0;
        }
    }
}

impl<P> Ord for Entry<P> {
    /// The earliest is the greatest: `BinaryHeap` hands out the greatest.
    fn cmp(&self, other: &Entry<P>) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl<P> PartialOrd for Entry<P> {
    fn partial_cmp(&self, other: &Entry<P>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Entry<P> {
    fn eq(&self, other: &Entry<P>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Entry<P> {}
