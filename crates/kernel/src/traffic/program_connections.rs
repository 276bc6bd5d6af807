//! The connections of a program at one end, those that have gone included, and the start of a server.

use super::diag::{Diag, SocketEntry};
use super::ends::{EndReport, Extremes};
use super::far_end::FarCounters;
use super::info::Info;
use super::process::{told, Process};
use super::socket::Failed;
use super::written::UdpSockets;
use crate::clock;
use crate::program_end_plan::{Ports, ProgramEndPlan};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use units::Span;

/// Time for a server to begin to listen.
const CONNECT_TIMEOUT: Span = Span::from_secs(10);

/// Bytes that a connection for commands does not reach: key exchange of SSH, commands of FTP.
const COMMANDS: u64 = 32 << 10;

/// A look at connections goes over all that a host has: between two looks is at least this many times the time of one,
/// so that they take 5 % of a processor at most.
const RESTS: u64 = 19;

/// Place of a server.
pub(crate) struct ServerAt<'a> {
    /// File of its network namespace; None: this thread's.
    pub namespace: Option<&'a str>,
    /// In which it starts, and for its output.
    pub folder: &'a Path,
    pub port: u16,
    /// It has the port of UDP, not of TCP.
    pub over_udp: bool,
}

impl ServerAt<'_> {
    /// That of an end on a host that has no namespaces for it.
    pub fn here(program: &ProgramEndPlan) -> ServerAt<'_> {
        ServerAt { namespace: None, folder: &program.folder, port: program.port(), over_udp: false }
    }
}

/// The connections of one end.
pub(crate) struct Connections {
    diag: Diag,
    peer: IpAddr,
    ports: Ports,
    all: BTreeMap<u64, (SocketEntry, bool)>,
    extremes: Extremes,
    /// CLOCK_MONOTONIC of the earliest next look that may wait, ns.
    due_ns: u64,
}

impl Connections {
    /// Those to `peer` in the namespace whose file is `namespace`; None: this thread's.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(namespace: Option<&str>, peer: IpAddr, ports: Ports) -> io::Result<Connections> {
        let diag = Diag::open(namespace, peer)?;
        Ok(Connections { diag, peer, ports, all: BTreeMap::new(), extremes: Extremes::default(), due_ns: 0 })
    }

    /// Reads the connections again, unless it is too early for another look; returns true if there is one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look_at_leisure(&mut self) -> io::Result<bool> {
        let began = clock::monotonic_ns();
        if began < self.due_ns {
            return Ok(self.has_live());
        }
        let live = self.look()?;
        let ended = clock::monotonic_ns();
        self.due_ns = ended + RESTS * (ended - began);
        Ok(live)
    }

    /// Reads the connections again; returns true if there is one.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self) -> io::Result<bool> {
        let live = self.diag.connections()?;
        for (_, lives) in self.all.values_mut() {
            *lives = false;
        }
        let gone = self.diag.gone()?;
        for (entry, lives) in live.into_iter().map(|s| (s, true)).chain(gone.into_iter().map(|s| (s, false))) {
            if entry.remote.to_canonical() != self.peer.to_canonical()
                || !self.ports.have(entry.local_port, entry.remote_port)
            {
                continue;
            }
            self.extremes.note(&entry.info);
            // The kernel says neither of a connection that has gone.
            let before = self.all.get(&entry.cookie).filter(|_| !lives);
            let kept = before.map(|(before, _)| (before.congestion_control.clone(), before.buffers));
            let mut entry = entry;
            if let Some((control, buffers)) = kept {
                (entry.congestion_control, entry.buffers) = (control, buffers);
            }
            self.all.insert(entry.cookie, (entry, lives));
        }
        Ok(self.has_live())
    }

    fn has_live(&self) -> bool {
        self.all.values().any(|(_, lives)| *lives)
    }

    /// Returns true if there never was one.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &SocketEntry> {
        self.all.values().map(|(entry, _)| entry)
    }

    /// Those that live.
    pub fn live(&self) -> impl Iterator<Item = &SocketEntry> {
        self.all.values().filter(|(_, lives)| *lives).map(|(entry, _)| entry)
    }

    /// Number of connections that carry data: those for commands stay below [`COMMANDS`].
    pub fn streams(&self) -> usize {
        self.live().filter(|entry| entry.may_send && entry.info.raw().bytes_acked > COMMANDS).count()
    }

    /// Payload that the program has read, bytes.
    pub fn received(&self) -> u64 {
        self.sum(|entry| entry.info.raw().bytes_received.saturating_sub(entry.unread))
    }

    /// The sum of a counter over all connections.
    pub fn sum(&self, of: impl Fn(&SocketEntry) -> u64) -> u64 {
        self.all().map(of).sum()
    }

    /// The same where not every kernel counts it: None when this one does not.
    pub fn sum_told(&self, of: impl Fn(&Info) -> Option<u64>) -> Option<u64> {
        self.all().map(|entry| of(&entry.info)).sum()
    }

    /// Counters of a receiving end; None if there never was a connection.
    pub fn counters(&self) -> Option<FarCounters> {
        let empty = |s: &SocketEntry| u64::from(s.info.raw().segs_out.saturating_sub(s.info.raw().data_segs_out));
        (!self.is_empty()).then(|| FarCounters {
            bytes: self.received(),
            data_segments: Some(self.sum(|s| u64::from(s.info.raw().data_segs_in))),
            acks: Some(self.sum(empty)),
        })
    }

    /// The connection of flow `name` that has carried most, as the kernel had it; None if there never was one. One that
    /// came and went between two looks has the congestion control and the buffers of another.
    pub fn end_report(&self, name: &str) -> Option<EndReport> {
        let carried = |entry: &&SocketEntry| entry.info.raw().bytes_acked + entry.info.raw().bytes_received;
        let most = self.all().max_by_key(carried)?;
        let mut known = std::iter::once(most).chain(self.all());
        let known = known.find(|entry| !entry.congestion_control.is_empty()).unwrap_or(most);
        let report = EndReport::seen(name, &most.info, &known.congestion_control, known.buffers, &self.extremes);
        Some(EndReport { received_bytes: self.received(), ..report })
    }

    /// Starts the server of `program` and waits until it listens on its port.
    ///
    /// # Errors
    /// It does not start, ends, or does not listen in time.
    pub fn serve(&mut self, program: &str, words: &[String], at: ServerAt<'_>) -> Result<Process, Failed> {
        let named = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| (what, error)
        };
        let udp = at.over_udp.then(|| UdpSockets::open(at.namespace)).transpose().map_err(named("/proc/net/udp"))?;
        let mut server = Process::start(words, at.namespace, at.folder, "server").map_err(named(program))?;
        let until = clock::monotonic_ns() + CONNECT_TIMEOUT.0;
        let mut listens = || match &udp {
            Some(sockets) => sockets.have(at.port).map_err(named("/proc/net/udp")),
            None => self.diag.has_listener(at.port).map_err(named("sock_diag")),
        };
        while !listens()? {
            let failed = |why: String| (format!("the server of {program}"), io::Error::other(why));
            if let Some(status) = server.ended().map_err(named("wait"))? {
                return Err(failed(told(status, &server.words())));
            }
            if clock::monotonic_ns() > until {
                let within = CONNECT_TIMEOUT.as_secs_f64();
                return Err(failed(format!("it does not listen within {within} s: {}", server.words())));
            }
            clock::nap(Span::from_millis(5));
        }
        Ok(server)
    }
}
