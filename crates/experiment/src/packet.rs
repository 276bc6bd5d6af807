//! A packet on the simulated links: a token of 16 bytes, which is two registers.

use crate::background::BackgroundPacket;
use link::Packet as LinkPacket;
use sim::{Routed, Train};
use tcp::segment::{base_header_bytes, flags, TIMESTAMP_OPTION_BYTES};

/// A packet of a flow or of background traffic, as links see it.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Number of the header within its flight (high 32 bits, wraps) and position on the route (low 32 bits).
    place: u64,
    /// Number of the source (high 32), bytes of the IP packet (16; the MTU is at most 65,535), its transport's
    /// flags (16; of TCP: number of SACK blocks (4), flags (12)).
    what: u64,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 16, "a packet moves in two registers");

impl Packet {
    /// Number `number` of source `source`, of `bytes`, on the route that starts at `hop`. `flags`: those of the segment
    /// in the lower 12 bits.
    #[inline]
    pub fn new(number: u32, hop: u32, source: u32, bytes: u32, flags: u16) -> Packet {
        debug_assert!(bytes <= u32::from(u16::MAX), "the front refuses larger packets");
        let place = u64::from(number) << 32 | u64::from(hop);
        Packet { place, what: u64::from(source) << 32 | u64::from(bytes as u16) << 16 | u64::from(flags) }
    }

    /// The 16 bits that its transport has given it; those of ECN are in the place of a segment's flags.
    #[inline]
    pub fn flags(self) -> u16 {
        self.what as u16
    }

    /// Its number among those of its source, as it was given.
    #[inline]
    pub fn number(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Number of the source: 2 f for the sender of flow f, 2 f + 1 for its receiver, then background sources.
    #[inline]
    pub fn source(self) -> u32 {
        (self.what >> 32) as u32
    }
}

impl BackgroundPacket for Packet {
    /// It has no header.
    fn background(bytes: u32, hop: u32, source: u32, number: u32) -> Packet {
        Packet::new(number, hop, source, bytes, 0)
    }

    #[inline]
    fn number(&self) -> u32 {
        Packet::number(*self)
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

    /// Of data alone: neither background traffic nor UDT has flags, and a segment with SACK blocks has options of its
    /// own.
    fn offload_bytes(&self) -> u32 {
        let own = self.flags() & !flags::TIMESTAMPS & !flags::PSH & !flags::ECT & !flags::CE & !flags::IPV6;
        if own != flags::ACK {
            return 0;
        }
        let options = if self.flags() & flags::TIMESTAMPS != 0 { TIMESTAMP_OPTION_BYTES } else { 0 };
        self.bytes().saturating_sub(base_header_bytes(self.flags() & flags::IPV6 != 0) + options)
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

    #[inline]
    fn redirect(&mut self, position: u32) {
        self.place = self.place >> 32 << 32 | u64::from(position);
    }
}

impl Train for Packet {
    #[inline]
    fn following(self) -> Packet {
        Packet { place: self.place.wrapping_add(1 << 32), ..self }
    }
}
