//! A part: a file that is not whole yet.

use std::io;

/// Where the content of a part comes from before the first chunk is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Nowhere: holes.
    Nothing,
    /// The part of an earlier attempt.
    Resume,
    /// The file at the entry's name: [`Part::take`] brings over the chunks that are equal.
    Existing,
    /// The entry's older version (`link_to`), likewise.
    Older,
}

/// A file that is not whole yet, or a block device. Any thread may write any range.
pub struct Part {}

impl Part {
    /// True if an earlier attempt's part was found: what the journal says of its chunks holds.
    pub fn resumed(&self) -> bool {
        todo!()
    }

    /// Number of its entry.
    pub fn number(&self) -> u64 {
        todo!()
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// Those of pwrite(2); see [`super::is_full`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let _ = (offset, data);
        todo!()
    }

    /// Fills `buffer` from `offset`; beyond the end: `UnexpectedEof`.
    ///
    /// # Errors
    /// Those of pread(2).
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let _ = (offset, buffer);
        todo!()
    }

    /// Takes [begin, end) over from the base, in the kernel (nothing to do after a reflink). Only with `Base::Existing` or
    /// `Base::Older`, or a part resumed from there.
    ///
    /// # Errors
    /// Those of copy_file_range(2).
    pub fn take(&self, begin: u64, end: u64) -> io::Result<()> {
        let _ = (begin, end);
        todo!()
    }

    /// Makes [begin, end) read as zeros, as a hole where the file system has them.
    ///
    /// # Errors
    /// Those of fallocate(2).
    pub fn hole(&self, begin: u64, end: u64) -> io::Result<()> {
        let _ = (begin, end);
        todo!()
    }

    /// Sets the length; nothing for a device.
    ///
    /// # Errors
    /// Those of ftruncate(2).
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        let _ = size;
        todo!()
    }

    /// Drops the pages of [begin, end) from the page cache: after [`super::Destination::sync`], to leave room for others,
    /// and before `verify_read`, so that the disk is read.
    pub fn release(&self, begin: u64, end: u64) {
        let _ = (begin, end);
        todo!()
    }
}
