//! Parts of a sparse file that hold data.

use crate::beneath::Beneath;
use rustix::fs::{seek, OFlags, SeekFrom};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};

/// Most parts that an entry lists: 64 KiB of message. Where a file has more, its smallest holes count as data.
const EXTENTS_MAX: usize = 4096;

/// Parts of the file at `path` with data; None: all of it, or the file system does not tell.
pub(super) fn of(root: &Beneath, path: &[Vec<u8>], size: u64) -> Option<Vec<(u64, u64)>> {
    let file = root.open(path, OFlags::RDONLY | OFlags::NONBLOCK).ok()?;
    let mut found = vec![];
    // The smallest hole that counts doubles whenever there are too many parts.
    let mut hole_bytes = 1;
    let mut at = 0;
    while let Some((begin, end)) = next(file.as_fd(), at, size)? {
        add(&mut found, (begin, end), hole_bytes);
        if found.len() > EXTENTS_MAX {
            hole_bytes = (hole_bytes * 2).max(8192);
            for extent in std::mem::take(&mut found) {
                add(&mut found, extent, hole_bytes);
            }
        }
        at = end;
    }
    (found != [(0, size)]).then_some(found)
}

fn add(found: &mut Vec<(u64, u64)>, (begin, end): (u64, u64), hole_bytes: u64) {
    match found.last_mut() {
        Some(last) if begin - last.1 < hole_bytes => last.1 = end,
        _ => found.push((begin, end)),
    }
}

/// The first part with data from `at`; the outer None: seeking failed.
fn next(file: BorrowedFd<'_>, at: u64, size: u64) -> Option<Option<(u64, u64)>> {
    if at >= size {
        return Some(None);
    }
    let begin = match seek(file, SeekFrom::Data(at)) {
        Ok(begin) => begin,
        // Nothing but a hole (lseek(2)).
        Err(Errno::NXIO) => return Some(None),
        Err(_) => return None,
    };
    let end = seek(file, SeekFrom::Hole(begin)).ok()?.min(size);
    Some((begin < end).then_some((begin, end)))
}
