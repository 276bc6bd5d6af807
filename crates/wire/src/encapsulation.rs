//! Common encapsulation of Fibre Channel frames in TCP (RFC 3643): the header of 7 words that iFCP and FCIP share, and
//! the frame behind it between two delimiter words.

use crate::error::{require, WireError};
use crate::fc::{crc, Eof, Frame, Sof, FRAME_BYTES_MAX};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of the header.
pub const ENCAPSULATION_HEADER_BYTES: usize = 28;
/// Bytes of header and both delimiter words.
pub const ENCAPSULATION_BYTES: usize = ENCAPSULATION_HEADER_BYTES + 8;
/// Most bytes of an encapsulated frame.
pub const ENCAPSULATED_BYTES_MAX: usize = ENCAPSULATION_BYTES + FRAME_BYTES_MAX;

const VERSION: u8 = 1;
/// Flag: the header's CRC is valid.
const CRC_VALID: u8 = 1;
/// Frame lengths that both protocols allow, words (RFC 3821, 5.6.2.2): header, delimiters, FC header and CRC at least;
/// a payload of 528 words at most. iFCP's session messages and FCIP's special frame fit in, too.
const WORDS: std::ops::RangeInclusive<u16> = 16..=544;

/// Protocol that uses the encapsulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum EncapsulationProtocol {
    /// RFC 3821.
    Fcip = 1,
    /// RFC 4172.
    Ifcp = 2,
}

/// Time at which a frame left, as SNTP writes times (RFC 4330): seconds since 1900 and 2^-32 of a second. 0 = unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct TimeStamp(pub u64);

impl TimeStamp {
    const NS_PER_S: u64 = 1_000_000_000;

    /// No time: the sender's clock is not synchronised, or the message carries none.
    pub const NONE: TimeStamp = TimeStamp(0);

    /// The time stamp of `ns` after 1900. Range: 2^32 s, 136 years; later times wrap, as the field does.
    pub fn from_ns(ns: u64) -> TimeStamp {
        let fraction = ((ns % TimeStamp::NS_PER_S) << 32) / TimeStamp::NS_PER_S;
        TimeStamp((ns / TimeStamp::NS_PER_S) << 32 | fraction)
    }

    /// Absolute difference of two times, ns. Times on both sides of the field's wrap in 2036 count as close.
    pub fn difference_ns(self, other: TimeStamp) -> u64 {
        let difference = self.0.wrapping_sub(other.0);
        let least = difference.min(difference.wrapping_neg());
        ((u128::from(least) * u128::from(TimeStamp::NS_PER_S)) >> 32) as u64
    }
}

/// The header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncapsulationHeader {
    /// Protocol.
    pub protocol: EncapsulationProtocol,
    /// Words 1 and 2, the protocol's own.
    pub specific: [u8; 8],
    /// Bytes of the encapsulated frame, this header included; a multiple of 4.
    pub bytes: usize,
    /// Time at which it left.
    pub time: TimeStamp,
    /// The header has a CRC: iFCP must, FCIP must not.
    pub has_crc: bool,
}

impl EncapsulationHeader {
    /// Reads a header. Complements, and the CRC where there is one, are compared.
    ///
    /// # Errors
    /// Bytes are missing, a complement or the CRC is wrong, the protocol or version is unknown, or the length is none
    /// of an encapsulated frame. The stream cannot be read further then (RFC 3821, 5.6.2.3; RFC 4172, 5.3.4).
    pub fn parse(bytes: &[u8]) -> Result<EncapsulationHeader, WireError> {
        require(bytes, ENCAPSULATION_HEADER_BYTES, "FC encapsulation header")?;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let wrong = |field: &'static str, value: u16| Err(WireError::Malformed { field, value: u64::from(value) });
        if half(0) != !half(2) {
            return wrong("complement of protocol and version", half(2));
        }
        let protocol = match bytes[0] {
            1 => EncapsulationProtocol::Fcip,
            2 => EncapsulationProtocol::Ifcp,
            other => return wrong("protocol of the FC encapsulation", u16::from(other)),
        };
        if bytes[1] != VERSION {
            return wrong("version of the FC encapsulation", u16::from(bytes[1]));
        }
        if half(12) != !half(14) {
            return wrong("complement of flags and length", half(14));
        }
        let words = half(12) & 0x03ff;
        if !WORDS.contains(&words) {
            return wrong("words of an encapsulated FC frame", words);
        }
        let has_crc = (half(12) >> 10) as u8 & CRC_VALID != 0;
        let received = [bytes[24], bytes[25], bytes[26], bytes[27]];
        let expected = if has_crc { crc(&[&bytes[..24]]) } else { [0; 4] };
        if received != expected {
            let value = u64::from(u32::from_be_bytes(received));
            return Err(WireError::Malformed { field: "CRC of the FC encapsulation", value });
        }
        let mut specific = [0; 8];
        specific.copy_from_slice(&bytes[4..12]);
        let mut time = [0; 8];
        time.copy_from_slice(&bytes[16..24]);
        let time = TimeStamp(u64::from_be_bytes(time));
        Ok(EncapsulationHeader { protocol, specific, bytes: usize::from(words) * 4, time, has_crc })
    }

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; ENCAPSULATION_HEADER_BYTES] {
        let mut bytes = [0; ENCAPSULATION_HEADER_BYTES];
        let first = u16::from_be_bytes([self.protocol as u8, VERSION]);
        let flags = if self.has_crc { u16::from(CRC_VALID) << 10 } else { 0 };
        let third = flags | (self.bytes / 4) as u16 & 0x03ff;
        bytes[0..2].copy_from_slice(&first.to_be_bytes());
        bytes[2..4].copy_from_slice(&(!first).to_be_bytes());
        bytes[4..12].copy_from_slice(&self.specific);
        bytes[12..14].copy_from_slice(&third.to_be_bytes());
        bytes[14..16].copy_from_slice(&(!third).to_be_bytes());
        bytes[16..24].copy_from_slice(&self.time.0.to_be_bytes());
        if self.has_crc {
            let sum = crc(&[&bytes[..24]]);
            bytes[24..28].copy_from_slice(&sum);
        }
        bytes
    }
}

/// Bytes that a frame takes when it is encapsulated.
pub fn encapsulated_bytes(frame: &Frame) -> usize {
    ENCAPSULATION_BYTES + frame.content_bytes()
}

/// A frame that the receiver leaves out, while the stream goes on (RFC 3821, 5.6.2.2; RFC 4172, 5.3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Discarded {
    /// The reason.
    pub reason: WireError,
}

/// Appends the delimiter words and the frame between them: what follows the header.
pub(crate) fn encode_frame(frame: &Frame, into: &mut BytesMut) {
    let (sof, eof) = (frame.sof.code(), frame.eof.code());
    into.put_slice(&[sof, sof, !sof, !sof]);
    frame.encode_content(into);
    into.put_slice(&[eof, eof, !eof, !eof]);
}

/// Reads what follows the header: a frame between two delimiter words. `bytes` is all of it.
pub(crate) fn decode_frame(bytes: &Bytes) -> Result<Frame, WireError> {
    require(bytes, 8, "delimiters of an encapsulated FC frame")?;
    let end = bytes.len() - 4;
    let sof = Sof::from_code(delimiter("SOF", &bytes[..4])?)?;
    let eof = Eof::from_code(delimiter("EOF", &bytes[end..])?)?;
    Frame::decode_content(sof, &bytes.slice(4..end), eof)
}

/// Checks the word that ends an encapsulated frame: a wrong one means that the stream is out of step.
pub(crate) fn check_end(bytes: &[u8]) -> Result<(), WireError> {
    require(bytes, 8, "delimiters of an encapsulated FC frame")?;
    Eof::from_code(delimiter("EOF", &bytes[bytes.len() - 4..])?).map(|_| ())
}

/// The code of a delimiter word: twice, then twice its complement.
fn delimiter(field: &'static str, word: &[u8]) -> Result<u8, WireError> {
    let code = word[0];
    if word == [code, code, !code, !code] {
        return Ok(code);
    }
    Err(WireError::Malformed { field, value: u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])) })
}

/// Takes header and the rest of one encapsulated frame off the front of a stream; None when it is not complete, and
/// then `stream` is left alone.
///
/// # Errors
/// As [`EncapsulationHeader::parse`].
pub(crate) fn take(stream: &mut BytesMut) -> Result<Option<(EncapsulationHeader, Bytes)>, WireError> {
    if stream.len() < ENCAPSULATION_HEADER_BYTES {
        return Ok(None);
    }
    let header = EncapsulationHeader::parse(stream)?;
    if stream.len() < header.bytes {
        return Ok(None);
    }
    let rest = stream.split_to(header.bytes).freeze().slice(ENCAPSULATION_HEADER_BYTES..);
    Ok(Some((header, rest)))
}
