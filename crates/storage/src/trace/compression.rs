//! Compressed files, read as a stream: gzip (RFC 1952) and Zstandard (RFC 8878).

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Compressed files that are not read, by their first bytes.
const REFUSED: [(&[u8], &str); 4] =
    [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip"), (&[0x04, 0x22, 0x4d, 0x18], "lz4")];

/// Bytes of decompressed text that are buffered.
const BUFFER_BYTES: usize = 1 << 16;

/// The content of `file`, decompressed if its first bytes say that it is compressed.
///
/// # Errors
/// The file cannot be read, or is compressed by something else; the text names it.
pub fn decompressed<R: BufRead + Send + 'static>(mut file: R) -> io::Result<Box<dyn BufRead + Send>> {
    let head = file.fill_buf()?;
    if head.starts_with(GZIP) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))));
    }
    if head.starts_with(ZSTD) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, ZstdFrames::new(file))));
    }
    match REFUSED.iter().find(|(magic, _)| head.starts_with(magic)) {
        Some((_, name)) => Err(Error::new(
            ErrorKind::InvalidData,
            format!("compressed by {name}; decompress it first (gzip and Zstandard are read as they are)"),
        )),
        None => Ok(Box::new(file)),
    }
}

/// All frames of a Zstandard file, one after another, with their checksums. The library's own reader ends, without an
/// error, after the first of them; pzstd and `cat` write several.
struct ZstdFrames<R> {
    file: R,
    decoder: FrameDecoder,
    state: FrameState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameState {
    /// Before a frame, or at the end of the file.
    Between,
    Within,
    /// After an error.
    Failed,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(file: R) -> ZstdFrames<R> {
        ZstdFrames { file, decoder: FrameDecoder::new(), state: FrameState::Between }
    }

    /// Begins the next frame. Returns false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.file.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.file) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.file.by_ref().take(length), &mut io::sink())? < length {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(Error::new(ErrorKind::InvalidData, error)),
            }
        }
        Ok(false)
    }

    /// Decodes until there is output, or the frame has ended.
    fn decode(&mut self) -> io::Result<()> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let decoded = self.decoder.decode_blocks(&mut self.file, BlockDecodingStrategy::UptoBlocks(1));
            decoded.map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
        }
        Ok(())
    }

    fn read_frames(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state {
                FrameState::Failed => return Ok(0),
                FrameState::Between => {
                    if !self.begin()? {
                        return Ok(0);
                    }
                    self.state = FrameState::Within;
                }
                FrameState::Within => {
                    self.decode()?;
                    let read = self.decoder.read(buffer)?;
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                    let stored = self.decoder.get_checksum_from_data();
                    if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
                        return Err(Error::new(ErrorKind::InvalidData, "the checksum of a Zstandard frame is wrong"));
                    }
                    self.state = FrameState::Between;
                }
            }
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_frames(buffer).inspect_err(|_| self.state = FrameState::Failed)
    }
}
