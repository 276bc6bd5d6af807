//! Segments sent and not yet cumulatively acknowledged: a ring of fixed blocks, and what waits for retransmission.
//!
//! Memory is 24 bytes per segment in flight, and 8 more where the congestion control takes rate samples.

use crate::blocks::Blocks;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Flags of an [`Entry`].
pub mod tag {
    /// The receiver holds it (Linux TCPCB_SACKED_ACKED).
    pub const SACKED: u8 = 1;
    /// Retransmitted, and that copy is in flight (TCPCB_SACKED_RETRANS).
    pub const RETRANS: u8 = 2;
    /// Judged lost (TCPCB_LOST).
    pub const LOST: u8 = 4;
    /// Retransmitted at some time (TCPCB_EVER_RETRANS).
    pub const EVER_RETRANS: u8 = 8;
    /// Sent while the application was the limit.
    pub const APP_LIMITED: u8 = 16;
    /// Carries the FIN.
    pub const FIN: u8 = 32;
    /// Its delivery has been counted in a rate sample.
    pub const RATED: u8 = 64;
}

/// One segment in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// Number of its first byte.
    pub seq: u64,
    /// Last transmission, ns.
    pub tx_ns: u64,
    /// Segments delivered when it was sent; wraps.
    pub delivered: u32,
    /// Numbers it takes, payload and FIN. The largest IP packet, 65,535 bytes, leaves room for the FIN.
    pub len: u16,
    /// See [`tag`].
    pub flags: u8,
    /// Retransmissions; saturates.
    pub retrans: u8,
}

const _: () = assert!(
    std::mem::size_of::<Entry>() == 24,
    "memory per packet in flight is promised in docs/results/performance.md"
);

/// State at the transmission of a segment, for rate samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentRate {
    /// From the last delivery before it was sent to its sending, us; saturates at 71 min.
    pub since_delivered_us: u32,
    /// From the start of the sampled flight to its sending, us; saturates at 71 min.
    pub since_first_tx_us: u32,
}

impl Entry {
    /// Number after its last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Fills `slots` with entries like this one, each of which begins where the one before it ends; returns the end of
    /// the last.
    #[inline(always)]
    fn repeat(mut self, slots: &mut [Entry]) -> u64 {
        for slot in slots {
            *slot = self;
            self.seq = self.end();
        }
        self.seq
    }
}

/// Entries that an acknowledgment took.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    /// Their number, at least one.
    pub count: u32,
    /// End of the last.
    pub end: u64,
    /// Transmission of the first, of the last, and of the entry that is now the oldest, ns; `u64::MAX` without one.
    pub first_tx_ns: u64,
    pub last_tx_ns: u64,
    pub next_tx_ns: u64,
}

/// Entries in the order of their sequence numbers, addressed by an index that only grows.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Ring {
    /// One for each entry, where rate samples are taken.
    rates: Option<Box<Blocks<SentRate>>>,
    /// Index of the first entry in use.
    head: u64,
    /// Index after the last entry in use.
    tail: u64,
    entries: Blocks<Entry>,
}

impl Ring {
    /// An empty ring; `rated`: entries keep their [`SentRate`].
    pub fn new(rated: bool) -> Ring {
        Ring { rates: rated.then(Box::default), ..Ring::default() }
    }

    /// Index of the oldest entry.
    #[inline]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Index of the next entry to come.
    #[inline]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Returns whether nothing is in flight.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The oldest entries, as far as they lie in one piece.
    #[inline]
    pub fn oldest(&self) -> &[Entry] {
        if self.is_empty() {
            &[]
        } else {
            self.entries.piece(self.head, self.tail)
        }
    }

    /// The newest entry.
    #[inline]
    pub fn latest(&self) -> Option<&Entry> {
        (!self.is_empty()).then(|| self.entries.get(self.tail - 1))
    }

    /// The entry at `index`, which must be in use.
    #[inline]
    pub fn get(&self, index: u64) -> &Entry {
        debug_assert!(index >= self.head && index < self.tail);
        self.entries.get(index)
    }

    /// The entry at `index`, which must be in use.
    #[inline]
    pub fn get_mut(&mut self, index: u64) -> &mut Entry {
        debug_assert!(index >= self.head && index < self.tail);
        self.entries.get_mut(index)
    }

    /// Returns whether entries keep their [`SentRate`].
    #[inline]
    pub fn is_rated(&self) -> bool {
        self.rates.is_some()
    }

    /// That of the entry at `index`, which must be in use.
    #[inline]
    pub fn rate(&self, index: u64) -> SentRate {
        self.rates.as_ref().map_or(SentRate::default(), |rates| *rates.get(index))
    }

    /// Notes it; without effect where it is not kept.
    #[inline]
    pub fn set_rate(&mut self, index: u64, rate: SentRate) {
        if let Some(rates) = &mut self.rates {
            *rates.get_mut(index) = rate;
        }
    }

    /// Appends `count` entries like `entry`, each of which begins where the one before it ends.
    #[inline]
    pub fn push(&mut self, mut entry: Entry, rate: SentRate, count: u32) {
        if self.rates.is_some() {
            self.push_rates(rate, count);
        }
        let end = self.tail + u64::from(count);
        while self.tail < end {
            let room = self.entries.room(self.tail);
            let here = room.len().min((end - self.tail) as usize);
            entry.seq = entry.repeat(&mut room[..here]);
            self.tail += here as u64;
        }
    }

    #[inline(never)]
    fn push_rates(&mut self, rate: SentRate, count: u32) {
        let Some(rates) = &mut self.rates else { return };
        for index in self.tail..self.tail + u64::from(count) {
            rates.room(index)[0] = rate;
        }
    }

    /// Forgets the oldest entry.
    #[inline]
    pub fn pop_front(&mut self) {
        self.head += 1;
        self.forget();
    }

    #[inline]
    fn forget(&mut self) {
        self.entries.forget_below(self.head);
        if let Some(rates) = &mut self.rates {
            rates.forget_below(self.head);
        }
    }

    /// Forgets the oldest entries as far as they end at or below `ack`, at least one; returns how many and the last of
    /// them. A block is looked up once, not for each entry: an ACK in the common case finds all it acknowledges in
    /// one.
    #[inline]
    pub fn pop_acknowledged(&mut self, ack: u64) -> (u32, Entry) {
        debug_assert!(!self.is_empty());
        let mut acked = 0;
        loop {
            let entries = self.entries.piece(self.head, self.tail);
            let mut count = 1;
            while count < entries.len() && entries[count].end() <= ack {
                count += 1;
            }
            let (last, whole) = (entries[count - 1], count == entries.len());
            acked += count as u32;
            self.head += count as u64;
            self.forget();
            if !whole || self.is_empty() || self.get(self.head).end() > ack {
                return (acked, last);
            }
        }
    }

    /// As [`Ring::pop_acknowledged`], where `ack` leaves at least one entry; None, and nothing is forgotten, where it
    /// is within the oldest.
    #[inline(always)]
    pub fn pop_some(&mut self, ack: u64) -> Option<Popped> {
        let (block, start) = self.entries.head_block(self.head)?;
        let first_tx_ns = block[start].tx_ns;
        // Two, as delayed acknowledgments have it, are one comparison.
        if let [_, second, third, ..] = &block[start..] {
            if second.end() == ack {
                self.head += 2;
                let (last_tx_ns, next_tx_ns) = (second.tx_ns, third.tx_ns);
                return Some(Popped { count: 2, end: ack, first_tx_ns, last_tx_ns, next_tx_ns });
            }
        }
        if block[start].end() > ack {
            return None;
        }
        for (count, pair) in (1..).zip(block[start..].windows(2)) {
            if pair[1].end() > ack {
                self.head += u64::from(count);
                let (end, last_tx_ns, next_tx_ns) = (pair[0].end(), pair[0].tx_ns, pair[1].tx_ns);
                return Some(Popped { count, end, first_tx_ns, last_tx_ns, next_tx_ns });
            }
        }
        let (count, last) = self.pop_acknowledged(ack);
        let next_tx_ns = self.get(self.head).tx_ns;
        Some(Popped { count, end: last.end(), first_tx_ns, last_tx_ns: last.tx_ns, next_tx_ns })
    }

    /// Forgets all entries; None where there is none.
    #[inline(never)]
    pub fn pop_all(&mut self) -> Option<Popped> {
        if self.is_empty() {
            return None;
        }
        let first_tx_ns = self.get(self.head).tx_ns;
        let (count, last) = self.pop_acknowledged(u64::MAX);
        Some(Popped { count, end: last.end(), first_tx_ns, last_tx_ns: last.tx_ns, next_tx_ns: u64::MAX })
    }

    /// As [`Ring::push`], where no rates are kept, of what is sent for the first time.
    #[inline(always)]
    pub fn push_plain(&mut self, entry: Entry, count: u32) {
        debug_assert!(self.rates.is_none() && entry.retrans == 0);
        if let Some([first, second, ..]) = self.entries.back_room(self.tail) {
            if count == 2 {
                *first = entry;
                *second = Entry { seq: entry.end(), ..entry };
                self.tail += 2;
                return;
            }
        }
        // In parts: a whole entry would be put together in memory and read from there before its stores are done.
        let Entry { seq, tx_ns, delivered, len, flags, retrans: _ } = entry;
        self.push_others((seq, tx_ns), delivered, len, flags, count);
    }

    #[inline(never)]
    fn push_others(&mut self, (seq, tx_ns): (u64, u64), delivered: u32, len: u16, flags: u8, count: u32) {
        let entry = Entry { seq, tx_ns, delivered, len, flags, retrans: 0 };
        self.push(entry, SentRate::default(), count);
    }

    /// Index of the entry that begins at or covers `seq`; the tail when `seq` is beyond all.
    ///
    /// Segments are nearly always all of `mss` bytes: the index is guessed by division and found by bisection only when
    /// the guess is wrong.
    pub fn find(&self, seq: u64, mss: u32) -> u64 {
        if self.is_empty() {
            return self.tail;
        }
        let first = self.get(self.head).seq;
        if seq <= first {
            return self.head;
        }
        let guess = self.head + (seq - first) / u64::from(mss.max(1));
        if guess < self.tail {
            let entry = self.get(guess);
            if entry.seq <= seq && seq < entry.end() {
                return guess;
            }
        }
        let (mut low, mut high) = (self.head, self.tail);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).end() <= seq {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Room for lost segments that is kept when none waits; more is given back.
const LOST_KEPT: usize = 4096;

/// Indices of lost segments that wait for retransmission, lowest first. Stale indices may remain: whoever takes one
/// looks at the entry.
#[derive(Clone, Debug, Default)]
pub struct LostQueue {
    /// Ascending: marking goes upwards, so nearly all arrive here.
    ascending: VecDeque<u64>,
    /// Those marked below the last of `ascending`: lost retransmissions.
    others: BinaryHeap<Reverse<u64>>,
}

impl LostQueue {
    /// Adds a segment.
    #[inline]
    pub fn push(&mut self, index: u64) {
        match self.ascending.back() {
            Some(&last) if index <= last => self.others.push(Reverse(index)),
            _ => self.ascending.push_back(index),
        }
    }

    /// The lowest.
    #[inline]
    pub fn peek(&self) -> Option<u64> {
        match (self.ascending.front(), self.others.peek()) {
            (Some(&a), Some(&Reverse(b))) => Some(a.min(b)),
            (Some(&a), None) => Some(a),
            (None, Some(&Reverse(b))) => Some(b),
            (None, None) => None,
        }
    }

    /// Takes the lowest.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let lowest = self.peek()?;
        if self.ascending.front() == Some(&lowest) {
            self.ascending.pop_front();
            if self.ascending.is_empty() && self.ascending.capacity() > LOST_KEPT {
                self.ascending = VecDeque::new();
            }
        } else {
            self.others.pop();
        }
        Some(lowest)
    }

    /// Forgets all, and gives the memory back: the next loss may be small.
    pub fn clear(&mut self) {
        *self = LostQueue::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_keeps_its_indices_over_many_blocks() {
        let mut ring = Ring::default();
        for i in 0..10_000u64 {
            ring.push(Entry { seq: i * 100, len: 100, ..Entry::default() }, SentRate::default(), 1);
            if i >= 3_000 {
                ring.pop_front();
            }
        }
        assert_eq!((ring.head(), ring.tail()), (7_000, 10_000));
        assert!(ring.entries.blocks() <= 3_000 / 64 + 3, "{} blocks", ring.entries.blocks());
        assert_eq!(ring.get(7_000).seq, 700_000);
        assert_eq!(ring.find(700_000, 100), 7_000);
        assert_eq!(ring.find(999_999, 100), 9_999);
        assert_eq!(ring.find(1_000_000, 100), 10_000);
        assert_eq!(ring.find(850_050, 37), 8_500);
    }

    #[test]
    fn an_ack_takes_what_ends_below_it_across_blocks() {
        let mut ring = Ring::default();
        for i in [0, 2_999] {
            let count = if i == 0 { 2_999 } else { 1 };
            ring.push(Entry { seq: i * 100, len: 100, ..Entry::default() }, SentRate::default(), count);
        }
        for (ack, acked) in [(299, 2), (102_399, 1_021), (102_400, 1), (299_999, 1_975), (300_000, 1)] {
            let (count, last) = ring.pop_acknowledged(ack);
            assert_eq!((count, last.end()), (acked, ack / 100 * 100));
            assert_eq!(ring.head() * 100, last.end());
        }
        assert!(ring.is_empty());
    }

    #[test]
    fn rates_are_kept_where_they_are_wanted() {
        for rated in [false, true] {
            let mut ring = Ring::new(rated);
            for i in 0..1_000u32 {
                ring.push(Entry::default(), SentRate { since_delivered_us: i, since_first_tx_us: 0 }, 1);
                if i >= 100 {
                    assert_eq!(ring.rate(ring.head()).since_delivered_us, if rated { i - 100 } else { 0 });
                    ring.pop_front();
                }
            }
            assert_eq!(ring.rates.map_or(0, |rates| rates.blocks()) > 0, rated);
        }
    }

    #[test]
    fn lost_segments_leave_lowest_first() {
        let mut lost = LostQueue::default();
        for index in [5, 7, 9, 6, 3] {
            lost.push(index);
        }
        let order: Vec<u64> = std::iter::from_fn(|| lost.pop()).collect();
        assert_eq!(order, [3, 5, 6, 7, 9]);
    }
}
