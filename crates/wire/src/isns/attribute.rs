//! Attributes: tag, length, value (RFC 4171, 5.3).

use super::tag::Tag;
use crate::error::{require, WireError};
use crate::fc::{FcId, Wwn};
use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// Bytes of tag and length.
const ATTRIBUTE_HEADER_BYTES: usize = 8;
/// Most bytes of a text, its end included (6.1).
const TEXT_BYTES_MAX: usize = 256;

/// An address, as IPv6 or as IPv4 mapped to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IpAddress(pub [u8; 16]);

impl IpAddress {
    /// The mapped address of IPv4.
    pub fn of_v4([a, b, c, d]: [u8; 4]) -> IpAddress {
        IpAddress([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
    }

    /// The IPv4 address that is mapped.
    pub fn v4(self) -> Option<[u8; 4]> {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => Some([a, b, c, d]),
            _ => None,
        }
    }
}

impl fmt::Display for IpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some([a, b, c, d]) = self.v4() {
            return write!(f, "{a}.{b}.{c}.{d}");
        }
        for (place, group) in self.0.chunks_exact(2).enumerate() {
            let colon = if place == 0 { "" } else { ":" };
            write!(f, "{colon}{:x}", u16::from_be_bytes([group[0], group[1]]))?;
        }
        Ok(())
    }
}

/// An attribute. Without a value it asks for one, or is the delimiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    /// Tag.
    pub tag: Tag,
    /// Value, with its padding: a multiple of 4 bytes.
    pub value: Bytes,
}

impl Attribute {
    /// The delimiter.
    pub const DELIMITER: Attribute = Attribute { tag: Tag::DELIMITER, value: Bytes::new() };

    /// An attribute that asks for a value.
    pub const fn wanted(tag: Tag) -> Attribute {
        Attribute { tag, value: Bytes::new() }
    }

    /// A number of 32 bits.
    pub fn word(tag: Tag, value: u32) -> Attribute {
        Attribute { tag, value: Bytes::copy_from_slice(&value.to_be_bytes()) }
    }

    /// A name of 64 bits.
    pub fn wwn(tag: Tag, value: Wwn) -> Attribute {
        Attribute { tag, value: Bytes::copy_from_slice(&value.0.to_be_bytes()) }
    }

    /// An address of a port in a fabric.
    pub fn fc_id(tag: Tag, value: FcId) -> Attribute {
        Attribute::word(tag, value.value())
    }

    /// An IP address.
    pub fn address(tag: Tag, value: IpAddress) -> Attribute {
        Attribute { tag, value: Bytes::copy_from_slice(&value.0) }
    }

    /// A text. Of more than 255 bytes the rest is cut off, between two characters.
    pub fn text(tag: Tag, value: &str) -> Attribute {
        let end = (0..=value.len().min(TEXT_BYTES_MAX - 1)).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
        let mut bytes = BytesMut::with_capacity(TEXT_BYTES_MAX);
        bytes.put_slice(&value.as_bytes()[..end]);
        bytes.put_bytes(0, (end + 1).next_multiple_of(4) - end);
        Attribute { tag, value: bytes.freeze() }
    }

    /// Any bytes; they are padded to a multiple of 4.
    pub fn bytes(tag: Tag, value: &[u8]) -> Attribute {
        let mut bytes = BytesMut::from(value);
        bytes.put_bytes(0, value.len().wrapping_neg() % 4);
        Attribute { tag, value: bytes.freeze() }
    }

    /// The value as a number of 32 bits.
    pub fn as_word(&self) -> Option<u32> {
        Some(u32::from_be_bytes(<[u8; 4]>::try_from(&self.value[..]).ok()?))
    }

    /// The value as a name.
    pub fn as_wwn(&self) -> Option<Wwn> {
        Some(Wwn(u64::from_be_bytes(<[u8; 8]>::try_from(&self.value[..]).ok()?)))
    }

    /// The value as an address of a port in a fabric.
    pub fn as_fc_id(&self) -> Option<FcId> {
        self.as_word().map(FcId::new)
    }

    /// The value as an IP address.
    pub fn as_address(&self) -> Option<IpAddress> {
        Some(IpAddress(<[u8; 16]>::try_from(&self.value[..]).ok()?))
    }

    /// The value as a text, without what follows its end.
    pub fn as_text(&self) -> Option<&str> {
        let end = self.value.iter().position(|byte| *byte == 0).unwrap_or(self.value.len());
        std::str::from_utf8(&self.value[..end]).ok()
    }

    /// Bytes of tag, length and value.
    pub(super) fn encoded_bytes(&self) -> usize {
        ATTRIBUTE_HEADER_BYTES + self.value.len()
    }

    pub(super) fn encode(&self, into: &mut BytesMut) {
        into.put_u32(self.tag.0);
        into.put_u32(self.value.len() as u32);
        into.put_slice(&self.value);
    }

    /// Takes an attribute off the front of a payload.
    pub(super) fn take(payload: &mut Bytes) -> Result<Attribute, WireError> {
        require(payload, ATTRIBUTE_HEADER_BYTES, "iSNS attribute")?;
        let word = |at: usize| u32::from_be_bytes([payload[at], payload[at + 1], payload[at + 2], payload[at + 3]]);
        let (tag, length) = (Tag(word(0)), word(4) as usize);
        if length % 4 != 0 || tag == Tag::DELIMITER && length > 0 {
            return Err(WireError::Malformed { field: "length of an iSNS attribute", value: length as u64 });
        }
        let rest = payload.slice(ATTRIBUTE_HEADER_BYTES..);
        require(&rest, length, "value of an iSNS attribute")?;
        *payload = rest.slice(length..);
        Ok(Attribute { tag, value: rest.slice(..length) })
    }
}
