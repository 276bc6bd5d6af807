//! Waiting for sockets, to the ns: epoll, edge by edge.

use super::socket::Socket;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        Ok(Poll { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
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
    /// epoll_pwait2 would do it in one call; hosts before Linux 5.11 have none, nor has qemu-user. Where something has
    /// happened already, one call is enough here, too.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, left: Span, into: &mut Vec<Event>) -> io::Result<()> {
        self.take(into)?;
        if !into.is_empty() || left == Span::ZERO {
            return Ok(());
        }
        let time = Timespec { tv_sec: (left.0 / NS_PER_S) as i64, tv_nsec: (left.0 % NS_PER_S) as i64 };
        match event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&time)) {
            Ok(0) | Err(Errno::INTR) => Ok(()),
            Ok(_) => self.take(into),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes what has happened, without waiting.
    fn take(&self, into: &mut Vec<Event>) -> io::Result<()> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        into.clear();
        match epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())) {
            Ok((happened, _)) => {
                let happened = happened.iter().map(|event| event.data.u64());
                into.extend(happened.map(|number| ((number / ENDS) as usize, end_of(number % ENDS))));
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
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
