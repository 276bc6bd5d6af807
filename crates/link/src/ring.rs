//! The packets inside a FIFO link: first those on the line, then those that wait, in blocks that are used again.
//!
//! One array that doubles would copy a gigabyte in flight and hold two of them; blocks of a fixed size grow with the
//! packets inside and go back to a free list, so the steady state allocates nothing. A block is small, so that the
//! thousands of mostly idle access links of a large run stay small. Cursors (oldest packet, first that waits, place of
//! the next) are pointers to slots: this list is the innermost part of a simulation, and indices checked at each step
//! cost a third of a packet's time on a link.
//!
//! **Invariant: `len` packets lie between the cursors `head` and `tail`, the last `waiting` of them from
//! `first_waiting` on; all other slots hold no packet. Blocks live until the ring is dropped.**

#![allow(unsafe_code, reason = "what is public here is safe to call in any order")]

use std::mem::MaybeUninit;
use std::ptr;

/// Packets of a block.
const SLOTS: usize = 32;
/// A time that does not come.
const NEVER: u64 = u64::MAX;

/// A packet with its time and size: together, so that a link that is rarely used costs few lines of cache.
struct Slot<P, S> {
    time: u64,
    bytes: S,
    packet: P,
}

/// In the order of C: the end of the slots is the address of `next`.
#[repr(C)]
struct Block<P, S> {
    slots: [MaybeUninit<Slot<P, S>>; SLOTS],
    next: *mut Block<P, S>,
}

/// A place in a block, and the end of the block; `at == end` only at the tail (the block is full) and for readers.
struct Cursor<P, S> {
    at: *mut Slot<P, S>,
    end: *mut Slot<P, S>,
}

impl<P, S> Clone for Cursor<P, S> {
    fn clone(&self) -> Cursor<P, S> {
        *self
    }
}

impl<P, S> Copy for Cursor<P, S> {}

impl<P, S> Cursor<P, S> {
    const NULL: Cursor<P, S> = Cursor { at: ptr::null_mut(), end: ptr::null_mut() };

    /// The first slot of `block`.
    ///
    /// # Safety
    /// `block` is live. So for the cursor's in the next two.
    #[inline]
    unsafe fn first(block: *mut Block<P, S>) -> Cursor<P, S> {
        let at = block.cast::<Slot<P, S>>();
        // SAFETY: the slots come first in the block, and there are SLOTS of them.
        Cursor { at, end: unsafe { at.add(SLOTS) } }
    }

    /// Its block.
    #[inline]
    unsafe fn block(self) -> *mut Block<P, S> {
        // SAFETY: `end` lies SLOTS behind the start of the block.
        unsafe { self.end.sub(SLOTS).cast() }
    }

    /// The first slot of the next block, which must be there.
    #[inline]
    unsafe fn next_block(self) -> Cursor<P, S> {
        // SAFETY: the field behind the slots is `next`; the caller knows that it is a live block.
        unsafe { Cursor::first(*self.end.cast::<*mut Block<P, S>>()) }
    }
}

/// First in, first out: packets with a time (ns) and their size (bytes), in two parts. Where the size is not wanted,
/// `S` is `()`.
pub(crate) struct Ring<P, S = u32> {
    /// Place of the next packet; at its block's end: in another block.
    tail: Cursor<P, S>,
    len: u64,
    waiting: u64,
    /// The first packet that waits, when `waiting > 0`.
    first_waiting: Cursor<P, S>,
    /// The oldest packet, when `len > 0`.
    head: Cursor<P, S>,
    /// Packets taken since the ring was made: number of the oldest one inside.
    taken: u64,
    /// Blocks to use again, linked by `next`.
    free: *mut Block<P, S>,
    /// Made when first used.
    readers: Option<Box<[Reader<P, S>; READERS]>>,
}

// SAFETY: the blocks belong to this ring alone, and nothing is shared by reference.
unsafe impl<P: Send, S: Send> Send for Ring<P, S> {}

/// A place in a ring that moves on at its own pace.
struct Reader<P, S> {
    /// Number of the packet it is at, counted from 0 since the ring was made.
    number: u64,
    /// Place of that packet, present or future, while the one before it is inside; without meaning otherwise.
    cursor: Cursor<P, S>,
}

/// Readers of a ring.
const READERS: usize = 2;

impl<P, S: Copy + Default> Ring<P, S> {
    pub fn new() -> Ring<P, S> {
        // No block yet: a tail that is full makes the first push take one.
        let (tail, first_waiting, head) = (Cursor::NULL, Cursor::NULL, Cursor::NULL);
        Ring { tail, len: 0, waiting: 0, first_waiting, head, taken: 0, free: ptr::null_mut(), readers: None }
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
    pub fn in_transit(&self) -> u64 {
        self.len - self.waiting
    }

    /// Packets taken since the ring was made.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns whether the next packet goes into another block.
    #[inline]
    pub fn is_block_full(&self) -> bool {
        self.tail.at == self.tail.end
    }

    /// Adds a packet: to those on the line when none waits and `waits` is false, otherwise to those that wait.
    #[inline]
    pub fn push(&mut self, time: u64, bytes: S, packet: P, waits: bool) {
        if self.is_block_full() {
            self.grow();
        }
        let cursor = self.tail;
        // SAFETY: after `grow` or a push before, `tail` is a slot, before the end, of a live block, and holds no
        // packet.
        unsafe {
            cursor.at.write(Slot { time, bytes, packet });
            self.tail.at = cursor.at.add(1);
        }
        self.len += 1;
        if waits || self.waiting > 0 {
            if self.waiting == 0 {
                self.first_waiting = cursor;
            }
            self.waiting += 1;
        }
    }

    /// Takes the oldest packet on the line. What else is wanted of it is read before: a packet alone is moved but once.
    #[inline]
    pub fn pop(&mut self) -> Option<P> {
        if self.len == self.waiting {
            return None;
        }
        let cursor = self.head;
        self.len -= 1;
        self.taken += 1;
        // SAFETY: there was a packet, so the head's slot was written by `push` and not read since: `head` moves on
        // below. When it leaves a block, packets are left, so that there is a next one; `first_waiting` is not in
        // the block left, as its packets are gone.
        unsafe {
            let packet = ptr::addr_of!((*cursor.at).packet).read();
            let at = cursor.at.add(1);
            if self.len == 0 {
                // The same block from its start: it is in the cache. Nothing waits, so `first_waiting` is undefined.
                self.head = Cursor::first(cursor.block());
                self.tail = self.head;
            } else if at == cursor.end {
                self.head = cursor.next_block();
                let block = cursor.block();
                (*block).next = self.free;
                self.free = block;
            } else {
                self.head.at = at;
            }
            Some(packet)
        }
    }

    /// Time of the oldest packet; never when there is none.
    #[inline]
    pub fn head_time(&self) -> u64 {
        // SAFETY: with packets inside, the head is a slot that holds one.
        if self.len == 0 {
            NEVER
        } else {
            unsafe { (*self.head.at).time }
        }
    }

    /// Size of the oldest packet; 0 when there is none.
    #[inline]
    pub fn head_bytes(&self) -> S {
        // SAFETY: as in `head_time`.
        if self.len == 0 {
            S::default()
        } else {
            unsafe { (*self.head.at).bytes }
        }
    }

    /// The oldest packet.
    #[inline]
    pub fn head_packet(&self) -> Option<&P> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: as in `head_time`; the reference borrows the ring, which keeps the packet there.
        Some(unsafe { &(*self.head.at).packet })
    }

    /// Puts the first packet that waits onto the line: what `of` makes of (time, size, packet).
    #[inline]
    pub fn start<T>(&mut self, of: impl FnOnce(u64, S, &P) -> T) -> Option<T> {
        if self.waiting == 0 {
            return None;
        }
        let cursor = self.first_waiting;
        self.waiting -= 1;
        // SAFETY: waiting was above 0, so `first_waiting` is a packet's slot; when another packet waits, it is in the
        // next slot, or in the first slot of the next block, which then exists.
        unsafe {
            self.first_waiting.at = cursor.at.add(1);
            if self.first_waiting.at == cursor.end && self.waiting > 0 {
                self.first_waiting = cursor.next_block();
            }
            let slot = &*cursor.at;
            Some(of(slot.time, slot.bytes, &slot.packet))
        }
    }

    /// Moves reader `which` (0 or 1) over the packets (time, size, packet) from where it is, as long as `passes` says
    /// yes. Returns the number of the packet it has come to, counted from 0 since the ring was made. What was taken
    /// from the ring it has passed without asking.
    pub fn read(&mut self, which: usize, mut passes: impl FnMut(u64, S, &P) -> bool) -> u64 {
        let (taken, end, cursor) = (self.taken, self.taken + self.len, self.head);
        let readers =
            self.readers.get_or_insert_with(|| Box::new([0; READERS].map(|number| Reader { number, cursor })));
        let reader = &mut readers[which];
        if reader.number <= taken {
            *reader = Reader { number: taken, cursor };
        }
        while reader.number < end {
            // SAFETY: the packet at `number` is inside: it is the oldest, at `head`, or behind one that is inside, in
            // the next slot or, after the last of a block, in the first slot of the next block, which then exists.
            unsafe {
                if reader.cursor.at == reader.cursor.end {
                    reader.cursor = reader.cursor.next_block();
                }
                let slot = &*reader.cursor.at;
                if !passes(slot.time, slot.bytes, &slot.packet) {
                    break;
                }
                reader.cursor.at = reader.cursor.at.add(1);
            }
            reader.number += 1;
        }
        reader.number
    }

    /// Gives each packet that waits a new time, oldest first.
    pub fn retime_waiting(&mut self, mut time: impl FnMut(S) -> u64) {
        self.walk(self.first_waiting, self.waiting, |at_time, bytes, _| *at_time = time(bytes));
    }

    /// The packets on the line and their sizes, oldest first.
    pub fn for_each_in_transit(&mut self, mut visit: impl FnMut(S, &P)) {
        self.walk(self.head, self.in_transit(), |_, bytes, packet| visit(bytes, packet));
    }

    /// `count` packets from `cursor` on; there must be that many.
    fn walk(&mut self, mut cursor: Cursor<P, S>, count: u64, mut visit: impl FnMut(&mut u64, S, &P)) {
        for left in (0..count).rev() {
            // SAFETY: `cursor` is a packet's slot; while packets are left, the next is behind it as in `start`.
            unsafe {
                let slot = &mut *cursor.at;
                visit(&mut slot.time, slot.bytes, &slot.packet);
                cursor.at = cursor.at.add(1);
                if cursor.at == cursor.end && left > 0 {
                    cursor = cursor.next_block();
                }
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let block = if self.free.is_null() {
            let slots = std::array::from_fn(|_| MaybeUninit::uninit());
            Box::into_raw(Box::new(Block { slots, next: ptr::null_mut() }))
        } else {
            let block = self.free;
            // SAFETY: blocks of the free list are live and in no other list.
            unsafe { self.free = (*block).next };
            block
        };
        // SAFETY: `block` is live and only ours; with packets inside, the tail's block is live and the last of them.
        unsafe {
            (*block).next = ptr::null_mut();
            let first = Cursor::first(block);
            if self.len > 0 {
                (*self.tail.block()).next = block;
            } else {
                // Empty with a full tail: only before the first packet, as `pop` starts an empty block anew.
                self.head = first;
            }
            self.tail = first;
        }
    }

    #[cfg(test)]
    fn blocks(&self) -> usize {
        let count = |mut block: *mut Block<P, S>| {
            let mut n = 0;
            while !block.is_null() {
                n += 1;
                // SAFETY: both lists hold live blocks and end with null.
                block = unsafe { (*block).next };
            }
            n
        };
        // SAFETY: the head's block is live once there is one.
        count(if self.head.end.is_null() { ptr::null_mut() } else { unsafe { self.head.block() } }) + count(self.free)
    }
}

impl<P, S> Drop for Ring<P, S> {
    fn drop(&mut self) {
        let mut cursor = self.head;
        for left in (0..self.len).rev() {
            // SAFETY: as in `walk`; each packet is dropped once, here.
            unsafe {
                ptr::drop_in_place(ptr::addr_of_mut!((*cursor.at).packet));
                cursor.at = cursor.at.add(1);
                if cursor.at == cursor.end && left > 0 {
                    cursor = cursor.next_block();
                }
            }
        }
        // SAFETY: the head's block is live once there is one.
        let first = if self.head.end.is_null() { ptr::null_mut() } else { unsafe { self.head.block() } };
        for mut block in [first, self.free] {
            while !block.is_null() {
                // SAFETY: each block came from `Box::into_raw` and is in exactly one of the two lists; both end with
                // null.
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
                    assert_eq!(ring.start(|time, bytes, _| (time, bytes)), started);
                    line.extend(started);
                }
                6 if random.below(100) == 0 => {
                    ring.retime_waiting(|bytes| u64::from(bytes) + i);
                    queue.iter_mut().for_each(|(time, bytes)| *time = u64::from(*bytes) + i);
                }
                7 if random.below(100) == 0 => {
                    let mut seen = vec![];
                    ring.for_each_in_transit(|bytes, packet| {
                        assert_eq!(**packet as u32, bytes);
                        seen.push(bytes);
                    });
                    assert!(seen.iter().eq(line.iter().map(|(_, bytes)| bytes)));
                }
                _ => assert_eq!(ring.pop().map(|p| *p as u32), line.pop_front().map(|(_, bytes)| bytes)),
            }
            assert_eq!((ring.in_transit(), ring.waiting()), (line.len() as u64, queue.len() as u64));
            let oldest = line.front().or(queue.front());
            assert_eq!(ring.head_time(), oldest.map_or(NEVER, |p| p.0));
            assert_eq!(ring.head_bytes(), oldest.map_or(0, |p| p.1));
            assert_eq!(ring.head_packet().map(|p| **p as u32), oldest.map(|p| p.1));
        }
    }

    #[test]
    fn readers_pass_each_packet_once_or_find_it_taken() {
        let mut ring: Ring<u64, ()> = Ring::new();
        let mut random = Random::new(3);
        let (mut pushed, mut passed) = (0u64, [0u64; READERS]);
        for _ in 0..100_000 {
            match random.below(6) {
                0 | 1 => {
                    for _ in 0..random.below(50) {
                        ring.push(pushed, (), pushed, false);
                        pushed += 1;
                    }
                }
                2 | 3 => (0..random.below(60)).for_each(|_| {
                    ring.pop();
                }),
                which => {
                    let which = which as usize - 4;
                    let until = passed[which].max(ring.taken()) + random.below(40);
                    let mut next = passed[which].max(ring.taken());
                    let number = ring.read(which, |time, (), packet| {
                        assert_eq!((time, *packet), (next, next));
                        next += u64::from(time < until);
                        time < until
                    });
                    assert_eq!(number, until.min(pushed).max(ring.taken()));
                    passed[which] = number;
                }
            }
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
