//! A journal on disk: records are appended and synced, a torn tail is cut off.

use rustix::fs::{openat, Mode, OFlags, CWD};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// An open journal.
pub struct JournalFile {
    file: File,
    /// An earlier call failed: the tail is not known.
    failed: bool,
}

impl JournalFile {
    /// Opens or makes the journal and returns its whole records. `whole` counts bytes of whole records at the beginning
    /// of its argument (length and CRC32C are checked by `copy`); the file is cut there.
    ///
    /// # Errors
    /// Those of open(2), read(2), ftruncate(2), fsync(2).
    pub fn open(path: &Path, whole: impl Fn(&[u8]) -> usize) -> io::Result<(JournalFile, Vec<u8>)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)?);
        let mut records = vec![];
        file.read_to_end(&mut records)?;
        let end = whole(&records).min(records.len());
        if end < records.len() {
            // A record after a torn one was never acknowledged: records are synced in order.
            file.set_len(end as u64)?;
            records.truncate(end);
        }
        file.seek(SeekFrom::Start(end as u64))?;
        file.sync_all()?;
        if let Some(folder) = path.parent() {
            File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()?;
        }
        Ok((JournalFile { file, failed: false }, records))
    }

    /// Appends records.
    ///
    /// # Errors
    /// Those of write(2); all later calls fail too, since the tail may be torn. On a full disk nothing is appended, and
    /// the call may be repeated.
    pub fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let end = self.file.stream_position()?;
        let appended = self.attempt(|file| file.write_all(records));
        if appended.as_ref().is_err_and(crate::names::is_full) {
            self.failed = self.file.set_len(end).is_err() || self.file.seek(SeekFrom::Start(end)).is_err();
        }
        appended
    }

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// Those of fdatasync(2); all later calls fail too, since the kernel may have dropped what it could not write.
    pub fn sync(&mut self) -> io::Result<()> {
        self.attempt(|file| file.sync_data())
    }

    fn attempt(&mut self, act: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the journal failed before"));
        }
        let done = act(&mut self.file);
        self.failed = done.is_err();
        done
    }
}
