//! The initiator on real sockets as a load generator: a fixed queue depth for a fixed time.

use crate::clock;
use crate::socket::{connect, receive};
use crate::waker::milliseconds;
use bytes::BytesMut;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::sockopt::tcp_congestion;
use std::io::{self, IoSlice, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use storage::iscsi::initiator::{Command, Completion, Data, Event};
use storage::iscsi::{Initiator, InitiatorConfig, WindowUse};
use units::{Histogram, Span, Time};
use wire::iscsi::{Outgoing, Payload};

/// Bytes that wait for a socket, above which no more PDUs are made.
const OUT_BYTES: usize = 1 << 20;
/// Room for what comes, bytes.
const IN_BYTES: usize = 256 << 10;
const SLICES: usize = 32;
/// Longest wait, ms.
const WAIT: Timespec = milliseconds(100);
/// Longest wait for commands in flight at the end.
const DRAIN: Span = Span::from_secs(10);

/// The load.
#[derive(Clone, Debug)]
pub struct BenchConfig {
    /// The initiator.
    pub initiator: InitiatorConfig,
    /// Address of the target.
    pub address: SocketAddr,
    /// Congestion control of the connections, by the kernel's name; None: the namespace's default.
    pub congestion_control: Option<String>,
    /// Number of the unit.
    pub lun: u64,
    /// Of 100 commands, how many read.
    pub read_percent: u32,
    /// Bytes of a command; a multiple of the unit's block.
    pub io_bytes: u32,
    /// Commands in flight.
    pub depth: usize,
    /// Random addresses instead of sequential ones.
    pub random: bool,
    /// Duration.
    pub duration: Span,
    /// Seed of the addresses.
    pub seed: u64,
}

/// Results of one kind of command.
#[derive(Clone, Debug, Default)]
pub struct BenchKind {
    /// Done, with status GOOD.
    pub done: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// From submission to status.
    pub latency: Histogram,
}

/// Results of a load.
#[derive(Clone, Debug, Default)]
pub struct BenchReport {
    /// Reads.
    pub reads: BenchKind,
    /// Writes.
    pub writes: BenchKind,
    /// Commands that ended otherwise, and the first one's status and sense data in words.
    pub failed: u64,
    /// Of the first that failed.
    pub first_failure: Option<String>,
    /// Commands that had no status when it was over.
    pub unfinished: u64,
    /// Times that the session was lost and started anew.
    pub lost: u64,
    /// Reason of an early end: told to stop, or the session could not be made anew.
    pub ended: Option<String>,
    /// From the first command to the last status, ns.
    pub elapsed_ns: u64,
    /// Commands that the target's command window held up.
    pub window: WindowUse,
    /// Connections of the session: fewer than were asked for where the target allows no more (MaxConnections).
    pub connections: usize,
    /// The negotiated parameters, as text.
    pub agreed: String,
    /// Congestion control of the connections, by the kernel's name.
    pub congestion: String,
    /// Bytes of the unit.
    pub capacity_bytes: u64,
}

struct Socket {
    stream: TcpStream,
    incoming: BytesMut,
    outgoing: Outgoing,
}

struct Run<'a> {
    initiator: Initiator,
    config: &'a BenchConfig,
    /// Congestion control of the first connection.
    congestion: String,
    sockets: Vec<Option<Socket>>,
    stop: &'a AtomicBool,
    /// Times that the session was lost and started anew.
    lost: u64,
}

impl<'a> Run<'a> {
    fn new(config: &'a BenchConfig, stop: &'a AtomicBool) -> Run<'a> {
        let initiator = Initiator::new(config.initiator.clone());
        let sockets = (0..config.initiator.connections.max(1)).map(|_| None).collect();
        Run { initiator, config, congestion: String::new(), sockets, stop, lost: 0 }
    }
}

fn other(text: String) -> io::Error {
    io::Error::other(text)
}

/// Returns whether a call has to be repeated later.
fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Run<'_> {
    /// Moves bytes and time on; returns the events.
    fn step(&mut self) -> io::Result<Vec<Event>> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let now = clock::now();
        self.initiator.handle_timeout(now);
        while let Some(index) = self.initiator.poll_connect() {
            let timeout = self.config.initiator.login_timeout;
            match connect(self.config.address, self.config.congestion_control.as_deref(), timeout, self.stop) {
                Ok(stream) => {
                    self.congestion = tcp_congestion(&stream)?;
                    let (incoming, outgoing) = (BytesMut::new(), Outgoing::default());
                    self.sockets[index] = Some(Socket { stream, incoming, outgoing });
                    self.initiator.handle_connected(clock::now(), index);
                }
                // The caller knows the address.
                Err(error) => self.initiator.handle_closed(now, index, &error.to_string()),
            }
        }
        let mut progress = false;
        for index in 0..self.sockets.len() {
            match self.exchange(index) {
                Ok(moved) => progress |= moved,
                Err(why) => {
                    self.sockets[index] = None;
                    self.initiator.handle_closed(clock::now(), index, &why.to_string());
                }
            }
        }
        let events: Vec<Event> = std::iter::from_fn(|| self.initiator.poll_event()).collect();
        self.lost += events.iter().filter(|event| matches!(event, Event::Lost(_))).count() as u64;
        if events.is_empty() && !progress {
            self.wait();
        }
        Ok(events)
    }

    fn exchange(&mut self, index: usize) -> io::Result<bool> {
        if let Some(why) = self.initiator.poll_close(index) {
            return Err(other(why.to_owned()));
        }
        let Some(socket) = &mut self.sockets[index] else { return Ok(false) };
        let mut moved = false;
        while socket.outgoing.len() < OUT_BYTES {
            let Some(out) = self.initiator.poll_pdu(index) else { break };
            socket.outgoing.push(&out.framing, &out.pdu);
        }
        while !socket.outgoing.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = socket.outgoing.slices(&mut slices);
            match (&socket.stream).write_vectored(&slices[..count]) {
                Ok(sent) => socket.outgoing.consume(sent),
                Err(error) if is_retryable(&error) => break,
                Err(error) => return Err(error),
            }
            moved = true;
        }
        if socket.incoming.capacity() - socket.incoming.len() < IN_BYTES / 4 {
            socket.incoming.reserve(IN_BYTES);
        }
        match receive(&socket.stream, &mut socket.incoming) {
            Ok(0) => return Err(other("the target closed the connection".to_owned())),
            Ok(_) => moved = true,
            Err(error) if is_retryable(&error) => return Ok(moved),
            Err(error) => return Err(error),
        }
        let now = clock::now();
        loop {
            match self.initiator.framing(index).decode(&mut socket.incoming) {
                Ok(Some(received)) if received.intact => self.initiator.handle_pdu(now, index, received.pdu),
                Ok(Some(received)) => {
                    return Err(other(format!("{}: the data digest does not match", received.pdu.header.name())));
                }
                Ok(None) => return Ok(moved),
                Err(error) => return Err(other(error.to_string())),
            }
        }
    }

    fn wait(&self) {
        let ready = self.sockets.iter().flatten().map(|socket| {
            let write = if socket.outgoing.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            PollFd::new(&socket.stream, PollFlags::IN | write)
        });
        let mut fds: Vec<PollFd<'_>> = ready.collect();
        // A wait that a signal cut short is followed by the next.
        let _ = poll(&mut fds, Some(&WAIT));
    }

    /// Performs one command alone.
    fn command(&mut self, command: Command) -> io::Result<Completion> {
        let id = self.initiator.submit(command);
        loop {
            for event in self.step()? {
                match event {
                    Event::Done(done, completion) if done == id => return Ok(completion),
                    Event::Failed(why) => return Err(other(why)),
                    _ => {}
                }
            }
        }
    }

    /// Blocks and their size. A unit that has something to tell first is asked again.
    fn capacity(&mut self, lun: u64) -> io::Result<(u64, u32)> {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[13]) = (0x9e, 0x10, 32);
        for _ in 0..8 {
            let reply = self.command(Command { lun, cdb, data: Data::Read(32) })?;
            let bytes = reply.data.to_payload().to_bytes();
            if let (0, Some(last), Some(size)) = (reply.status, bytes.get(..8), bytes.get(8..12)) {
                let blocks = last.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)).saturating_add(1);
                return Ok((blocks, size.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))));
            }
            if sense(&reply).is_none_or(|(key, ..)| key != 6) {
                return Err(other(format!("READ CAPACITY(16): {}", describe(&reply))));
            }
        }
        Err(other("the unit goes on reporting unit attentions".to_owned()))
    }
}

/// Asks a portal for its targets: name and address of each. `config` has no target.
///
/// # Errors
/// The portal cannot be reached or refuses; interrupted by `stop`.
pub fn discover(config: &BenchConfig, stop: &AtomicBool) -> io::Result<Vec<(String, String)>> {
    let mut run = Run::new(config, stop);
    let end = clock::now() + DRAIN;
    let mut found = None;
    while clock::now() < end {
        for event in run.step()? {
            match event {
                Event::Targets(targets) => {
                    found = Some(targets);
                    run.initiator.logout();
                }
                Event::Failed(why) => return Err(other(why)),
                _ => {}
            }
        }
        if run.initiator.is_over() {
            break;
        }
    }
    found.ok_or_else(|| other("the portal gave no answer to SendTargets".to_owned()))
}

/// Sense key, code and qualifier, of fixed format or descriptors (SPC-4, 4.5).
fn sense(reply: &Completion) -> Option<(u8, u8, u8)> {
    let at = |index: usize| reply.sense.get(index).copied();
    match at(0)? & 0x7f {
        0x72 | 0x73 => Some((at(1)? & 15, at(2)?, at(3)?)),
        _ => Some((at(2)? & 15, at(12)?, at(13)?)),
    }
}

fn describe(reply: &Completion) -> String {
    match sense(reply) {
        Some((key, code, qualifier)) => {
            let meaning = match (key, code, qualifier) {
                (2, 0x04, 0x02) => ": the unit is stopped",
                (3, ..) => ": the medium failed",
                (5, 0x21, 0x00) => ": blocks beyond the end",
                (5, 0x25, 0x00) => ": there is no such unit",
                (7, 0x27, 0x07) => ": no space left",
                (7, ..) => ": the unit is write protected",
                _ => "",
            };
            format!("status {:02x}, sense key {key:x}, code {code:02x}/{qualifier:02x}{meaning}", reply.status)
        }
        None => format!("status {:02x}", reply.status),
    }
}

/// Runs a load. `stop` ends it early; the report has what was measured until then, as when the target goes for good.
///
/// # Errors
/// The target cannot be reached or refuses, the unit is not there or too small; interrupted by `stop` before the first
/// command.
pub fn bench(config: &BenchConfig, stop: &AtomicBool) -> io::Result<BenchReport> {
    let mut run = Run::new(config, stop);
    let lun = config.lun << 48;
    let (blocks, block_bytes) = run.capacity(lun)?;
    let per_command = u64::from(config.io_bytes / block_bytes.max(1));
    if per_command == 0 || !config.io_bytes.is_multiple_of(block_bytes) {
        return Err(other(format!("{} bytes per command: a multiple of {block_bytes} is needed", config.io_bytes)));
    }
    let slots = blocks / per_command;
    if slots == 0 {
        return Err(other(format!("the unit has {blocks} blocks, a command takes {per_command}")));
    }
    let data: Payload = (0..config.io_bytes).map(|at| (at / 512 + at) as u8).collect::<Vec<u8>>().into();
    let mut report = BenchReport { capacity_bytes: blocks * u64::from(block_bytes), ..BenchReport::default() };
    report.agreed = format!("{:?}", run.initiator.negotiated());
    report.connections = run.sockets.len().min(run.initiator.negotiated().max_connections as usize);
    report.congestion.clone_from(&run.congestion);
    let mut random = config.seed | 1;
    let mut next = 0;
    // Time at which each command was submitted, and whether it reads; by its number, which only grows.
    let mut in_flight: std::collections::BTreeMap<u64, (Time, bool)> = Default::default();
    let start = clock::now();
    let end = start + config.duration;
    let mut last = start;
    loop {
        let now = clock::now();
        if now < end {
            while in_flight.len() < config.depth {
                // xorshift64 (Marsaglia, 2003).
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let slot = if config.random { random % slots } else { next % slots };
                next += 1;
                let read = (random >> 32) % 100 < u64::from(config.read_percent);
                let mut cdb = [0; 16];
                cdb[0] = if read { 0x88 } else { 0x8a };
                cdb[2..10].copy_from_slice(&(slot * per_command).to_be_bytes());
                cdb[10..14].copy_from_slice(&(per_command as u32).to_be_bytes());
                let data = if read { Data::Read(config.io_bytes) } else { Data::Write(data.clone()) };
                in_flight.insert(run.initiator.submit(Command { lun, cdb, data }), (clock::now(), read));
            }
        } else if in_flight.is_empty() || now > end + DRAIN {
            break;
        }
        let events = match run.step() {
            Ok(events) => events,
            Err(error) => {
                let interrupted = error.kind() == io::ErrorKind::Interrupted;
                report.ended = Some(if interrupted { "told to stop".to_owned() } else { error.to_string() });
                break;
            }
        };
        for event in events {
            match event {
                Event::Done(id, completion) => {
                    let Some((since, read)) = in_flight.remove(&id) else { continue };
                    last = clock::now();
                    if completion.status != 0 {
                        report.failed += 1;
                        report.first_failure.get_or_insert_with(|| describe(&completion));
                        continue;
                    }
                    let kind = if read { &mut report.reads } else { &mut report.writes };
                    kind.done += 1;
                    kind.bytes += u64::from(config.io_bytes);
                    kind.latency.record(last.since(since).0);
                }
                Event::Failed(why) => report.ended = Some(why),
                _ => {}
            }
        }
        if report.ended.is_some() {
            break;
        }
    }
    report.unfinished = in_flight.len() as u64;
    report.lost = run.lost;
    report.window = run.initiator.window_use();
    report.elapsed_ns = last.since(start).0;
    run.initiator.logout();
    let logout_end = clock::now() + Span::from_secs(2);
    // A failed logout does not change the measurement.
    while !run.initiator.is_over() && clock::now() < logout_end && run.step().is_ok() {}
    Ok(report)
}
