//! Packets inside the emulator: their bytes stay in a pool, a token crosses the link model.

/// What the link model moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// [`NO_SLOT`]: a packet without content.
    slot: u32,
    /// As read: up to 65,535, an IP packet's most.
    bytes: u32,
    hop: u32,
    source: u32,
    flow: u64,
    ect: bool,
    ce: bool,
}

const NO_SLOT: u32 = u32::MAX;

/// Source number of packets of no flow and no background source.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Token {
    /// A packet without content of source `source`, on the route that starts at `hop`.
    pub fn background(bytes: u32, hop: u32, source: u32) -> Token {
        Token { slot: NO_SLOT, bytes, hop, source, flow: u64::from(source), ect: false, ce: false }
    }

    /// Number of the source that [`Pool::take`] was given.
    pub fn source(&self) -> u32 {
        self.source
    }
}

impl sim::Routed for Token {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn advance(&mut self) {
        self.hop += 1;
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

/// Slots of one packet each, used again: memory follows the most packets that were ever inside.
pub(crate) struct Pool {
    slots: Vec<Box<[u8]>>,
    free: Vec<u32>,
    slot_bytes: usize,
}

impl Pool {
    pub fn new(slot_bytes: usize) -> Pool {
        Pool { slots: Vec::new(), free: Vec::new(), slot_bytes }
    }

    /// Where to write the next packet: a slot that stays free until [`Pool::take`].
    pub fn next(&mut self) -> &mut [u8] {
        let slot = match self.free.last() {
            Some(&slot) => slot,
            None => {
                self.slots.push(vec![0; self.slot_bytes].into_boxed_slice());
                let slot = self.slots.len() as u32 - 1;
                self.free.push(slot);
                slot
            }
        };
        &mut self.slots[slot as usize]
    }

    /// The slot that [`Pool::next`] gave holds a packet of `bytes`, which source `source` sends on the route from `hop` on;
    /// packets of [`NOBODY`] are told apart by what they hold.
    pub fn take(&mut self, bytes: usize, hop: u32, source: u32) -> Token {
        let slot = self.free.pop().expect("next() has left one");
        let packet = &self.slots[slot as usize][..bytes];
        let flow = if source == NOBODY { flow_of(packet) } else { u64::from(source) };
        Token { slot, bytes: bytes as u32, hop, source, flow, ect: ecn_of(packet) != 0, ce: false }
    }

    /// The bytes to send, marked if the queue has marked the packet.
    pub fn bytes(&mut self, token: &Token) -> &[u8] {
        let packet = &mut self.slots[token.slot as usize][..token.bytes as usize];
        if token.ce {
            mark(packet);
        }
        packet
    }

    /// The packet is gone.
    pub fn give_back(&mut self, token: Token) {
        if token.slot != NO_SLOT {
            self.free.push(token.slot);
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

/// Sets "congestion experienced" and mends the header's checksum by the difference (RFC 1624, equation 3).
fn mark(packet: &mut [u8]) {
    let old = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= 3;
    let new = u16::from_be_bytes([packet[0], packet[1]]);
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    packet[10..12].copy_from_slice(&(!(total as u16)).to_be_bytes());
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

    /// A UDP packet's IPv4 header with its right checksum.
    fn udp(port: u16, ecn: u8) -> Vec<u8> {
        let mut packet = vec![0x45, ecn, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
        packet.extend(port.to_be_bytes());
        packet.extend([0, 9, 0, 8, 0, 0]);
        let sum = !folded(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn folded(header: &[u8]) -> u16 {
        let mut total: u32 = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    fn put(pool: &mut Pool, packet: &[u8]) -> Token {
        pool.next()[..packet.len()].copy_from_slice(packet);
        pool.take(packet.len(), 0, NOBODY)
    }

    #[test]
    fn a_marked_packet_keeps_a_right_checksum() {
        let mut pool = Pool::new(1500);
        for port in 0..2000 {
            for ecn in [1, 2, 3] {
                let mut token = put(&mut pool, &udp(port, ecn));
                assert!(token.is_ect());
                token.mark_ce();
                let sent = pool.bytes(&token);
                assert_eq!((sent[1] & 3, folded(&sent[..20])), (3, 0xffff));
                pool.give_back(token);
            }
        }
        assert_eq!(pool.slots.len(), 1, "a slot that was given back is used again");
    }

    #[test]
    fn flows_are_told_apart_by_their_ports_and_fragments_are_not() {
        let mut pool = Pool::new(1500);
        let mut flow = |packet: &[u8]| put(&mut pool, packet).flow_hash();
        assert_ne!(flow(&udp(1, 0)), flow(&udp(2, 0)));
        assert_eq!(flow(&udp(1, 0)), flow(&udp(1, 2)));
        let fragment = |port| {
            let mut packet = udp(port, 0);
            packet[6] = 0x20;
            packet
        };
        assert_eq!(flow(&fragment(1)), flow(&fragment(2)));
        assert_eq!(flow(&[0x45]), flow(&[]), "what is no packet is of no flow");
    }
}
