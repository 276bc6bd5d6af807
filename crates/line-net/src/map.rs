//! Memory that the kernel shares.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A mapping of a descriptor.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the mapping alone, and is not tied to a thread.
unsafe impl Send for Map {}
// SAFETY: words are atomic; bytes are lent and written by rings, which are changed through `&mut` alone.
unsafe impl Sync for Map {}

impl Map {
    /// Maps so many bytes of a descriptor from an offset on.
    pub fn of(fd: &OwnedFd, bytes: usize, offset: libc::off_t) -> io::Result<Map> {
        Map::new(fd.as_raw_fd(), bytes, offset, libc::MAP_SHARED)
    }

    /// Memory of the process's own, which it shares with the kernel itself.
    pub fn anonymous(bytes: usize) -> io::Result<Map> {
        Map::new(-1, bytes, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS)
    }

    fn new(fd: RawFd, bytes: usize, offset: libc::off_t, flags: libc::c_int) -> io::Result<Map> {
        // SAFETY: the kernel chooses the place; the mapping lives until this is dropped.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), bytes, access, flags | libc::MAP_POPULATE, fd, offset)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping is not at 0");
        Ok(Map { start, bytes })
    }

    /// A pointer to a byte, with room for `bytes` behind it.
    ///
    /// # Panics
    /// When that is beyond the end.
    #[inline]
    pub fn at(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "beyond the mapping");
        // SAFETY: the offset lies within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// A word that the kernel writes too, aligned to four bytes.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "a word is aligned");
        // SAFETY: it lies within the mapping, whose start is that of a page, and all access to it is atomic.
        unsafe { &*self.at(offset, 4).cast::<AtomicU32>() }
    }

    /// Bytes that the kernel does not write while they are lent.
    #[inline]
    pub fn bytes(&self, offset: usize, bytes: usize) -> &[u8] {
        // SAFETY: they lie within the mapping; the owner of a ring's place lends them while the place is its own.
        unsafe { std::slice::from_raw_parts(self.at(offset, bytes), bytes) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: it is the mapping that was made.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
