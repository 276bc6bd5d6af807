//! Waiting for sockets, to the ns: epoll, edge by edge.

use super::socket::Socket;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use units::{Span, NS_PER_S};

/// The end of a flow at which an event happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Listener,
    Sender,
    Receiver,
    /// Of a program: it has ended.
    Program,
    /// A connection that has yet to show its preamble.
    Arrival,
    /// The connection of reports.
    Report,
}

/// Place in the list of connections, or of programs, and end that an event belongs to.
pub(crate) type Event = (usize, End);

/// Room for the ends in an event's number.
const ENDS: u64 = 8;

/// Events taken by one wait; the rest comes with the next.
const BATCH: usize = 256;

pub(crate) struct Poll {
    epoll: OwnedFd,
    /// The kernel has epoll_pwait2, as far as is known.
    waits_to_the_ns: Cell<bool>,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        Ok(Poll { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, waits_to_the_ns: Cell::new(true) })
    }

    /// Reports changes of `socket` from here on, once per change: readable if it receives, writable if it sends.
    pub fn add(&self, socket: &Socket, flow: usize, end: End) -> io::Result<()> {
        self.watch(socket.as_fd(), flow, end)
    }

    /// An arrival is from now on the receiver of `flow`; what has come already is reported anew.
    pub fn turn_receiver(&self, socket: &Socket, flow: usize) -> io::Result<()> {
        let data = EventData::new_u64(ENDS * flow as u64 + End::Receiver as u64);
        Ok(epoll::modify(&self.epoll, socket.as_fd(), data, EventFlags::IN | EventFlags::ET)?)
    }

    /// Reports changes of the connection of reports, which may be an arrival: readable or writable again.
    pub fn add_report(&self, socket: &Socket) -> io::Result<()> {
        let data = EventData::new_u64(End::Report as u64);
        match epoll::add(&self.epoll, socket.as_fd(), data, EventFlags::IN | EventFlags::OUT | EventFlags::ET) {
            Err(Errno::EXIST) => {
                Ok(epoll::modify(&self.epoll, socket.as_fd(), data, EventFlags::IN | EventFlags::OUT | EventFlags::ET)?)
            }
            other => Ok(other?),
        }
    }

    /// Tells when the program behind `ended` (pidfd_open(2)) has ended.
    pub fn add_program(&self, ended: &OwnedFd, number: usize) -> io::Result<()> {
        self.watch(ended.as_fd(), number, End::Program)
    }

    fn watch(&self, fd: BorrowedFd<'_>, flow: usize, end: End) -> io::Result<()> {
        let what = if end == End::Sender { EventFlags::OUT } else { EventFlags::IN };
        let data = EventData::new_u64(ENDS * flow as u64 + end as u64);
        Ok(epoll::add(&self.epoll, fd, data, what | EventFlags::ET)?)
    }

    /// Waits for at most `left`; what happened goes to `into`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, left: Span, into: &mut Vec<Event>) -> io::Result<()> {
        into.clear();
        if self.waits_to_the_ns.get() {
            match self.wait_at_once(left, into) {
                // Before Linux 5.11, and under qemu-user.
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.waits_to_the_ns.set(false),
                other => return other,
            }
        }
        let time = Timespec { tv_sec: (left.0 / NS_PER_S) as i64, tv_nsec: (left.0 % NS_PER_S) as i64 };
        match event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => self.take(into),
            Err(error) => Err(error.into()),
        }
    }

    /// The same by one call, epoll_pwait2, which rustix has only for programs that never run on an older kernel.
    fn wait_at_once(&self, left: Span, into: &mut Vec<Event>) -> io::Result<()> {
        let time = libc::timespec { tv_sec: (left.0 / NS_PER_S) as i64, tv_nsec: (left.0 % NS_PER_S) as i64 };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let (epoll, no_signals) = (self.epoll.as_raw_fd(), std::ptr::null::<libc::sigset_t>());
        // SAFETY: `events` has room for BATCH events, and `time` lives until the call returns.
        let happened = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll,
                events.as_mut_ptr(),
                BATCH,
                &raw const time,
                no_signals,
                0_usize,
            )
        };
        if let Ok(count) = usize::try_from(happened) {
            into.extend(events[..count].iter().map(|event| event_of(event.u64)));
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }

    /// Takes what has happened, without waiting.
    fn take(&self, into: &mut Vec<Event>) -> io::Result<()> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        match epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())) {
            Ok((happened, _)) => {
                into.extend(happened.iter().map(|event| event_of(event.data.u64())));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn event_of(number: u64) -> Event {
    ((number / ENDS) as usize, end_of(number % ENDS))
}

fn end_of(number: u64) -> End {
    match number {
        0 => End::Listener,
        1 => End::Sender,
        2 => End::Receiver,
        3 => End::Program,
        4 => End::Arrival,
        _ => End::Report,
    }
}
