//! A transmitter: the exact departure of the last bit of each packet.

use crate::framing::Framing;
use units::{Rate, NS_PER_S};

/// Sizes whose transmission time is remembered: data, and ACKs with 0 to 3 SACK blocks, fall into different entries.
const CACHE: usize = 8;
/// Time of one byte at 1 bit/s, ns.
const NS_PER_BYTE: u64 = 8 * NS_PER_S;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Of the packet; its time is that of its frame.
    bytes: u32,
    /// Bytes on the line * 8e9 / rate, ns: whole part.
    whole: u64,
    /// Remainder of that division, in 1/rate ns.
    part: u64,
}

/// A transmitter: sends one packet after the other at a rate.
///
/// Departures are rounded up to the ns (no bit leaves before it can), and what the rounding added is carried to the
/// next packet, so that a busy line sends exactly its rate however long it is busy (9.95328 Gbit/s has no whole number
/// of ns per packet).
#[repr(C)]
pub(crate) struct Serializer {
    line: Line,
    cache: Box<Cache>,
}

/// The part of a transmitter that each packet needs. A loop over packets keeps it in registers ([`Serializer::line`]).
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Line {
    /// Departure of the last packet, rounded up; `u64::MAX`: never.
    free_at: u64,
    /// The excess from rounding, in 1/rate ns; below `rate` <= 2^62.
    early: u64,
    rate: u64,
    /// Of the size sent last: most links see one size for long, and the others stay out of the processor's cache.
    last: Entry,
}

impl Line {
    /// As [`Serializer::free_at`].
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Whole ns that such a packet takes; a part of one more may come to it.
    #[inline]
    pub fn least_ns(&self) -> u64 {
        self.last.whole
    }

    /// Bytes of the packet sent last; 0 before the first one and after a change.
    #[inline]
    pub fn last_bytes(&self) -> u32 {
        self.last.bytes
    }

    /// Sends a packet of [`Line::last_bytes`], as [`Serializer::send`]; written so that it compiles to no branch.
    #[inline(always)]
    pub fn send(&mut self, now: u64) -> u64 {
        let waits = now < self.free_at;
        let base = if waits { self.free_at } else { now };
        let early = if waits { self.early } else { 0 };
        // Whole ns pass until what was early covers the part of a ns that is left.
        let short = early < self.last.part;
        self.early = early + if short { self.rate } else { 0 } - self.last.part;
        self.free_at = base.saturating_add(self.last.whole + u64::from(short));
        self.free_at
    }

    /// Ns from when a packet of [`Line::last_bytes`] comes to a free line to when its last bit has left.
    #[inline]
    pub fn free_ns(&self) -> u64 {
        self.last.whole.saturating_add(u64::from(self.last.part > 0))
    }

    /// Packets of [`Line::last_bytes`] have all found the line free, the last one at `at`.
    #[inline]
    pub fn send_free(&mut self, at: u64) {
        self.free_at = 0;
        self.send(at);
    }
}

/// Times of other sizes than the last.
struct Cache {
    entries: [Entry; CACHE],
    framing: Framing,
}

/// No packet has 0 bytes: an entry that nothing meets.
const NOTHING: Entry = Entry { bytes: 0, whole: 0, part: 0 };

impl Serializer {
    pub fn new(rate: Rate, framing: Framing) -> Serializer {
        let cache = Box::new(Cache { entries: [NOTHING; CACHE], framing });
        Serializer { line: Line { free_at: 0, early: 0, rate: rate.0, last: NOTHING }, cache }
    }

    pub fn framing(&self) -> Framing {
        self.cache.framing
    }

    pub fn rate(&self) -> Rate {
        Rate(self.line.rate)
    }

    /// Time at which the line is free for the next packet; `u64::MAX` while halted.
    #[inline]
    pub fn free_at(&self) -> u64 {
        self.line.free_at
    }

    /// The state, to send by it and to [`Serializer::put`] it back.
    #[inline]
    pub fn line(&self) -> Line {
        self.line
    }

    /// Puts the state back.
    #[inline]
    pub fn put(&mut self, line: Line) {
        self.line = line;
    }

    /// Makes `bytes` the size of the packet that `line` sends next.
    #[inline(never)]
    pub fn resize(&mut self, line: &mut Line, bytes: u32) {
        line.last = self.entry(bytes);
    }

    /// Sends a packet that is there at `now`, after those before it; returns when its last bit has left.
    #[inline]
    pub fn send(&mut self, now: u64, bytes: u32) -> u64 {
        if self.line.last.bytes != bytes {
            self.line.last = self.entry(bytes);
        }
        self.line.send(now)
    }

    #[inline(never)]
    fn entry(&mut self, bytes: u32) -> Entry {
        let Cache { entries, framing } = &mut *self.cache;
        let entry = &mut entries[(bytes >> 3) as usize % CACHE];
        if entry.bytes != bytes {
            *entry = Entry { bytes, ..divide(framing.line_bytes(bytes), self.line.rate) };
        }
        *entry
    }

    /// Packets sent from now on go at `rate`. What was sent keeps its departure, rounded up to the ns.
    pub fn set_rate(&mut self, rate: Rate) {
        self.line = Line { free_at: self.line.free_at, early: 0, rate: rate.0, last: NOTHING };
        self.cache.entries = [NOTHING; CACHE];
    }

    /// The next packet goes at `time` at the earliest, whatever was sent before.
    pub fn restart(&mut self, time: u64) {
        (self.line.free_at, self.line.early) = (time, 0);
    }

    /// Nothing goes until [`Serializer::restart`].
    pub fn halt(&mut self) {
        (self.line.free_at, self.line.early) = (u64::MAX, 0);
    }
}

#[cold]
fn divide(bytes: u32, rate: u64) -> Entry {
    let bits_ns = u128::from(bytes) * u128::from(NS_PER_BYTE);
    // u32::MAX bytes at 1 bit/s: 3.4e19 ns, beyond u64; saturated, which is 584 years (less one ns, for the carry).
    let whole = u64::try_from(bits_ns / u128::from(rate)).map_or(u64::MAX - 1, |whole| whole.min(u64::MAX - 1));
    Entry { bytes, whole, part: (bits_ns % u128::from(rate)) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_packets_do_not_drift() {
        for rate in [9_953_280_000u64, 1_000_000_007, 3, 622_080_000, 400_000_000_000] {
            let mut line = Serializer::new(Rate(rate), Framing::default());
            let mut bytes_sent = 0u128;
            for i in 0..1_000_000u32 {
                let bytes = if i % 3 == 0 { 52 } else { 1500 };
                bytes_sent += u128::from(bytes);
                let exact = (bytes_sent * 8_000_000_000).div_ceil(u128::from(rate));
                assert_eq!(u128::from(line.send(0, bytes)), exact, "rate {rate}, packet {i}");
            }
        }
    }

    #[test]
    fn an_idle_line_starts_at_the_arrival() {
        let mut line = Serializer::new(Rate(3), Framing::default());
        assert_eq!(line.send(10, 1), 10 + 2_666_666_667);
        assert_eq!(line.send(10, 1), 10 + 5_333_333_334);
        assert_eq!(line.send(10, 1), 10 + 8_000_000_000);
        assert_eq!(line.send(9_000_000_000, 1), 11_666_666_667, "a pause forgets the fraction");
    }

    #[test]
    fn extremes_saturate() {
        let mut line = Serializer::new(Rate(1), Framing::default());
        assert_eq!(line.send(0, u32::MAX), u64::MAX - 1);
        assert_eq!(line.send(0, u32::MAX), u64::MAX);
        let mut fast = Serializer::new(crate::MAX_RATE, Framing::default());
        assert_eq!(fast.send(5, 1500), 6);
        for _ in 0..1000 {
            fast.send(5, 1500);
        }
        assert_eq!(fast.free_at(), 6, "1001 packets at 4.6e18 bit/s take 3 ps");
    }
}
