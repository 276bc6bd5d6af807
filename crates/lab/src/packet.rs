//! What crosses the simulated links: a segment in 48 bytes, its SACK blocks aside.
//!
//! A packet in flight is the largest thing that a run holds per unit of work (a 1 GB window is 735,000 of them), and SACK
//! blocks are rare among them; so they live in a pool and the packet names its slot.

use link::Packet as LinkPacket;
use sim::Routed;
use tcp::segment::{flags, SackBlock, Segment, MAX_SACK_BLOCKS};

/// No SACK blocks.
const NO_SLOT: u32 = u32::MAX;

/// A packet of a TCP flow or of background traffic.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    seq: u64,
    ack: u64,
    window: u32,
    ts_val: u32,
    ts_ecr: u32,
    /// Slot in the [`SackPool`]; on a SYN, which carries none, `mss << 8 | wscale`.
    extra: u32,
    hop: u32,
    /// Number of the flow or background source; spreads packets over the queues of FQ-CoDel.
    source: u32,
    /// Payload bytes. Range: u16, as the MTU is at most 65,535.
    len: u16,
    /// Bytes of the IP packet. Range: u16.
    bytes: u16,
    flags: u16,
    sack_count: u16,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 48, "memory per packet in flight is promised in docs/speed.md");

impl Packet {
    /// Packs `segment` for the route that starts at `hop`.
    #[inline]
    pub fn from_segment(segment: &Segment, hop: u32, source: u32, pool: &mut SackPool) -> Packet {
        let extra = if segment.flags & flags::SYN != 0 {
            u32::from(segment.mss) << 8 | u32::from(segment.wscale)
        } else if segment.sack_count > 0 {
            pool.put(&segment.sacks)
        } else {
            NO_SLOT
        };
        Packet {
            seq: segment.seq,
            ack: segment.ack,
            window: segment.window,
            ts_val: segment.ts_val,
            ts_ecr: segment.ts_ecr,
            extra,
            hop,
            source,
            len: segment.len as u16,
            bytes: segment.packet_bytes() as u16,
            flags: segment.flags,
            sack_count: u16::from(segment.sack_count),
        }
    }

    /// A packet of traffic that nobody answers.
    pub fn background(bytes: u32, hop: u32, source: u32) -> Packet {
        Packet {
            seq: 0,
            ack: 0,
            window: 0,
            ts_val: 0,
            ts_ecr: 0,
            extra: NO_SLOT,
            hop,
            source,
            len: 0,
            bytes: bytes as u16,
            flags: 0,
            sack_count: 0,
        }
    }

    /// Unpacks into `segment` and gives the SACK slot back.
    #[inline]
    pub fn into_segment(self, segment: &mut Segment, pool: &mut SackPool) {
        segment.seq = self.seq;
        segment.ack = self.ack;
        segment.len = u32::from(self.len);
        segment.window = self.window;
        segment.ts_val = self.ts_val;
        segment.ts_ecr = self.ts_ecr;
        segment.flags = self.flags;
        segment.sack_count = self.sack_count as u8;
        if self.flags & flags::SYN != 0 {
            segment.mss = (self.extra >> 8) as u16;
            segment.wscale = self.extra as u8;
        } else if self.sack_count > 0 {
            segment.sacks = pool.take(self.extra);
        }
    }

    /// Gives the SACK slot of a lost packet back.
    #[inline]
    pub fn discard(self, pool: &mut SackPool) {
        if self.sack_count > 0 {
            pool.take(self.extra);
        }
    }

    /// Number of the flow or background source.
    pub fn source(&self) -> u32 {
        self.source
    }
}

impl LinkPacket for Packet {
    #[inline]
    fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    #[inline]
    fn flow_hash(&self) -> u64 {
        u64::from(self.source)
    }

    #[inline]
    fn is_ect(&self) -> bool {
        self.flags & flags::ECT != 0
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.flags |= flags::CE;
    }
}

impl Routed for Packet {
    #[inline]
    fn hop(&self) -> u32 {
        self.hop
    }

    #[inline]
    fn advance(&mut self) {
        self.hop += 1;
    }
}

/// SACK blocks of the packets in flight; slots are used again, so the steady state allocates nothing.
#[derive(Default)]
pub struct SackPool {
    slots: Vec<[SackBlock; MAX_SACK_BLOCKS]>,
    free: Vec<u32>,
}

impl SackPool {
    #[inline]
    fn put(&mut self, blocks: &[SackBlock; MAX_SACK_BLOCKS]) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = *blocks;
                slot
            }
            None => {
                self.slots.push(*blocks);
                (self.slots.len() - 1) as u32
            }
        }
    }

    #[inline]
    fn take(&mut self, slot: u32) -> [SackBlock; MAX_SACK_BLOCKS] {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_survives_packing() {
        let mut pool = SackPool::default();
        let mut sent = Segment {
            seq: 1 << 40,
            ack: 3,
            len: 0,
            window: 1 << 30,
            ts_val: 7,
            ts_ecr: 8,
            flags: flags::ACK | flags::TIMESTAMPS,
            sack_count: 2,
            ..Segment::default()
        };
        sent.sacks[0] = SackBlock { start: 10, end: 20 };
        sent.sacks[1] = SackBlock { start: 30, end: 40 };
        let packet = Packet::from_segment(&sent, 0, 0, &mut pool);
        assert_eq!(packet.bytes(), sent.packet_bytes());
        let mut got = Segment::default();
        packet.into_segment(&mut got, &mut pool);
        assert_eq!((got.seq, got.ack, got.window, got.flags), (sent.seq, sent.ack, sent.window, sent.flags));
        assert_eq!(got.sacks[..2], sent.sacks[..2]);
        assert_eq!(pool.free.len(), 1, "the slot is free again");
    }

    #[test]
    fn a_syn_keeps_its_options() {
        let mut pool = SackPool::default();
        let sent = Segment { flags: flags::SYN, mss: 8960, wscale: 14, ..Segment::default() };
        let mut got = Segment::default();
        Packet::from_segment(&sent, 0, 0, &mut pool).into_segment(&mut got, &mut pool);
        assert_eq!((got.mss, got.wscale), (8960, 14));
    }
}
