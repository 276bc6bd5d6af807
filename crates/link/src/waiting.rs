//! Packets that wait for a transmitter: how many, and how many bytes.

use crate::prefetch::prefetch;

/// Packets that wait, in a ring that doubles when it is full: of each the time at which it starts, and the bytes of all
/// before it. Who has started leaves when somebody asks ([`Waiting::start`]), not at its time.
///
/// **Invariant: slots from `head` to `last.end` are in use, counted without end; `slots.len()` is a power of two.**
pub(crate) struct Waiting {
    slots: Box<[(u64, u64)]>,
    head: usize,
    last: Last,
}

/// The end of the ring. A loop over packets keeps it in registers.
#[derive(Clone, Copy)]
pub(crate) struct Last {
    end: usize,
    /// Bytes of all that ever waited; wraps.
    bytes: u64,
}

/// A place behind all that wait, for a loop over packets.
pub(crate) struct Writer<'a> {
    slots: &'a mut [(u64, u64)],
    last: Last,
    /// The end of a ring that has room for nobody more.
    full: usize,
}

impl Writer<'_> {
    /// Packets for which there is room.
    #[inline(always)]
    pub fn room(&self) -> usize {
        self.full.saturating_sub(self.last.end)
    }

    /// One more, of `bytes`, that starts at `start`, if `waits`, for which there has to be room; written so that it
    /// compiles to no branch.
    #[inline(always)]
    pub fn push_if(&mut self, waits: bool, start: u64, bytes: u32) {
        let mask = self.slots.len() - 1;
        self.slots[self.last.end & mask] = (start, self.last.bytes);
        self.last.end += usize::from(waits);
        self.last.bytes += if waits { u64::from(bytes) } else { 0 };
    }

    /// The end, for [`Waiting::put`].
    #[inline]
    pub fn last(&self) -> Last {
        self.last
    }
}

/// Slots of a link at which nothing ever waited.
const FEW: usize = 4;
/// Slots once something did.
const SOME: usize = 32;

impl Waiting {
    pub fn new() -> Waiting {
        Waiting { slots: Box::new([(0, 0); FEW]), head: 0, last: Last { end: 0, bytes: 0 } }
    }

    /// Begins to fetch the place of the next one.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.slots[self.last.end & (self.slots.len() - 1)], 1);
    }

    /// Packets in the ring.
    #[inline]
    pub fn packets(&self) -> u64 {
        (self.last.end - self.head) as u64
    }

    /// Their bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        if self.last.end == self.head {
            return 0;
        }
        self.last.bytes.wrapping_sub(self.slots[self.head & (self.slots.len() - 1)].1)
    }

    /// One more comes at `now`, of `bytes`, that starts at `start`, behind all others.
    #[inline]
    pub fn push(&mut self, now: u64, start: u64, bytes: u32) {
        if self.writer().room() == 0 {
            self.make_room(now);
        }
        let mut writer = self.writer();
        writer.push_if(true, start, bytes);
        self.last = writer.last;
    }

    /// A writer for packets that come; [`Waiting::put`] ends it.
    #[inline]
    pub fn writer(&mut self) -> Writer<'_> {
        // One slot beyond the last is written without being used.
        let full = self.head + self.slots.len() - 1;
        Writer { slots: &mut self.slots, last: self.last, full }
    }

    #[inline]
    pub fn put(&mut self, last: Last) {
        self.last = last;
    }

    /// Nobody waits any more: the ring begins anew, where the memory is near.
    #[inline]
    pub fn clear(&mut self) {
        (self.head, self.last.end) = (0, 0);
    }

    /// Those that start by `now` wait no more.
    #[inline]
    pub fn start(&mut self, now: u64) {
        let mask = self.slots.len() - 1;
        while self.head < self.last.end && self.slots[self.head & mask].0 <= now {
            self.head += 1;
        }
    }

    /// Forgets those that have started, and doubles the ring as long as too many still wait.
    #[cold]
    fn make_room(&mut self, now: u64) {
        self.start(now);
        let wait = self.last.end - self.head;
        // Room for some more, so that this does not come with each packet.
        let size = (wait + wait / 4 + 2).next_power_of_two().max(SOME);
        if size > self.slots.len() {
            let mask = self.slots.len() - 1;
            let mut slots: Vec<_> = (self.head..self.last.end).map(|at| self.slots[at & mask]).collect();
            slots.resize(size, (0, 0));
            (self.slots, self.head, self.last.end) = (slots.into_boxed_slice(), 0, wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::VecDeque;

    #[test]
    fn agrees_with_a_queue() {
        let (mut waiting, mut queue) = (Waiting::new(), VecDeque::new());
        let mut random = Random::new(3);
        let (mut start, mut now) = (0, 0);
        for _ in 0..100_000 {
            start += 1 + random.below(10);
            let bytes = 40 + random.below(1460) as u32;
            waiting.push(now, start, bytes);
            queue.push_back((start, bytes));
            // The queue grows and shrinks in turns.
            now += random.below(if now / 50_000 % 2 == 0 { 8 } else { 16 });
            if random.below(3) > 0 {
                continue;
            }
            waiting.start(now);
            queue.retain(|packet| packet.0 > now);
            let bytes: u64 = queue.iter().map(|packet| u64::from(packet.1)).sum();
            assert_eq!((waiting.packets(), waiting.bytes()), (queue.len() as u64, bytes));
        }
    }
}
