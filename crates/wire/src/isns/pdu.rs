//! PDUs: a header of 12 bytes and a piece of a message (RFC 4171, 5.1).

use super::function::Function;
use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of the header.
pub const PDU_HEADER_BYTES: usize = 12;
/// Most bytes of a payload: a multiple of 4 in 16 bits.
pub const PDU_PAYLOAD_BYTES_MAX: usize = 0xfffc;

const VERSION: u16 = 1;

/// Flags of a PDU (5.1.4).
pub mod flags {
    /// A client sent it.
    pub const CLIENT: u16 = 0x8000;
    /// A server sent it.
    pub const SERVER: u16 = 0x4000;
    /// An authentication block follows the payload.
    pub const AUTHENTICATED: u16 = 0x2000;
    /// The registration replaces an earlier one.
    pub const REPLACE: u16 = 0x1000;
    /// Last PDU of its message.
    pub const LAST: u16 = 0x0800;
    /// First PDU of its message.
    pub const FIRST: u16 = 0x0400;
}

/// A PDU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// Function of its message.
    pub function: Function,
    /// Bits of [`flags`].
    pub flags: u16,
    /// Request to which it belongs.
    pub transaction: u16,
    /// Place in its message.
    pub sequence: u16,
    /// The piece.
    pub payload: Bytes,
}

impl Pdu {
    /// Appends the bytes.
    pub fn encode(&self, into: &mut BytesMut) {
        into.reserve(PDU_HEADER_BYTES + self.payload.len());
        let payload_bytes = self.payload.len() as u16;
        for half in [VERSION, self.function.0, payload_bytes, self.flags, self.transaction, self.sequence] {
            into.put_u16(half);
        }
        into.put_slice(&self.payload);
    }

    /// Takes a PDU off the front of a stream; None when it is not complete, and then `stream` is left alone.
    ///
    /// # Errors
    /// The version is another, the length no multiple of 4, or there is an authentication block.
    pub fn decode(stream: &mut BytesMut) -> Result<Option<Pdu>, WireError> {
        if require(stream, PDU_HEADER_BYTES, "iSNS header").is_err() {
            return Ok(None);
        }
        let half = |at: usize| u16::from_be_bytes([stream[at], stream[at + 1]]);
        let wrong = |field: &'static str, value: u16| Err(WireError::Malformed { field, value: u64::from(value) });
        let (version, bytes, pdu_flags) = (half(0), half(4), half(6));
        if version != VERSION {
            return wrong("iSNS version", version);
        }
        if bytes % 4 != 0 {
            return wrong("length of an iSNS PDU", bytes);
        }
        if pdu_flags & flags::AUTHENTICATED != 0 {
            return wrong("iSNS flags with an authentication block", pdu_flags);
        }
        let header = (Function(half(2)), half(8), half(10));
        let end = PDU_HEADER_BYTES + usize::from(bytes);
        if stream.len() < end {
            return Ok(None);
        }
        let payload = stream.split_to(end).freeze().slice(PDU_HEADER_BYTES..);
        let (function, transaction, sequence) = header;
        Ok(Some(Pdu { function, flags: pdu_flags, transaction, sequence, payload }))
    }
}
