//! From a simulated connection's numbers to headers on the wire.

use crate::ipv4::{Ecn, Ipv4Header, IPV4_HEADER_BYTES, PROTOCOL_TCP};
use crate::ipv6::{Ipv6Header, IPV6_HEADER_BYTES};
use crate::tcp::{tcp_flags, SackRange, TcpHeader, MAX_SACK_RANGES, MAX_TCP_HEADER_BYTES};
use std::ops::Deref;

/// Bytes of the longest IP and TCP headers together.
pub const MAX_HEADER_BYTES: usize = IPV6_HEADER_BYTES + MAX_TCP_HEADER_BYTES;

/// Port of the side that accepted; 5001 is iperf's, which no dissector claims to know better.
const SERVER_PORT: u16 = 5001;
/// First ephemeral port (RFC 6335, section 6), and bits of their count.
const EPHEMERAL_PORT: u16 = 49_152;
const EPHEMERAL_BITS: u32 = 14;
/// Largest shift of a window (RFC 7323, section 2.3).
const MAX_SHIFT: u8 = 14;

/// A segment in numbers that do not wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentFields {
    /// Number of the first byte, from the SYN at 0 on.
    pub seq: u64,
    /// Next byte expected from the other side, from its SYN at 0 on.
    pub ack: u64,
    /// Payload, bytes. What makes the packet longer than 65,535 bytes wraps its length field.
    pub payload_bytes: u32,
    /// Receive window, bytes.
    pub window_bytes: u32,
    /// See [`tcp_flags`].
    pub flags: u8,
    /// Congestion bits of the IP header.
    pub ecn: Ecn,
    /// SYN: maximum segment size, bytes.
    pub mss: Option<u16>,
    /// SYN: window scale offered.
    pub window_scale: Option<u8>,
    /// SYN: SACK offered.
    pub sack_permitted: bool,
    /// Timestamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// SACK ranges in use.
    pub sack_count: u8,
    /// SACK ranges: (first byte held, first not held), in the other side's numbers.
    pub sacks: [(u64, u64); MAX_SACK_RANGES],
}

/// Headers of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    bytes: [u8; MAX_HEADER_BYTES],
    len: usize,
}

impl Deref for Headers {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Two ends of a TCP connection: addresses, ports, first sequence numbers, and the window scales they agreed on.
#[derive(Clone, Debug)]
pub struct Conversation {
    client: ([u8; 4], u16),
    server: ([u8; 4], u16),
    is_ipv6: bool,
    /// Sequence number of the client's SYN.
    pub client_isn: u32,
    /// Sequence number of the server's SYN.
    pub server_isn: u32,
    /// Shifts that the SYNs of client and server offered.
    offered: [Option<u8>; 2],
}

impl Conversation {
    /// Connection `number`: from 10.1.0.1 (a higher address for each 16,384 connections), port 49152 + `number`, to
    /// 10.128.0.1, port 5001. Sequence numbers begin at 0, so that the first 4 GiB read as the simulator counts them.
    pub fn new(number: u32) -> Conversation {
        // 18 bits are left of 32: the last client is 10.5.0.0, far below the server.
        let host = ((10 << 24) | (1 << 16) | 1u32) + (number >> EPHEMERAL_BITS);
        let port = EPHEMERAL_PORT + (number & ((1 << EPHEMERAL_BITS) - 1)) as u16;
        Conversation {
            client: (host.to_be_bytes(), port),
            server: ([10, 128, 0, 1], SERVER_PORT),
            is_ipv6: false,
            client_isn: 0,
            server_isn: 0,
            offered: [None, None],
        }
    }

    /// The same to port `port` of the server, by which a reader knows the protocol above.
    #[must_use]
    pub fn to_port(self, port: u16) -> Conversation {
        Conversation { server: (self.server.0, port), ..self }
    }

    /// The same over IPv6: between fd00::a01:1 (and higher addresses) and fd00::a80:1 (RFC 4193), which end in the IPv4
    /// addresses.
    #[must_use]
    pub fn over_ipv6(self) -> Conversation {
        Conversation { is_ipv6: true, ..self }
    }

    /// Headers of a segment that the client (or the server) sent, with `payload`; an empty one stands for zeros.
    /// Segments must come in the order of sending at least as far as SYNs go, since windows are scaled as these agreed:
    /// both offered a shift, or there is none (RFC 7323, section 2.2).
    pub fn headers(&mut self, from_client: bool, segment: &SegmentFields, payload: &[u8]) -> Headers {
        let syn = segment.flags & tcp_flags::SYN != 0;
        let side = usize::from(!from_client);
        if syn {
            self.offered[side] = segment.window_scale;
        }
        // The window of a SYN is never scaled.
        let shift = match self.offered {
            [Some(_), Some(_)] if !syn => self.offered[side].unwrap_or(0).min(MAX_SHIFT),
            _ => 0,
        };
        let (here, there) = if from_client { (self.client, self.server) } else { (self.server, self.client) };
        let isns = [self.client_isn, self.server_isn];
        // Numbers wrap on the wire: only their low 32 bits are sent.
        let theirs = |number: u64| isns[1 - side].wrapping_add(number as u32);
        let mut sacks = [SackRange::default(); MAX_SACK_RANGES];
        for (range, &(start, end)) in sacks.iter_mut().zip(&segment.sacks[..usize::from(segment.sack_count)]) {
            *range = SackRange { start: theirs(start), end: theirs(end) };
        }
        let acks = segment.flags & tcp_flags::ACK != 0;
        let tcp = TcpHeader {
            source_port: here.1,
            destination_port: there.1,
            sequence: isns[side].wrapping_add(segment.seq as u32),
            acknowledgment: if acks { theirs(segment.ack) } else { 0 },
            flags: segment.flags,
            window: u16::try_from(segment.window_bytes >> shift).unwrap_or(u16::MAX),
            mss: segment.mss.filter(|_| syn),
            window_scale: segment.window_scale.filter(|_| syn),
            sack_permitted: segment.sack_permitted && syn,
            timestamps: segment.timestamps,
            sack_count: segment.sack_count,
            sacks,
        };
        // The length depends on the options and the checksum on the length: emitted twice, options are cheap.
        let (_, tcp_len) = tcp.to_bytes(0, &[]);
        let behind_ip = tcp_len + segment.payload_bytes as usize;
        let mut bytes = [0; MAX_HEADER_BYTES];
        let (ip_len, pseudo_sum) = if self.is_ipv6 {
            let ip = Ipv6Header {
                source: in_ipv6(here.0),
                destination: in_ipv6(there.0),
                ecn: segment.ecn,
                payload_bytes: behind_ip as u16,
                next_header: PROTOCOL_TCP,
            };
            bytes[..IPV6_HEADER_BYTES].copy_from_slice(&ip.to_bytes());
            (IPV6_HEADER_BYTES, ip.pseudo_sum())
        } else {
            let ip = Ipv4Header {
                source: here.0,
                destination: there.0,
                ecn: segment.ecn,
                total_bytes: (IPV4_HEADER_BYTES + behind_ip) as u16,
                protocol: PROTOCOL_TCP,
            };
            bytes[..IPV4_HEADER_BYTES].copy_from_slice(&ip.to_bytes());
            (IPV4_HEADER_BYTES, ip.pseudo_sum())
        };
        let len = ip_len + tcp_len;
        bytes[ip_len..len].copy_from_slice(&tcp.to_bytes(pseudo_sum, payload).0[..tcp_len]);
        Headers { bytes, len }
    }
}

/// The IPv6 address that ends in an IPv4 one.
fn in_ipv6(address: [u8; 4]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[0] = 0xfd;
    bytes[12..].copy_from_slice(&address);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    fn parse(headers: &Headers) -> (Ipv4Header, TcpHeader) {
        let ip = Ipv4Header::parse(headers).unwrap();
        let (tcp, len) = TcpHeader::parse(&headers[IPV4_HEADER_BYTES..]).unwrap();
        assert_eq!(IPV4_HEADER_BYTES + len, headers.len());
        (ip, tcp)
    }

    fn syn(window_scale: Option<u8>) -> SegmentFields {
        SegmentFields {
            flags: tcp_flags::SYN,
            window_bytes: 65_535,
            window_scale,
            mss: Some(1460),
            ..Default::default()
        }
    }

    fn data() -> SegmentFields {
        let flags = tcp_flags::ACK;
        SegmentFields { seq: 1, ack: 1, payload_bytes: 1448, window_bytes: 1 << 20, flags, ..Default::default() }
    }

    #[test]
    fn windows_are_scaled_once_both_have_agreed() {
        let mut both = Conversation::new(0);
        assert_eq!(parse(&both.headers(true, &syn(Some(10)), &[])).1.window, 65_535);
        let answer = SegmentFields { flags: tcp_flags::SYN | tcp_flags::ACK, ack: 1, ..syn(Some(3)) };
        assert_eq!(parse(&both.headers(false, &answer, &[])).1.window, 65_535);
        assert_eq!(parse(&both.headers(true, &data(), &[])).1.window, 1024);
        assert_eq!(
            parse(&both.headers(false, &data(), &[])).1.window,
            u16::MAX,
            "2^20 >> 3 is more than the field holds"
        );
        let mut one = Conversation::new(0);
        one.headers(true, &syn(Some(10)), &[]);
        one.headers(false, &SegmentFields { window_scale: None, ..answer }, &[]);
        assert_eq!(parse(&one.headers(true, &data(), &[])).1.window, u16::MAX);
    }

    #[test]
    fn numbers_wrap_at_32_bits() {
        let mut conversation = Conversation::new(0);
        (conversation.client_isn, conversation.server_isn) = (0xFFFF_FF00, 7);
        let segment = SegmentFields {
            seq: (5 << 32) + 0x200,
            ack: (1 << 32) + 3,
            sack_count: 1,
            sacks: [((1 << 32) + 9, (2 << 32) + 1), (0, 0), (0, 0), (0, 0)],
            ..data()
        };
        let (_, tcp) = parse(&conversation.headers(true, &segment, &[]));
        assert_eq!((tcp.sequence, tcp.acknowledgment), (0x100, 10));
        assert_eq!(tcp.sacks[0], SackRange { start: 16, end: 8 });
    }

    #[test]
    fn lengths_and_congestion_bits() {
        let mut conversation = Conversation::new(3);
        let segment = SegmentFields { timestamps: Some((1, 2)), ecn: Ecn::Ce, ..data() };
        let (ip, tcp) = parse(&conversation.headers(true, &segment, &[]));
        assert_eq!((ip.total_bytes, ip.ecn), (1500, Ecn::Ce));
        assert_eq!((tcp.source_port, tcp.destination_port), (49_155, 5001));
    }

    #[test]
    fn the_checksum_counts_the_payload() {
        let mut conversation = Conversation::new(0).to_port(3420);
        let payload = [1, 2, 3, 0xff, 0xfe];
        let segment = SegmentFields { payload_bytes: payload.len() as u32, ..data() };
        let headers = conversation.headers(true, &segment, &payload);
        let (ip, tcp) = parse(&headers);
        assert_eq!(tcp.destination_port, 3420);
        let sum = ip.pseudo_sum() + checksum::sum(&headers[IPV4_HEADER_BYTES..]) + checksum::sum(&payload);
        assert_eq!(checksum::fold(sum), 0);
        assert_ne!(headers, conversation.headers(true, &segment, &[]), "zeros have another checksum");
    }

    #[test]
    fn ipv6_has_its_own_length_addresses_and_checksum() {
        let mut conversation = Conversation::new(3).over_ipv6();
        let payload = [1, 2, 3, 0xff, 0xfe];
        let timestamps = Some((1, 2));
        let segment = SegmentFields { payload_bytes: payload.len() as u32, ecn: Ecn::Ect0, timestamps, ..data() };
        let headers = conversation.headers(true, &segment, &payload);
        assert_eq!(headers.len(), 40 + 32);
        let ip = Ipv6Header::parse(&headers).unwrap();
        assert_eq!((ip.payload_bytes, ip.ecn, ip.next_header), (32 + 5, Ecn::Ect0, PROTOCOL_TCP));
        assert_eq!((ip.source, ip.destination), (in_ipv6([10, 1, 0, 1]), in_ipv6([10, 128, 0, 1])));
        let sum = ip.pseudo_sum() + checksum::sum(&headers[IPV6_HEADER_BYTES..]) + checksum::sum(&payload);
        assert_eq!(checksum::fold(sum), 0);
    }

    #[test]
    fn connections_do_not_share_addresses() {
        let ends = |number| Conversation::new(number).client;
        assert_ne!(ends(0), ends(16_384));
        assert_eq!(ends(0).1, ends(16_384).1);
        assert!(ends(u32::MAX).0 < [10, 128, 0, 1]);
    }
}
