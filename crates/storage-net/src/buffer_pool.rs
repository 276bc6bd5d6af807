//! A pool of buffers for large data.
//!
//! Many threads allocate and free large buffers. glibc keeps freed memory per arena (mallopt(3), M_ARENA_MAX), several
//! times the memory in use. A new mapping per buffer (M_MMAP_THRESHOLD) costs more than copying its data. So buffers
//! are mapped, and the ones used last are kept for reuse.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Data from this size on, bytes, gets pages of its own; the last page then wastes 6 % at most.
pub(crate) const LARGE: usize = 64 << 10;
/// Largest total of free buffers, bytes.
pub(crate) const POOL_BYTES: usize = 16 << 20;

/// Pages of the size of this machine's, mapped for this process alone.
#[derive(Debug)]
struct Pages {
    at: *mut u8,
    length: usize,
}

// SAFETY: the owner of the pages owns them alone, as with a Box.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives bytes to read alone.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(length: usize) -> Pages {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the kernel likes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        // As with a Vec: out of memory is fatal.
        assert!(at != libc::MAP_FAILED, "{length} bytes of memory: {}", std::io::Error::last_os_error());
        Pages { at: at.cast(), length }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and no reference to it remains.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}

/// Free buffers, the last used at the end, and their total size.
static FREE_LIST: Mutex<(VecDeque<Pages>, usize)> = Mutex::new((VecDeque::new(), 0));

/// A buffer; its bytes are arbitrary until written.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    /// None when it is dropped.
    pages: Option<Pages>,
    length: usize,
}

impl PooledBuffer {
    /// A free buffer, or a new one.
    pub fn take(length: usize) -> PooledBuffer {
        // SAFETY: sysconf takes no pointers; the size of a page is always known.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let rounded = length.max(1).next_multiple_of(page);
        let mut free = FREE_LIST.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.0.iter().rposition(|pages| pages.length == rounded).and_then(|at| free.0.remove(at));
        free.1 -= found.as_ref().map_or(0, |pages| pages.length);
        drop(free);
        PooledBuffer { pages: Some(found.unwrap_or_else(|| Pages::map(rounded))), length }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        match &mut self.pages {
            // SAFETY: the mapping has `length` bytes, and the buffer is borrowed for writing.
            Some(pages) => unsafe { std::slice::from_raw_parts_mut(pages.at, self.length) },
            None => &mut [],
        }
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        match &self.pages {
            // SAFETY: the mapping has `length` bytes, and the buffer is borrowed.
            Some(pages) => unsafe { std::slice::from_raw_parts(pages.at, self.length) },
            None => &[],
        }
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        let Some(pages) = self.pages.take() else { return };
        let mut freed = Vec::new();
        let mut free = FREE_LIST.lock().unwrap_or_else(PoisonError::into_inner);
        free.1 += pages.length;
        free.0.push_back(pages);
        while free.1 > POOL_BYTES {
            // The least recently used go first.
            let Some(pages) = free.0.pop_front() else { break };
            free.1 -= pages.length;
            freed.push(pages);
        }
        drop(free);
        // Unmapped outside of the lock.
        drop(freed);
    }
}

/// A buffer for data of a known length that arrives in pieces.
#[derive(Debug)]
pub(crate) enum DataBuffer {
    /// On the heap, with its final length.
    Small(Vec<u8>, usize),
    /// In pages, with the bytes filled.
    Large(PooledBuffer, usize),
}

impl DataBuffer {
    pub fn new(length: usize) -> DataBuffer {
        if length < LARGE {
            return DataBuffer::Small(Vec::with_capacity(length), length);
        }
        DataBuffer::Large(PooledBuffer::take(length), 0)
    }

    /// Bytes filled.
    pub fn filled(&self) -> usize {
        match self {
            DataBuffer::Small(data, _) => data.len(),
            DataBuffer::Large(_, filled) => *filled,
        }
    }

    /// Bytes missing.
    pub fn left(&self) -> usize {
        match self {
            DataBuffer::Small(data, length) => length - data.len(),
            DataBuffer::Large(buffer, filled) => buffer.length - filled,
        }
    }

    /// Address and length of the missing part.
    pub fn spare(&mut self) -> (*mut u8, usize) {
        let left = self.left();
        match self {
            DataBuffer::Small(data, _) => (data.spare_capacity_mut().as_mut_ptr().cast(), left),
            DataBuffer::Large(buffer, filled) => (buffer.bytes()[*filled..].as_mut_ptr(), left),
        }
    }

    /// Counts `bytes` more as filled.
    ///
    /// # Safety
    /// They were written into [`DataBuffer::spare`], and fit it.
    pub unsafe fn fill(&mut self, bytes: usize) {
        match self {
            // SAFETY: the caller wrote them.
            DataBuffer::Small(data, _) => unsafe { data.set_len(data.len() + bytes) },
            DataBuffer::Large(_, filled) => *filled += bytes,
        }
    }

    /// Appends `bytes`.
    ///
    /// # Panics
    /// When it is more than is missing.
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.left(), "{} bytes where {} are missing", bytes.len(), self.left());
        match self {
            DataBuffer::Small(data, _) => data.extend_from_slice(bytes),
            DataBuffer::Large(buffer, filled) => {
                buffer.bytes()[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                *filled += bytes.len();
            }
        }
    }

    /// The filled bytes.
    pub fn into_bytes(self) -> Bytes {
        match self {
            DataBuffer::Small(data, _) => data.into(),
            DataBuffer::Large(buffer, filled) => Bytes::from_owner(buffer).slice(..filled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_and_the_pool_is_bounded() {
        // A size that no other test uses.
        let length = 3 * LARGE + 2;
        let mut first = PooledBuffer::take(length);
        assert_eq!((first.bytes().len(), first.as_ref().len()), (length, length));
        first.bytes().fill(7);
        let at = first.as_ref().as_ptr();
        drop(first);
        let again = PooledBuffer::take(length - 1);
        assert_eq!(again.as_ref().as_ptr(), at, "of as many pages");
        assert_ne!(PooledBuffer::take(length).as_ref().as_ptr(), at, "it is in use");
        let many: Vec<PooledBuffer> = (0..100).map(|_| PooledBuffer::take(1 << 20)).collect();
        drop(many);
        let free = FREE_LIST.lock().unwrap();
        assert_eq!(free.0.iter().map(|pages| pages.length).sum::<usize>(), free.1);
        assert!(free.1 <= POOL_BYTES);
    }
}
