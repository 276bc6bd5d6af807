//! One flow of a run as two sockets and an application.

use super::ends::{EndReport, Extremes};
use super::far_end::FarEnd;
use super::info::Info;
use super::netstat::{Netstat, Recoveries};
use super::record::BYTES;
use super::sender::{ConnectionState, Sender};
use super::socket::{Failed, Socket};
use crate::plan::HostPlan;
use crate::socket_plan::SocketPlan;
use experiment::{FlowCounters, FlowSeries, Rtt, Workload, BLOCK_BYTES};
use spec::{FlowSpec, RunSpec, WorkloadSpec};
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::{Rate, Span, Time};

/// A flow that stops in the middle has at most this much of the line's time unsent in the kernel, since that data
/// cannot be taken back.
const UNSENT: Span = Span::from_millis(5);
/// And this many bytes at least: a segment of the kernel's offload.
const UNSENT_LEAST: u64 = 64 << 10;

pub(crate) struct Connection {
    /// Index of the flow in the spec.
    pub flow: usize,
    pub sender: Sender,
    pub far: FarEnd,
    pub workload: Workload,
    /// Time of the application's next call.
    pub due: Time,
    /// True if the application has begun.
    pub opened: bool,
    /// Payload that the receiving application has taken, bytes.
    pub received: u64,
    pub received_at_warmup: u64,
    /// Reason that the connection was lost or never made.
    pub lost: Option<io::Error>,
    /// The run is over for it: nothing that happens to it counts any more.
    pub cut: bool,
    /// Time at which the connection was begun.
    pub connecting_since: Time,
    pub to: SocketAddr,
    /// Congestion control that the kernel has to use; None: any.
    congestion: Option<String>,
    window_bytes: Option<u64>,
    /// Counters of the sender's namespace, if no other flow has a part in them, and their values at the start.
    netstat: Option<(Netstat, Recoveries)>,
    /// At the latest sample: payload received, and when that was.
    sampled: (u64, Time),
    /// Smoothed round-trip times sampled: how many, and their sum, us.
    srtt: (u64, u64),
    /// Most that was seen in flight, bytes.
    most_in_flight: u64,
    extremes: Extremes,
    /// The sender's counters when the run ended, where the far end's come later.
    at_end: Option<Info>,
}

/// Both ends of a connection.
struct Ends {
    socket: Socket,
    far: FarEnd,
    to: SocketAddr,
}

impl Connection {
    /// Sockets and application of flow `index`; nothing is sent yet.
    pub fn new(spec: &RunSpec, plan: &HostPlan, index: usize, workload: Workload) -> Result<Connection, Failed> {
        let (flow, planned) = (&spec.flows[index], &plan.flows[index]);
        let (from, to) = (&plan.hosts[planned.source], &plan.hosts[planned.destination]);
        let sockets = planned.sockets();
        let there = SocketAddr::new(to.address_of(planned.ipv6), planned.port);
        let listener = Socket::listener(Some(&to.namespace), there, &sockets, 1)?;
        let socket = Socket::sender(Some(&from.namespace), from.address_of(planned.ipv6), &sockets)?;
        if let Some(bytes) = unsent_bound(spec, flow, &workload) {
            socket.set_unsent_bound(bytes)?;
        }
        let alone = plan
            .flows
            .iter()
            .enumerate()
            .all(|(other, f)| other == index || (f.source != planned.source && f.destination != planned.source));
        let netstat = match alone && planned.destination != planned.source {
            true => Some(Netstat::open(&from.namespace).and_then(|n| n.read().map(|now| (n, now)))),
            false => None,
        };
        let netstat = netstat.transpose().map_err(|e| ("its namespace's counters".to_owned(), e))?;
        let far = FarEnd::Local { listener: Some(listener), receiver: None };
        Ok(Connection { netstat, ..Connection::of(index, flow, Ends { socket, far, to: there }, &sockets, workload) })
    }

    /// The sending socket and application of flow `index`, whose far end `to` another agent has.
    pub fn to_remote(
        spec: &RunSpec,
        index: usize,
        from: IpAddr,
        to: SocketAddr,
        sockets: &SocketPlan,
        preamble: [u8; BYTES],
        workload: Workload,
    ) -> Result<Connection, Failed> {
        let flow = &spec.flows[index];
        let socket = Socket::sender(None, from, sockets)?;
        if let Some(bytes) = unsent_bound(spec, flow, &workload) {
            socket.set_unsent_bound(bytes)?;
        }
        let far = FarEnd::Remote { preamble, came: false, counters: None };
        Ok(Connection::of(index, flow, Ends { socket, far, to }, sockets, workload))
    }

    fn of(index: usize, flow: &FlowSpec, ends: Ends, sockets: &SocketPlan, workload: Workload) -> Connection {
        Connection {
            flow: index,
            sender: Sender::new(ends.socket, write_limit(&flow.workload)),
            far: ends.far,
            workload,
            due: Time(flow.start_ns),
            opened: false,
            received: 0,
            received_at_warmup: 0,
            lost: None,
            cut: false,
            connecting_since: Time::ZERO,
            to: ends.to,
            congestion: sockets.congestion_control.clone(),
            window_bytes: sockets.window_clamp_bytes,
            netstat: None,
            sampled: (0, Time::ZERO),
            srtt: (0, 0),
            most_in_flight: 0,
            extremes: Extremes::default(),
            at_end: None,
        }
    }

    /// Begins to connect; the application begins with it.
    pub fn connect(&mut self) {
        if let Err(error) = self.sender.connect(self.to) {
            self.lose(error);
        }
    }

    /// Ends it at once, with all data in flight.
    pub fn cut(&mut self) {
        self.sender.standing = ConnectionState::Lost;
        self.sender.socket.abort();
        self.far.close();
        self.cut = true;
    }

    /// Returns true if the connection is open and can still change.
    pub fn is_alive(&self) -> bool {
        self.opened && !self.cut && self.lost.is_none()
    }

    /// Returns the error that kept the connection from being made, unless it is a timeout, which is the network's.
    pub fn mistake(&mut self) -> Option<io::Error> {
        let made = self.far.came() || self.cut;
        self.lost.take_if(|error| !made && error.kind() != io::ErrorKind::TimedOut)
    }

    /// The sender's socket has changed: connected, room again, or an error. False when the connection is lost.
    pub fn handle_sender(&mut self) -> bool {
        let was = self.sender.standing;
        if was == ConnectionState::Lost {
            return false;
        }
        let changed = self.sender.handle_writable().and_then(|()| match was {
            ConnectionState::Connecting => self.check_congestion().and_then(|()| self.show_preamble()),
            _ => Ok(()),
        });
        match changed {
            Ok(()) => true,
            Err(error) => {
                self.lose(error);
                false
            }
        }
    }

    /// Checks that the kernel uses the congestion control that was asked for.
    fn check_congestion(&self) -> io::Result<()> {
        let Some(wanted) = &self.congestion else { return Ok(()) };
        let got = self.sender.socket.congestion()?;
        if got == *wanted {
            return Ok(());
        }
        Err(io::Error::other(format!("the kernel gave it {got} as its congestion control, not {wanted}")))
    }

    /// Sends the bytes by which another agent knows the connection, before all data; they fit the empty buffer.
    fn show_preamble(&self) -> io::Result<()> {
        let Some(preamble) = self.far.preamble() else { return Ok(()) };
        match self.sender.socket.send_bytes(preamble)? {
            BYTES => Ok(()),
            sent => Err(io::Error::other(format!("the send buffer takes {sent} of {BYTES} bytes"))),
        }
    }

    /// The connection is no more.
    pub fn lose(&mut self, error: io::Error) {
        self.sender.standing = ConnectionState::Lost;
        self.lost.get_or_insert(error);
    }

    /// Takes the data that has arrived; returns its bytes.
    pub fn take(&mut self) -> io::Result<u64> {
        let Some(receiver) = self.far.socket() else { return Ok(0) };
        let bytes = receiver.take()?.unwrap_or(0);
        if let Some(window) = self.window_bytes.filter(|_| bytes > 0) {
            receiver.clamp_window(window).map_err(|(_, error)| error)?;
        }
        self.received += bytes;
        Ok(bytes)
    }

    /// Marks the connection lost if a write has failed.
    pub fn notice_failure(&mut self) {
        if let Some(error) = self.sender.error.take() {
            self.lose(error);
        }
    }

    /// Samples the sender; a row goes to `series` where there is one, with the lag of its messages, in time and in
    /// bytes.
    pub fn sample(&mut self, now: Time, lag: (Span, u64), series: Option<&mut FlowSeries>) -> io::Result<()> {
        let info = self.sender.socket.info()?;
        let raw = info.raw();
        if raw.rtt_us > 0 {
            self.srtt = (self.srtt.0 + 1, self.srtt.1 + u64::from(raw.rtt_us));
        }
        self.most_in_flight = self.most_in_flight.max(info.in_flight_bytes());
        self.extremes.note(&info);
        let Some(series) = series else { return Ok(()) };
        let (received, since) = self.sampled;
        let interval = now.since(since).as_secs_f64();
        let goodput = if interval > 0.0 { (self.received - received) as f64 * 8.0 / interval } else { 0.0 };
        let again = raw.total_retrans.saturating_sub(self.sender.at_start.raw().total_retrans);
        series.push(info.row(now, self.flow, goodput, u64::from(again), lag));
        self.sampled = (self.received, now);
        Ok(())
    }

    /// Keeps the sender's counters as those of the run's end.
    pub fn note_end(&mut self) {
        self.at_end = self.sender.socket.info().ok();
    }

    /// Returns what the kernel gave the sending end.
    pub fn end_report(&mut self, name: &str) -> io::Result<Option<EndReport>> {
        EndReport::of(name, &self.sender.socket, &mut self.extremes)
    }

    /// Returns the counters now, or those of the run's end where they were kept; those that the kernel does not give
    /// are absent, and all of them if there never was a connection.
    pub fn counters(&mut self) -> io::Result<FlowCounters> {
        let Some(far) = self.far.counters(self.received)? else {
            return Ok(FlowCounters { received_bytes: self.received, ..FlowCounters::default() });
        };
        let mut counters = FlowCounters { received_bytes: far.bytes, ..FlowCounters::default() };
        let info = match self.at_end.take() {
            Some(kept) => kept,
            None => self.sender.socket.info()?,
        };
        // The segment with the preamble is none of the flow's.
        let more = u64::from(self.far.preamble().is_some());
        let (raw, start) = (info.raw(), &self.sender.at_start);
        let since = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        // Neither end has the whole count: the sender learns half a round trip later, and the receiver takes segments
        // that the emulator joined for one (a packet from a TUN device tells no number of segments). Both are below the
        // truth, but for duplicates that the receiver has yet to report.
        let heard = since(info.delivered(), start.delivered());
        let counted = far.data_segments.zip(info.duplicates()).map(|(all, known)| all.saturating_sub(known));
        // A real card's joined packets tell their number of segments, and the sender's count may hold the stream's end.
        let delivered = if more > 0 { counted.or(heard) } else { heard.max(counted) };
        counters.delivered_packets = delivered.map(|packets| packets.saturating_sub(more));
        counters.sent_segments = Some(u64::from(raw.data_segs_out).saturating_sub(more));
        counters.retransmitted_segments = Some(u64::from(raw.total_retrans.saturating_sub(start.raw().total_retrans)));
        counters.retransmitted_bytes = info.bytes_retrans();
        counters.timeouts = since(info.timeouts(), start.timeouts());
        counters.acks = far.acks;
        counters.sending = info.sending_times();
        counters.rtt = Rtt { mean: (self.srtt.0 > 0).then_some(self.srtt), min_us: info.min_rtt_us(), max_us: None };
        if let Some((netstat, before)) = &self.netstat {
            let recoveries = netstat.read()?.since(before);
            counters.fast_retransmits = Some(recoveries.fast);
            counters.tlp_probes = Some(recoveries.probes);
            counters.spurious_recoveries = Some(recoveries.undone);
        }
        Ok(counters)
    }

    /// Returns the notes for a reader of the metrics.
    pub fn notes(&self, spec: &FlowSpec, end: Time) -> Vec<String> {
        let name = &spec.name;
        let mut notes = vec![];
        match &self.lost {
            Some(error) if !self.far.came() => notes.push(format!("flow {name}: no connection: {error}")),
            Some(error) => {
                let received = self.received;
                notes.push(format!("flow {name}: the connection was lost after {received} bytes: {error}"));
            }
            None if !self.far.came() && spec.start_ns < end.0 => {
                notes.push(format!("flow {name}: no connection was made before the end"));
            }
            None => {}
        }
        // The kernel keeps to the clamp only until it sets another (`Socket::clamp_window`). Windows are multiples of
        // 2^scale, at most 16 KiB.
        let asked = spec.transport.window_bytes;
        if self.most_in_flight > asked + asked / 50 + (16 << 10) {
            let most = self.most_in_flight;
            notes.push(format!("flow {name}: up to {most} bytes were in flight; a window of {asked} was asked for"));
        }
        notes
    }
}

/// Returns the most bytes of a write: the application's buffer.
fn write_limit(workload: &WorkloadSpec) -> u64 {
    match workload {
        WorkloadSpec::Bulk { buffer_bytes: Some(bytes), .. } => *bytes,
        _ => u64::MAX,
    }
}

/// Returns the limit of unsent bytes in the kernel. There is one only if the application stops before its end and takes
/// the rest back, or if another connection may send the rest.
fn unsent_bound(spec: &RunSpec, flow: &FlowSpec, workload: &Workload) -> Option<u64> {
    if workload.share().is_some() && matches!(flow.workload, WorkloadSpec::Bulk { .. } | WorkloadSpec::Copy(_)) {
        return Some(BLOCK_BYTES);
    }
    let stops = flow.stop_ns.is_some() && matches!(flow.workload, WorkloadSpec::Bulk { bytes: None, .. });
    let line = Rate(spec.links[experiment::bottleneck(spec, flow)].rate_bps);
    stops.then(|| line.data_in(UNSENT).0.max(UNSENT_LEAST))
}
