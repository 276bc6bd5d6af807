//! PDUs as bytes: lengths, padding, CRC32C digests (RFC 7143, 11.1 and 11.2).

use super::error::IscsiError;
use super::field::BHS_BYTES;
use super::header::Header;
use super::payload::Payload;
use super::pdu::{Ahs, Pdu};
use bytes::{Bytes, BytesMut};
use std::ops::Range;

/// Most bytes of additional header segments: TotalAHSLength counts words in one byte.
pub const MAX_AHS_BYTES: usize = 255 * 4;
const DIGEST_BYTES: usize = 4;

/// The present framing of a connection's PDUs: digests begin with full feature phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Headers carry a CRC32C.
    pub header_digest: bool,
    /// Data segments that are not empty carry a CRC32C.
    pub data_digest: bool,
    /// Longest data segment that is taken, bytes: MaxRecvDataSegmentLength of this side.
    pub max_data_bytes: u32,
}

/// A PDU that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// The PDU.
    pub pdu: Pdu,
    /// True if the data is what the sender sent, as far as the digest tells.
    pub intact: bool,
}

/// Places of the parts of a complete PDU.
struct Layout {
    header: Header,
    ahs: Vec<Ahs>,
    data: Range<usize>,
    /// Of the data and its padding.
    digest_at: Option<usize>,
    /// Length of all of it.
    all: usize,
}

impl Layout {
    fn received(self, bytes: &[u8], data: impl FnOnce(Range<usize>) -> Bytes) -> Received {
        let is_intact = |at: usize| crc32c::crc32c(&bytes[self.data.start..at]) == digest(&bytes[at..]);
        let intact = self.digest_at.is_none_or(is_intact);
        Received { pdu: Pdu { header: self.header, ahs: self.ahs, data: Payload::Bytes(data(self.data)) }, intact }
    }
}

fn padding(length: usize) -> usize {
    length.wrapping_neg() % 4
}

impl Framing {
    /// Before anything is negotiated: no digests, 8192 bytes (RFC 7143, 13.12).
    pub const LOGIN: Framing = Framing { header_digest: false, data_digest: false, max_data_bytes: 8192 };

    /// Takes one PDU off the front of `bytes`; None when it is not complete, and then `bytes` is left alone. The data
    /// shares its memory with `bytes`.
    ///
    /// # Errors
    /// The stream cannot be read further: too long a segment, a header digest or header segments that are wrong.
    pub fn decode(&self, bytes: &mut BytesMut) -> Result<Option<Received>, IscsiError> {
        let Some(layout) = self.layout(bytes)? else { return Ok(None) };
        let frame = bytes.split_to(layout.all).freeze();
        Ok(Some(layout.received(&frame, |data| frame.slice(data))))
    }

    /// Reads one PDU at the front of `bytes`, and how long it is; None when it is not complete. The data is copied.
    ///
    /// # Errors
    /// As [`Framing::decode`].
    pub fn decode_copy(&self, bytes: &[u8]) -> Result<Option<(Received, usize)>, IscsiError> {
        let Some(layout) = self.layout(bytes)? else { return Ok(None) };
        let all = layout.all;
        Ok(Some((layout.received(&bytes[..all], |data| Bytes::copy_from_slice(&bytes[data])), all)))
    }

    /// Reads a PDU that is all of `frame`; None when it is not complete. The data shares the memory of `frame`.
    ///
    /// # Errors
    /// As [`Framing::decode`].
    pub fn decode_frame(&self, frame: &Bytes) -> Result<Option<Received>, IscsiError> {
        let Some(layout) = self.layout(frame)? else { return Ok(None) };
        Ok(Some(layout.received(frame, |data| frame.slice(data))))
    }

    fn layout(&self, bytes: &[u8]) -> Result<Option<Layout>, IscsiError> {
        if bytes.len() < BHS_BYTES {
            return Ok(None);
        }
        let mut bhs = [0; BHS_BYTES];
        bhs.copy_from_slice(&bytes[..BHS_BYTES]);
        let ahs_bytes = usize::from(bhs[4]) * 4;
        let data_bytes = u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]]);
        let head = BHS_BYTES + ahs_bytes;
        if self.header_digest {
            // A length of a header that is not intact says nothing.
            if bytes.len() < head + DIGEST_BYTES {
                return Ok(None);
            }
            let computed = crc32c::crc32c(&bytes[..head]);
            let received = digest(&bytes[head..]);
            if computed != received {
                return Err(IscsiError::HeaderDigest { received, computed });
            }
        }
        let header = Header::parse(&bhs);
        if data_bytes > self.max_data_bytes {
            return Err(IscsiError::TooLong { pdu: header.name(), bytes: data_bytes, most: self.max_data_bytes });
        }
        let data_bytes = data_bytes as usize;
        let padded = data_bytes + padding(data_bytes);
        let with_digest = self.data_digest && data_bytes > 0;
        let data_at = head + if self.header_digest { DIGEST_BYTES } else { 0 };
        let all = data_at + padded + if with_digest { DIGEST_BYTES } else { 0 };
        if bytes.len() < all {
            return Ok(None);
        }
        let ahs = parse_ahs(&bytes[BHS_BYTES..head])?;
        let digest_at = with_digest.then_some(data_at + padded);
        Ok(Some(Layout { header, ahs, data: data_at..data_at + data_bytes, digest_at, all }))
    }

    /// Returns the bytes from the front on that the next PDU needs, as far as `bytes` tell: at least a header. Without
    /// a bound: ask after [`Framing::decode`] found the lengths within theirs.
    pub fn needed(&self, bytes: &[u8]) -> usize {
        if bytes.len() < BHS_BYTES {
            return BHS_BYTES;
        }
        let data = u32::from_be_bytes([0, bytes[5], bytes[6], bytes[7]]) as usize;
        self.wire_bytes(usize::from(bytes[4]) * 4, data)
    }

    fn wire_bytes(&self, ahs: usize, data: usize) -> usize {
        let header_digest = if self.header_digest { DIGEST_BYTES } else { 0 };
        let data_digest = if self.data_digest && data > 0 { DIGEST_BYTES } else { 0 };
        BHS_BYTES + ahs + header_digest + data + padding(data) + data_digest
    }

    /// Bytes that a PDU takes on the wire.
    pub fn length(&self, pdu: &Pdu) -> usize {
        self.wire_bytes(pdu.ahs.iter().map(ahs_length).sum(), pdu.data.len())
    }

    /// The bytes before the data segment.
    ///
    /// # Panics
    /// When the data segment has 2^24 bytes or the header segments have more than [`MAX_AHS_BYTES`]: no negotiation
    /// allows it.
    pub fn head(&self, pdu: &Pdu, into: &mut BytesMut) {
        let start = into.len();
        let mut bhs = pdu.header.emit();
        let data = pdu.data.len();
        assert!(data < 1 << 24, "a data segment of {data} bytes");
        bhs[5..8].copy_from_slice(&(data as u32).to_be_bytes()[1..]);
        let ahs: usize = pdu.ahs.iter().map(ahs_length).sum();
        assert!(ahs <= MAX_AHS_BYTES, "header segments of {ahs} bytes");
        bhs[4] = (ahs / 4) as u8;
        into.extend_from_slice(&bhs);
        for segment in &pdu.ahs {
            into.extend_from_slice(&(segment.bytes.len() as u16).to_be_bytes());
            into.extend_from_slice(&[segment.kind]);
            into.extend_from_slice(&segment.bytes);
            into.extend_from_slice(&[0; 3][..ahs_length(segment) - 3 - segment.bytes.len()]);
        }
        if self.header_digest {
            let crc = crc32c::crc32c(&into[start..]);
            into.extend_from_slice(&crc.to_le_bytes());
        }
    }

    /// The bytes after the data segment `data`: padding and digest.
    pub fn tail(&self, data: &Bytes, into: &mut BytesMut) {
        let padding = &[0; 3][..padding(data.len())];
        into.extend_from_slice(padding);
        if self.data_digest && !data.is_empty() {
            let crc = crc32c::crc32c_append(crc32c::crc32c(data), padding);
            into.extend_from_slice(&crc.to_le_bytes());
        }
    }

    /// All bytes of a PDU, in one piece.
    ///
    /// # Panics
    /// As [`Framing::head`].
    pub fn encode(&self, pdu: &Pdu, into: &mut BytesMut) {
        self.head(pdu, into);
        let data = pdu.data.to_bytes();
        into.extend_from_slice(&data);
        self.tail(&data, into);
    }
}

fn digest(bytes: &[u8]) -> u32 {
    // The RFC draws the CRC's bits reflected (its appendix A.4): as bytes that is least significant first.
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// Bytes of a header segment: length, type, content, padding.
fn ahs_length(segment: &Ahs) -> usize {
    let length = 3 + segment.bytes.len();
    length + padding(length)
}

fn parse_ahs(mut bytes: &[u8]) -> Result<Vec<Ahs>, IscsiError> {
    let mut segments = Vec::new();
    while !bytes.is_empty() {
        // Segments are whole words, so four bytes are there.
        let length = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
        let needed = 3 + length + padding(3 + length);
        if needed > bytes.len() {
            return Err(IscsiError::Ahs { needed, available: bytes.len() });
        }
        segments.push(Ahs { kind: bytes[2], bytes: bytes[3..3 + length].to_vec() });
        bytes = &bytes[needed..];
    }
    Ok(segments)
}
