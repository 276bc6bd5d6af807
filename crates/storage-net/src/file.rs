//! A file or block device as a medium.
//!
//! Writes go to the page cache: they survive the end of this process, kill -9 included. A durable operation ends with
//! fdatasync(2): then it survives a power loss as far as the kernel and the drive honour it.
//!
//! Another program may truncate the file. A write beyond the new end would extend it with zeros in place of the lost
//! data. So the medium reads and writes only up to the smallest size observed, and checks the size before each write.

use crate::buffer_pool::DataBuffer;
use crate::group_sync::GroupSync;
use crate::lock::{lock, LockKind};
use bytes::Bytes;
use rustix::fs::{fadvise, fallocate, seek, Advice, FallocateFlags, SeekFrom};
use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use storage::scsi::{Medium, MediumError, Op, Outcome};
use wire::iscsi::{Payload, Rope};

/// Size of the scratch buffer for zeros, patterns and comparisons, bytes: one per thread, outside of the memory budget.
const SCRATCH: usize = 256 << 10;

/// A file as a medium.
#[derive(Debug)]
pub struct FileMedium {
    file: File,
    bytes: u64,
    /// Bytes never truncated: the smallest size observed, at most `bytes`.
    intact: AtomicU64,
    /// The truncation has been reported.
    truncation_reported: AtomicBool,
    block_bytes: u64,
    /// True if the file system supports RWF_NOWAIT, as far as is known.
    nowait_supported: AtomicBool,
    /// Held exclusively by read-modify-write operations.
    write_lock: RwLock<()>,
    group_sync: GroupSync,
}

/// The block behind the last one that an operation is about; 0: it is about none in particular.
fn end_of(op: &Op, block_bytes: u64) -> u64 {
    let behind = |lba: u64, data: &Rope| lba + data.len() as u64 / block_bytes;
    match op {
        Op::Read { lba, blocks } | Op::Verify { lba, blocks } | Op::Compare { lba, blocks, .. } => {
            lba + u64::from(*blocks)
        }
        Op::Write { lba, data, .. } | Op::OrWrite { lba, data, .. } | Op::CompareAndWrite { lba, data, .. } => {
            behind(*lba, data)
        }
        Op::WriteSame { lba, blocks, .. } | Op::Prefetch { lba, blocks } => lba + blocks,
        Op::Unmap { ranges } => ranges.iter().map(|&(lba, blocks)| lba + u64::from(blocks)).max().unwrap_or(0),
        Op::Allocation { lba } => lba + 1,
        Op::Flush => 0,
    }
}

fn reads(op: &Op) -> bool {
    let advice = matches!(op, Op::Prefetch { .. } | Op::Allocation { .. });
    advice || matches!(op, Op::Read { .. } | Op::Verify { .. } | Op::Compare { .. })
}

/// Returns the end of a file or block device, bytes.
fn end_of_file(file: &File) -> io::Result<u64> {
    // A block device tells its length by its end only. Nobody uses the position that this changes.
    Ok(seek(file, SeekFrom::End(0))?)
}

fn written(error: &io::Error) -> Outcome {
    let full = matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
    Outcome::Failed(if full { MediumError::NoSpace } else { MediumError::Write })
}

impl FileMedium {
    /// Opens and locks a file or block device: to have it alone, or with others where it is only read or all of them
    /// share it.
    ///
    /// # Errors
    /// The kernel's, a file that is smaller than a block, `WouldBlock` for one that is in use.
    pub fn open(path: &Path, read_only: bool, shared: bool, block_bytes: u32) -> io::Result<FileMedium> {
        let file = OpenOptions::new().read(true).write(!read_only).open(path)?;
        lock(&file, if read_only || shared { LockKind::Shared } else { LockKind::Exclusive })?;
        let end = end_of_file(&file)?;
        let block_bytes = u64::from(block_bytes);
        let bytes = end / block_bytes * block_bytes;
        if bytes == 0 {
            let text = format!("{end} bytes long; at least one block of {block_bytes} is needed (truncate -s 1G FILE)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(FileMedium {
            file,
            bytes,
            intact: AtomicU64::new(bytes),
            truncation_reported: AtomicBool::new(false),
            block_bytes,
            nowait_supported: AtomicBool::new(true),
            write_lock: RwLock::new(()),
            group_sync: GroupSync::default(),
        })
    }

    /// Whole blocks.
    pub fn blocks(&self) -> u64 {
        self.bytes / self.block_bytes
    }

    /// Updates the observed size.
    fn check_size(&self) {
        // An error says nothing about the size.
        if let Ok(end) = end_of_file(&self.file) {
            self.intact.fetch_min(end, Ordering::Relaxed);
        }
    }

    /// The outcome of an operation on blocks that were truncated away; None: they are there.
    fn truncated(&self, op: &Op) -> Option<Outcome> {
        if !reads(op) {
            self.check_size();
        }
        let intact = self.intact.load(Ordering::Relaxed);
        // A flush says that all that was written is on the medium, and that is not so any more.
        let is_lost =
            end_of(op, self.block_bytes) * self.block_bytes > intact || matches!(op, Op::Flush) && intact < self.bytes;
        is_lost.then_some(Outcome::Failed(if reads(op) { MediumError::Read } else { MediumError::Write }))
    }

    fn read(&self, lba: u64, blocks: u32) -> io::Result<Bytes> {
        self.read_bytes(lba * self.block_bytes, (u64::from(blocks) * self.block_bytes) as usize)
    }

    fn read_bytes(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let mut data = DataBuffer::new(length);
        while data.left() > 0 {
            match self.read_on(start, &mut data, 0) {
                Ok(0) => {
                    self.check_size();
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(data.into_bytes())
    }

    /// The data if all of it is in the page cache. A file system that cannot tell (EOPNOTSUPP: one in memory, mostly)
    /// has it.
    fn cached(&self, lba: u64, blocks: u32) -> Option<Bytes> {
        let length = (u64::from(blocks) * self.block_bytes) as usize;
        let mut data = DataBuffer::new(length);
        let mut flags = if self.nowait_supported.load(Ordering::Relaxed) { libc::RWF_NOWAIT } else { 0 };
        while data.left() > 0 {
            match self.read_on(lba * self.block_bytes, &mut data, flags) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) && flags != 0 => {
                    // Nor will it the next time.
                    self.nowait_supported.store(false, Ordering::Relaxed);
                    flags = 0;
                }
                Err(_) => return None,
            }
        }
        Some(data.into_bytes())
    }

    /// One system call for the missing part of the data from `start` on.
    fn read_on(&self, start: u64, data: &mut DataBuffer, flags: libc::c_int) -> io::Result<usize> {
        let at = (start + data.filled() as u64) as libc::off_t;
        let (to, wanted) = data.spare();
        let into = libc::iovec { iov_base: to.cast(), iov_len: wanted };
        // SAFETY: `wanted` bytes are there to be written.
        let got = unsafe { libc::preadv2(self.file.as_raw_fd(), &into, 1, at, flags) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel wrote that many bytes.
        unsafe { data.fill(got) };
        Ok(got)
    }

    fn write(&self, lba: u64, data: &Rope) -> io::Result<()> {
        let mut at = lba * self.block_bytes;
        for piece in data.pieces() {
            match piece {
                Payload::Bytes(bytes) => self.file.write_all_at(bytes, at)?,
                Payload::Zeros(length) => self.zeros(at, u64::from(*length))?,
            }
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn sync(&self, durable: bool) -> io::Result<()> {
        if durable {
            self.group_sync.sync(|| self.file.sync_data())?;
        }
        Ok(())
    }

    /// The notice about the file, once.
    pub(crate) fn take_notice(&self) -> Option<String> {
        let (intact, bytes) = (self.intact.load(Ordering::Relaxed), self.bytes);
        if intact < bytes && !self.truncation_reported.swap(true, Ordering::Relaxed) {
            return Some(format!(
                "the file was truncated to {intact} of {bytes} bytes: commands behind its end fail with MEDIUM ERROR \
                 until the target is started anew"
            ));
        }
        self.group_sync.take_notice()
    }

    fn zeros(&self, mut at: u64, mut length: u64) -> io::Result<()> {
        if fallocate(&self.file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, at, length).is_ok() {
            return Ok(());
        }
        let zeros = vec![0; SCRATCH.min(length as usize)];
        while length > 0 {
            let now = zeros.len().min(length as usize);
            self.file.write_all_at(&zeros[..now], at)?;
            at += now as u64;
            length -= now as u64;
        }
        Ok(())
    }

    /// Gives blocks back to the file system; where it cannot take them they become zeros.
    fn unmap(&self, lba: u64, blocks: u64) -> io::Result<()> {
        let (at, length) = (lba * self.block_bytes, blocks * self.block_bytes);
        match fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, length) {
            Ok(()) => Ok(()),
            Err(_) => self.zeros(at, length),
        }
    }

    fn write_same(&self, lba: u64, blocks: u64, pattern: Option<&Payload>, unmap: bool) -> io::Result<()> {
        let pattern = pattern.map(Payload::to_bytes).filter(|bytes| bytes.iter().any(|&byte| byte != 0));
        let Some(pattern) = pattern else {
            if unmap {
                return self.unmap(lba, blocks);
            }
            return self.zeros(lba * self.block_bytes, blocks * self.block_bytes);
        };
        let at_once = (SCRATCH as u64 / self.block_bytes).min(blocks);
        let many = pattern.repeat(at_once as usize);
        let mut done = 0;
        while done < blocks {
            let now = at_once.min(blocks - done);
            let bytes = &many[..(now * self.block_bytes) as usize];
            self.file.write_all_at(bytes, (lba + done) * self.block_bytes)?;
            done += now;
        }
        Ok(())
    }

    /// First byte where the medium differs from the data.
    fn compare(&self, lba: u64, data: &Rope) -> io::Result<Option<u64>> {
        let mut place = 0;
        for (piece, there) in self.with_medium(lba, data) {
            let (piece, there) = (piece.to_bytes(), there?);
            if let Some(at) = there.iter().zip(&piece).position(|(a, b)| a != b) {
                return Ok(Some(place + at as u64));
            }
            place += piece.len() as u64;
        }
        Ok(None)
    }

    /// Pieces of `data`, each with the medium's data at the same place.
    fn with_medium<'a>(&'a self, lba: u64, data: &'a Rope) -> impl Iterator<Item = (Payload, io::Result<Bytes>)> + 'a {
        let step = SCRATCH / self.block_bytes as usize * self.block_bytes as usize;
        let mut rest = data.clone();
        let mut at = lba * self.block_bytes;
        std::iter::from_fn(move || {
            let piece = rest.split_to(step).to_payload();
            let (start, length) = (at, piece.len());
            at += length as u64;
            (length > 0).then(|| (piece, self.read_bytes(start, length)))
        })
    }

    fn or_write(&self, lba: u64, data: &Rope) -> io::Result<()> {
        let mut at = lba * self.block_bytes;
        for (piece, there) in self.with_medium(lba, data) {
            let both: Vec<u8> = there?.iter().zip(&piece.to_bytes()).map(|(a, b)| a | b).collect();
            self.file.write_all_at(&both, at)?;
            at += both.len() as u64;
        }
        Ok(())
    }

    /// Reads and discards.
    fn verify(&self, lba: u64, blocks: u32) -> io::Result<()> {
        let (mut at, end) = (lba * self.block_bytes, (lba + u64::from(blocks)) * self.block_bytes);
        while at < end {
            let now = SCRATCH.min((end - at) as usize);
            self.read_bytes(at, now)?;
            at += now as u64;
        }
        Ok(())
    }

    /// Returns the allocation of the blocks from one on, to the first change.
    fn allocation(&self, lba: u64) -> (u64, u32, bool) {
        // Nobody uses the file's position.
        let find = |from| seek(&self.file, from).map_err(io::Error::from);
        let at = lba * self.block_bytes;
        self.extent(lba, find(SeekFrom::Data(at)), find(SeekFrom::Hole(at)))
    }

    /// The same by where the file's next data and next hole are.
    fn extent(&self, lba: u64, data: io::Result<u64>, hole: io::Result<u64>) -> (u64, u32, bool) {
        let data = match data {
            Ok(data) => data,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => self.bytes,
            // A block device supports none of it (EINVAL). A copy of a unit leaves out blocks that are not allocated,
            // so all of them count as allocated.
            Err(_) => lba * self.block_bytes,
        };
        let is_mapped = data / self.block_bytes <= lba;
        let end = if is_mapped { hole.unwrap_or(self.bytes) } else { data };
        let blocks = (end.min(self.bytes) / self.block_bytes).saturating_sub(lba).max(1);
        (lba, u32::try_from(blocks).unwrap_or(u32::MAX), is_mapped)
    }

    fn attempt(&self, op: &Op) -> io::Result<Outcome> {
        let shared = || self.write_lock.read().unwrap_or_else(PoisonError::into_inner);
        let exclusive = || self.write_lock.write().unwrap_or_else(PoisonError::into_inner);
        match op {
            Op::Read { lba, blocks } => return self.read(*lba, *blocks).map(|data| Outcome::Data(data.into())),
            Op::Verify { lba, blocks } => self.verify(*lba, *blocks)?,
            Op::Write { lba, data, durable, verify } => {
                {
                    let _guard = shared();
                    self.write(*lba, data)?;
                }
                self.sync(*durable)?;
                if *verify && self.compare(*lba, data)?.is_some() {
                    return Ok(Outcome::Failed(MediumError::Write));
                }
            }
            Op::WriteSame { lba, blocks, pattern, unmap, durable } => {
                {
                    let _guard = shared();
                    self.write_same(*lba, *blocks, pattern.as_ref(), *unmap)?;
                }
                self.sync(*durable)?;
            }
            Op::Unmap { ranges } => {
                let _guard = shared();
                for &(lba, blocks) in ranges {
                    self.unmap(lba, u64::from(blocks))?;
                }
            }
            Op::CompareAndWrite { lba, expected, data, durable } => {
                {
                    let _guard = exclusive();
                    if let Some(at) = self.compare(*lba, expected)? {
                        return Ok(Outcome::Miscompare(at));
                    }
                    self.write(*lba, data)?;
                }
                self.sync(*durable)?;
            }
            Op::OrWrite { lba, data, durable } => {
                {
                    let _guard = exclusive();
                    self.or_write(*lba, data)?;
                }
                self.sync(*durable)?;
            }
            Op::Compare { lba, data, .. } => {
                if let Some(at) = self.compare(*lba, data)? {
                    return Ok(Outcome::Miscompare(at));
                }
            }
            Op::Prefetch { lba, blocks } => {
                let (at, length) = (lba * self.block_bytes, blocks * self.block_bytes);
                // Advice that is not taken is no error.
                let _ = fadvise(&self.file, at, NonZeroU64::new(length), Advice::WillNeed);
            }
            Op::Flush => self.sync(true)?,
            Op::Allocation { lba } => return Ok(Outcome::Allocation(vec![self.allocation(*lba)])),
        }
        Ok(Outcome::Done)
    }

    /// The outcome of an operation that does not block: page cache reads and writes, advice. None: it may block.
    pub fn try_immediate(&self, op: &Op) -> Option<Outcome> {
        match op {
            Op::Read { lba, blocks } => {
                self.truncated(op).or_else(|| self.cached(*lba, *blocks).map(|data| Outcome::Data(data.into())))
            }
            Op::Write { durable: false, verify: false, .. } | Op::Prefetch { .. } => Some(self.perform(op)),
            _ => None,
        }
    }
}

impl Medium for FileMedium {
    fn perform(&self, op: &Op) -> Outcome {
        if let Some(failed) = self.truncated(op) {
            return failed;
        }
        self.attempt(op).unwrap_or_else(|error| {
            if reads(op) || error.kind() == io::ErrorKind::UnexpectedEof {
                Outcome::Failed(MediumError::Read)
            } else {
                written(&error)
            }
        })
    }
}

#[cfg(test)]
mod tests;
