//! Frames: four bytes of length, big-endian, then that many bytes.

use std::io::{self, Read, Write};

/// Most bytes of a frame.
pub const MAX_BYTES: usize = 16 << 20;

/// Bytes that are asked for at once: memory grows with what has come, not with what a length announces.
const PIECE: usize = 64 << 10;

/// Reason that there is no frame.
#[derive(Debug)]
pub enum NoFrame {
    /// The stream ended between two frames.
    End,
    /// The stream ended or failed within a frame.
    Broken(io::Error),
    /// The length is out of bounds.
    Length(usize),
}

/// Reads one frame.
///
/// # Errors
/// See [`NoFrame`].
pub fn read(from: &mut impl Read) -> Result<Vec<u8>, NoFrame> {
    let mut length = [0; 4];
    let first = loop {
        match from.read(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.map_err(NoFrame::Broken)?,
        }
    };
    if first == 0 {
        return Err(NoFrame::End);
    }
    from.read_exact(&mut length[first..]).map_err(NoFrame::Broken)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_BYTES {
        return Err(NoFrame::Length(length));
    }
    let mut bytes = vec![];
    while bytes.len() < length {
        let begin = bytes.len();
        bytes.resize(length.min(begin + PIECE), 0);
        from.read_exact(&mut bytes[begin..]).map_err(NoFrame::Broken)?;
    }
    Ok(bytes)
}

/// Writes one frame, at once.
///
/// # Errors
/// The stream's; what is too long for a frame is `InvalidInput`.
pub fn write(into: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MAX_BYTES);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "longer than a frame may be"))?;
    let mut frame = Vec::with_capacity(4 + bytes.len());
    frame.extend(length.to_be_bytes());
    frame.extend(bytes);
    into.write_all(&frame)?;
    into.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was_and_the_end_lies_between_frames() {
        let mut bytes = vec![];
        for text in ["", "x", &"y".repeat(200_000)] {
            write(&mut bytes, text.as_bytes()).unwrap();
        }
        let mut from = &bytes[..];
        assert_eq!([0, 1, 200_000], [0; 3].map(|_| read(&mut from).unwrap().len()));
        assert!(matches!(read(&mut from), Err(NoFrame::End)));
    }

    #[test]
    fn a_length_that_is_too_long_is_refused_before_memory_is_taken() {
        let mut from = &[0xff, 0xff, 0xff, 0xff, 0][..];
        assert!(matches!(read(&mut from), Err(NoFrame::Length(0xffff_ffff))));
        // Most of what may be announced, and nothing behind it.
        let mut from = &(MAX_BYTES as u32).to_be_bytes()[..];
        assert!(matches!(read(&mut from), Err(NoFrame::Broken(_))));
        assert!(write(&mut vec![], &vec![0; MAX_BYTES + 1]).is_err());
    }

    #[test]
    fn a_frame_cut_anywhere_is_broken() {
        let mut whole = vec![];
        write(&mut whole, b"{\"id\":1}").unwrap();
        for end in 1..whole.len() {
            assert!(matches!(read(&mut &whole[..end]), Err(NoFrame::Broken(_))), "{end}");
        }
    }
}
