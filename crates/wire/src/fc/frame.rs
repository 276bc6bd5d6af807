//! Frames: delimiters, header, payload, CRC.

use super::crc::crc;
use super::delimiter::{Eof, Sof};
use super::header::{frame_control, FrameHeader, FRAME_HEADER_BYTES};
use crate::error::{require, WireError};
use crate::iscsi::Payload;
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of the CRC behind the payload.
pub const CRC_BYTES: usize = 4;
/// Longest payload, bytes, optional headers included (FC-FS-2, clause 8).
pub const PAYLOAD_BYTES_MAX: usize = 2112;
/// Longest content between the delimiters: header, payload, CRC.
pub const FRAME_BYTES_MAX: usize = FRAME_HEADER_BYTES + PAYLOAD_BYTES_MAX + CRC_BYTES;

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Start delimiter.
    pub sof: Sof,
    /// Header. The bits [`frame_control::FILL_MASK`] of F_CTL are those of the payload's length when it is emitted.
    pub header: FrameHeader,
    /// Payload without padding, at most [`PAYLOAD_BYTES_MAX`] bytes with it.
    pub payload: Payload,
    /// End delimiter.
    pub eof: Eof,
}

impl Frame {
    /// A frame of class 3. The delimiters follow from the header: the first of its sequence, the last of it.
    pub fn class3(header: FrameHeader, payload: impl Into<Payload>) -> Frame {
        let sof = if header.seq_cnt == 0 { Sof::Initiate3 } else { Sof::Normal3 };
        let eof = if header.has(frame_control::END_SEQUENCE) { Eof::Terminate } else { Eof::Normal };
        Frame { sof, header, payload: payload.into(), eof }
    }

    /// Bytes between the delimiters: header, payload with padding, CRC.
    pub fn content_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.payload.len().next_multiple_of(4) + CRC_BYTES
    }

    /// Appends header, payload with padding, and CRC: what is between the delimiters.
    pub fn encode_content(&self, into: &mut BytesMut) {
        let fill = self.payload.len().wrapping_neg() % 4;
        let mut header = self.header;
        header.f_ctl = header.f_ctl & !frame_control::FILL_MASK | fill as u32;
        let start = into.len();
        into.reserve(self.content_bytes());
        into.extend_from_slice(&header.to_bytes());
        match &self.payload {
            Payload::Bytes(bytes) => into.extend_from_slice(bytes),
            Payload::Zeros(length) => into.put_bytes(0, *length as usize),
        }
        into.put_bytes(0, fill);
        let sum = crc(&[&into[start..]]);
        into.extend_from_slice(&sum);
    }

    /// Appends the frame with its delimiters as they are on the line: LINKTYPE_FC_2_WITH_FRAME_DELIMS of captures.
    pub fn encode_delimited(&self, into: &mut BytesMut) {
        into.extend_from_slice(&self.sof.transmission_word());
        self.encode_content(into);
        into.extend_from_slice(&self.eof.transmission_word());
    }

    /// Reads what is between two delimiters. The payload shares the memory of `content`.
    ///
    /// # Errors
    /// The length is none of a frame (16 bits' multiple of 4, header and CRC at least), or the CRC is wrong.
    pub fn decode_content(sof: Sof, content: &Bytes, eof: Eof) -> Result<Frame, WireError> {
        require(content, FRAME_HEADER_BYTES + CRC_BYTES, "FC frame")?;
        if content.len() > FRAME_BYTES_MAX || !content.len().is_multiple_of(4) {
            return Err(WireError::Malformed { field: "bytes of an FC frame", value: content.len() as u64 });
        }
        let end = content.len() - CRC_BYTES;
        let received = &content[end..];
        if crc(&[&content[..end]]) != received {
            let value = u64::from(u32::from_le_bytes([received[0], received[1], received[2], received[3]]));
            return Err(WireError::Malformed { field: "FC CRC", value });
        }
        let header = FrameHeader::parse(content)?;
        let fill = (header.f_ctl & frame_control::FILL_MASK) as usize;
        if FRAME_HEADER_BYTES + fill > end {
            return Err(WireError::Malformed { field: "fill bytes of an FC frame", value: fill as u64 });
        }
        let payload = Payload::Bytes(content.slice(FRAME_HEADER_BYTES..end - fill));
        Ok(Frame { sof, header, payload, eof })
    }
}
