//! Messages: status and attributes, in one PDU or several (RFC 4171, 5.2 and 5.6).

use super::attribute::Attribute;
use super::function::{Function, Status};
use super::pdu::{flags, Pdu, PDU_PAYLOAD_BYTES_MAX};
use super::tag::Tag;
use crate::error::{require, WireError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Most bytes of a message that is put together from pieces: names, addresses and types of some 4,000 ports.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Function.
    pub function: Function,
    /// Flags without those of first and last PDU.
    pub flags: u16,
    /// Request to which it belongs.
    pub transaction: u16,
    /// Status, of a response.
    pub status: Option<Status>,
    /// Attributes in their order, the delimiter among them. Empty for a heartbeat, which has none.
    pub attributes: Vec<Attribute>,
}

impl Message {
    /// A request of a client: who asks, the keys, and what is registered or wanted.
    pub fn request(
        function: Function,
        transaction: u16,
        source: Attribute,
        keys: Vec<Attribute>,
        operating: Vec<Attribute>,
    ) -> Message {
        let mut attributes = Vec::with_capacity(2 + keys.len() + operating.len());
        attributes.push(source);
        attributes.extend(keys);
        attributes.push(Attribute::DELIMITER);
        attributes.extend(operating);
        Message { function, flags: flags::CLIENT, transaction, status: None, attributes }
    }

    /// The response to a message, with attributes.
    pub fn response(&self, sender: u16, status: Status, attributes: Vec<Attribute>) -> Message {
        let (function, transaction) = (self.function.response(), self.transaction);
        Message { function, flags: sender, transaction, status: Some(status), attributes }
    }

    /// Attributes before the delimiter, the source included; all of them without a delimiter.
    pub fn keys(&self) -> &[Attribute] {
        &self.attributes[..self.delimiter().unwrap_or(self.attributes.len())]
    }

    /// Attributes behind the delimiter.
    pub fn operating(&self) -> &[Attribute] {
        self.delimiter().map_or(&[], |delimiter| &self.attributes[delimiter + 1..])
    }

    /// Appends the bytes of the PDUs.
    pub fn encode(&self, into: &mut BytesMut) {
        let bytes: usize = self.attributes.iter().map(Attribute::encoded_bytes).sum();
        let mut payload = BytesMut::with_capacity(4 + bytes);
        if let Some(status) = self.status {
            payload.put_u32(status.0);
        }
        for attribute in &self.attributes {
            attribute.encode(&mut payload);
        }
        let payload = payload.freeze();
        let count = payload.len().div_ceil(PDU_PAYLOAD_BYTES_MAX).max(1);
        for sequence in 0..count {
            let start = sequence * PDU_PAYLOAD_BYTES_MAX;
            let end = payload.len().min(start + PDU_PAYLOAD_BYTES_MAX);
            let first = if sequence == 0 { flags::FIRST } else { 0 };
            let last = if sequence + 1 == count { flags::LAST } else { 0 };
            let pdu = Pdu {
                function: self.function,
                flags: self.flags | first | last,
                transaction: self.transaction,
                sequence: sequence as u16,
                payload: payload.slice(start..end),
            };
            pdu.encode(into);
        }
    }

    /// Reads the payload of all PDUs of a message.
    fn parse(first: &Pdu, mut payload: Bytes) -> Result<Message, WireError> {
        let function = first.function;
        let status = if function.is_response() {
            require(&payload, 4, "status of an iSNS response")?;
            Some(Status(payload.get_u32()))
        } else {
            None
        };
        let mut attributes = Vec::new();
        // A heartbeat has no attributes (5.6.5.14).
        while !payload.is_empty() && function != Function::HEARTBEAT {
            attributes.push(Attribute::take(&mut payload)?);
        }
        let sender = first.flags & !(flags::FIRST | flags::LAST);
        Ok(Message { function, flags: sender, transaction: first.transaction, status, attributes })
    }

    fn delimiter(&self) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.tag == Tag::DELIMITER)
    }
}

/// Puts messages together from the bytes of one connection.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    stream: BytesMut,
    /// First PDU of a message whose end is missing, number of the next, and the payload so far.
    open: Option<(Pdu, u16, BytesMut)>,
}

impl Assembler {
    /// True while a message has begun, and its end is missing.
    pub fn is_partial(&self) -> bool {
        !self.stream.is_empty() || self.open.is_some()
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
    }

    /// The next message; None until its last byte has come.
    ///
    /// # Errors
    /// The bytes are no PDUs, a piece is missing, or the message is longer than [`MESSAGE_BYTES_MAX`]. The connection
    /// is of no use any more.
    pub fn next_message(&mut self) -> Result<Option<Message>, WireError> {
        while let Some(pdu) = Pdu::decode(&mut self.stream)? {
            let begins = pdu.flags & flags::FIRST != 0;
            let ends = pdu.flags & flags::LAST != 0;
            let wrong = Err(WireError::Malformed { field: "iSNS sequence", value: u64::from(pdu.sequence) });
            let (first, next, mut payload) = match self.open.take() {
                None if begins && pdu.sequence == 0 => {
                    if ends {
                        return Message::parse(&pdu, pdu.payload.clone()).map(Some);
                    }
                    (Pdu { payload: Bytes::new(), ..pdu.clone() }, 0, BytesMut::new())
                }
                Some((first, next, payload)) if !begins => (first, next, payload),
                _ => return wrong,
            };
            if pdu.sequence != next || pdu.function != first.function || pdu.transaction != first.transaction {
                return wrong;
            }
            let bytes = payload.len() + pdu.payload.len();
            if bytes > MESSAGE_BYTES_MAX {
                return Err(WireError::Malformed { field: "bytes of an iSNS message", value: bytes as u64 });
            }
            payload.extend_from_slice(&pdu.payload);
            if ends {
                return Message::parse(&first, payload.freeze()).map(Some);
            }
            let Some(next) = next.checked_add(1) else { return wrong };
            self.open = Some((first, next, payload));
        }
        Ok(None)
    }
}
