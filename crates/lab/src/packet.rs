//! What crosses the simulated links: a token of 16 bytes per packet, its TCP header in a pool, its SACK blocks in another.
//!
//! A packet crosses several links and each moves it once, so what moves is kept to two registers; the header is written when
//! the packet is sent and read when it arrives. Pools grow by blocks and use slots again: no allocation in the steady state,
//! no doubling. Together a packet in flight holds 16 + 36 bytes here, its time and size in the link, and 32 bytes in the
//! sender's scoreboard.

use link::Packet as LinkPacket;
use sim::Routed;
use tcp::segment::{flags, SackBlock, Segment, MAX_SACK_BLOCKS};

/// No SACK blocks, no header.
const NO_SLOT: u32 = u32::MAX;

/// A packet of a TCP flow or of background traffic, as links see it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Slot of the header in the pool (high 32 bits) and position on the route (low 32 bits).
    place: u64,
    /// Number of the flow or background source (high 32), bytes of the IP packet (16; the MTU is at most 65,535), flags (16).
    what: u64,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 16, "a packet moves in two registers");

/// The TCP header of a packet in flight. Four-byte aligned, so that its 64-bit numbers waste nothing.
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
struct Header {
    seq: u64,
    ack: u64,
    window: u32,
    ts_val: u32,
    ts_ecr: u32,
    /// Slot of the SACK blocks; on a SYN, which carries none, `mss << 8 | wscale`.
    extra: u32,
    /// Payload bytes. Range: u16.
    len: u16,
    sack_count: u16,
}

const _: () = assert!(std::mem::size_of::<Header>() == 36, "memory per packet in flight is promised in docs/speed.md");

/// Headers and SACK blocks of all packets in flight.
#[derive(Default)]
pub struct Pool {
    headers: Slots<Header>,
    sacks: Slots<[SackBlock; MAX_SACK_BLOCKS]>,
}

impl Pool {
    /// Packs `segment` for the route that starts at `hop`.
    #[inline]
    pub fn pack(&mut self, segment: &Segment, hop: u32, source: u32) -> Packet {
        let extra = if segment.flags & flags::SYN != 0 {
            u32::from(segment.mss) << 8 | u32::from(segment.wscale)
        } else if segment.sack_count > 0 {
            self.sacks.put(segment.sacks)
        } else {
            NO_SLOT
        };
        let slot = self.headers.put(Header {
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            ts_val: segment.ts_val,
            ts_ecr: segment.ts_ecr,
            extra,
            len: segment.len as u16,
            sack_count: u16::from(segment.sack_count),
        });
        Packet::new(slot, hop, source, segment.packet_bytes(), segment.flags)
    }

    /// Unpacks `packet` into `segment` and frees its slots.
    #[inline]
    pub fn unpack(&mut self, packet: Packet, segment: &mut Segment) {
        let header = self.headers.take(packet.slot());
        segment.seq = header.seq;
        segment.ack = header.ack;
        segment.len = u32::from(header.len);
        segment.window = header.window;
        segment.ts_val = header.ts_val;
        segment.ts_ecr = header.ts_ecr;
        segment.flags = packet.what as u16;
        segment.sack_count = header.sack_count as u8;
        if segment.flags & flags::SYN != 0 {
            segment.mss = (header.extra >> 8) as u16;
            segment.wscale = header.extra as u8;
        } else if header.sack_count > 0 {
            segment.sacks = self.sacks.take(header.extra);
        }
    }

    /// Frees the slots of a lost packet.
    pub fn discard(&mut self, packet: Packet) {
        if packet.slot() == NO_SLOT {
            return;
        }
        let header = self.headers.take(packet.slot());
        if header.sack_count > 0 {
            self.sacks.take(header.extra);
        }
    }
}

impl Packet {
    /// A packet of traffic that nobody answers.
    pub fn background(bytes: u32, hop: u32, source: u32) -> Packet {
        Packet::new(NO_SLOT, hop, source, bytes, 0)
    }

    #[inline]
    fn new(slot: u32, hop: u32, source: u32, bytes: u32, flags: u16) -> Packet {
        debug_assert!(bytes <= u32::from(u16::MAX), "the front refuses larger packets");
        let place = u64::from(slot) << 32 | u64::from(hop);
        Packet { place, what: u64::from(source) << 32 | u64::from(bytes as u16) << 16 | u64::from(flags) }
    }

    #[inline]
    fn slot(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Number of the flow or background source.
    #[inline]
    pub fn source(self) -> u32 {
        (self.what >> 32) as u32
    }
}

impl LinkPacket for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from((self.what >> 16) as u16)
    }

    /// FQ-CoDel tells the packets of different flows and sources apart by this.
    #[inline]
    fn flow_hash(&self) -> u64 {
        u64::from(self.source())
    }

    #[inline]
    fn is_ect(&self) -> bool {
        self.what & u64::from(flags::ECT) != 0
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.what |= u64::from(flags::CE);
    }
}

impl Routed for Packet {
    #[inline]
    fn hop(&self) -> u32 {
        self.place as u32
    }

    #[inline]
    fn advance(&mut self) {
        self.place += 1;
    }
}

/// Entries of a block: 36 KB of headers, so that a small run stays small.
const BLOCK: usize = 1024;

/// What a pool holds; a free entry names the next free one.
trait Entry: Copy + Default {
    fn next_free(&self) -> u32;
    fn set_next_free(&mut self, slot: u32);
}

impl Entry for Header {
    #[inline]
    fn next_free(&self) -> u32 {
        self.extra
    }

    #[inline]
    fn set_next_free(&mut self, slot: u32) {
        self.extra = slot;
    }
}

impl Entry for [SackBlock; MAX_SACK_BLOCKS] {
    fn next_free(&self) -> u32 {
        self[0].start as u32
    }

    fn set_next_free(&mut self, slot: u32) {
        self[0].start = u64::from(slot);
    }
}

/// Slots in blocks; freed ones are used again, the latest first: it is still in the cache.
struct Slots<T> {
    blocks: Vec<Box<[T; BLOCK]>>,
    /// First free slot; [`NO_SLOT`] = none.
    free: u32,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { blocks: vec![], free: NO_SLOT }
    }
}

impl<T: Entry> Slots<T> {
    #[inline]
    fn put(&mut self, value: T) -> u32 {
        if self.free == NO_SLOT {
            self.grow();
        }
        let slot = self.free;
        let entry = &mut self.blocks[slot as usize / BLOCK][slot as usize % BLOCK];
        self.free = entry.next_free();
        *entry = value;
        slot
    }

    #[inline]
    fn take(&mut self, slot: u32) -> T {
        let entry = &mut self.blocks[slot as usize / BLOCK][slot as usize % BLOCK];
        let value = *entry;
        entry.set_next_free(self.free);
        self.free = slot;
        value
    }

    #[cold]
    fn grow(&mut self) {
        let first = (self.blocks.len() * BLOCK) as u32;
        let mut block = Box::new([T::default(); BLOCK]);
        for (entry, slot) in block.iter_mut().zip(first + 1..) {
            entry.set_next_free(slot);
        }
        block[BLOCK - 1].set_next_free(NO_SLOT);
        self.blocks.push(block);
        self.free = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_packing() {
        let mut pool = Pool::default();
        let mut sent = Segment {
            seq: 1 << 40,
            ack: 3,
            len: 1448,
            window: 1 << 30,
            ts_val: 7,
            ts_ecr: 8,
            flags: flags::ACK | flags::TIMESTAMPS,
            sack_count: 2,
            ..Segment::default()
        };
        sent.sacks[0] = SackBlock { start: 10, end: 20 };
        sent.sacks[1] = SackBlock { start: 30, end: 40 };
        let mut packet = pool.pack(&sent, 5, 77);
        assert_eq!((packet.bytes(), packet.hop(), packet.source()), (sent.packet_bytes(), 5, 77));
        packet.advance();
        assert_eq!(packet.hop(), 6);
        let mut got = Segment::default();
        pool.unpack(packet, &mut got);
        assert_eq!((got.seq, got.ack, got.len, got.window), (sent.seq, sent.ack, sent.len, sent.window));
        assert_eq!((got.flags, got.ts_val, got.ts_ecr), (sent.flags, sent.ts_val, sent.ts_ecr));
        assert_eq!(got.sacks[..2], sent.sacks[..2]);
        assert_eq!((pool.headers.free, pool.sacks.free), (0, 0), "the slots are free again");
    }

    #[test]
    fn a_syn_keeps_its_options() {
        let mut pool = Pool::default();
        let sent = Segment { flags: flags::SYN, mss: 8960, wscale: 14, ..Segment::default() };
        let mut got = Segment::default();
        let packet = pool.pack(&sent, 0, 0);
        pool.unpack(packet, &mut got);
        assert_eq!((got.mss, got.wscale), (8960, 14));
    }

    #[test]
    fn congestion_experienced_is_kept() {
        let mut pool = Pool::default();
        let mut packet = pool.pack(&Segment { flags: flags::ECT, ..Segment::default() }, 0, 0);
        assert!(packet.is_ect());
        packet.mark_ce();
        let mut got = Segment::default();
        pool.unpack(packet, &mut got);
        assert!(got.has(flags::CE | flags::ECT));
    }

    #[test]
    fn slots_are_used_again() {
        let mut pool = Pool::default();
        for _ in 0..100_000 {
            let packet = pool.pack(&Segment::default(), 0, 0);
            pool.discard(packet);
        }
        assert_eq!(pool.headers.blocks.len(), 1);
    }
}
