//! A source's file: read at any offset by any thread, its identity looked at, the page cache left as it was.

use copy::{Entry, FileFault, Identity};
use std::io;

/// The files of a [`super::SourceTree`].
pub struct SourceFiles {}

impl SourceFiles {
    /// Opens the file of an entry of kind `File`. The caller compares [`SourceFile::identity`] with the entry's.
    ///
    /// # Errors
    /// `Unreadable`: it is gone, is no file any more or may not be read.
    pub fn open(&self, number: u64, entry: &Entry) -> Result<SourceFile, FileFault> {
        let _ = (number, entry);
        todo!()
    }

    /// The entry as it is now, for another try with a file that has changed.
    ///
    /// # Errors
    /// As [`SourceFiles::open`].
    pub fn again(&self, number: u64, entry: &Entry) -> Result<Entry, FileFault> {
        let _ = (number, entry);
        todo!()
    }
}

/// An open file or block device of the sources.
pub struct SourceFile {}

impl SourceFile {
    /// Fills `buffer` from `offset`, in bytes.
    ///
    /// # Errors
    /// Those of pread(2); `UnexpectedEof` if the file ends before.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let _ = (offset, buffer);
        todo!()
    }

    /// Which file this is, and when it changed last.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn identity(&self) -> io::Result<Identity> {
        todo!()
    }

    /// Gives back pages of [begin, end) that reading brought into the page cache; call it when they were sent.
    pub fn release(&self, begin: u64, end: u64) {
        let _ = (begin, end);
        todo!()
    }
}
