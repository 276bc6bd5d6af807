//! A part: a file that is not whole yet.

use super::metadata;
use crate::identity::identity;
use crate::page_cache::drop_pages;
use copy::{Entry, Identity};
use rustix::fs::{copy_file_range, fallocate, ftruncate, seek, FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes copied at once where the kernel does not copy between files, and of zeros where it makes no holes.
const BUFFER_BYTES: usize = 256 * 1024;

/// Origin of a part's content before the first chunk is written.
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

/// Place of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In the state folder.
    State,
    /// Beside the name that it gets: that is on another mount than the state folder.
    Beside,
    /// It is a block device, written in place.
    Device,
}

/// A file that is not whole yet, or a block device. Any thread may write any range.
pub struct Part {
    pub(super) number: u64,
    pub(super) file: File,
    pub(super) home: Home,
    /// Its own name at home.
    pub(super) name: Vec<u8>,
    /// Its path below the destination.
    pub(super) path: Vec<Vec<u8>>,
    pub(super) resumed: bool,
    pub(super) base: Option<File>,
    /// A reflink: all of the base is in it.
    pub(super) cloned: bool,
    /// Some of its content is the base's.
    pub(super) took: AtomicBool,
    /// Its own name is durable.
    pub(super) named: AtomicBool,
    /// It has its metadata, which fdatasync(2) leaves out.
    pub(super) sealed: AtomicBool,
}

impl Part {
    /// True if an earlier attempt's part was found: what the journal says of its chunks holds.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// Number of its entry.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Length, bytes; of a device 0.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns whether the part's modification time is the entry's: it was sealed and is unchanged.
    pub(crate) fn has_time_of(&self, entry: &Entry) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|stat| metadata::stamp(&stat) == entry.modified)
    }

    /// First byte of the first hole from `offset` on; the end of a file begins one. The highest number where the file
    /// system does not tell holes.
    pub(crate) fn first_hole(&self, offset: u64) -> u64 {
        seek(&self.file, SeekFrom::Hole(offset)).unwrap_or(u64::MAX)
    }

    /// Writes all of `data` at `offset`.
    ///
    /// # Errors
    /// Those of pwrite(2); see [`crate::is_full`].
    pub fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    /// Fills `buffer` from `offset`; beyond the end: `UnexpectedEof`.
    ///
    /// # Errors
    /// Those of pread(2).
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Takes [begin, end) over from the base, in the kernel (nothing to do after a reflink, and for a device). Only
    /// with `Base::Existing` or `Base::Older`, or a part resumed where there is such a base.
    ///
    /// # Errors
    /// Those of copy_file_range(2); `UnexpectedEof` where the base is shorter.
    pub fn take(&self, begin: u64, end: u64) -> io::Result<()> {
        self.took.store(true, Ordering::Release);
        if self.cloned || self.home == Home::Device {
            return Ok(());
        }
        let base = self.base.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
        if base.metadata()?.len() < end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut at = begin;
        while at < end {
            // Holes of the base stay holes. Where it cannot be asked, it has none.
            let data = match seek(base, SeekFrom::Data(at)) {
                Ok(data) => data.clamp(at, end),
                Err(Errno::NXIO) => end,
                Err(_) => at,
            };
            if data > at {
                self.hole(at, data)?;
            }
            let next = match seek(base, SeekFrom::Hole(data)) {
                Ok(hole) if data < end => hole.clamp(data, end),
                _ => end,
            };
            self.copy_from(base, data, next)?;
            at = next;
        }
        Ok(())
    }

    /// True if content was taken over from a base that is not the file of this identity any more: another process has
    /// written to it since its chunks were hashed.
    pub(crate) fn took_from_another(&self, base: Identity) -> bool {
        let is_base = |file: &File| rustix::fs::fstat(file).is_ok_and(|stat| identity(&stat) == base);
        self.took.load(Ordering::Acquire) && self.base.as_ref().is_some_and(|file| !is_base(file))
    }

    fn copy_from(&self, base: &File, begin: u64, end: u64) -> io::Result<()> {
        let mut at = begin;
        while at < end {
            let (mut from, mut to) = (at, at);
            let length = usize::try_from(end - at).unwrap_or(usize::MAX);
            match copy_file_range(base, Some(&mut from), &self.file, Some(&mut to), length) {
                // Some file systems answer 0 or EINVAL where they do not copy (copy_file_range(2), "Bugs").
                Ok(0) | Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) => break,
                Ok(bytes) => at += bytes as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut buffer = vec![0; if at < end { BUFFER_BYTES } else { 0 }];
        while at < end {
            let length = usize::try_from(end - at).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
            base.read_exact_at(&mut buffer[..length], at)?;
            self.write_at(at, &buffer[..length])?;
            at += length as u64;
        }
        Ok(())
    }

    /// Makes [begin, end) read as zeros, as a hole where the file system has them. A hole at the end needs
    /// [`Part::set_len`] too.
    ///
    /// # Errors
    /// Those of fallocate(2) and pwrite(2).
    pub fn hole(&self, begin: u64, end: u64) -> io::Result<()> {
        if begin >= end {
            return Ok(());
        }
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&self.file, flags, begin, end - begin) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.zeros(begin, end),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes zeros where there is something; beyond the end of a file is a hole anyway.
    fn zeros(&self, begin: u64, end: u64) -> io::Result<()> {
        let there = if self.home == Home::Device { end } else { self.file.metadata()?.len().min(end) };
        let zeros = vec![0; BUFFER_BYTES];
        let mut at = begin;
        while at < there {
            let length = usize::try_from(there - at).map_or(BUFFER_BYTES, |left| left.min(BUFFER_BYTES));
            self.write_at(at, &zeros[..length])?;
            at += length as u64;
        }
        Ok(())
    }

    /// Sets the length, bytes; nothing for a device.
    ///
    /// # Errors
    /// Those of ftruncate(2).
    pub fn set_len(&self, size: u64) -> io::Result<()> {
        if self.home != Home::Device {
            ftruncate(&self.file, size)?;
        }
        Ok(())
    }

    /// Drops the pages of [begin, end) from the page cache: after [`super::Destination::sync`], to leave room for
    /// others, and before `verify_read`, so that the disk is read.
    pub fn release(&self, begin: u64, end: u64) {
        drop_pages(self.file.as_fd(), begin, end);
    }

    /// Makes what was written durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        match self.sealed.load(Ordering::Acquire) {
            true => self.file.sync_all(),
            false => self.file.sync_data(),
        }
    }
}
