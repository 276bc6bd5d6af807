//! IPv6 headers (RFC 8200) without extension headers.

use crate::checksum;
use crate::error::{require, WireError};
use crate::ipv4::{Ecn, DEFAULT_TTL};

/// Bytes of a header.
pub const IPV6_HEADER_BYTES: usize = 40;

/// A header before which and behind which there are no extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Sender.
    pub source: [u8; 16],
    /// Receiver.
    pub destination: [u8; 16],
    /// Congestion bits.
    pub ecn: Ecn,
    /// Bytes behind this header. Range: u16.
    pub payload_bytes: u16,
    /// The protocol behind it.
    pub next_header: u8,
}

impl Ipv6Header {
    /// Reads a header.
    ///
    /// # Errors
    /// When bytes are missing, or it is not IPv6.
    pub fn parse(bytes: &[u8]) -> Result<Ipv6Header, WireError> {
        require(bytes, IPV6_HEADER_BYTES, "IPv6 header")?;
        if bytes[0] >> 4 != 6 {
            return Err(WireError::Malformed { field: "IPv6 version", value: u64::from(bytes[0] >> 4) });
        }
        let address = |at: usize| std::array::from_fn(|byte| bytes[at + byte]);
        Ok(Ipv6Header {
            source: address(8),
            destination: address(24),
            ecn: Ecn::from_bits(bytes[1] >> 4),
            payload_bytes: u16::from_be_bytes([bytes[4], bytes[5]]),
            next_header: bytes[6],
        })
    }

    /// The header's bytes. The flow label is 0: not set (RFC 6437, section 2).
    pub fn to_bytes(&self) -> [u8; IPV6_HEADER_BYTES] {
        let mut bytes = [0; IPV6_HEADER_BYTES];
        bytes[0] = 6 << 4;
        bytes[1] = self.ecn.bits() << 4;
        bytes[4..6].copy_from_slice(&self.payload_bytes.to_be_bytes());
        bytes[6] = self.next_header;
        bytes[7] = DEFAULT_TTL;
        bytes[8..24].copy_from_slice(&self.source);
        bytes[24..40].copy_from_slice(&self.destination);
        bytes
    }

    /// Sum of the pseudo header that the checksum of TCP includes (RFC 8200, section 8.1).
    pub fn pseudo_sum(&self) -> u32 {
        let addresses = checksum::sum(&self.source) + checksum::sum(&self.destination);
        addresses + u32::from(self.next_header) + u32::from(self.payload_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROTOCOL_TCP;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_emitted_parses_back(source: [u8; 16], destination: [u8; 16], bits in 0u8..4, payload_bytes: u16) {
            let ecn = Ecn::from_bits(bits);
            let header = Ipv6Header { source, destination, ecn, payload_bytes, next_header: PROTOCOL_TCP };
            prop_assert_eq!(Ipv6Header::parse(&header.to_bytes()), Ok(header));
        }
    }

    #[test]
    fn another_version_and_a_short_header_are_errors() {
        assert!(Ipv6Header::parse(&[0x45; IPV6_HEADER_BYTES]).is_err());
        assert!(Ipv6Header::parse(&[0x60; IPV6_HEADER_BYTES - 1]).is_err());
    }
}
