//! A journal on disk: records are appended and synced, a torn tail is cut off.

use std::io;
use std::path::Path;

/// An open journal.
pub struct JournalFile {}

impl JournalFile {
    /// Opens or makes the journal and returns its whole records. `whole` counts bytes of whole records at the beginning of
    /// its argument (length and CRC32C are checked by `copy`); the file is cut there.
    ///
    /// # Errors
    /// Those of open(2), read(2), ftruncate(2).
    pub fn open(path: &Path, whole: impl Fn(&[u8]) -> usize) -> io::Result<(JournalFile, Vec<u8>)> {
        let _ = (path, whole);
        todo!()
    }

    /// Appends records.
    ///
    /// # Errors
    /// Those of write(2); all later calls fail too, since the tail may be torn.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let _ = records;
        todo!()
    }

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// Those of fdatasync(2); all later calls fail too, since the kernel may have dropped what it could not write.
    pub fn sync(&mut self) -> io::Result<()> {
        todo!()
    }
}
