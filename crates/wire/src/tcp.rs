//! TCP headers (RFC 9293) with the options that Linux sends: MSS, window scale and timestamps (RFC 7323), SACK (RFC
//! 2018).

use crate::checksum;
use crate::error::{require, WireError};

/// Bytes of the longest header.
pub const MAX_TCP_HEADER_BYTES: usize = 60;
/// Ranges that fit beside nothing else (RFC 2018, section 3).
pub const MAX_SACK_RANGES: usize = 4;
const BASE_BYTES: usize = 20;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// Bits of the header's flags.
pub mod tcp_flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment field counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// ECN-Echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// Sequence numbers `start..end` that the receiver holds, as on the wire: they wrap at 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackRange {
    /// First byte held.
    pub start: u32,
    /// First byte not held.
    pub end: u32,
}

/// A header with its options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number; wraps at 2^32.
    pub sequence: u32,
    /// Next sequence number expected; wraps at 2^32.
    pub acknowledgment: u32,
    /// See [`tcp_flags`].
    pub flags: u8,
    /// Receive window, in units of 2^scale bytes (of bytes in a SYN).
    pub window: u16,
    /// Maximum segment size, bytes.
    pub mss: Option<u16>,
    /// Shift of the windows to come; at most 14.
    pub window_scale: Option<u8>,
    /// SACK may be sent.
    pub sack_permitted: bool,
    /// Timestamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// SACK ranges in use; at most 4, 3 beside timestamps.
    pub sack_count: u8,
    /// SACK ranges.
    pub sacks: [SackRange; MAX_SACK_RANGES],
}

/// Bytes that grow up to the longest header.
struct Emitter {
    bytes: [u8; MAX_TCP_HEADER_BYTES],
    len: usize,
}

impl Emitter {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl TcpHeader {
    /// SACK ranges that are sent: those in use, as far as they fit.
    fn ranges(&self) -> &[SackRange] {
        let fit = if self.timestamps.is_some() { MAX_SACK_RANGES - 1 } else { MAX_SACK_RANGES };
        &self.sacks[..usize::from(self.sack_count).min(fit)]
    }

    /// The header's bytes and how many of them count, its checksum right for `payload` behind an IP header whose pseudo
    /// header has the sum `pseudo_sum`; an empty `payload` stands for zeros.
    pub fn to_bytes(&self, pseudo_sum: u32, payload: &[u8]) -> ([u8; MAX_TCP_HEADER_BYTES], usize) {
        let mut out = Emitter { bytes: [0; MAX_TCP_HEADER_BYTES], len: 0 };
        out.put(&self.source_port.to_be_bytes());
        out.put(&self.destination_port.to_be_bytes());
        out.put(&self.sequence.to_be_bytes());
        out.put(&self.acknowledgment.to_be_bytes());
        out.put(&[0, self.flags]);
        out.put(&self.window.to_be_bytes());
        out.put(&[0; 4]);
        self.put_options(&mut out);
        out.bytes[12] = ((out.len / 4) as u8) << 4;
        // The number of the payload's bytes is in the pseudo header, and zeros add nothing more.
        let sum = pseudo_sum + checksum::sum(&out.bytes[..out.len]) + checksum::sum(payload);
        let checksum = checksum::fold(sum);
        out.bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
        (out.bytes, out.len)
    }

    /// Options in the order and with the padding of Linux; a multiple of 4 bytes.
    fn put_options(&self, out: &mut Emitter) {
        if let Some(mss) = self.mss {
            out.put(&[MSS, 4]);
            out.put(&mss.to_be_bytes());
        }
        // Two bytes of padding before timestamps, or the SACK-permitted option in their place.
        if self.sack_permitted {
            if self.timestamps.is_none() {
                out.put(&[NOP, NOP]);
            }
            out.put(&[SACK_PERMITTED, 2]);
        } else if self.timestamps.is_some() {
            out.put(&[NOP, NOP]);
        }
        if let Some((value, echo)) = self.timestamps {
            out.put(&[TIMESTAMPS, 10]);
            out.put(&value.to_be_bytes());
            out.put(&echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            out.put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        let ranges = self.ranges();
        if !ranges.is_empty() {
            out.put(&[NOP, NOP, SACK, 2 + 8 * ranges.len() as u8]);
            for range in ranges {
                out.put(&range.start.to_be_bytes());
                out.put(&range.end.to_be_bytes());
            }
        }
    }

    /// Reads a header; returns it and its length.
    ///
    /// # Errors
    /// When bytes are missing, or an option has a length that it may not have. Unknown options are passed over.
    pub fn parse(bytes: &[u8]) -> Result<(TcpHeader, usize), WireError> {
        require(bytes, BASE_BYTES, "TCP header")?;
        let length = usize::from(bytes[12] >> 4) * 4;
        if length < BASE_BYTES {
            return Err(WireError::Malformed { field: "TCP data offset", value: length as u64 });
        }
        require(bytes, length, "TCP header with options")?;
        let mut header = TcpHeader {
            source_port: u16_at(bytes, 0),
            destination_port: u16_at(bytes, 2),
            sequence: u32_at(bytes, 4),
            acknowledgment: u32_at(bytes, 8),
            flags: bytes[13],
            window: u16_at(bytes, 14),
            ..TcpHeader::default()
        };
        header.parse_options(&bytes[BASE_BYTES..length])?;
        Ok((header, length))
    }

    fn parse_options(&mut self, mut rest: &[u8]) -> Result<(), WireError> {
        while let Some(&kind) = rest.first() {
            match kind {
                END => break,
                NOP => {
                    rest = &rest[1..];
                    continue;
                }
                _ => require(rest, 2, "TCP option")?,
            }
            let length = usize::from(rest[1]);
            let malformed = WireError::Malformed { field: "TCP option length", value: length as u64 };
            if length < 2 {
                return Err(malformed);
            }
            require(rest, length, "TCP option")?;
            let (option, after) = rest.split_at(length);
            match (kind, length) {
                (MSS, 4) => self.mss = Some(u16_at(option, 2)),
                (WINDOW_SCALE, 3) => self.window_scale = Some(option[2]),
                (SACK_PERMITTED, 2) => self.sack_permitted = true,
                (TIMESTAMPS, 10) => self.timestamps = Some((u32_at(option, 2), u32_at(option, 6))),
                (SACK, 10 | 18 | 26 | 34) => {
                    self.sack_count = ((length - 2) / 8) as u8;
                    for (range, bytes) in self.sacks.iter_mut().zip(option[2..].chunks_exact(8)) {
                        *range = SackRange { start: u32_at(bytes, 0), end: u32_at(bytes, 4) };
                    }
                }
                (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => return Err(malformed),
                _ => {}
            }
            rest = after;
        }
        Ok(())
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Ipv4Header, PROTOCOL_TCP};
    use proptest::prelude::*;

    fn ip(total_bytes: u16) -> Ipv4Header {
        Ipv4Header {
            source: [10, 1, 0, 1],
            destination: [10, 2, 0, 1],
            ecn: Ecn::Ect0,
            total_bytes,
            protocol: PROTOCOL_TCP,
        }
    }

    #[test]
    fn a_syn_of_linux() {
        // Options of a SYN from Linux: mss 1460, sackOK, TS val 1 ecr 0, nop, wscale 7.
        let header = TcpHeader {
            flags: tcp_flags::SYN,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            ..TcpHeader::default()
        };
        let (bytes, len) = header.to_bytes(ip(60).pseudo_sum(), &[]);
        let options = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(bytes[BASE_BYTES..len], options);
    }

    #[test]
    fn broken_options_are_errors() {
        let (mut bytes, len) = TcpHeader { mss: Some(1460), ..TcpHeader::default() }.to_bytes(ip(44).pseudo_sum(), &[]);
        assert!(TcpHeader::parse(&bytes[..len - 1]).is_err());
        for bad in [0, 1, 3, 5, 40] {
            bytes[21] = bad;
            assert!(TcpHeader::parse(&bytes[..len]).is_err(), "MSS of length {bad}");
        }
        bytes[12] = 0x40;
        assert!(TcpHeader::parse(&bytes[..len]).is_err(), "a header of 16 bytes");
    }

    proptest! {
        #[test]
        fn what_is_emitted_parses_back(
            ports: (u16, u16), sequence: u32, acknowledgment: u32, flags: u8, window: u16, syn: bool,
            mss in prop::option::of(any::<u16>()), window_scale in prop::option::of(0u8..=14), sack_permitted: bool,
            timestamps in prop::option::of(any::<(u32, u32)>()), count in 0u8..=4, numbers: [u32; 8],
        ) {
            let most = if timestamps.is_some() { 3 } else { 4 };
            let mut header = TcpHeader {
                source_port: ports.0, destination_port: ports.1, sequence, acknowledgment, flags, window, timestamps,
                ..TcpHeader::default()
            };
            if syn {
                (header.mss, header.window_scale, header.sack_permitted) = (mss, window_scale, sack_permitted);
            } else {
                header.sack_count = count.min(most);
                for i in 0..usize::from(header.sack_count) {
                    header.sacks[i] = SackRange { start: numbers[2 * i], end: numbers[2 * i + 1] };
                }
            }
            let ip = ip(1500);
            let (bytes, len) = header.to_bytes(ip.pseudo_sum(), &[]);
            prop_assert_eq!(TcpHeader::parse(&bytes[..len]), Ok((header, len)));
            prop_assert_eq!(checksum::fold(ip.pseudo_sum() + checksum::sum(&bytes[..len])), 0);
            prop_assert_eq!(Ipv4Header::parse(&ip.to_bytes()), Ok(ip));
        }
    }
}
