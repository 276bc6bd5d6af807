//! Many senders in one thread.

use crate::address::resolve;
use crate::clock::{clock_quality, monotonic_ns, unix_ns, ClockQuality, Distance};
use crate::error::PathError;
use crate::socket::{wait, Outgoing, Report, Room, TestSocket, PAYLOAD_MAX};
use path_test::clock::ClockState;
use path_test::session::{ReplyArrival, Sample, SenderClock, Session, SessionConfig, Unused};
use path_test::stamp::{header_bytes, Key, TimeFormat};
use rustix::fd::AsFd;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Packets whose time of sending the kernel has not told yet, at most.
const UNTOLD_MAX: usize = 1024;
/// Time between two questions about the clock's quality, ns.
const QUALITY_NS: u64 = 10_000_000_000;
/// Packets of one system call: sessions are slow, and each socket has a few at most.
const ROOM: usize = 8;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Reflector: `host:port`.
    pub towards: String,
    /// HMAC key of both ends.
    pub key: Option<Vec<u8>>,
    /// Between two packets, ns: 1 us at least.
    pub interval_ns: u64,
    /// Of each packet, from the IP header on, bytes; 0: the least that STAMP has.
    pub packet_bytes: u32,
    /// Time after which a packet is lost, ns.
    pub timeout_ns: u64,
    /// Packets to send; none: no end.
    pub count: Option<u64>,
    /// DSCP and ECN of the packets.
    pub traffic_class: u8,
    /// Form of the time stamps.
    pub format: TimeFormat,
}

struct Entry {
    number: usize,
    to: SocketAddr,
    socket: TestSocket,
    session: Session,
    /// Packets in the order in which the kernel numbers them, the first of them having `untold_first`.
    untold: VecDeque<u64>,
    untold_first: u32,
    fault: Option<String>,
    packet_bytes: u64,
}

/// Sessions to many reflectors, served by one thread.
pub struct Sessions {
    entries: Vec<Entry>,
    next: usize,
    room: Room,
    quality: ClockQuality,
    asked_ns: u64,
}

impl Default for Sessions {
    fn default() -> Sessions {
        Sessions { entries: vec![], next: 0, room: Room::new(ROOM), quality: clock_quality(), asked_ns: monotonic_ns() }
    }
}

impl Sessions {
    /// Adds a session, whose first packet leaves with the next [`Sessions::poll`] after `delay_ns`. Returns its number.
    ///
    /// # Errors
    /// The name is unknown, or there is no route.
    pub fn add(&mut self, options: &SessionOptions, delay_ns: u64) -> Result<usize, PathError> {
        let to = resolve(&options.towards)?;
        let headers = header_bytes(to);
        let payload_bytes = (options.packet_bytes as usize).saturating_sub(headers);
        if payload_bytes > PAYLOAD_MAX {
            let most = PAYLOAD_MAX + headers;
            return Err(PathError::Input(format!("packet of {} bytes: at most {most}", options.packet_bytes)));
        }
        if options.interval_ns < 1000 || options.timeout_ns < 1_000_000 {
            let text = "interval of 1 us or more and a timeout of 1 ms or more are needed";
            return Err(PathError::Input(format!("{}: an {text}", options.towards)));
        }
        let failed = || PathError::io(format!("UDP to {to}"));
        let socket = TestSocket::connect(to, options.traffic_class).map_err(failed())?;
        // An identifier that the far end returns. It differs from that of an earlier session with the same port, whose
        // packets a reflector with state may still count; 0 would be none.
        let ssid = (socket.local().map_err(failed())?.port() ^ (unix_ns() >> 20) as u16).max(1);
        let config = SessionConfig {
            interval_ns: options.interval_ns,
            payload_bytes,
            ssid,
            key: options.key.as_deref().map(Key::new),
            timeout_ns: options.timeout_ns,
            count: options.count,
            format: options.format,
        };
        let number = self.next;
        self.next += 1;
        let base = if options.key.is_some() { 112 } else { 44 };
        self.entries.push(Entry {
            number,
            to,
            socket,
            session: Session::new(config, monotonic_ns().saturating_add(delay_ns)),
            untold: VecDeque::new(),
            untold_first: 0,
            fault: None,
            packet_bytes: (payload_bytes.max(base) + headers) as u64,
        });
        Ok(number)
    }

    /// Ends a session.
    pub fn remove(&mut self, number: usize) {
        self.entries.retain(|entry| entry.number != number);
    }

    fn entry(&self, number: usize) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.number == number)
    }

    /// True when all sessions with an end are over, and there is none without.
    pub fn is_done(&self) -> bool {
        self.entries.iter().all(|entry| entry.session.is_done())
    }

    /// The latest ICMP error or refusal of the own host, in words; it is forgotten when a reply comes.
    pub fn fault(&self, number: usize) -> Option<&str> {
        self.entry(number)?.fault.as_deref()
    }

    /// The address of its reflector.
    pub fn towards(&self, number: usize) -> Option<SocketAddr> {
        Some(self.entry(number)?.to)
    }

    /// Packets and bytes sent so far, from the IP headers on.
    pub fn sent(&self, number: usize) -> (u64, u64) {
        self.entry(number).map_or((0, 0), |entry| (entry.session.sent(), entry.session.sent() * entry.packet_bytes))
    }

    /// The reflector's clock against CLOCK_MONOTONIC here, less CLOCK_REALTIME's distance: against CLOCK_REALTIME.
    pub fn clock(&self, number: usize) -> Option<ClockState> {
        let mut state = self.entry(number)?.session.clock(monotonic_ns())?;
        let here = unix_ns().wrapping_sub(monotonic_ns()) as i64;
        state.offset_ns = state.offset_ns.wrapping_sub(here);
        Some(state)
    }

    /// Replies of a session that were not used.
    pub fn unused(&self, number: usize) -> Unused {
        self.entry(number).map_or(Unused::default(), |entry| entry.session.unused())
    }

    /// Replies of a session that came once more since its latest sample.
    pub fn untold_duplicates(&self, number: usize) -> u32 {
        self.entry(number).map_or(0, |entry| entry.session.untold_duplicates())
    }

    /// Packets lost on the way there, where the reflector counts.
    pub fn lost_forward(&self, number: usize) -> Option<u64> {
        self.entry(number)?.session.lost_forward()
    }

    /// Takes what still comes in so many ns. Duplicates of the last replies are counted by it.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn linger(&mut self, time_ns: u64) -> Result<(), PathError> {
        let end_ns = monotonic_ns().saturating_add(time_ns);
        loop {
            for entry in &mut self.entries {
                entry.take_replies(&mut self.room);
            }
            let left_ns = end_ns.saturating_sub(monotonic_ns());
            let fds: Vec<_> = self.entries.iter().map(|entry| entry.socket.as_fd()).collect();
            if left_ns == 0 || !wait(&fds, left_ns).map_err(PathError::io("waiting for replies"))? {
                return Ok(());
            }
        }
    }

    /// Sends and takes packets until there are samples, all sessions are over, a signal came, or `timeout_ns` have
    /// passed. Returns the samples with the numbers of their sessions.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn poll(&mut self, timeout_ns: u64) -> Result<Vec<(usize, Sample)>, PathError> {
        let end_ns = monotonic_ns().saturating_add(timeout_ns);
        let mut samples = vec![];
        loop {
            let now_ns = monotonic_ns();
            if now_ns.saturating_sub(self.asked_ns) > QUALITY_NS {
                self.asked_ns = now_ns;
                self.quality = clock_quality();
            }
            let mut next_ns = end_ns;
            for entry in &mut self.entries {
                entry.serve(&mut self.room, self.quality);
                while let Some(sample) = entry.session.poll_sample() {
                    samples.push((entry.number, sample));
                }
                next_ns = next_ns.min(entry.session.poll_timeout().unwrap_or(u64::MAX));
            }
            let now_ns = monotonic_ns();
            if !samples.is_empty() || now_ns >= end_ns || (self.is_done() && !self.entries.is_empty()) {
                return Ok(samples);
            }
            let fds: Vec<_> = self.entries.iter().map(|entry| entry.socket.as_fd()).collect();
            if !wait(&fds, next_ns.saturating_sub(now_ns)).map_err(PathError::io("waiting for replies"))? {
                return Ok(samples);
            }
        }
    }
}

impl Entry {
    fn serve(&mut self, room: &mut Room, quality: ClockQuality) {
        self.take_reports(room);
        self.take_replies(room);
        self.send_due(quality);
        self.session.handle_timeout(monotonic_ns());
    }

    fn send_due(&mut self, quality: ClockQuality) {
        let mut packet = vec![];
        loop {
            let now_ns = monotonic_ns();
            let clock = SenderClock {
                unix_ns: unix_ns(),
                error_ns: quality.error_ns,
                is_synchronized: quality.is_synchronized,
            };
            let Some(number) = self.session.poll_transmit(now_ns, clock, &mut packet) else { break };
            let outgoing = Outgoing { parts: [&packet, &[]], to: None, from: None, traffic_class: 0 };
            match self.socket.send(std::slice::from_ref(&outgoing)) {
                Ok(_) => self.untold.push_back(number),
                Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {
                    // That of an earlier packet, and read by this call: the packet has not left yet.
                    match self.socket.send(std::slice::from_ref(&outgoing)) {
                        Ok(_) => self.untold.push_back(number),
                        Err(error) => self.refused(&error),
                    }
                }
                Err(error) => self.refused(&error),
            }
            if self.untold.len() > UNTOLD_MAX {
                self.untold.pop_front();
                self.untold_first = self.untold_first.wrapping_add(1);
            }
        }
    }

    /// The kernel did not send: it may have counted the packet or not, so that it has to count anew.
    fn refused(&mut self, error: &io::Error) {
        self.fault = Some(format!("{}: {error}", self.to));
        self.untold.clear();
        self.untold_first = 0;
        // Without stamps of the kernel the session's own times stay.
        let _ = self.socket.stamp_sent();
    }

    fn take_reports(&mut self, room: &mut Room) {
        let distance = Distance::now();
        let (to, session) = (self.to, &mut self.session);
        let (untold, first, fault) = (&mut self.untold, &mut self.untold_first, &mut self.fault);
        // A queue that refuses to be read tells nothing; packets go on.
        let _ = room.reports(&self.socket, |report| match report {
            Report::Sent { number, at_unix_ns, hardware_ns } => {
                let at = number.wrapping_sub(*first) as usize;
                let Some(&sequence) = untold.get(at) else { return };
                session.handle_sent(sequence, at_unix_ns.map(|at| distance.monotonic(at)), hardware_ns);
                // Earlier ones are told already; this one may be told again by the adapter.
                untold.drain(..at);
                *first = number;
            }
            Report::Icmp { offender, kind, code, is_v6, .. } => {
                *fault = Some(icmp_text(to, offender, kind, code, is_v6))
            }
        });
    }

    fn take_replies(&mut self, room: &mut Room) {
        let (socket, to) = (&self.socket, self.to);
        loop {
            let distance = Distance::now();
            let (session, fault) = (&mut self.session, &mut self.fault);
            let got = room.receive(socket, |packet, facts| {
                let is_ours = facts.from.ip() == to.ip();
                if is_ours {
                    *fault = None;
                    session.handle_reply(&ReplyArrival {
                        packet,
                        at_ns: distance.monotonic(facts.at_unix_ns),
                        hardware_ns: facts.hardware_ns,
                        read_ns: monotonic_ns(),
                        ttl: facts.ttl,
                    });
                }
            });
            match got {
                Ok(ROOM) => {}
                // An ICMP error, of which the error queue tells more.
                Ok(_) | Err(_) => break,
            }
        }
    }
}

/// An ICMP error in words.
pub(crate) fn icmp_text(to: SocketAddr, offender: Option<IpAddr>, kind: u8, code: u8, is_v6: bool) -> String {
    let what = match (is_v6, kind, code) {
        (false, 3, 3) | (true, 1, 4) => "nobody listens at this port",
        (false, 3, 0) | (true, 1, 0) => "no route to the network",
        (false, 3, 1) | (true, 1, 3) => "the host does not answer",
        (false, 3, 9 | 10 | 13) | (true, 1, 1 | 5 | 6) => "a firewall refuses it",
        (false, 3, 4) | (true, 2, _) => "the packet is too big for the path",
        (false, 11, _) | (true, 3, _) => "the TTL ran out",
        _ => "an ICMP error",
    };
    match offender {
        Some(offender) => format!("{to}: {what} (ICMP type {kind}, code {code}, of {offender})"),
        None => format!("{to}: {what} (this host)"),
    }
}
