//! Waiting for a socket or for another thread.

use rustix::event::{eventfd, poll, EventfdFlags, PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use units::Span;

/// Another thread can end a wait with it (eventfd(2)).
#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Ends a wait, or the next one.
    pub(crate) fn wake(&self) {
        // It fails when the counter is full: then it wakes anyway.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        // Nothing to clear is no error.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    /// Waits for the socket (to read, to write), for [`Waker::wake`], or `timeout_ms`. Returns whether one of the first
    /// two came.
    pub(crate) fn wait(&self, socket: BorrowedFd<'_>, read: bool, write: bool, timeout_ms: i64) -> bool {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, read);
        events.set(PollFlags::OUT, write);
        let mut fds = [PollFd::new(&self.0, PollFlags::IN), PollFd::from_borrowed_fd(socket, events)];
        let ready = poll(&mut fds, Some(&milliseconds(timeout_ms))).unwrap_or(0);
        if ready > 0 && !fds[0].revents().is_empty() {
            self.clear();
        }
        ready > 0
    }

    /// Waits for the descriptors, for [`Waker::wake`], or for a time.
    pub(crate) fn wait_all<'fd>(&'fd self, fds: &mut Vec<PollFd<'fd>>, timeout: Span) {
        fds.push(PollFd::new(&self.0, PollFlags::IN));
        let timeout =
            Timespec { tv_sec: (timeout.0 / 1_000_000_000) as i64, tv_nsec: (timeout.0 % 1_000_000_000) as i64 };
        let ready = poll(fds, Some(&timeout)).unwrap_or(0);
        if ready > 0 && fds.last().is_some_and(|own| !own.revents().is_empty()) {
            self.clear();
        }
    }
}

/// A time as poll(2) takes it.
pub(crate) const fn milliseconds(ms: i64) -> Timespec {
    Timespec { tv_sec: ms / 1000, tv_nsec: ms % 1000 * 1_000_000 }
}
