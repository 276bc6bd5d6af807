//! A source's file: read at any offset by any thread, its identity looked at, the page cache left as it was.

use super::metadata::{self, Wanted};
use super::origin::Origin;
use crate::identity::identity;
use crate::names::{fault, words};
use crate::page_cache::{any_cached, drop_pages};
use copy::{Entry, EntryKind, FaultKind, FileFault, Identity};
use rustix::fs::{fstat, statat, AtFlags, FileType, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

/// Flags to read a file with: a FIFO that took its name meanwhile does not block.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// The files of a [`super::SourceTree`].
pub struct SourceFiles {
    origins: Vec<Origin>,
    /// Number of the first entry of each source that the walk has begun.
    begins: Mutex<Vec<u64>>,
    wanted: Wanted,
}

impl SourceFiles {
    pub(super) fn new(origins: Vec<Origin>, wanted: Wanted) -> SourceFiles {
        SourceFiles { origins, begins: Mutex::new(vec![]), wanted }
    }

    pub(super) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Notes that the walk begins with the next source, of which `number` is the first entry.
    pub(super) fn begins(&self, number: u64) {
        self.begins.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(number);
    }

    /// Device number of a source's folder.
    pub(super) fn device_of(&self, origin: usize) -> u64 {
        fstat(self.origins[origin].root.root()).map_or(0, |stat| stat.st_dev)
    }

    fn origin_of(&self, number: u64) -> &Origin {
        let begins = self.begins.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        &self.origins[begins.partition_point(|begin| *begin <= number).saturating_sub(1)]
    }

    /// Opens the file of an entry of kind `File`. The caller compares [`SourceFile::identity`] with the entry's.
    ///
    /// # Errors
    /// `Unreadable`: it is gone, is no file any more or may not be read.
    pub fn open(&self, number: u64, entry: &Entry) -> Result<SourceFile, FileFault> {
        self.open_file(number, entry).map_err(|error| fault(&entry.path, FaultKind::Unreadable, words(&error)))
    }

    fn open_file(&self, number: u64, entry: &Entry) -> io::Result<SourceFile> {
        let origin = self.origin_of(number);
        let below = origin.below(&entry.path);
        // Reading need not leave a trace; the owner and root alone may ask for that (open(2)).
        let fd = origin.root.open(&below, READ | OFlags::NOATIME).or_else(|_| origin.root.open(&below, READ))?;
        let device = origin.is_device();
        let want = if device { FileType::BlockDevice } else { FileType::RegularFile };
        if FileType::from_raw_mode(fstat(&fd)?.st_mode) != want {
            return Err(io::Error::other("it is no file any more"));
        }
        let size = match entry.kind {
            EntryKind::File { size, .. } => size,
            _ => 0,
        };
        let keep = any_cached(fd.as_fd(), size);
        Ok(SourceFile { file: File::from(fd), device, keep })
    }

    /// The entry as it is now, for another try with a file that has changed.
    ///
    /// # Errors
    /// As [`SourceFiles::open`].
    pub fn again(&self, number: u64, entry: &Entry) -> Result<Entry, FileFault> {
        self.look_again(number, entry).map_err(|error| fault(&entry.path, FaultKind::Unreadable, words(&error)))
    }

    fn look_again(&self, number: u64, entry: &Entry) -> io::Result<Entry> {
        let origin = self.origin_of(number);
        if origin.is_device() {
            return self.device(origin);
        }
        let below = origin.below(&entry.path);
        let (name, parents) = below.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = origin.root.folder(parents)?;
        let stat = statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no file any more"));
        }
        metadata::entry(&origin.root, folder.as_fd(), &below, name, &entry.path, &stat, self.wanted)?
            .ok_or_else(|| io::Error::other("it is no file any more"))
    }

    /// The entry of a block device, read like a file. It shows no change: its identity is its number and size.
    pub(super) fn device(&self, origin: &Origin) -> io::Result<Entry> {
        let fd = origin.root.open(&origin.below(&origin.path), READ)?;
        let stat = fstat(&fd)?;
        let size = crate::device::bytes(fd.as_fd())?;
        Ok(Entry {
            path: origin.path.clone(),
            kind: EntryKind::File { size, extents: None },
            mode: 0o600,
            uid: stat.st_uid,
            gid: stat.st_gid,
            modified: identity(&stat).modified,
            xattrs: vec![],
            identity: Identity { device: stat.st_rdev, size, ..Identity::default() },
        })
    }
}

/// An open file or block device of the sources.
pub struct SourceFile {
    file: File,
    device: bool,
    /// Pages of it were cached before: somebody uses them.
    keep: bool,
}

impl SourceFile {
    /// Fills `buffer` from `offset`, in bytes.
    ///
    /// # Errors
    /// Those of pread(2); `UnexpectedEof` if the file ends before.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// The file's identity as it is now.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn identity(&self) -> io::Result<Identity> {
        let stat = fstat(&self.file)?;
        if self.device {
            let size = crate::device::bytes(self.file.as_fd())?;
            return Ok(Identity { device: stat.st_rdev, size, ..Identity::default() });
        }
        Ok(identity(&stat))
    }

    /// Gives back pages of [begin, end) that reading brought into the page cache; call it when they were sent.
    pub fn release(&self, begin: u64, end: u64) {
        if !self.keep {
            drop_pages(self.file.as_fd(), begin, end);
        }
    }
}
