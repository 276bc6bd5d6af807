//! Packets inside the emulator: their bytes stay where they were read, a token crosses the link model.

use crate::segment::{complete_checksum, Cut, HeaderChange, HEADERS, MOST, PREFIX};
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
    /// Time to live; of a packet without content: without meaning.
    ttl: u8,
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
        self.slot == next.slot && self.part + 1 == next.part && self.change() == next.change()
    }

    /// Counts the time to live down. False: it was used up (RFC 1812, 5.3.1). A packet without content has none.
    #[inline]
    pub fn count_down(&mut self) -> bool {
        if self.slot.is_some() {
            if self.ttl <= 1 {
                return false;
            }
            self.ttl -= 1;
        }
        true
    }

    /// Returns true if it has content, so that a router can answer its sender.
    #[inline]
    pub fn has_content(&self) -> bool {
        self.slot.is_some()
    }

    fn change(&self) -> HeaderChange {
        HeaderChange { ce: self.ce, ttl: self.ttl }
    }
}

impl BackgroundPacket for Token {
    fn background(bytes: u32, hop: u32, source: u32, number: u32) -> Token {
        // Without content it is of background traffic: both fit into the hash of a flow's.
        let flow = u64::from(number) << 32 | u64::from(source);
        Token {
            slot: None,
            part: 0,
            ect: false,
            ce: false,
            ttl: 0,
            bytes,
            hop,
            source: Some(Number::new(source)),
            flow,
        }
    }

    fn number(&self) -> u32 {
        (self.flow >> 32) as u32
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
        if self.slot.is_none() {
            return u64::from(self.flow as u32);
        }
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
        let (ect, ttl, cut) = (ecn_of(packet) != 0, ttl_of(packet), Cut::of(framed));
        let parts = cut.parts(framed);
        let (most, last) = (cut.bytes(framed, 0), cut.bytes(framed, parts - 1));
        let (slot, source) = (Some(Number::new(self.keep(len, cut, parts))), source.map(Number::new));
        (0..parts).map(move |part| {
            let bytes = if part + 1 == parts { last } else { most };
            Token { slot, part, ect, ce: false, ttl, bytes, hop, source, flow }
        })
    }

    /// Keeps `packet`, an IP packet of a router, on the route from `hop` on.
    pub fn insert(&mut self, packet: &[u8], hop: u32) -> Token {
        let len = PREFIX + packet.len();
        let mut framed = vec![0; len];
        framed[PREFIX..].copy_from_slice(packet);
        let number = self.slot(len, Cut::of(&framed), 1);
        self.slots[number as usize].framed[..len].copy_from_slice(&framed);
        let (ect, ttl, flow) = (ecn_of(packet) != 0, ttl_of(packet), flow_of(packet));
        let slot = Some(Number::new(number));
        Token { slot, part: 0, ect, ce: false, ttl, bytes: packet.len() as u32, hop, source: None, flow }
    }

    /// Keeps `fragment` of `token`'s packet: the network treats it as that packet. `count` fragments replace it.
    pub fn insert_fragment(&mut self, fragment: &[u8], token: &Token) -> Token {
        let made = self.insert(fragment, token.hop);
        Token { source: token.source, flow: token.flow, ect: token.ect, ce: token.ce, ..made }
    }

    /// Returns the packet of `token` as the line sees it, its checksums complete; empty without content.
    pub fn packet_of(&self, token: &Token) -> Vec<u8> {
        let Some(slot) = token.slot else { return vec![] };
        let slot = &self.slots[slot.get() as usize];
        let framed = &slot.framed[..slot.len as usize];
        let mut copy = if slot.cut.is_whole() {
            let mut copy = framed.to_vec();
            token.change().apply(&mut copy[PREFIX..]);
            copy
        } else {
            let mut headers = [0; HEADERS];
            let end = slot.cut.write_headers(framed, token.part, 1, token.change(), &mut headers);
            let (from, to) = slot.cut.payload(framed, token.part, 1);
            [&headers[..end], &framed[from..to]].concat()
        };
        complete_checksum(&mut copy);
        copy.split_off(PREFIX)
    }

    fn keep(&mut self, len: usize, cut: Cut, parts: u16) -> u32 {
        let number = self.slot(len, cut, parts);
        let slot = &mut self.slots[number as usize];
        if len <= COPIED {
            slot.framed[..len].copy_from_slice(&self.read[..len]);
        } else {
            std::mem::swap(&mut slot.framed, &mut self.read);
        }
        number
    }

    /// Returns a slot for `len` bytes, whose content the caller writes.
    fn slot(&mut self, len: usize, cut: Cut, parts: u16) -> u32 {
        let class = SIZES.iter().position(|&size| len <= size).expect("the buffer is as large as the largest slot");
        let number = self.free[class].pop().unwrap_or_else(|| {
            let framed = vec![0; SIZES[class]].into_boxed_slice();
            self.slots.push(Slot { framed, len: 0, cut, inside: 0, class: class as u8 });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[number as usize];
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
            token.change().apply(&mut framed[PREFIX..]);
            return device.write(framed, &[]);
        }
        let mut headers = [0; HEADERS];
        let end = slot.cut.write_headers(framed, token.part, count, token.change(), &mut headers);
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

fn is_ipv6(packet: &[u8]) -> bool {
    packet.len() >= 40 && packet[0] >> 4 == 6
}

/// ECN field of an IP packet (RFC 3168); zero for anything else.
fn ecn_of(packet: &[u8]) -> u8 {
    match packet {
        packet if is_ipv4(packet) => packet[1] & 3,
        packet if is_ipv6(packet) => packet[1] >> 4 & 3,
        _ => 0,
    }
}

/// Time to live of an IPv4 packet, hop limit of an IPv6 packet; zero for anything else, which no table admits.
fn ttl_of(packet: &[u8]) -> u8 {
    match packet {
        packet if is_ipv4(packet) => packet[8],
        packet if is_ipv6(packet) => packet[7],
        _ => 0,
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
    } else if is_ipv6(packet) {
        add(&packet[6..7]);
        add(&packet[8..40]);
        // Extension headers, fragments among them, have other numbers.
        if matches!(packet[6], 6 | 17) && packet.len() >= 44 {
            add(&packet[40..44]);
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
    fn an_ipv6_packet_is_marked_and_counted_down_where_its_header_has_the_fields() {
        let mut framed = vec![0; PREFIX];
        framed.extend([0x60, 0x2f, 0xff, 0xff, 0, 8, 17, 64]);
        framed.extend([0xfd; 32]);
        framed.extend([0, 9, 0, 7, 0, 8, 1, 2]);
        let mut pool = Pool::new();
        let mut token = put(&mut pool, &framed);
        assert!(token.is_ect() && token.bytes() == 48);
        assert!(token.count_down());
        token.mark_ce();
        let sent = pool.packet_of(&token);
        let mut wanted = framed.split_off(PREFIX);
        (wanted[1], wanted[7]) = (0x3f, 63);
        assert_eq!(sent, wanted, "nothing else, and no checksum");
        wanted[41] = 8;
        assert_ne!(flow_of(&sent), flow_of(&wanted), "ports tell flows apart");
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
    fn a_packet_is_seen_by_routers_as_the_line_has_it() {
        let mut pool = Pool::new();
        let mut framed = udp(1, 2, 100);
        // The transport has left UDP's checksum, of which there is only the pseudo-header's, to the device.
        framed[0] = 1;
        framed[6..10].copy_from_slice(&[20u16.to_ne_bytes(), 6u16.to_ne_bytes()].concat());
        framed[PREFIX + 26..PREFIX + 28].copy_from_slice(&[0x12, 0x34]);
        let mut token = put(&mut pool, &framed);
        assert!((0..63).all(|_| token.count_down()) && !token.count_down() && token.ttl == 1);
        let packet = pool.packet_of(&token);
        assert_eq!((packet.len(), packet[8]), (100, 1));
        let udp = &packet[20..];
        let sum = u32::from(crate::segment::sum_of(udp)) + 0x1234;
        assert_eq!(crate::segment::folded(sum), 0xffff, "the checksum is complete");
        // Again as a router's own packet, and as a fragment of the first.
        let own = pool.insert(&packet, 7);
        assert_eq!((own.source(), own.hop, own.bytes, own.ttl), (None, 7, 100, 1));
        assert_eq!(pool.packet_of(&own), packet);
        let fragment = pool.insert_fragment(&packet, &Token { source: Some(Number::new(4)), ..token });
        assert_eq!((fragment.source(), fragment.flow, fragment.hop), (Some(4), token.flow, token.hop));
        for token in [token, own, fragment] {
            pool.give_back(&token, 1);
        }
        assert_eq!(pool.free.iter().flatten().count(), 3);
        let mut background = Token::background(100, 0, 1, 7);
        assert!((0..300).all(|_| background.count_down()) && pool.packet_of(&background).is_empty());
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
