//! The receiving end of a run between two hosts: listeners, connections that show their token, data taken and reported.

use super::ends::{EndReport, Extremes};
use super::far_end::FarCounters;
use super::poll::{End, Event, Poll};
use super::program_reception::ProgramEnds;
use super::record::{Preamble, Record, BYTES};
use super::report_link::{ReportLink, SILENCE};
use super::socket::{Failed, Socket};
use crate::clock;
use crate::error::KernelError;
use crate::remote_plan::ReceivePlan;
use crate::socket_plan::SocketPlan;
use admission::{Limits, Pending};
use rustix::process::{getrlimit, Resource};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Span, Time, NS_PER_S};

/// Longest wait, so that a stop is noticed.
const NAP: Span = Span::from_millis(20);

/// Between two samples of the windows.
const SAMPLE: Span = Span::from_millis(50);

/// Between two reports: 2000 a second keep the cost of them below that of the data.
const REPORT_INTERVAL: Span = Span::from_micros(500);

/// Bytes of reports that may wait for a slow path; beyond, only the latest of each flow does.
const MAX_WAITING: usize = 256 << 10;

/// Time for a connection to show its token.
const TOKEN_TIME: Span = Span::from_secs(5);

/// Connections that have yet to show their token, beyond one for each flow. They may take a quarter of the process's
/// descriptors.
const ARRIVALS_MAX: usize = 512;
const ARRIVALS_MIN: usize = 16;

/// Connections taken in one turn, so that data is taken between them.
const ACCEPTS: usize = 64;

/// Time for the sending agent to close the connection of reports after the end.
const LEAVE: Span = Span::from_secs(2);

pub(crate) struct Reception {
    plan: ReceivePlan,
    names: Vec<String>,
    /// True for flows whose every delivery is reported, not only the latest of an interval.
    exact: Vec<bool>,
    poll: Poll,
    listeners: Vec<Listener>,
    /// By flow: its listener; None of a program's.
    listener_of: Vec<Option<usize>>,
    arrivals: Vec<Option<Arrival>>,
    /// Places of `arrivals`.
    pending: Pending<usize>,
    receivers: Vec<Option<Flow>>,
    link: Option<ReportLink>,
    /// Ends of programs.
    programs: ProgramEnds,
    /// Flows with a delivery that was not reported yet.
    unreported: Vec<u32>,
    flushed_ns: u64,
    /// Connections from the peer's address that showed no token: none of them is a fault of the run, since any user of
    /// that host, and all behind its address, can make one.
    wrong_tokens: u32,
    /// Connections from other addresses, closed at once.
    strangers: u32,
    times: Times,
    sampled_ns: u64,
    is_finished: bool,
    ends: Vec<Option<EndReport>>,
    turns: Vec<Event>,
}

/// Times of the run by this host's CLOCK_MONOTONIC, ns; None: unknown or past.
#[derive(Default)]
struct Times {
    warmup_ns: Option<u64>,
    end_ns: Option<u64>,
}

struct Listener {
    /// None once all its connections have come.
    socket: Option<Socket>,
    port: u16,
    /// Connections that have yet to come.
    expected: usize,
}

struct Arrival {
    socket: Socket,
    shown: [u8; BYTES],
    length: usize,
    listener: usize,
}

struct Flow {
    socket: Socket,
    bytes: u64,
    /// Time of the latest delivery, if it was not reported.
    at_ns: Option<u64>,
    is_lost: bool,
    extremes: Extremes,
}

/// Knowledge of the receiving agent when a run is over.
pub(crate) struct Taken {
    pub ends: Vec<Option<EndReport>>,
    pub strangers: u32,
}

impl Reception {
    /// Listens for the flows of `plan`, which have these `names`.
    ///
    /// # Errors
    /// No port is free; which flow's option the kernel refused.
    pub fn open(plan: ReceivePlan, names: Vec<String>, exact: Vec<bool>) -> Result<Reception, KernelError> {
        let flows = plan.flows.len();
        let poll = Poll::new().map_err(|e| KernelError::machine("epoll", e))?;
        let (mut listeners, mut listener_of): (Vec<Listener>, Vec<Option<usize>>) = (vec![], vec![]);
        let mut kinds: Vec<SocketPlan> = vec![];
        let mut next = plan.ports[0];
        let carried = plan.programs.iter().map(Option::is_some).chain([false]);
        // The last is the connection of reports, which takes any listener that there is.
        let report = ("the connection of reports".to_owned(), SocketPlan::default());
        let wanted = names.iter().zip(&plan.flows).chain([(&report.0, &report.1)]).zip(carried);
        for (number, ((name, sockets), carried)) in wanted.enumerate() {
            if carried {
                listener_of.push(None);
                continue;
            }
            let is_report = number == flows;
            let kind = if is_report { kinds.first().cloned().unwrap_or_default() } else { of_receiver(sockets) };
            let known = kinds.iter().position(|other| *other == kind);
            let number = match known {
                Some(number) => number,
                None => {
                    let backlog = i32::try_from(flows + ARRIVALS_MAX).unwrap_or(i32::MAX);
                    let socket = listen(&plan, &kind, &mut next, backlog).map_err(|refused| match refused {
                        NoPort::Failed((what, error)) => KernelError::Flow { flow: name.clone(), what, error },
                        NoPort::None(text) => KernelError::Port(text),
                    })?;
                    let port = socket.local().map_err(|e| KernelError::machine("getsockname", e))?.port();
                    let place = listeners.len();
                    poll.add(&socket, place, End::Listener).map_err(|e| KernelError::machine("epoll", e))?;
                    listeners.push(Listener { socket: Some(socket), port, expected: 0 });
                    kinds.push(kind);
                    place
                }
            };
            listeners[number].expected += 1;
            if !is_report {
                listener_of.push(Some(number));
            }
        }
        let programs = ProgramEnds::open(&plan, &names)?;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(ARRIVALS_MIN, ARRIVALS_MAX) + flows;
        let mut seed = [0; 8];
        // Without random numbers an attacker may know whom a new connection displaces, and no more.
        let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
        let limits = Limits { total: most, per_address: most, time: TOKEN_TIME };
        Ok(Reception {
            plan,
            names,
            exact,
            poll,
            listeners,
            listener_of,
            arrivals: vec![],
            pending: Pending::new(limits, u64::from_ne_bytes(seed)),
            receivers: (0..flows).map(|_| None).collect(),
            link: None,
            programs,
            unreported: vec![],
            flushed_ns: 0,
            wrong_tokens: 0,
            strangers: 0,
            times: Times::default(),
            sampled_ns: 0,
            is_finished: false,
            ends: vec![],
            turns: vec![],
        })
    }

    /// Port of the connection of reports, and of each flow; 0 of a program's.
    pub fn ports(&self) -> (u16, Vec<u16>) {
        (
            self.listeners[0].port,
            self.listener_of.iter().map(|number| number.map_or(0, |number| self.listeners[number].port)).collect(),
        )
    }

    /// Takes the data of a run, until the sending agent says that it is over. `report_progress` is called on each turn
    /// with the bytes that all flows together have brought.
    ///
    /// # Errors
    /// [`KernelError::Stopped`] when `stop` was set; the sending agent does not come, or goes.
    pub fn run(mut self, stop: &AtomicBool, report_progress: &mut dyn FnMut(&[u64])) -> Result<Taken, KernelError> {
        clock::be_exact();
        let until = clock::monotonic_ns() + self.plan.connect.0;
        let ended = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(KernelError::Stopped);
            }
            match self.turn(until) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            let mut bytes: Vec<_> = self.receivers.iter().map(|flow| flow.as_ref().map_or(0, |f| f.bytes)).collect();
            self.programs.iter().for_each(|program| bytes[program.flow] = program.received());
            report_progress(&bytes);
        };
        if let Err(error) = ended {
            let error = self.programs.with_words(error);
            self.tell_failure(&error);
            return Err(error);
        }
        self.leave();
        Ok(Taken { ends: self.ends, strangers: self.strangers + self.wrong_tokens })
    }

    /// One round; false when the run is over.
    fn turn(&mut self, until_ns: u64) -> Result<bool, KernelError> {
        let now = clock::monotonic_ns();
        self.programs.tend(now, self.link.as_mut(), &self.poll)?;
        self.handle_times(now)?;
        let mut wait = self.programs.due(now).min(NAP.0);
        if !self.unreported.is_empty() || self.link.as_ref().is_some_and(|link| link.waiting() > 0) {
            wait = wait.min((self.flushed_ns + REPORT_INTERVAL.0).saturating_sub(now));
        }
        for due in [self.times.warmup_ns, self.times.end_ns].into_iter().flatten() {
            wait = wait.min(due.saturating_sub(now));
        }
        if !self.turns.is_empty() {
            wait = 0;
        }
        let mut events = vec![];
        self.poll.wait(Span(wait), &mut events).map_err(|e| KernelError::machine("epoll", e))?;
        let turns = std::mem::take(&mut self.turns);
        for (place, end) in turns.into_iter().chain(events) {
            match end {
                End::Listener => self.accept(place)?,
                End::Arrival => self.handle_arrival(place)?,
                End::Receiver => self.take(place),
                End::Report => self.handle_records()?,
                End::Program => self.programs.handle_end(place, self.link.as_mut())?,
                End::Sender => {}
            }
        }
        self.drop_late_arrivals();
        let now = clock::monotonic_ns();
        if now.saturating_sub(self.flushed_ns) >= REPORT_INTERVAL.0 {
            self.report(now)?;
        }
        match &self.link {
            None if now > until_ns => {
                let (peer, port, wrong) = (self.plan.peer, self.listeners[0].port, self.wrong_tokens);
                let shown =
                    if wrong > 0 { format!("; {wrong} connections showed no right token") } else { String::new() };
                Err(KernelError::Peer(format!("nobody came from {peer} to port {port} in time{shown}")))
            }
            Some(link) if link.is_silent() => {
                let seconds = SILENCE.0 / NS_PER_S;
                Err(KernelError::Peer(format!("the sending agent has not been heard for {seconds} s")))
            }
            _ => Ok(!self.is_finished),
        }
    }

    fn handle_times(&mut self, now: u64) -> Result<(), KernelError> {
        if self.times.warmup_ns.is_some_and(|due| due <= now) {
            self.times.warmup_ns = None;
            self.programs.look(true, self.link.as_mut())?;
            for program in self.programs.iter() {
                let (flow, bytes) = (program.flow as u32, program.received());
                if let Some(link) = self.link.as_mut().filter(|_| bytes > 0) {
                    link.queue(&Record::AtWarmup { flow, bytes });
                }
            }
            for (number, flow) in self.receivers.iter().enumerate() {
                let bytes = flow.as_ref().map_or(0, |flow| flow.bytes);
                if let Some(link) = self.link.as_mut().filter(|_| bytes > 0) {
                    link.queue(&Record::AtWarmup { flow: number as u32, bytes });
                }
            }
        }
        if self.times.end_ns.is_some_and(|due| due <= now) {
            self.count()?;
        }
        if now.saturating_sub(self.sampled_ns) >= SAMPLE.0 {
            self.sampled_ns = now;
            for flow in self.receivers.iter_mut().flatten().filter(|flow| !flow.is_lost) {
                let info = flow.socket.info_if_told().map_err(|e| KernelError::machine("TCP_INFO", e))?;
                if let Some(info) = info {
                    flow.extremes.note(&info);
                }
            }
        }
        Ok(())
    }

    /// Counts what has arrived: the run is over. Only once.
    fn count(&mut self) -> Result<(), KernelError> {
        self.times.end_ns = None;
        if !self.ends.is_empty() {
            return Ok(());
        }
        for place in 0..self.receivers.len() {
            self.take(place);
        }
        let failed = |e| KernelError::machine("the kernel's counters of a connection", e);
        let mut all = vec![];
        for (name, flow) in self.names.iter().zip(&mut self.receivers) {
            let of_it = flow.as_mut().map(|flow| {
                let counters = FarCounters::of(&flow.socket, flow.bytes)?;
                Ok((counters, EndReport::of(name, &flow.socket, &mut flow.extremes)?))
            });
            let (counters, end) = of_it.transpose().map_err(failed)?.unzip();
            all.push(counters);
            self.ends.push(end.flatten());
        }
        self.programs.look(true, self.link.as_mut())?;
        for program in self.programs.iter() {
            all[program.flow] = program.counters();
            self.ends[program.flow] = program.end_report();
        }
        let text = serde_json::to_string(&all).expect("counters are plain numbers");
        self.report(clock::monotonic_ns())?;
        if let Some(link) = &mut self.link {
            link.queue(&Record::Counters { text });
            link.flush().map_err(gone)?;
        }
        Ok(())
    }

    fn accept(&mut self, number: usize) -> Result<(), KernelError> {
        let failed = |e| KernelError::machine("accept", e);
        for _ in 0..ACCEPTS {
            let Some(listener) = self.listeners[number].socket.as_ref() else { return Ok(()) };
            let Some((socket, from)) = listener.accept().map_err(failed)? else { return Ok(()) };
            if canonical(from) != canonical(self.plan.peer) {
                self.strangers += 1;
                continue;
            }
            let place = self.arrivals.iter().position(Option::is_none).unwrap_or(self.arrivals.len());
            self.poll.add(&socket, place, End::Arrival).map_err(|e| KernelError::machine("epoll", e))?;
            let arrival = Arrival { socket, shown: [0; BYTES], length: 0, listener: number };
            match self.arrivals.get_mut(place) {
                Some(free) => *free = Some(arrival),
                None => self.arrivals.push(Some(arrival)),
            }
            // The sending agent shows its token with its first packet: it mostly needs no place among those that wait.
            self.handle_arrival(place)?;
            if self.arrivals[place].is_some() {
                let arrivals = &self.arrivals;
                let shown = |place: &usize| arrivals.get(*place).and_then(Option::as_ref).map_or(0, |a| a.length);
                let now = Time(clock::monotonic_ns());
                if let Some(displaced) = self.pending.admit(now, place, from, shown) {
                    self.arrivals[displaced] = None;
                    self.wrong_tokens += 1;
                }
            }
        }
        // There may be more, and the event of it has passed.
        self.turns.push((number, End::Listener));
        Ok(())
    }

    /// Reads the preamble of a connection, and not a byte more.
    fn handle_arrival(&mut self, place: usize) -> Result<(), KernelError> {
        let Some(arrival) = self.arrivals.get_mut(place).and_then(Option::as_mut) else { return Ok(()) };
        while arrival.length < BYTES {
            match arrival.socket.read(&mut arrival.shown[arrival.length..]) {
                Ok(None) => return Ok(()),
                Ok(Some(more)) if more > 0 => arrival.length += more,
                // It ended without a word, or was reset.
                Ok(_) | Err(_) => {
                    self.arrivals[place] = None;
                    self.pending.remove(&place);
                    self.wrong_tokens += 1;
                    return Ok(());
                }
            }
        }
        let arrival = self.arrivals[place].take().expect("it was just read");
        self.pending.remove(&place);
        let failed = |e| KernelError::machine("epoll", e);
        let free = |flow: usize| self.receivers.get(flow).is_some_and(Option::is_none);
        match Preamble::parse(&arrival.shown, self.plan.token) {
            Some(Preamble::Report) if self.link.is_none() => {
                arrival.socket.set_no_delay().map_err(|(what, e)| KernelError::machine(&what, e))?;
                self.poll.add_report(&arrival.socket).map_err(failed)?;
                self.link = Some(ReportLink::new(arrival.socket));
                self.turns.push((0, End::Report));
            }
            Some(Preamble::Flow(flow)) if free(flow as usize) && self.link.is_some() => {
                let number = flow as usize;
                self.poll.turn_receiver(&arrival.socket, number).map_err(failed)?;
                let (socket, extremes) = (arrival.socket, Extremes::default());
                self.receivers[number] = Some(Flow { socket, bytes: 0, at_ns: None, is_lost: false, extremes });
                self.turns.push((number, End::Receiver));
                if let Some(link) = &mut self.link {
                    link.queue(&Record::Came { flow });
                }
            }
            _ => {
                self.wrong_tokens += 1;
                return Ok(());
            }
        }
        let listener = &mut self.listeners[arrival.listener];
        listener.expected = listener.expected.saturating_sub(1);
        if listener.expected == 0 {
            listener.socket = None;
        }
        Ok(())
    }

    fn drop_late_arrivals(&mut self) {
        for late in self.pending.expire(Time(clock::monotonic_ns())) {
            self.arrivals[late] = None;
            self.wrong_tokens += 1;
        }
    }

    /// Takes what has arrived for a flow.
    fn take(&mut self, number: usize) {
        let Some(flow) = self.receivers.get_mut(number).and_then(Option::as_mut) else { return };
        if flow.is_lost {
            return;
        }
        let taken = flow.socket.take().and_then(|bytes| {
            let bytes = bytes.unwrap_or(0);
            if let Some(window) = self.plan.flows[number].window_clamp_bytes.filter(|_| bytes > 0) {
                flow.socket.clamp_window(window).map_err(|(_, error)| error)?;
            }
            Ok(bytes)
        });
        match taken {
            Ok(0) => {}
            Ok(bytes) => {
                flow.bytes += bytes;
                let at_ns = clock::monotonic_ns();
                // There may be more, and the stream's end.
                self.turns.push((number, End::Receiver));
                match &mut self.link {
                    Some(link) if self.exact[number] && link.waiting() < MAX_WAITING => {
                        link.queue(&Record::Delivered { flow: number as u32, bytes: flow.bytes, at_ns });
                    }
                    _ => {
                        if flow.at_ns.replace(at_ns).is_none() {
                            self.unreported.push(number as u32);
                        }
                    }
                }
            }
            // After the run's end the sender resets what need not arrive any more.
            Err(_) if !self.ends.is_empty() => flow.is_lost = true,
            Err(error) => {
                flow.is_lost = true;
                if let Some(link) = &mut self.link {
                    link.queue(&Record::Lost { flow: number as u32, text: error.to_string() });
                }
            }
        }
    }

    /// Sends the reports that wait.
    fn report(&mut self, now: u64) -> Result<(), KernelError> {
        self.flushed_ns = now;
        let Some(link) = &mut self.link else { return Ok(()) };
        if link.waiting() < MAX_WAITING {
            for number in self.unreported.drain(..) {
                let Some(flow) = &mut self.receivers[number as usize] else { continue };
                if let Some(at_ns) = flow.at_ns.take() {
                    link.queue(&Record::Delivered { flow: number, bytes: flow.bytes, at_ns });
                }
            }
        }
        link.flush().map_err(gone)
    }

    fn handle_records(&mut self) -> Result<(), KernelError> {
        let Some(link) = &mut self.link else { return Ok(()) };
        let mut records = vec![];
        let goes_on = link.take(&mut records).map_err(gone)?;
        for record in records {
            match record {
                Record::Ping { sent_ns } => {
                    let Some(link) = &mut self.link else { return Ok(()) };
                    // At once: its time is the measurement.
                    link.queue(&Record::Pong { sent_ns, at_ns: clock::monotonic_ns() });
                    link.flush().map_err(gone)?;
                }
                Record::Times { warmup_ns, end_ns } => {
                    self.times = Times { warmup_ns: Some(warmup_ns), end_ns: Some(end_ns) };
                }
                Record::Count => self.count()?,
                Record::Finish => self.is_finished = true,
                Record::Begin { flow, at_ns } => self.programs.begin(flow, at_ns),
                // Of a receiver.
                _ => {}
            }
        }
        if goes_on || self.is_finished {
            return Ok(());
        }
        Err(KernelError::Peer("the sending agent has gone: it closed the connection of reports".into()))
    }

    /// Tells the sending agent why this one gives up, as far as it can.
    fn tell_failure(&mut self, error: &KernelError) {
        if let Some(link) = &mut self.link {
            let text = match error {
                KernelError::Stopped => "the receiving agent was stopped".to_owned(),
                other => format!("the receiving agent: {other}"),
            };
            link.queue(&Record::Failed { text });
            let _ = link.flush();
            self.wait_for_close();
        }
    }

    fn leave(&mut self) {
        if let Some(link) = &mut self.link {
            link.queue(&Record::Bye);
        }
        self.wait_for_close();
    }

    /// Waits until the sending agent closes the connection, since closing it first would discard what it has not read.
    fn wait_for_close(&mut self) {
        let until = clock::monotonic_ns() + LEAVE.0;
        let Some(link) = &mut self.link else { return };
        let mut records = vec![];
        while clock::monotonic_ns() < until {
            if link.flush().is_err() || !link.take(&mut records).unwrap_or(false) {
                return;
            }
            records.clear();
            let _ = self.poll.wait(Span::from_millis(1), &mut vec![]);
        }
    }
}

fn gone(error: io::Error) -> KernelError {
    KernelError::Peer(format!("the sending agent has gone: {error}"))
}

/// The options that make a listener: flows that agree in them share it.
fn of_receiver(sockets: &SocketPlan) -> SocketPlan {
    SocketPlan {
        congestion_control: sockets.congestion_control.clone(),
        window_clamp_bytes: sockets.window_clamp_bytes,
        receive_buffer_bytes: sockets.receive_buffer_bytes,
        max_segment_bytes: sockets.max_segment_bytes,
        ..SocketPlan::default()
    }
}

enum NoPort {
    Failed(Failed),
    None(String),
}

/// Listens on the first port from `next` on that is free.
fn listen(plan: &ReceivePlan, kind: &SocketPlan, next: &mut u16, backlog: i32) -> Result<Socket, NoPort> {
    let [first, last] = plan.ports;
    loop {
        if *next > last || (*next == 0 && last > 0) {
            let text = format!("no port from {first} to {last} is free on {}: give others", plan.local);
            return Err(NoPort::None(text));
        }
        let port = *next;
        // Of the kernel's choice each is another.
        *next = if port == 0 { 0 } else { port.checked_add(1).unwrap_or(0) };
        match Socket::listener(None, SocketAddr::new(plan.local, port), kind, backlog) {
            Err((_, error)) if error.kind() == io::ErrorKind::AddrInUse && port > 0 => {}
            Err(failed) => return Err(NoPort::Failed(failed)),
            Ok(socket) => return Ok(socket),
        }
    }
}

/// An IPv4 address that came in IPv6's clothes is one.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
