//! Waking the thread that carries packets.

use rustix::event::{eventfd, EventfdFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// A descriptor that wakes the thread.
pub struct Wake(Arc<File>);

impl Wake {
    pub fn new() -> std::io::Result<Wake> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Wake(Arc::new(File::from(descriptor))))
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
