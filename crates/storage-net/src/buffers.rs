//! Buffers for large data, used again instead of given back.
//!
//! Large pieces come and go here from many threads. glibc gives threads arenas (mallopt(3), M_ARENA_MAX) and keeps in
//! each what is not at its end, which can be several times what is held. To map each piece anew (M_MMAP_THRESHOLD)
//! costs more than copying its data. So they are mapped, and those that were used last are kept for those that come
//! next.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Data from this on gets a buffer of its own pages, bytes. What the last page has too much is then 6 % at most.
pub(crate) const LARGE: usize = 64 << 10;
/// All that is kept for later, bytes.
pub(crate) const KEPT: usize = 16 << 20;

/// Pages of the size of this machine's, mapped for this process alone.
#[derive(Debug)]
struct Pages {
    at: *mut u8,
    length: usize,
}

// SAFETY: whoever has the pages has them alone, as with a Box.
unsafe impl Send for Pages {}
// SAFETY: a shared reference gives bytes to read alone.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(length: usize) -> Pages {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping wherever the kernel likes.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        // As with a Vec: without memory there is no going on.
        assert!(at != libc::MAP_FAILED, "{length} bytes of memory: {}", std::io::Error::last_os_error());
        Pages { at: at.cast(), length }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nobody has a reference to it any more.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}

/// Those that are free, the last used at the end.
static FREE: Mutex<(VecDeque<Pages>, usize)> = Mutex::new((VecDeque::new(), 0));

/// A buffer of so many bytes, which hold something or other until they are written.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// None when it is dropped.
    pages: Option<Pages>,
    length: usize,
}

impl Buffer {
    /// One that is free, or a new one.
    pub fn take(length: usize) -> Buffer {
        // SAFETY: sysconf takes no pointers; the size of a page is always known.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let rounded = length.max(1).next_multiple_of(page);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.0.iter().rposition(|pages| pages.length == rounded).and_then(|at| free.0.remove(at));
        free.1 -= found.as_ref().map_or(0, |pages| pages.length);
        drop(free);
        Buffer { pages: Some(found.unwrap_or_else(|| Pages::map(rounded))), length }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        match &mut self.pages {
            // SAFETY: so many bytes are mapped, and the buffer is borrowed for writing.
            Some(pages) => unsafe { std::slice::from_raw_parts_mut(pages.at, self.length) },
            None => &mut [],
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        match &self.pages {
            // SAFETY: so many bytes are mapped, and the buffer is borrowed.
            Some(pages) => unsafe { std::slice::from_raw_parts(pages.at, self.length) },
            None => &[],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(pages) = self.pages.take() else { return };
        let mut gone = Vec::new();
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.1 += pages.length;
        free.0.push_back(pages);
        while free.1 > KEPT {
            // Those of a size that nobody wants any more go first.
            let Some(pages) = free.0.pop_front() else { break };
            free.1 -= pages.length;
            gone.push(pages);
        }
        drop(free);
        // Unmapped when nobody waits for it.
        drop(gone);
    }
}

/// Room for data of a known length that comes in pieces.
#[derive(Debug)]
pub(crate) enum Space {
    /// On the heap: what it has, and its length.
    Small(Vec<u8>, usize),
    /// In pages, with how much was filled.
    Large(Buffer, usize),
}

impl Space {
    pub fn new(length: usize) -> Space {
        if length < LARGE {
            return Space::Small(Vec::with_capacity(length), length);
        }
        Space::Large(Buffer::take(length), 0)
    }

    /// Bytes that are there.
    pub fn filled(&self) -> usize {
        match self {
            Space::Small(data, _) => data.len(),
            Space::Large(_, filled) => *filled,
        }
    }

    /// Bytes that are missing.
    pub fn left(&self) -> usize {
        match self {
            Space::Small(data, length) => length - data.len(),
            Space::Large(buffer, filled) => buffer.length - filled,
        }
    }

    /// Where the missing bytes go.
    pub fn spare(&mut self) -> (*mut u8, usize) {
        let left = self.left();
        match self {
            Space::Small(data, _) => (data.spare_capacity_mut().as_mut_ptr().cast(), left),
            Space::Large(buffer, filled) => (buffer.bytes()[*filled..].as_mut_ptr(), left),
        }
    }

    /// So many more bytes are there.
    ///
    /// # Safety
    /// They were written to where [`Space::spare`] says, and are not more than that has.
    pub unsafe fn fill(&mut self, bytes: usize) {
        match self {
            // SAFETY: the caller wrote them.
            Space::Small(data, _) => unsafe { data.set_len(data.len() + bytes) },
            Space::Large(_, filled) => *filled += bytes,
        }
    }

    /// Adds what is here already.
    ///
    /// # Panics
    /// When it is more than is missing.
    pub fn push(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.left(), "{} bytes where {} are missing", bytes.len(), self.left());
        match self {
            Space::Small(data, _) => data.extend_from_slice(bytes),
            Space::Large(buffer, filled) => {
                buffer.bytes()[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                *filled += bytes.len();
            }
        }
    }

    /// What is there.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Space::Small(data, _) => data.into(),
            Space::Large(buffer, filled) => Bytes::from_owner(buffer).slice(..filled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_and_no_more_are_kept_than_may_be() {
        // A size that no other test uses.
        let length = 3 * LARGE + 2;
        let mut first = Buffer::take(length);
        assert_eq!((first.bytes().len(), first.as_ref().len()), (length, length));
        first.bytes().fill(7);
        let at = first.as_ref().as_ptr();
        drop(first);
        let again = Buffer::take(length - 1);
        assert_eq!(again.as_ref().as_ptr(), at, "of as many pages");
        assert_ne!(Buffer::take(length).as_ref().as_ptr(), at, "it is in use");
        let many: Vec<Buffer> = (0..100).map(|_| Buffer::take(1 << 20)).collect();
        drop(many);
        let free = FREE.lock().unwrap();
        assert_eq!(free.0.iter().map(|pages| pages.length).sum::<usize>(), free.1);
        assert!(free.1 <= KEPT);
    }
}
