//! Waiting for a socket or for another thread.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Another thread can end a wait with it (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        // SAFETY: eventfd takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned here.
        Ok(Waker(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Ends a wait, or the next one.
    pub(crate) fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: eight bytes are read from a buffer of eight. It fails when the counter is full: then it wakes anyway.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    fn clear(&self) {
        let mut count = [0; 8];
        // SAFETY: eight bytes are written to a buffer of eight.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }

    /// Waits for the socket (to read, to write), for [`Waker::wake`], or `timeout_ms`. Whether one of the first two
    /// came.
    pub(crate) fn wait(&self, socket: RawFd, read: bool, write: bool, timeout_ms: i32) -> bool {
        let events = if read { libc::POLLIN } else { 0 } | if write { libc::POLLOUT } else { 0 };
        let mut fds = [
            libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: socket, events, revents: 0 },
        ];
        // SAFETY: two entries are there; poll writes their revents.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, timeout_ms) };
        if ready > 0 && fds[0].revents != 0 {
            self.clear();
        }
        ready > 0
    }
}
