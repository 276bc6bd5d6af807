//! A FIFO of packets in blocks that are used again.
//!
//! One array that doubles would copy a gigabyte in flight and hold two of them; blocks of a fixed size grow with the packets
//! inside and are handed back to a free list, so the steady state allocates nothing. A block is sized so that the thousands
//! of mostly idle access links of a large run stay small.

// The one place of the crate that needs it: slots of a block are empty or full, as `head`, `tail` and `len` say.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Packets of a block.
const SLOTS: u32 = 32;
/// No block.
const NIL: u32 = u32::MAX;

/// Times, sizes and packets apart: the walk behind the transmitter reads only the first two.
struct Block<P> {
    time: [u64; SLOTS as usize],
    bytes: [u32; SLOTS as usize],
    next: u32,
    packet: [MaybeUninit<P>; SLOTS as usize],
}

/// Where a packet is; valid until it is popped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    block: u32,
    slot: u32,
}

/// First in, first out: packets with a time (ns) and their size (bytes).
pub(crate) struct Ring<P> {
    blocks: Vec<Box<Block<P>>>,
    /// First block of the free list.
    free: u32,
    /// The oldest packet. `slot < SLOTS` whenever `len > 0`.
    head: Position,
    /// Where the next packet goes; `slot == SLOTS`: into a new block.
    tail: Position,
    len: u64,
}

impl<P> Ring<P> {
    pub fn new() -> Ring<P> {
        // No block yet: a tail that is full makes the first push take one.
        let none = Position { block: NIL, slot: SLOTS };
        Ring { blocks: Vec::new(), free: NIL, head: none, tail: none, len: 0 }
    }

    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Position of the oldest packet; meaningful when there is one.
    #[inline]
    pub fn head(&self) -> Position {
        self.head
    }

    #[inline]
    pub fn push(&mut self, time: u64, bytes: u32, packet: P) -> Position {
        if self.tail.slot == SLOTS {
            self.grow();
        }
        let at = self.tail;
        let block = &mut self.blocks[at.block as usize];
        let slot = (at.slot % SLOTS) as usize;
        block.time[slot] = time;
        block.bytes[slot] = bytes;
        block.packet[slot].write(packet);
        self.tail.slot += 1;
        self.len += 1;
        at
    }

    /// Takes the oldest packet and its size.
    #[inline]
    pub fn pop(&mut self) -> Option<(u32, P)> {
        if self.len == 0 {
            return None;
        }
        let block = &mut self.blocks[self.head.block as usize];
        let slot = (self.head.slot % SLOTS) as usize;
        let bytes = block.bytes[slot];
        // SAFETY: len > 0, so the head's slot was written by `push` and not read since: `head` moves on below.
        let packet = unsafe { block.packet[slot].assume_init_read() };
        self.len -= 1;
        self.head.slot += 1;
        if self.len == 0 {
            // The same block from its start: it is in the cache.
            self.head.slot = 0;
            self.tail = self.head;
        } else if self.head.slot == SLOTS {
            let next = block.next;
            block.next = self.free;
            self.free = self.head.block;
            self.head = Position { block: next, slot: 0 };
        }
        Some((bytes, packet))
    }

    #[inline]
    pub fn time(&self, at: Position) -> u64 {
        self.blocks[at.block as usize].time[(at.slot % SLOTS) as usize]
    }

    #[inline]
    pub fn set_time(&mut self, at: Position, time: u64) {
        self.blocks[at.block as usize].time[(at.slot % SLOTS) as usize] = time;
    }

    #[inline]
    pub fn bytes(&self, at: Position) -> u32 {
        self.blocks[at.block as usize].bytes[(at.slot % SLOTS) as usize]
    }

    /// Position of the packet after `at`; meaningful when there is one.
    #[inline]
    pub fn after(&self, at: Position) -> Position {
        if at.slot + 1 < SLOTS {
            Position { block: at.block, slot: at.slot + 1 }
        } else {
            Position { block: self.blocks[at.block as usize].next, slot: 0 }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let block = if self.free != NIL {
            let block = self.free;
            self.free = self.blocks[block as usize].next;
            block
        } else {
            // Range: 2^32 blocks of 32 packets.
            let block = u32::try_from(self.blocks.len()).expect("fewer than 1.4e11 packets on a link");
            self.blocks.push(Box::new(Block {
                time: [0; SLOTS as usize],
                bytes: [0; SLOTS as usize],
                next: NIL,
                packet: std::array::from_fn(|_| MaybeUninit::uninit()),
            }));
            block
        };
        self.blocks[block as usize].next = NIL;
        if self.len > 0 {
            self.blocks[self.tail.block as usize].next = block;
        } else {
            self.head = Position { block, slot: 0 };
        }
        self.tail = Position { block, slot: 0 };
    }
}

impl<P> Drop for Ring<P> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::rc::Rc;

    #[test]
    fn behaves_as_a_queue() {
        let mut ring = Ring::new();
        let mut model = VecDeque::new();
        let mut random = crate::random::Random::new(7);
        for i in 0..200_000u64 {
            // Phases of growing and shrinking, so that blocks are freed and used again.
            let growing = i / 10_000 % 2 == 0;
            if random.below(10) < if growing { 6 } else { 4 } {
                ring.push(i, i as u32, Box::new(i));
                model.push_back(i);
            } else {
                assert_eq!(ring.pop().map(|(b, p)| (u64::from(b), *p)), model.pop_front().map(|i| (i, i)));
            }
            assert_eq!(ring.len(), model.len() as u64);
            if let Some(&front) = model.front() {
                assert_eq!(ring.time(ring.head()), front);
            }
        }
        let mut at = ring.head();
        for (n, &i) in model.iter().enumerate() {
            assert_eq!((ring.time(at), ring.bytes(at)), (i, i as u32));
            if n + 1 < model.len() {
                at = ring.after(at);
            }
        }
    }

    #[test]
    fn memory_follows_what_is_inside() {
        let mut ring = Ring::new();
        for round in 0..1000u64 {
            for i in 0..100 {
                ring.push(round, i, ());
            }
            for _ in 0..100 {
                ring.pop();
            }
        }
        assert!(ring.blocks.len() <= 5, "100 packets need 4 blocks of 32, there are {}", ring.blocks.len());
    }

    #[test]
    fn packets_left_inside_are_dropped_once() {
        let shared = Rc::new(());
        let mut ring = Ring::new();
        for i in 0..100 {
            ring.push(i, 0, shared.clone());
        }
        for _ in 0..40 {
            ring.pop();
        }
        assert_eq!(Rc::strong_count(&shared), 61);
        drop(ring);
        assert_eq!(Rc::strong_count(&shared), 1);
    }
}
