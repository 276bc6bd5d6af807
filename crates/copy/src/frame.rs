//! Frames of a data stream: one chunk of one file each, in pieces, with the chunk's hash behind it.

use crate::wire::WireError;

/// Bytes of a [`FrameHead`].
pub const HEAD_BYTES: usize = 32;
/// Bytes of a piece's head.
pub const PIECE_HEAD_BYTES: usize = 4;
/// Most bytes of one piece of data: what each side buffers.
pub const PIECE_BYTES: usize = 256 << 10;
/// Bytes behind the pieces: the chunk's hash.
pub const TAIL_BYTES: usize = 32;
const MAGIC: u32 = 0x6c66_6531;

/// Begin of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The entry.
    pub number: u64,
    /// Count of earlier tries with the file; a frame of an earlier try is thrown away.
    pub generation: u32,
    /// Chunk of the file.
    pub chunk: u64,
    /// Bytes of the chunk that the pieces stand for, at most `CHUNK_MAX`.
    pub length: u32,
}

impl FrameHead {
    /// As on the path.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        out[..4].copy_from_slice(&MAGIC.to_be_bytes());
        out[4..8].copy_from_slice(&self.generation.to_be_bytes());
        out[8..16].copy_from_slice(&self.number.to_be_bytes());
        out[16..24].copy_from_slice(&self.chunk.to_be_bytes());
        out[24..28].copy_from_slice(&self.length.to_be_bytes());
        out
    }

    /// From the path.
    ///
    /// # Errors
    /// No head.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<FrameHead, WireError> {
        let u32_at = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) << 32 | u64::from(u32_at(at + 4));
        if u32_at(0) != MAGIC || u32_at(28) != 0 {
            return Err(WireError("a frame does not begin as one"));
        }
        let head = FrameHead { generation: u32_at(4), number: u64_at(8), chunk: u64_at(16), length: u32_at(24) };
        if u64::from(head.length) > crate::plan::CHUNK_MAX {
            return Err(WireError("a frame beyond 16 MiB"));
        }
        Ok(head)
    }
}

/// Pieces of a frame, until their lengths sum up to the chunk's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes follow, at most [`PIECE_BYTES`].
    Data(u32),
    /// So many bytes are zero.
    Zeros(u32),
    /// So many bytes are as the receiver said they are; all of the chunk.
    Same(u32),
    /// The sender cannot go on with this chunk; nothing follows, the frame is over.
    Abort,
}

impl Piece {
    /// As on the path.
    pub fn encode(self) -> [u8; PIECE_HEAD_BYTES] {
        let (kind, length) = match self {
            Piece::Data(length) => (0, length),
            Piece::Zeros(length) => (1, length),
            Piece::Same(length) => (2, length),
            Piece::Abort => (3, 0),
        };
        (kind << 30 | length).to_be_bytes()
    }

    /// From the path; `left`: bytes of the chunk that no piece stands for yet.
    ///
    /// # Errors
    /// The piece reaches beyond the chunk, or is empty.
    pub fn decode(bytes: [u8; PIECE_HEAD_BYTES], left: u32) -> Result<Piece, WireError> {
        let word = u32::from_be_bytes(bytes);
        let length = word & 0x3fff_ffff;
        let piece = match word >> 30 {
            0 if length as usize <= PIECE_BYTES => Piece::Data(length),
            0 => return Err(WireError("a piece beyond 256 KiB")),
            1 => Piece::Zeros(length),
            2 => Piece::Same(length),
            _ => return if length == 0 { Ok(Piece::Abort) } else { Err(WireError("a piece that is none")) },
        };
        if length == 0 || length > left {
            return Err(WireError("a piece beyond its chunk"));
        }
        Ok(piece)
    }
}
