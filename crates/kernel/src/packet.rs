//! Packets inside the emulator: their bytes stay where they were read, a token crosses the link model.

use crate::segment::{mark, Cut, HEADERS, MOST, PREFIX};
use crate::tun::Tun;
use experiment::BackgroundPacket;
use std::num::NonZeroU32;

/// An IP packet as the link model sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Slot of its bytes; None: a packet without content.
    slot: Option<Number>,
    /// Index of its part of the packet in the slot.
    part: u16,
    ect: bool,
    ce: bool,
    /// Up to 65,535, an IP packet's most.
    bytes: u32,
    hop: u32,
    /// Number of its sender; None for a sender that the scenario does not know.
    source: Option<Number>,
    flow: u64,
}

const _: () = assert!(std::mem::size_of::<Token>() == 32, "each link moves it once");

/// A number from 0 to 2^32 - 2, absent in no more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Number(NonZeroU32);

impl Number {
    fn new(number: u32) -> Number {
        Number(NonZeroU32::MIN.checked_add(number).expect("fewer than 2^32 - 1 of anything"))
    }

    fn get(self) -> u32 {
        self.0.get() - 1
    }
}

impl Token {
    /// Number of the source that [`Pool::take`] was given.
    pub fn source(&self) -> Option<u32> {
        self.source.map(Number::get)
    }

    /// Returns true if `next` was cut from the same packet just behind this one, so that both can be joined again.
    pub fn is_followed_by(&self, next: &Token) -> bool {
        self.slot == next.slot && self.part + 1 == next.part && self.ce == next.ce
    }
}

impl BackgroundPacket for Token {
    fn background(bytes: u32, hop: u32, source: u32) -> Token {
        let flow = u64::from(source);
        Token { slot: None, part: 0, ect: false, ce: false, bytes, hop, source: Some(Number::new(source)), flow }
    }
}

impl sim::Routed for Token {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn advance(&mut self) {
        self.hop += 1;
    }
    fn redirect(&mut self, position: u32) {
        self.hop = position;
    }
}

impl link::Packet for Token {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
    fn is_ect(&self) -> bool {
        self.ect
    }
    fn mark_ce(&mut self) {
        self.ce = true;
    }
}

/// Sizes of slots, bytes. What is larger than [`COPIED`] is not copied after it was read: the largest slot changes
/// places with the buffer that is read into.
const SIZES: [usize; 4] = [256, 2048, COPIED, MOST];

/// Up to here a packet is copied into a slot of its size, so that many small packets do not hold much memory.
const COPIED: usize = 16_384;

/// A packet as it was read, and who still needs it.
struct Slot {
    framed: Box<[u8]>,
    len: u32,
    cut: Cut,
    /// Parts that are still inside.
    inside: u16,
    class: u8,
}

/// The bytes of packets, in slots that are used again: memory follows the peak.
pub(crate) struct Pool {
    read: Box<[u8]>,
    slots: Vec<Slot>,
    free: [Vec<u32>; SIZES.len()],
}

impl Pool {
    pub fn new() -> Pool {
        Pool { read: vec![0; MOST].into_boxed_slice(), slots: Vec::new(), free: Default::default() }
    }

    /// Returns the buffer for the next packet, with its prefix.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.read
    }

    /// The IP packet in the buffer, of which `len` bytes with the prefix were read; None when that is no packet.
    pub fn packet(&self, len: usize) -> Option<&[u8]> {
        self.read[..len].get(PREFIX..)
    }

    /// Keeps what was read, `len` bytes with the prefix, which source `source` sends on the route from `hop` on;
    /// packets of nobody are told apart by what they hold. Gives a token for each packet that the line sees. Costs a
    /// copy of at most [`COPIED`] bytes.
    pub fn take(&mut self, len: usize, hop: u32, source: Option<u32>) -> impl Iterator<Item = Token> {
        let framed = &self.read[..len];
        let packet = &framed[PREFIX..];
        let flow = source.map_or_else(|| flow_of(packet), u64::from);
        let (ect, cut) = (ecn_of(packet) != 0, Cut::of(framed));
        let parts = cut.parts(framed);
        let (most, last) = (cut.bytes(framed, 0), cut.bytes(framed, parts - 1));
        let (slot, source) = (Some(Number::new(self.keep(len, cut, parts))), source.map(Number::new));
        (0..parts).map(move |part| {
            let bytes = if part + 1 == parts { last } else { most };
            Token { slot, part, ect, ce: false, bytes, hop, source, flow }
        })
    }

    fn keep(&mut self, len: usize, cut: Cut, parts: u16) -> u32 {
        let class = SIZES.iter().position(|&size| len <= size).expect("the buffer is as large as the largest slot");
        let number = self.free[class].pop().unwrap_or_else(|| {
            let framed = vec![0; SIZES[class]].into_boxed_slice();
            self.slots.push(Slot { framed, len: 0, cut, inside: 0, class: class as u8 });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[number as usize];
        if len <= COPIED {
            slot.framed[..len].copy_from_slice(&self.read[..len]);
        } else {
            std::mem::swap(&mut slot.framed, &mut self.read);
        }
        (slot.len, slot.cut, slot.inside) = (len as u32, cut, parts);
        number
    }

    /// Hands a packet to `device`, marked if a queue has marked it; `count` packets from `token` on that were cut from
    /// one are handed over as one. False: the kernel did not take it.
    pub fn write(&mut self, device: &Tun, token: &Token, count: u16) -> bool {
        let Some(slot) = token.slot else { return true };
        let slot = &mut self.slots[slot.get() as usize];
        let framed = &mut slot.framed[..slot.len as usize];
        if slot.cut.is_whole() {
            if token.ce {
                mark(&mut framed[PREFIX..]);
            }
            return device.write(framed, &[]);
        }
        let mut headers = [0; HEADERS];
        let end = slot.cut.write_headers(framed, token.part, count, token.ce, &mut headers);
        let (from, to) = slot.cut.payload(framed, token.part, count);
        device.write(&headers[..end], &framed[from..to])
    }

    /// `count` packets from `token` on are gone.
    pub fn give_back(&mut self, token: &Token, count: u16) {
        let Some(number) = token.slot.map(Number::get) else { return };
        let slot = &mut self.slots[number as usize];
        slot.inside -= count;
        if slot.inside == 0 {
            self.free[usize::from(slot.class)].push(number);
        }
    }
}

fn is_ipv4(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet[0] >> 4 == 4
}

/// ECN field of an IPv4 packet (RFC 3168); zero for anything else.
fn ecn_of(packet: &[u8]) -> u8 {
    if is_ipv4(packet) {
        packet[1] & 3
    } else {
        0
    }
}

/// Addresses, protocol and, for TCP and UDP that are not fragments, ports, hashed (FNV-1a, 64 bits).
fn flow_of(packet: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    if is_ipv4(packet) {
        add(&packet[9..10]);
        add(&packet[12..20]);
        let header = usize::from(packet[0] & 15) * 4;
        let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0;
        if matches!(packet[9], 6 | 17) && !fragment && packet.len() >= header + 4 {
            add(&packet[header..header + 4]);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::Packet;

    /// A UDP packet of `bytes` behind an empty prefix.
    fn udp(port: u16, ecn: u8, bytes: usize) -> Vec<u8> {
        let mut framed = vec![0; PREFIX];
        framed.extend([0x45, ecn, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        framed.extend(port.to_be_bytes());
        framed.extend([0, 9, 0, 8, 0, 0]);
        framed.resize(PREFIX + bytes, 0);
        framed
    }

    fn put(pool: &mut Pool, framed: &[u8]) -> Token {
        pool.buffer()[..framed.len()].copy_from_slice(framed);
        let tokens: Vec<_> = pool.take(framed.len(), 0, None).collect();
        assert_eq!(tokens.len(), 1);
        tokens[0]
    }

    #[test]
    fn a_slot_that_was_given_back_is_used_again_and_keeps_what_was_read_until_then() {
        let mut pool = Pool::new();
        for bytes in [28, 300, 1500, 9000, 16_384, 40_000, 65_535] {
            let first = put(&mut pool, &udp(1, 0, bytes));
            let second = put(&mut pool, &udp(2, 0, bytes));
            assert_eq!(first.bytes as usize, bytes);
            for (token, port) in [(first, 1), (second, 2)] {
                let slot = &pool.slots[token.slot.expect("it has bytes").get() as usize];
                assert_eq!(slot.framed[..slot.len as usize], udp(port, 0, bytes));
            }
            pool.give_back(&first, 1);
            assert_eq!(put(&mut pool, &udp(3, 0, bytes)).slot, first.slot);
        }
    }

    #[test]
    fn a_packet_that_was_cut_stays_until_its_last_part_is_gone() {
        let mut pool = Pool::new();
        let mut framed = vec![1, 1];
        for word in [40u16, 1000, 20, 16] {
            framed.extend(word.to_ne_bytes());
        }
        framed.extend([0x45, 2, 0x0b, 0xe0, 0, 1, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        framed.extend([0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        framed.resize(PREFIX + 40 + 3000, 7);
        pool.buffer()[..framed.len()].copy_from_slice(&framed);
        let tokens: Vec<_> = pool.take(framed.len(), 0, Some(4)).collect();
        assert_eq!(tokens.iter().map(Packet::bytes).collect::<Vec<_>>(), [1040; 3]);
        assert!(tokens.iter().all(|token| token.is_ect() && token.flow_hash() == 4));
        assert!(tokens[0].is_followed_by(&tokens[1]) && !tokens[0].is_followed_by(&tokens[2]));
        let mut marked = tokens[1];
        marked.mark_ce();
        assert!(!tokens[0].is_followed_by(&marked));
        pool.give_back(&tokens[0], 2);
        assert!(pool.free.iter().all(Vec::is_empty));
        pool.give_back(&tokens[2], 1);
        assert_eq!(pool.free.iter().flatten().count(), 1);
    }

    #[test]
    fn flows_are_told_apart_by_their_ports_and_fragments_are_not() {
        let mut pool = Pool::new();
        let mut flow = |framed: &[u8]| put(&mut pool, framed).flow_hash();
        assert_ne!(flow(&udp(1, 0, 28)), flow(&udp(2, 0, 28)));
        assert_eq!(flow(&udp(1, 0, 28)), flow(&udp(1, 2, 28)));
        let fragment = |port| {
            let mut framed = udp(port, 0, 28);
            framed[PREFIX + 6] = 0x20;
            framed
        };
        assert_eq!(flow(&fragment(1)), flow(&fragment(2)));
        assert_eq!(flow(&udp(1, 0, 1)), flow(&udp(2, 0, 0)), "what is no packet is of no flow");
    }
}
