//! Waking the thread that carries packets.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::Arc;

/// A descriptor that wakes the thread.
pub struct Wake(Arc<File>);

impl Wake {
    pub fn new() -> std::io::Result<Wake> {
        // SAFETY: a plain system call; the descriptor is new and owned by the File alone.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: as above.
        Ok(Wake(Arc::new(unsafe { File::from_raw_fd(fd) })))
    }

    pub fn set(&self) {
        // The write can fail only if 2^64 - 1 wake-ups are unread.
        let _ = (&*self.0).write(&1u64.to_ne_bytes());
    }

    /// The same descriptor, for the thread that waits.
    pub fn share(&self) -> Wake {
        Wake(Arc::clone(&self.0))
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn clear(&self) {
        // Nothing to clear is no error.
        let _ = (&*self.0).read(&mut [0; 8]);
    }
}
