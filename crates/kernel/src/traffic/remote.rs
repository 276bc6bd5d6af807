//! The other agent as the sending one knows it: its clock, and the connection over which it reports.

use super::clock_offset::ClockOffset;
use super::ends::EndReport;
use super::record::{Preamble, Record};
use super::report_link::ReportLink;
use super::socket::Socket;
use crate::clock;
use crate::error::KernelError;
use crate::remote_plan::SendPlan;
use crate::socket_plan::SocketPlan;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Span, NS_PER_S};

/// Exchanges of the two clocks before a run, and after it; fewer where a path is so long that they take too long.
pub(super) const EXCHANGES: u32 = 8;
pub(super) const EXCHANGES_LEAST: u32 = 3;
pub(super) const EXCHANGES_LONGEST: Span = Span::from_millis(500);

/// Longest wait, so that a stop is noticed.
const NAP: Span = Span::from_millis(20);

/// The other agent of a run.
pub(crate) struct Remote {
    pub link: ReportLink,
    pub clock: ClockOffset,
    /// Exchanges after the run.
    pub after: ClockOffset,
    /// The run is over: exchanges count for `after`.
    pub over: bool,
    /// Round trip of the latest exchange.
    pub latest: Option<Span>,
    pub pinged_ns: u64,
    pub counted: bool,
    pub said_bye: bool,
    pub path_mtu: u64,
    pub ends: Vec<Option<EndReport>>,
    /// Own address, and the time in which a port must be reached.
    pub local: IpAddr,
    pub connect: Span,
}

/// Findings about the path and the other agent.
pub(crate) struct Measured {
    /// Before the run.
    pub clock: ClockOffset,
    /// After it.
    pub clock_after: ClockOffset,
    /// MTU that this host's kernel knows of the path, bytes.
    pub path_mtu: u64,
    /// Each sending end as the kernel has it; None: it has no connection.
    pub ends: Vec<Option<EndReport>>,
}

/// Nothing came back from a port: neither a connection nor a refusal.
pub(super) fn no_answer(local: IpAddr, to: SocketAddr, seconds: f64) -> KernelError {
    let port = to.port();
    KernelError::Peer(format!(
        "no answer from {to} within {seconds:.1} s: a firewall on the way from {local} to port {port}?"
    ))
}

impl Remote {
    /// Connects to the other agent, and compares the clocks.
    ///
    /// # Errors
    /// It does not answer in time.
    pub fn connect(plan: &SendPlan, stop: &AtomicBool) -> Result<Remote, KernelError> {
        let to = SocketAddr::new(plan.peer, plan.report_port);
        let lost = |error: io::Error| KernelError::Peer(format!("the connection of reports to {to}: {error}"));
        let refused = |(what, error): (String, io::Error)| KernelError::machine(&what, error);
        let socket = Socket::sender(None, plan.local, &SocketPlan::default()).map_err(refused)?;
        socket.connect(to).map_err(lost)?;
        let deadline = clock::monotonic_ns() + plan.connect.0;
        while !ready(&socket, PollFlags::OUT, deadline, stop)? {
            if clock::monotonic_ns() > deadline {
                let seconds = plan.connect.as_secs_f64();
                return Err(no_answer(plan.local, to, seconds));
            }
        }
        socket.take_error().map_err(lost)?;
        socket.send_bytes(&Preamble::Report.to_bytes(plan.token)).map_err(lost)?;
        let path_mtu = u64::from(socket.info().map_err(lost)?.raw().pmtu);
        let mut remote = Remote {
            link: ReportLink::new(socket),
            clock: ClockOffset::default(),
            after: ClockOffset::default(),
            over: false,
            latest: None,
            pinged_ns: 0,
            counted: false,
            said_bye: false,
            path_mtu,
            ends: vec![],
            local: plan.local,
            connect: plan.connect,
        };
        remote.exchange(plan.connect, stop)?;
        Ok(remote)
    }

    fn exchange(&mut self, wait: Span, stop: &AtomicBool) -> Result<(), KernelError> {
        let began = clock::monotonic_ns();
        let is_enough = |clock: &ClockOffset| {
            let long = clock::monotonic_ns() - began > EXCHANGES_LONGEST.0;
            clock.exchanges >= EXCHANGES || (long && clock.exchanges >= EXCHANGES_LEAST)
        };
        while !is_enough(&self.clock) {
            let before = self.clock.exchanges;
            self.ping();
            self.link.flush().map_err(gone)?;
            let deadline = began + wait.0;
            while self.clock.exchanges == before {
                ready(self.link.socket(), PollFlags::IN, deadline, stop)?;
                let mut records = vec![];
                let goes_on = self.link.take(&mut records).map_err(gone)?;
                for record in records {
                    match record {
                        Record::Pong { sent_ns, at_ns } => self.note_pong(sent_ns, at_ns),
                        Record::Failed { text } => return Err(KernelError::Peer(text)),
                        _ => {}
                    }
                }
                if !goes_on {
                    return Err(KernelError::Peer("the other agent closed the connection of reports".into()));
                }
                if clock::monotonic_ns() > deadline {
                    return Err(KernelError::Peer("the other agent does not answer".into()));
                }
            }
        }
        Ok(())
    }

    /// Asks for the other clock's time.
    pub fn ping(&mut self) {
        self.pinged_ns = clock::monotonic_ns();
        self.link.queue(&Record::Ping { sent_ns: self.pinged_ns });
    }

    /// The answer has come to a ping that was sent at `sent_ns`.
    pub fn note_pong(&mut self, sent_ns: u64, at_ns: u64) {
        let now = clock::monotonic_ns();
        let clock = if self.over { &mut self.after } else { &mut self.clock };
        // Under load a queue delays one way more than the other: the exchange with the least round trip counts.
        clock.add(sent_ns.min(now), at_ns, now);
        self.latest = Some(Span(now.saturating_sub(sent_ns)));
    }

    pub fn into_measured(self) -> Measured {
        Measured { clock: self.clock, clock_after: self.after, path_mtu: self.path_mtu, ends: self.ends }
    }
}

/// The connection of reports has failed.
pub(super) fn gone(error: io::Error) -> KernelError {
    KernelError::Peer(format!("the other agent has gone: {error}"))
}

/// Waits until a socket is ready, `deadline` has passed or a while has gone by; true if it is ready.
fn ready(socket: &Socket, what: PollFlags, deadline: u64, stop: &AtomicBool) -> Result<bool, KernelError> {
    if stop.load(Ordering::Relaxed) {
        return Err(KernelError::Stopped);
    }
    let left = deadline.saturating_sub(clock::monotonic_ns()).min(NAP.0);
    let time = Timespec { tv_sec: (left / NS_PER_S) as i64, tv_nsec: (left % NS_PER_S) as i64 };
    let fd = socket.as_fd();
    let mut fds = [PollFd::new(&fd, what)];
    match rustix::event::poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(KernelError::machine("poll", error.into())),
    }
}
