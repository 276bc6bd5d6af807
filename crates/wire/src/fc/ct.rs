//! The common transport of the fabric's servers (FC-GS-2, clause 4).

use super::address::FcId;
use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of the header before a request or response.
pub const CT_HEADER_BYTES: usize = 16;

/// The header of a request or response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CtHeader {
    /// Address of the first requester, for requests that switches pass on.
    pub requester: FcId,
    /// Service, such as [`CtHeader::DIRECTORY`].
    pub service: u8,
    /// Part of the service, such as [`CtHeader::NAME_SERVER`].
    pub subtype: u8,
    /// Options; bit 7: several exchanges may be open.
    pub options: u8,
    /// Request, [`CtHeader::ACCEPT`] or [`CtHeader::REJECT`].
    pub code: u16,
    /// Words of a response that the requester takes; in a response, words that did not fit. 0 = no limit.
    pub words: u16,
    /// Reason of a reject.
    pub reason: u8,
    /// Explanation of a reject.
    pub explanation: u8,
}

impl CtHeader {
    /// Directory service.
    pub const DIRECTORY: u8 = 0xfc;
    /// Management service.
    pub const MANAGEMENT: u8 = 0xfa;
    /// Name server, of the directory service.
    pub const NAME_SERVER: u8 = 0x02;
    /// Code of a reject.
    pub const REJECT: u16 = 0x8001;
    /// Code of an accept.
    pub const ACCEPT: u16 = 0x8002;
    /// Reason: the server does not know the command.
    pub const INVALID_COMMAND: u8 = 0x01;
    /// Reason: the server cannot do it: nothing is registered of what was asked.
    pub const UNABLE: u8 = 0x09;
    /// Reason: the server does not support it.
    pub const NOT_SUPPORTED: u8 = 0x0b;
    /// Explanation: none.
    pub const NO_EXPLANATION: u8 = 0x00;
    /// Explanation: the address is not registered.
    pub const ID_NOT_REGISTERED: u8 = 0x01;
    /// Explanation: the port's name is not registered.
    pub const PORT_NAME_NOT_REGISTERED: u8 = 0x02;
    /// Explanation: no port has the FC-4 type.
    pub const TYPE_NOT_REGISTERED: u8 = 0x07;
    /// Revision of the transport.
    const REVISION: u8 = 1;

    /// A request to the name server.
    pub fn name_server(code: u16) -> CtHeader {
        CtHeader {
            requester: FcId::NONE,
            service: CtHeader::DIRECTORY,
            subtype: CtHeader::NAME_SERVER,
            options: 0,
            code,
            words: 0,
            reason: 0,
            explanation: 0,
        }
    }

    /// The accept of a request, with `content` behind it.
    pub fn accept(&self, content: &[u8]) -> Bytes {
        CtHeader { code: CtHeader::ACCEPT, words: 0, reason: 0, explanation: 0, ..*self }.with(content)
    }

    /// The accept of a request with a list of objects of `object_bytes` each, as many as the requester takes. `list`
    /// makes the content of a number of objects, of which there are `count`.
    pub fn accept_list(&self, count: usize, object_bytes: usize, list: impl FnOnce(usize) -> Bytes) -> Bytes {
        let taken = match self.words {
            0 => count,
            words => count.min(usize::from(words) * 4 / object_bytes),
        };
        let left_out = ((count - taken) * object_bytes).div_ceil(4);
        let words = u16::try_from(left_out).unwrap_or(u16::MAX);
        CtHeader { code: CtHeader::ACCEPT, words, reason: 0, explanation: 0, ..*self }.with(&list(taken))
    }

    /// The reject of a request.
    pub fn reject(&self, reason: u8, explanation: u8) -> Bytes {
        CtHeader { code: CtHeader::REJECT, words: 0, reason, explanation, ..*self }.with(&[])
    }

    /// The header with `content` behind it.
    pub fn with(&self, content: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(CT_HEADER_BYTES + content.len());
        bytes.put_u8(CtHeader::REVISION);
        bytes.put_slice(&self.requester.to_bytes());
        bytes.put_slice(&[self.service, self.subtype, self.options, 0]);
        bytes.put_u16(self.code);
        bytes.put_u16(self.words);
        bytes.put_slice(&[0, self.reason, self.explanation, 0]);
        bytes.put_slice(content);
        bytes.freeze()
    }

    /// Reads a header and returns it with what is behind it.
    ///
    /// # Errors
    /// Bytes are missing, or the revision is none of 1 to 3.
    pub fn parse(bytes: &Bytes) -> Result<(CtHeader, Bytes), WireError> {
        require(bytes, CT_HEADER_BYTES, "common transport header")?;
        if !(1..=3).contains(&bytes[0]) {
            return Err(WireError::Malformed { field: "revision of the common transport", value: u64::from(bytes[0]) });
        }
        let header = CtHeader {
            requester: FcId::of(bytes[1], bytes[2], bytes[3]),
            service: bytes[4],
            subtype: bytes[5],
            options: bytes[6],
            code: u16::from_be_bytes([bytes[8], bytes[9]]),
            words: u16::from_be_bytes([bytes[10], bytes[11]]),
            reason: bytes[13],
            explanation: bytes[14],
        };
        Ok((header, bytes.slice(CT_HEADER_BYTES..)))
    }
}
