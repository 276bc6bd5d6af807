//! Block devices.

use rustix::fs::{seek, SeekFrom};
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes of a block device: the end that lseek(2) finds, as BLKGETSIZE64 tells it.
pub(crate) fn bytes(device: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(seek(device, SeekFrom::End(0))?)
}
