//! A flow whose traffic is a real program's: started in its hosts' namespaces, and watched from outside.

use super::diag::{Diag, SocketEntry};
use super::info::Info;
use super::netstat::{Netstat, Recoveries};
use super::process::Process;
use super::socket::Failed;
use crate::clock;
use crate::plan::{HostPlan, ProgramPlan};
use experiment::{FlowCounters, FlowSeries, Rtt, Workload};
use spec::{FlowSpec, RunSpec, WorkloadSpec};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::Path;
use units::{Span, Time};

/// Time for a server to begin to listen.
const CONNECT_TIMEOUT: Span = Span::from_secs(10);

/// Time for connections to close after their program has ended, before their counters are taken as they are.
const SETTLING: Span = Span::from_secs(2);

/// Bytes that a connection for commands does not reach: key exchange of SSH, commands of FTP.
const COMMANDS: u64 = 32 << 10;

/// Bytes of a file's part below which its connection may come and go between two looks.
const SHORT_STREAM: u64 = 256 << 10;

/// A flow that a program carries.
pub(crate) struct Program {
    /// Index of the flow in the spec.
    pub flow: usize,
    /// Bulk, as for all programs: the requested bytes and the time of the end.
    pub workload: Workload,
    pub received_at_warmup: u64,
    plan: ProgramPlan,
    /// Namespace of the client.
    namespace: String,
    congestion: String,
    window_bytes: u64,
    bytes: Option<u64>,
    near: End,
    far: End,
    client: Option<Process>,
    /// Tells when the client has ended.
    end: Option<OwnedFd>,
    server: Process,
    /// Time at which the client ended well.
    ended: Option<Time>,
    /// No connection is left, or none is waited for any more.
    settled: bool,
    netstat: (Netstat, Recoveries),
    /// At the latest sample: payload received, and when that was.
    sampled: (u64, Time),
    /// Smoothed round-trip times sampled: how many, and their sum, us.
    srtt: (u64, u64),
    /// Most that was found in flight on one connection, bytes.
    most_in_flight: u64,
    /// Most connections that were found to carry data at once.
    most_streams: usize,
}

/// The connections of one end, those that have gone included.
struct End {
    diag: Diag,
    peer: Ipv4Addr,
    all: BTreeMap<u64, (SocketEntry, bool)>,
}

impl End {
    fn open(namespace: &str, peer: Ipv4Addr) -> io::Result<End> {
        Ok(End { diag: Diag::open(namespace)?, peer, all: BTreeMap::new() })
    }

    /// Reads the connections again; returns true if there is one.
    fn look(&mut self) -> io::Result<bool> {
        let live = self.diag.connections()?;
        for (_, lives) in self.all.values_mut() {
            *lives = false;
        }
        let gone = self.diag.gone()?;
        for (entry, lives) in live.into_iter().map(|s| (s, true)).chain(gone.into_iter().map(|s| (s, false))) {
            if entry.remote == self.peer {
                self.all.insert(entry.cookie, (entry, lives));
            }
        }
        Ok(self.all.values().any(|(_, lives)| *lives))
    }

    /// Number of connections that carry data: those for commands stay below [`COMMANDS`].
    fn streams(&self) -> usize {
        let carries = |entry: &SocketEntry| entry.may_send && entry.info.raw().bytes_acked > COMMANDS;
        self.all.values().filter(|(entry, lives)| *lives && carries(entry)).count()
    }

    fn sum(&self, of: impl Fn(&SocketEntry) -> u64) -> u64 {
        self.all.values().map(|(entry, _)| of(entry)).sum()
    }

    /// The same where not every kernel counts it: None when this one does not.
    fn sum_told(&self, of: impl Fn(&Info) -> Option<u64>) -> Option<u64> {
        self.all.values().map(|(entry, _)| of(&entry.info)).sum()
    }
}

impl Program {
    /// Starts the server of flow `index`, and waits until it listens.
    pub fn open(spec: &RunSpec, plan: &HostPlan, index: usize, program: &ProgramPlan) -> Result<Program, Failed> {
        let (flow, planned) = (&spec.flows[index], &plan.flows[index]);
        let (from, to) = (&plan.hosts[planned.source], &plan.hosts[planned.destination]);
        let named = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| (what, error)
        };
        let bytes = match &flow.workload {
            WorkloadSpec::Program(program) => program.bytes,
            _ => return Err(named("its workload")(io::Error::other("the plan has a program and the spec has none"))),
        };
        let mut near = End::open(&from.namespace, to.address).map_err(named("sock_diag"))?;
        let mut far = End::open(&to.namespace, from.address).map_err(named("sock_diag"))?;
        let netstat = Netstat::open(&from.namespace).and_then(|n| n.read().map(|now| (n, now)));
        let (serves, asks) = if program.fetches { (from, to) } else { (to, from) };
        let server = Process::start(&program.server, &serves.namespace, Path::new(&program.folder), "server");
        let mut server = server.map_err(named(&program.server[0]))?;
        let until = clock::monotonic_ns() + CONNECT_TIMEOUT.0;
        let listens = if program.fetches { &mut near } else { &mut far };
        while !listens.diag.has_listener(planned.port).map_err(named("sock_diag"))? {
            let failed = |why: String| (format!("the server of {}", program.name), io::Error::other(why));
            if let Some(status) = server.ended().map_err(named("wait"))? {
                return Err(failed(format!("{status}: {}", server.words())));
            }
            if clock::monotonic_ns() > until {
                let within = CONNECT_TIMEOUT.as_secs_f64();
                return Err(failed(format!("it does not listen within {within} s: {}", server.words())));
            }
            clock::nap(Span::from_millis(5));
        }
        Ok(Program {
            flow: index,
            workload: Workload::bulk(bytes, false),
            received_at_warmup: 0,
            plan: program.clone(),
            namespace: asks.namespace.clone(),
            congestion: planned.congestion_control.clone(),
            window_bytes: planned.window_clamp_bytes,
            bytes,
            near,
            far,
            client: None,
            end: None,
            server,
            ended: None,
            settled: false,
            netstat: netstat.map_err(named("its namespace's counters"))?,
            sampled: (0, Time::ZERO),
            srtt: (0, 0),
            most_in_flight: 0,
            most_streams: 0,
        })
    }

    /// Starts the client; the descriptor tells when it has ended.
    pub fn start(&mut self) -> Result<&OwnedFd, Failed> {
        let failed = |error| (self.plan.name.clone(), error);
        let folder = Path::new(&self.plan.folder);
        let client = Process::start(&self.plan.client, &self.namespace, folder, "client").map_err(failed)?;
        let end = client.end().map_err(failed)?;
        self.client = Some(client);
        Ok(self.end.insert(end))
    }

    /// The client has ended, well or with an error.
    pub fn handle_end(&mut self, now: Time) -> Result<(), Failed> {
        let name = self.plan.name.clone();
        let failed = |error| (name.clone(), error);
        let Some(client) = &mut self.client else { return Ok(()) };
        let Some(status) = client.ended().map_err(failed)? else { return Ok(()) };
        if !status.success() {
            let server = Some(self.server.words()).filter(|words| !words.is_empty());
            let server = server.map_or(String::new(), |words| format!("; its server: {words}"));
            return Err(failed(io::Error::other(format!("{status}: {}{server}", client.words()))));
        }
        self.ended = Some(now);
        Ok(())
    }

    /// Returns true if all data has been sent and counted.
    pub fn is_done(&self) -> bool {
        self.settled
    }

    /// Returns true if its counters may still change.
    pub fn is_alive(&self) -> bool {
        self.client.is_some() && !self.settled
    }

    /// Payload that the receiving program has read, bytes.
    pub fn received(&self) -> u64 {
        self.far.sum(|entry| entry.info.raw().bytes_received.saturating_sub(entry.unread))
    }

    /// Reads its connections again.
    ///
    /// # Errors
    /// The kernel's; a congestion control other than the one that was asked for; a program that says that all is sent
    /// when it is not.
    pub fn look(&mut self, now: Time) -> Result<(), Failed> {
        let failed = |error| ("sock_diag".to_owned(), error);
        let near = self.near.look().map_err(failed)?;
        self.most_streams = self.most_streams.max(self.near.streams());
        let far = self.far.look().map_err(failed)?;
        let wanted = &self.congestion;
        let other = |entry: &SocketEntry| !entry.congestion_control.is_empty() && entry.congestion_control != *wanted;
        if let Some((entry, _)) = self.near.all.values().find(|(entry, _)| other(entry)) {
            let text =
                format!("the kernel gave it {} as its congestion control, not {wanted}", entry.congestion_control);
            return Err((self.plan.name.clone(), io::Error::other(text)));
        }
        let Some(ended) = self.ended.filter(|_| !self.settled) else { return Ok(()) };
        if (near || far) && now.since(ended) < SETTLING {
            return Ok(());
        }
        self.settled = true;
        let (received, bytes) = (self.received(), self.bytes.unwrap_or(0));
        if self.plan.confirmed && received < bytes {
            let text = format!("it ended as if all had been sent, and {received} of {bytes} bytes have arrived");
            return Err((self.plan.name.clone(), io::Error::other(text)));
        }
        self.workload.stopped_at = Some(ended);
        self.workload.done_at = Some(ended);
        Ok(())
    }

    /// A sample of the connection that carries most; a row goes to `series` where there is one.
    pub fn sample(&mut self, now: Time, series: Option<&mut FlowSeries>) {
        let most = |entry: &SocketEntry| entry.info.raw().bytes_acked + entry.info.in_flight_bytes();
        let live = self.near.all.values().filter(|(_, lives)| *lives).map(|(entry, _)| entry);
        let Some(info) = live.max_by_key(|entry| most(entry)).map(|entry| entry.info) else { return };
        let raw = info.raw();
        if raw.rtt_us > 0 {
            self.srtt = (self.srtt.0 + 1, self.srtt.1 + u64::from(raw.rtt_us));
        }
        self.most_in_flight = self.most_in_flight.max(info.in_flight_bytes());
        let Some(series) = series else { return };
        let (received, (before, since)) = (self.received(), self.sampled);
        let interval = now.since(since).as_secs_f64();
        let more = received.saturating_sub(before) as f64 * 8.0;
        let goodput = if interval > 0.0 { more / interval } else { 0.0 };
        let again = self.near.sum(|entry| u64::from(entry.info.raw().total_retrans));
        series.push(info.row(now, self.flow, goodput, again, (Span::ZERO, 0)));
        self.sampled = (received, now);
    }

    /// The counters of all its connections together, as of the latest look.
    pub fn counters(&self) -> io::Result<FlowCounters> {
        let mut counters = FlowCounters { received_bytes: self.received(), ..FlowCounters::default() };
        if self.near.all.is_empty() || self.far.all.is_empty() {
            return Ok(counters);
        }
        // The SYN counts as delivered; see `Connection::counters` for why there are two counts, of which neither has
        // the whole.
        let heard = self.near.sum_told(|info| info.delivered().map(|n| n.saturating_sub(1)));
        let known = self.near.sum_told(Info::duplicates);
        let counted = known.map(|n| self.far.sum(|s| u64::from(s.info.raw().data_segs_in)).saturating_sub(n));
        counters.delivered_packets = heard.max(counted);
        counters.sent_segments = Some(self.near.sum(|s| u64::from(s.info.raw().data_segs_out)));
        counters.retransmitted_segments = Some(self.near.sum(|s| u64::from(s.info.raw().total_retrans)));
        counters.retransmitted_bytes = self.near.sum_told(Info::bytes_retrans);
        counters.timeouts = self.near.sum_told(Info::timeouts);
        let empty = |s: &SocketEntry| u64::from(s.info.raw().segs_out.saturating_sub(s.info.raw().data_segs_out));
        counters.acks = Some(self.far.sum(empty));
        let least = self.near.all.values().filter_map(|(s, _)| s.info.min_rtt_us()).min();
        counters.rtt = Rtt { mean: (self.srtt.0 > 0).then_some(self.srtt), min_us: least, max_us: None };
        let recoveries = self.netstat.0.read()?.since(&self.netstat.1);
        counters.fast_retransmits = Some(recoveries.fast);
        counters.tlp_probes = Some(recoveries.probes);
        counters.spurious_recoveries = Some(recoveries.undone);
        Ok(counters)
    }

    /// Ends the client, with all data in flight.
    pub fn cut(&mut self) {
        self.client = None;
    }

    /// Returns the workload: its bytes and the time of its end. Ends server and client.
    pub fn into_workload(self) -> Workload {
        self.workload
    }

    /// Returns the notes for a reader of the metrics.
    pub fn notes(&self, spec: &FlowSpec, end: Time) -> Vec<String> {
        let (name, program) = (&spec.name, &self.plan.name);
        let mut notes = vec![];
        if self.far.all.is_empty() && spec.start_ns < end.0 {
            notes.push(format!("flow {name}: {program} made no connection before the end"));
        }
        let (asked, most) = (self.plan.streams, self.most_streams);
        let files = match &spec.workload {
            WorkloadSpec::Program(program) => u64::from(program.files),
            _ => 1,
        };
        if most != asked && self.received() >= asked.max(most) as u64 * files * SHORT_STREAM {
            notes.push(format!(
                "flow {name}: at most {most} of {program}'s connections carried data at once, not {asked}"
            ));
        }
        let asked = self.window_bytes;
        if self.most_in_flight > asked + asked / 50 + (16 << 10) {
            let most = self.most_in_flight;
            notes.push(format!("flow {name}: up to {most} bytes were in flight; a window of {asked} was asked for"));
        }
        notes
    }
}
