//! Waiting for sockets, to the ns: epoll, edge by edge.

use super::socket::Socket;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use units::{Span, NS_PER_S};

/// The end of a flow at which an event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Listener,
    Sender,
    Receiver,
    /// Of a program: it has ended.
    Program,
}

/// Place in the list of connections, or of programs, and end that an event belongs to.
pub(crate) type Event = (usize, End);

/// Events taken by one wait; the rest comes with the next.
const BATCH: usize = 256;

pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a plain system call.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and has no other owner.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Poll { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH] })
    }

    /// Reports changes of `socket` from here on, once per change: readable if it receives, writable if it sends.
    pub fn add(&self, socket: &Socket, flow: usize, end: End) -> io::Result<()> {
        self.watch(socket.fd(), flow, end)
    }

    /// Tells when the program behind `ended` (pidfd_open(2)) has ended.
    pub fn add_program(&self, ended: &OwnedFd, number: usize) -> io::Result<()> {
        self.watch(ended.as_raw_fd(), number, End::Program)
    }

    fn watch(&self, fd: RawFd, flow: usize, end: End) -> io::Result<()> {
        let what = if end == End::Sender { libc::EPOLLOUT } else { libc::EPOLLIN };
        let mut event = libc::epoll_event { events: (what | libc::EPOLLET) as u32, u64: 4 * flow as u64 + end as u64 };
        // SAFETY: both descriptors are open, the event is valid.
        if unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits for at most `left`; what happened goes to `into`.
    ///
    /// # Errors
    /// The kernel's; it has no epoll_pwait2 before Linux 5.11.
    pub fn wait(&mut self, left: Span, into: &mut Vec<Event>) -> io::Result<()> {
        let time = libc::timespec { tv_sec: (left.0 / NS_PER_S) as i64, tv_nsec: (left.0 % NS_PER_S) as i64 };
        // SAFETY: the list is valid for its length, the time is valid, no signal mask. Not through libc's function,
        // which older C libraries lack.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                BATCH as libc::c_int,
                std::ptr::from_ref(&time),
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        into.clear();
        match usize::try_from(count) {
            Ok(count) => {
                into.extend(self.events[..count].iter().map(|event| ((event.u64 / 4) as usize, end_of(event.u64 % 4))));
                Ok(())
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            },
        }
    }
}

fn end_of(number: u64) -> End {
    match number {
        0 => End::Listener,
        1 => End::Sender,
        2 => End::Receiver,
        _ => End::Program,
    }
}
