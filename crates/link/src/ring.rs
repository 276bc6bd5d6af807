//! The packets inside a FIFO link: first those on the line, then those that wait, in blocks that are used again.
//!
//! One array that doubles would copy a gigabyte in flight and hold two of them; blocks of a fixed size grow with the packets
//! inside and go back to a free list, so the steady state allocates nothing. A block is small, so that the thousands of
//! mostly idle access links of a large run stay small. Three marks (oldest packet, first that waits, place of the next) hold
//! pointers into blocks: this list is the innermost part of a simulation, and indices checked at each step cost a third of a
//! packet's time on a link.
//!
//! **Invariant: `len` packets lie between the marks `head` and `tail`, the last `waiting` of them from `cursor` on; all other
//! slots hold no packet. Blocks live until the ring is dropped.**

// The one place of the crate that needs it; what is public here is safe to call in any order.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ptr;

/// Packets of a block.
const SLOTS: usize = 32;
/// A time that does not come.
const NEVER: u64 = u64::MAX;

/// Times and sizes apart from packets: the cursor reads only them, five packets to a cache line.
struct Block<P, S> {
    time: [u64; SLOTS],
    bytes: [S; SLOTS],
    next: *mut Block<P, S>,
    packet: [MaybeUninit<P>; SLOTS],
}

/// A place in a block; `slot == SLOTS` only at the tail: the block is full.
struct Mark<P, S> {
    block: *mut Block<P, S>,
    slot: usize,
}

impl<P, S> Clone for Mark<P, S> {
    fn clone(&self) -> Mark<P, S> {
        *self
    }
}

impl<P, S> Copy for Mark<P, S> {}

impl<P, S> Mark<P, S> {
    /// Time of the slot.
    ///
    /// # Safety
    /// The mark is a slot (below `SLOTS`) of a live block, which nobody else refers to meanwhile. So for the next two.
    #[inline]
    unsafe fn time<'a>(self) -> &'a mut u64 {
        // SAFETY: the slot is inside the array; times are plain numbers, always initialised.
        unsafe { (*self.block).time.get_unchecked_mut(self.slot) }
    }

    /// Size of the slot's packet.
    #[inline]
    unsafe fn bytes<'a>(self) -> &'a mut S {
        // SAFETY: as in `time`.
        unsafe { (*self.block).bytes.get_unchecked_mut(self.slot) }
    }

    /// The slot's packet; initialised when the slot holds one.
    #[inline]
    unsafe fn packet<'a>(self) -> &'a mut MaybeUninit<P> {
        // SAFETY: the slot is inside the array; the packet may be uninitialised.
        unsafe { (*self.block).packet.get_unchecked_mut(self.slot) }
    }
}

/// First in, first out: packets with a time (ns) and their size (bytes), in two parts. Where the size is not wanted, `S` is `()`.
pub(crate) struct Ring<P, S = u32> {
    /// The oldest packet, when `len > 0`.
    head: Mark<P, S>,
    /// The first packet that waits, when `waiting > 0`.
    cursor: Mark<P, S>,
    /// Where the next packet goes; `slot == SLOTS`: into another block.
    tail: Mark<P, S>,
    len: u64,
    waiting: u64,
    /// Blocks to use again, linked by `next`.
    free: *mut Block<P, S>,
    /// Packets taken since the ring was made: number of the oldest one inside.
    taken: u64,
    /// Made when first used.
    readers: Option<Box<[Reader<P, S>; READERS]>>,
}

// SAFETY: the blocks belong to this ring alone, and nothing is shared by reference.
unsafe impl<P: Send, S: Send> Send for Ring<P, S> {}

/// A place in a ring that moves on at its own pace.
struct Reader<P, S> {
    /// Number of the packet it is at, counted from 0 since the ring was made.
    number: u64,
    /// Where that packet is, or will be, when the one before it is still inside; without meaning otherwise.
    at: Mark<P, S>,
}

/// Readers of a ring.
const READERS: usize = 2;

impl<P, S: Copy + Default> Ring<P, S> {
    pub fn new() -> Ring<P, S> {
        // No block yet: a tail that is full makes the first push take one.
        let none = Mark { block: ptr::null_mut(), slot: SLOTS };
        Ring { head: none, cursor: none, tail: none, len: 0, waiting: 0, free: ptr::null_mut(), taken: 0, readers: None }
    }

    /// Packets inside.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Packets that wait.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Packets on the line.
    #[inline]
    pub fn on_line(&self) -> u64 {
        self.len - self.waiting
    }

    /// Adds a packet: to those on the line when none waits and `waits` is false, otherwise to those that wait.
    #[inline]
    pub fn push(&mut self, time: u64, bytes: S, packet: P, waits: bool) {
        if self.tail.slot == SLOTS {
            self.grow();
        }
        let at = self.tail;
        // SAFETY: after `grow` or a push before, `tail` is a slot below SLOTS of a live block, and holds no packet.
        unsafe {
            *at.time() = time;
            *at.bytes() = bytes;
            at.packet().write(packet);
        }
        self.tail.slot = at.slot + 1;
        self.len += 1;
        if waits || self.waiting > 0 {
            if self.waiting == 0 {
                self.cursor = at;
            }
            self.waiting += 1;
        }
    }

    /// Whether the next packet goes into another block.
    #[inline]
    pub fn is_block_full(&self) -> bool {
        self.tail.slot == SLOTS
    }

    /// Puts all packets that wait onto the line.
    #[inline]
    pub fn start_all(&mut self) {
        self.waiting = 0;
    }

    /// Takes the oldest packet on the line. What else is wanted of it is read before: a packet alone is moved but once.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        if self.len == self.waiting {
            return None;
        }
        let at = self.head;
        // SAFETY: len > 0, so the head's slot was written by `push` and not read since: `head` moves on below.
        let packet = unsafe { at.packet().assume_init_read() };
        self.len -= 1;
        self.taken += 1;
        if self.len == 0 {
            // The same block from its start: it is in the cache. Nothing waits, so the cursor means nothing.
            self.head.slot = 0;
            self.tail = self.head;
        } else if at.slot + 1 == SLOTS {
            // SAFETY: packets are left, so there is a next block; the cursor is not in this one, as its packets are gone.
            unsafe {
                self.head = Mark { block: (*at.block).next, slot: 0 };
                (*at.block).next = self.free;
            }
            self.free = at.block;
        } else {
            self.head.slot = at.slot + 1;
        }
        Some(packet)
    }

    /// Time of the oldest packet; never when there is none.
    #[inline]
    pub fn head_time(&self) -> u64 {
        if self.len == 0 {
            return NEVER;
        }
        // SAFETY: len > 0, so `head` is a slot of a live block.
        unsafe { *self.head.time() }
    }

    /// Size of the oldest packet; 0 when there is none.
    #[inline]
    pub fn head_bytes(&self) -> S {
        if self.len == 0 {
            return S::default();
        }
        // SAFETY: as in `head_time`.
        unsafe { *self.head.bytes() }
    }

    /// The oldest packet.
    #[inline]
    pub fn head_packet(&self) -> Option<&P> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: len > 0, so the head's slot holds a packet; the reference borrows the ring, which keeps it there.
        Some(unsafe { self.head.packet().assume_init_ref() })
    }

    /// Puts the first packet that waits onto the line: its (time, bytes).
    #[inline]
    pub fn start(&mut self) -> Option<(u64, S)> {
        if self.waiting == 0 {
            return None;
        }
        let at = self.cursor;
        self.waiting -= 1;
        // SAFETY: waiting was above 0, so `cursor` is a slot of a live block; when another packet waits, it is in the next
        // slot, or in the first slot of the next block, which then exists.
        unsafe {
            if at.slot + 1 < SLOTS {
                self.cursor.slot = at.slot + 1;
            } else if self.waiting > 0 {
                self.cursor = Mark { block: (*at.block).next, slot: 0 };
            }
            Some((*at.time(), *at.bytes()))
        }
    }

    /// Packets taken since the ring was made.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Moves reader `which` (0 or 1) over the packets (time, size, packet) from where it is, as long as `passes` says yes.
    /// Returns the number of the packet it has come to, counted from 0 since the ring was made. What was taken from the ring
    /// it has passed without asking.
    pub fn read(&mut self, which: usize, mut passes: impl FnMut(u64, S, &P) -> bool) -> u64 {
        let (taken, end, head) = (self.taken, self.taken + self.len, self.head);
        let readers = self.readers.get_or_insert_with(|| Box::new([0; READERS].map(|number| Reader { number, at: head })));
        let reader = &mut readers[which];
        if reader.number <= taken {
            *reader = Reader { number: taken, at: head };
        }
        while reader.number < end {
            // SAFETY: the packet at `number` is inside: it is the oldest, at `head`, or behind one that is inside, in the next
            // slot or, after the last of a block, in the first slot of the next block, which then exists.
            unsafe {
                if reader.at.slot == SLOTS {
                    reader.at = Mark { block: (*reader.at.block).next, slot: 0 };
                }
                let at = reader.at;
                if !passes(*at.time(), *at.bytes(), at.packet().assume_init_ref()) {
                    break;
                }
            }
            reader.number += 1;
            reader.at.slot += 1;
        }
        reader.number
    }

    /// Gives each packet that waits a new time, oldest first.
    pub fn retime_waiting(&mut self, mut time: impl FnMut(S) -> u64) {
        self.walk(self.cursor, self.waiting, |at_time, bytes, _| *at_time = time(bytes));
    }

    /// The packets on the line and their sizes, oldest first.
    pub fn for_each_on_line(&mut self, mut visit: impl FnMut(S, &P)) {
        self.walk(self.head, self.on_line(), |_, bytes, packet| visit(bytes, packet));
    }

    /// `count` packets from `at` on; there must be that many.
    fn walk(&mut self, mut at: Mark<P, S>, count: u64, mut visit: impl FnMut(&mut u64, S, &P)) {
        for left in (0..count).rev() {
            // SAFETY: `at` is a packet's slot; while packets are left, the next is behind it as in `start`.
            unsafe {
                visit(at.time(), *at.bytes(), at.packet().assume_init_ref());
                if at.slot + 1 < SLOTS {
                    at.slot += 1;
                } else if left > 0 {
                    at = Mark { block: (*at.block).next, slot: 0 };
                }
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let block = if self.free.is_null() {
            Box::into_raw(Box::new(Block {
                time: [0; SLOTS],
                bytes: [S::default(); SLOTS],
                next: ptr::null_mut(),
                packet: std::array::from_fn(|_| MaybeUninit::uninit()),
            }))
        } else {
            let block = self.free;
            // SAFETY: blocks of the free list are live and in no other list.
            unsafe { self.free = (*block).next };
            block
        };
        // SAFETY: `block` is live and only ours; with packets inside, the tail's block is live and the last of them.
        unsafe {
            (*block).next = ptr::null_mut();
            if self.len > 0 {
                (*self.tail.block).next = block;
            } else {
                // Empty with a full tail: only before the first packet, as `pop` starts an empty block anew.
                self.head = Mark { block, slot: 0 };
            }
        }
        self.tail = Mark { block, slot: 0 };
    }

    #[cfg(test)]
    fn blocks(&self) -> usize {
        let count = |mut block: *mut Block<P>| {
            let mut n = 0;
            while !block.is_null() {
                n += 1;
                // SAFETY: both lists hold live blocks and end with null.
                block = unsafe { (*block).next };
            }
            n
        };
        count(self.head.block) + count(self.free)
    }
}

impl<P, S> Ring<P, S> {
    /// Drops the packets inside.
    fn clear(&mut self) {
        let mut at = self.head;
        for left in (0..self.len).rev() {
            // SAFETY: as in `walk`; each packet is dropped once, since `len` becomes 0 below.
            unsafe {
                (*at.block).packet.get_unchecked_mut(at.slot).assume_init_drop();
                if at.slot + 1 < SLOTS {
                    at.slot += 1;
                } else if left > 0 {
                    at = Mark { block: (*at.block).next, slot: 0 };
                }
            }
        }
        self.len = 0;
    }
}

impl<P, S> Drop for Ring<P, S> {
    fn drop(&mut self) {
        self.clear();
        for mut block in [self.head.block, self.free] {
            while !block.is_null() {
                // SAFETY: each block came from `Box::into_raw` and is in exactly one of the two lists; both end with null.
                let owned = unsafe { Box::from_raw(block) };
                block = owned.next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::VecDeque;
    use std::rc::Rc;

    #[test]
    fn behaves_as_two_queues_in_a_row() {
        let mut ring = Ring::new();
        let (mut line, mut queue) = (VecDeque::new(), VecDeque::new());
        let mut random = Random::new(7);
        for i in 0..300_000u64 {
            // Phases of growing and shrinking, so that blocks are freed and used again.
            let growing = i / 10_000 % 2 == 0;
            match random.below(if growing { 8 } else { 12 }) {
                0..=3 => {
                    let waits = random.below(3) > 0;
                    ring.push(i, i as u32, Box::new(i), waits);
                    if waits || !queue.is_empty() { &mut queue } else { &mut line }.push_back((i, i as u32));
                }
                4 | 5 => {
                    let started = queue.pop_front();
                    assert_eq!(ring.start(), started);
                    line.extend(started);
                }
                6 if random.below(100) == 0 => {
                    ring.retime_waiting(|bytes| u64::from(bytes) + i);
                    queue.iter_mut().for_each(|(time, bytes)| *time = u64::from(*bytes) + i);
                }
                7 if random.below(100) == 0 => {
                    let mut seen = vec![];
                    ring.for_each_on_line(|bytes, packet| {
                        assert_eq!(**packet as u32, bytes);
                        seen.push(bytes);
                    });
                    assert!(seen.iter().eq(line.iter().map(|(_, bytes)| bytes)));
                }
                _ => assert_eq!(ring.pop().map(|p| *p as u32), line.pop_front().map(|(_, bytes)| bytes)),
            }
            assert_eq!((ring.on_line(), ring.waiting()), (line.len() as u64, queue.len() as u64));
            let oldest = line.front().or(queue.front());
            assert_eq!(ring.head_time(), oldest.map_or(NEVER, |p| p.0));
            assert_eq!(ring.head_bytes(), oldest.map_or(0, |p| p.1));
            assert_eq!(ring.head_packet().map(|p| **p as u32), oldest.map(|p| p.1));
        }
    }

    #[test]
    fn memory_follows_what_is_inside() {
        let mut ring = Ring::new();
        for round in 0..1000u64 {
            for i in 0..100 {
                ring.push(round, i, (), false);
            }
            for _ in 0..100 - round % 2 {
                ring.pop();
            }
            if round % 2 == 1 {
                ring.pop();
            }
        }
        assert!(ring.blocks() <= 5, "101 packets need 5 blocks of 32 at most, there are {}", ring.blocks());
    }

    #[test]
    fn packets_left_inside_are_dropped_once() {
        let shared = Rc::new(());
        let mut ring = Ring::new();
        for i in 0..100 {
            ring.push(i, 0, shared.clone(), i > 50);
        }
        for _ in 0..40 {
            ring.pop();
        }
        assert_eq!(Rc::strong_count(&shared), 61);
        drop(ring);
        assert_eq!(Rc::strong_count(&shared), 1);
        drop(Ring::<u64>::new());
    }
}
