//! Files removed, with the bytes of disk that they took.

use rustix::fs::{statat, unlinkat, AtFlags, Stat};
use rustix::path::Arg;
use std::os::fd::BorrowedFd;

/// Removes a file; returns the bytes of disk that are free after it.
pub(super) fn remove_file(folder: BorrowedFd<'_>, name: impl Arg + Copy) -> u64 {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    let removed = unlinkat(folder, name, AtFlags::empty());
    match (stat, removed) {
        (Ok(stat), Ok(())) if stat.st_nlink == 1 => disk_bytes(&stat),
        _ => 0,
    }
}

/// Bytes of disk that an inode takes: st_blocks has units of 512 bytes (stat(2)).
pub(super) fn disk_bytes(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512)
}
