//! The page cache left as it was: pages that a copy alone brought in go when it is done with them.
//!
//! docs/design/copy-files.md has the measurements behind the choices.

use rustix::fs::Advice;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Number of cachestat(2), Linux 6.5, the same on each processor.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range` of linux/mman.h.
#[repr(C)]
struct Range {
    offset: u64,
    /// Bytes; 0: to the end.
    length: u64,
}

/// `struct cachestat` of linux/mman.h, pages.
#[repr(C)]
#[derive(Default)]
struct Pages {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// True if a page of the file's first `size` bytes is cached, or if that cannot be known.
pub(crate) fn any_cached(file: BorrowedFd<'_>, size: u64) -> bool {
    let range = Range { offset: 0, length: 0 };
    let mut pages = Pages::default();
    // SAFETY: both structures have the kernel's layout and outlive the call.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, 0) };
    match result {
        0 => pages.cached > 0,
        _ => any_resident(file, size),
    }
}

/// As [`any_cached`], by mincore(2), for kernels without cachestat(2).
fn any_resident(file: BorrowedFd<'_>, size: u64) -> bool {
    /// Bytes mapped at once: 2^18 answers of a byte.
    const WINDOW: u64 = 1 << 30;
    // SAFETY: sysconf(3) reads nothing of ours.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let mut answers = vec![0_u8; usize::try_from(WINDOW.min(size)).unwrap_or(usize::MAX).div_ceil(page)];
    let mut begin = 0;
    while begin < size {
        let Ok(length) = usize::try_from(WINDOW.min(size - begin)) else { return true };
        let Ok(offset) = libc::off_t::try_from(begin) else { return true };
        // SAFETY: a new mapping that nothing reads; it is unmapped below.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if at == libc::MAP_FAILED {
            return true;
        }
        // SAFETY: `answers` has a byte for each page of the mapping, which is this function's own.
        let failed = unsafe {
            let failed = libc::mincore(at, length, answers.as_mut_ptr()) != 0;
            libc::munmap(at, length);
            failed
        };
        if failed || answers[..length.div_ceil(page)].iter().any(|answer| answer & 1 == 1) {
            return true;
        }
        begin += WINDOW;
    }
    false
}

/// Drops the clean pages of [begin, end).
pub(crate) fn drop_pages(file: BorrowedFd<'_>, begin: u64, end: u64) {
    if let Some(length) = NonZeroU64::new(end.saturating_sub(begin)) {
        // An advice: where it is not taken nothing is lost.
        let _ = rustix::fs::fadvise(file, begin, Some(length), Advice::DontNeed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn cached_pages_are_seen_by_both_ways_and_dropped() {
        let path = std::env::temp_dir().join(format!("copy-net-pages-{}", std::process::id()));
        let mut file = std::fs::File::create_new(&path).unwrap();
        let written = file.write_all(&[7; 1 << 20]).and_then(|()| file.sync_all());
        let mut file = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        written.unwrap();
        assert!(any_cached(file.as_fd(), 1 << 20) && any_resident(file.as_fd(), 1 << 20));
        drop_pages(file.as_fd(), 0, 1 << 20);
        // A file system in memory alone keeps them.
        if !any_cached(file.as_fd(), 1 << 20) {
            assert!(!any_resident(file.as_fd(), 1 << 20));
            file.read_exact(&mut [0; 4096]).unwrap();
            assert!(any_cached(file.as_fd(), 1 << 20) && any_resident(file.as_fd(), 1 << 20));
        }
    }
}
