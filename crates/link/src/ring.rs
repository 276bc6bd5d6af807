//! A FIFO of packets in blocks that are used again.
//!
//! One array that doubles would copy a gigabyte in flight and hold two of them; blocks of a fixed size grow with the packets
//! inside and are handed back to a free list, so the steady state allocates nothing. A block is sized so that the thousands
//! of mostly idle access links of a large run stay small.

// The one place of the crate that needs it: slots of a block are empty or full, as `head`, `tail` and `len` say.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

/// Packets of a block: 2^5.
const SLOT_BITS: u32 = 5;
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_MASK: u32 = SLOTS as u32 - 1;
/// No block.
const NIL: u32 = u32::MAX;

/// Times, sizes and packets apart: the walk behind the transmitter reads only the first two.
struct Block<P> {
    time: [u64; SLOTS],
    bytes: [u32; SLOTS],
    next: u32,
    packet: [MaybeUninit<P>; SLOTS],
}

/// Where a packet is, valid until it is popped: number of the block, then of the slot, in one word (two halves written
/// apart and read together would make the processor wait at every packet). Range: 2^27 blocks, 4e9 packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position(u32);

impl Position {
    #[inline]
    fn start_of(block: u32) -> Position {
        Position(block << SLOT_BITS)
    }

    #[inline]
    fn block(self) -> usize {
        (self.0 >> SLOT_BITS) as usize
    }

    #[inline]
    fn slot(self) -> usize {
        (self.0 & SLOT_MASK) as usize
    }
}

/// First in, first out: packets with a time (ns) and their size (bytes).
pub(crate) struct Ring<P> {
    blocks: Vec<Box<Block<P>>>,
    /// First block of the free list.
    free: u32,
    /// The oldest packet, when there is one.
    head: Position,
    /// Where the next packet goes, unless the last block is full.
    tail: Position,
    /// The last block is full (or there is none): the next packet needs another.
    full: bool,
    len: u64,
}

impl<P> Ring<P> {
    pub fn new() -> Ring<P> {
        Ring { blocks: Vec::new(), free: NIL, head: Position(0), tail: Position(0), full: true, len: 0 }
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
        if self.full {
            self.grow();
        }
        let at = self.tail;
        let block = &mut self.blocks[at.block()];
        block.time[at.slot()] = time;
        block.bytes[at.slot()] = bytes;
        block.packet[at.slot()].write(packet);
        // Behind the last slot this names the next block's first, which `full` forbids to use.
        self.tail = Position(at.0.wrapping_add(1));
        self.full = self.tail.slot() == 0;
        self.len += 1;
        at
    }

    /// Takes the oldest packet. What else is wanted of it is read before: a packet alone is moved but once.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        if self.len == 0 {
            return None;
        }
        let at = self.head;
        let block = &mut self.blocks[at.block()];
        // SAFETY: len > 0, so the head's slot was written by `push` and not read since: `head` moves on below.
        let packet = unsafe { block.packet[at.slot()].assume_init_read() };
        self.len -= 1;
        if self.len == 0 {
            // The same block from its start: it is in the cache.
            self.head = Position(at.0 & !SLOT_MASK);
            self.tail = self.head;
            self.full = false;
        } else if at.slot() + 1 == SLOTS {
            self.head = Position::start_of(block.next);
            block.next = self.free;
            self.free = at.block() as u32;
        } else {
            self.head = Position(at.0 + 1);
        }
        Some(packet)
    }

    #[inline]
    pub fn time(&self, at: Position) -> u64 {
        self.blocks[at.block()].time[at.slot()]
    }

    #[inline]
    pub fn set_time(&mut self, at: Position, time: u64) {
        self.blocks[at.block()].time[at.slot()] = time;
    }

    #[inline]
    pub fn bytes(&self, at: Position) -> u32 {
        self.blocks[at.block()].bytes[at.slot()]
    }

    /// Position of the packet after `at`; meaningful when there is one.
    #[inline]
    pub fn after(&self, at: Position) -> Position {
        if at.slot() + 1 < SLOTS {
            Position(at.0 + 1)
        } else {
            Position::start_of(self.blocks[at.block()].next)
        }
    }

    #[cold]
    fn grow(&mut self) {
        let block = if self.free != NIL {
            let block = self.free;
            self.free = self.blocks[block as usize].next;
            block
        } else {
            let block = self.blocks.len() as u32;
            assert!(block < 1 << (32 - SLOT_BITS), "more than 4e9 packets on a link");
            self.blocks.push(Box::new(Block {
                time: [0; SLOTS],
                bytes: [0; SLOTS],
                next: NIL,
                packet: std::array::from_fn(|_| MaybeUninit::uninit()),
            }));
            block
        };
        self.blocks[block as usize].next = NIL;
        if self.len > 0 {
            let last = Position(self.tail.0.wrapping_sub(1));
            self.blocks[last.block()].next = block;
        } else {
            self.head = Position::start_of(block);
        }
        self.tail = Position::start_of(block);
        self.full = false;
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
                assert_eq!(ring.pop().map(|p| *p), model.pop_front());
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
