//! IPv4 headers (RFC 791) without options.

use crate::checksum;
use crate::error::{require, WireError};

/// Bytes of a header without options.
pub const IPV4_HEADER_BYTES: usize = 20;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Hops a packet may take; Linux's default.
pub(crate) const DEFAULT_TTL: u8 = 64;
/// "Do not fragment", as TCP with path MTU discovery sets it.
const DONT_FRAGMENT: u16 = 0x4000;

/// Explicit congestion notification, two bits (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The sender does not know ECN.
    #[default]
    NotEct,
    /// ECN-capable transport, ECT(1).
    Ect1,
    /// ECN-capable transport, ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Of the lower two of `bits`.
    pub(crate) fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    pub(crate) fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// A header without options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Sender.
    pub source: [u8; 4],
    /// Receiver.
    pub destination: [u8; 4],
    /// Congestion bits.
    pub ecn: Ecn,
    /// Bytes of the packet, this header and all that follows. Range: u16.
    pub total_bytes: u16,
    /// The protocol behind it.
    pub protocol: u8,
}

impl Ipv4Header {
    /// Reads a header.
    ///
    /// # Errors
    /// When bytes are missing, it is not IPv4, has options or is a fragment, or its checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Ipv4Header, WireError> {
        require(bytes, IPV4_HEADER_BYTES, "IPv4 header")?;
        let bytes = &bytes[..IPV4_HEADER_BYTES];
        if bytes[0] != 0x45 {
            return Err(WireError::Malformed { field: "IPv4 version and header length", value: u64::from(bytes[0]) });
        }
        let fragment = u16::from_be_bytes([bytes[6], bytes[7]]) & !DONT_FRAGMENT;
        if fragment != 0 {
            return Err(WireError::Malformed { field: "IPv4 fragment", value: u64::from(fragment) });
        }
        if checksum::fold(checksum::sum(bytes)) != 0 {
            let value = u64::from(u16::from_be_bytes([bytes[10], bytes[11]]));
            return Err(WireError::Malformed { field: "IPv4 checksum", value });
        }
        Ok(Ipv4Header {
            source: [bytes[12], bytes[13], bytes[14], bytes[15]],
            destination: [bytes[16], bytes[17], bytes[18], bytes[19]],
            ecn: Ecn::from_bits(bytes[1]),
            total_bytes: u16::from_be_bytes([bytes[2], bytes[3]]),
            protocol: bytes[9],
        })
    }

    /// The header's bytes. Identification is 0, which is right for packets that may not be fragmented (RFC 6864).
    pub fn to_bytes(&self) -> [u8; IPV4_HEADER_BYTES] {
        let mut bytes = [0; IPV4_HEADER_BYTES];
        bytes[0] = 0x45;
        bytes[1] = self.ecn.bits();
        bytes[2..4].copy_from_slice(&self.total_bytes.to_be_bytes());
        bytes[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        bytes[8] = DEFAULT_TTL;
        bytes[9] = self.protocol;
        bytes[12..16].copy_from_slice(&self.source);
        bytes[16..20].copy_from_slice(&self.destination);
        let checksum = checksum::fold(checksum::sum(&bytes));
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Sum of the pseudo header that TCP's checksum includes (RFC 9293, section 3.1).
    pub fn pseudo_sum(&self) -> u32 {
        let length = u32::from(self.total_bytes) - IPV4_HEADER_BYTES as u32;
        checksum::sum(&self.source) + checksum::sum(&self.destination) + u32::from(self.protocol) + length
    }
}
