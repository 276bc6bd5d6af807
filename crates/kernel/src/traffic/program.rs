//! A flow whose traffic is a real program's: started in its hosts' namespaces, and watched from outside.

use super::diag::SocketEntry;
use super::ends::EndReport;
use super::info::Info;
use super::netstat::{Netstat, Recoveries};
use super::process::{told, Process};
use super::program_connections::{Connections, ServerAt};
use super::program_far::{ProgramFarEnd, Told};
use super::socket::Failed;
use crate::plan::{HostPlan, HostSpec, ProgramPlan};
use crate::program_end_plan::{Ports, ProgramEndPlan};
use crate::remote_plan::SendPlan;
use experiment::{FlowCounters, FlowSeries, Rtt, SendingTimes, Workload};
use spec::{FlowSpec, RunSpec, WorkloadSpec};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use units::{Span, Time};

/// Time for connections to close after their program has ended, before their counters are taken as they are.
const SETTLING: Span = Span::from_secs(2);

/// Time for another agent's report of the last data, after a program has ended well.
const LAST_REPORT: Span = Span::from_secs(10);

/// Bytes of a file's part below which its connection may come and go between two looks.
const SHORT_STREAM: u64 = 256 << 10;

/// A flow that a program carries.
pub(crate) struct Program {
    /// Index of the flow in the spec.
    pub flow: usize,
    /// Bulk, as for all programs: the requested bytes and the time of the end.
    pub workload: Workload,
    pub received_at_warmup: u64,
    name: String,
    /// Connections that are to carry data at once.
    streams: usize,
    /// The client ends well only after the other end has confirmed all data.
    confirmed: bool,
    /// Congestion control that the kernel has to use; None: any.
    congestion: Option<String>,
    window_bytes: u64,
    bytes: Option<u64>,
    near: Connections,
    far: ProgramFarEnd,
    /// None: another agent has the client.
    client: Option<Client>,
    /// It has begun, here or there.
    begun: bool,
    /// None: another agent has it.
    server: Option<Process>,
    /// Time at which the client ended well.
    ended: Option<Time>,
    /// No connection is left, or none is waited for any more.
    settled: bool,
    /// Counters of the sender's namespace, where no other traffic has a part in them, and their values at the start.
    netstat: Option<(Netstat, Recoveries)>,
    /// At the latest sample: payload received, and when that was.
    sampled: (u64, Time),
    /// Smoothed round-trip times sampled: how many, and their sum, us.
    srtt: (u64, u64),
    /// Most that was found in flight on one connection, bytes.
    most_in_flight: u64,
    /// Most connections that were found to carry data at once.
    most_streams: usize,
}

/// A client: its command line and, once it has begun, its process, which the descriptor tells the end of.
struct Client {
    words: Vec<String>,
    namespace: Option<String>,
    folder: PathBuf,
    running: Option<(Process, OwnedFd)>,
}

/// A program as it is planned, wherever its ends are.
struct Planned {
    name: String,
    streams: usize,
    confirmed: bool,
    congestion: Option<String>,
    window_bytes: u64,
}

impl Program {
    /// Starts the server of flow `index`, and waits until it listens; both ends are on this machine.
    ///
    /// # Errors
    /// The kernel's; the server does not begin to listen.
    pub fn open(spec: &RunSpec, plan: &HostPlan, index: usize, program: &ProgramPlan) -> Result<Program, Failed> {
        let planned = &plan.flows[index];
        let (from, to) = (&plan.hosts[planned.source], &plan.hosts[planned.destination]);
        let failed = |error| ("sock_diag".to_owned(), error);
        let connections =
            |namespace, peer: &HostSpec| Connections::open(namespace, peer.address_of(planned.ipv6), Ports::Any);
        let mut near = connections(Some(from.namespace.as_str()), to).map_err(failed)?;
        let mut far = connections(Some(to.namespace.as_str()), from).map_err(failed)?;
        let netstat = Netstat::open(&from.namespace).and_then(|n| n.read().map(|now| (n, now)));
        let (serves, asks) = if program.fetches { (from, to) } else { (to, from) };
        let listens = if program.fetches { &mut near } else { &mut far };
        let (namespace, folder) = (Some(serves.namespace.as_str()), PathBuf::from(&program.folder));
        let at = ServerAt { namespace, folder: &folder, port: planned.port, over_udp: program.over_udp };
        let server = listens.serve(&program.name, &program.server, at)?;
        let far = if program.over_udp {
            ProgramFarEnd::Written(server.written().map_err(|error| ("/proc/PID/io of its server".to_owned(), error))?)
        } else {
            ProgramFarEnd::Here(far)
        };
        let client =
            Client { words: program.client.clone(), namespace: Some(asks.namespace.clone()), folder, running: None };
        let about = Planned {
            name: program.name.clone(),
            streams: program.streams,
            confirmed: program.confirmed,
            congestion: Some(planned.congestion_control.clone()),
            window_bytes: planned.window_clamp_bytes,
        };
        let made = Program::of(spec, index, about, near, far)?;
        let netstat = netstat.map_err(|error| ("its namespace's counters".to_owned(), error))?;
        Ok(Program { client: Some(client), server: Some(server), netstat: Some(netstat), ..made })
    }

    /// The sending end of flow `index`, whose other end another agent has. A server here listens afterwards.
    ///
    /// # Errors
    /// The kernel's; the server does not begin to listen.
    pub fn to_remote(
        spec: &RunSpec,
        plan: &SendPlan,
        index: usize,
        program: &ProgramEndPlan,
    ) -> Result<Program, Failed> {
        let failed = |error| ("sock_diag".to_owned(), error);
        let mut near = Connections::open(None, plan.peer, program.connections()).map_err(failed)?;
        let server = program.serves.then(|| near.serve(&program.name, &program.words, ServerAt::here(program)));
        let server = server.transpose()?;
        let client = (!program.serves).then(|| Client {
            words: program.words.clone(),
            namespace: None,
            folder: program.folder.clone(),
            running: None,
        });
        let about = Planned {
            name: program.name.clone(),
            streams: program.streams,
            confirmed: program.confirmed,
            congestion: plan.flows[index].congestion_control.clone(),
            window_bytes: spec.flows[index].transport.window_bytes,
        };
        let made = Program::of(spec, index, about, near, ProgramFarEnd::There(Told::default()))?;
        Ok(Program { client, server, ..made })
    }

    fn of(
        spec: &RunSpec,
        index: usize,
        planned: Planned,
        near: Connections,
        far: ProgramFarEnd,
    ) -> Result<Program, Failed> {
        let bytes = match &spec.flows[index].workload {
            WorkloadSpec::Program(program) => program.bytes,
            _ => {
                let error = io::Error::other("the plan has a program and the spec has none");
                return Err(("its workload".to_owned(), error));
            }
        };
        let Planned { name, streams, confirmed, congestion, window_bytes } = planned;
        Ok(Program {
            flow: index,
            workload: Workload::bulk(bytes, false),
            received_at_warmup: 0,
            name,
            streams,
            confirmed,
            congestion,
            window_bytes,
            bytes,
            near,
            far,
            client: None,
            begun: false,
            server: None,
            ended: None,
            settled: false,
            netstat: None,
            sampled: (0, Time::ZERO),
            srtt: (0, 0),
            most_in_flight: 0,
            most_streams: 0,
        })
    }

    /// Starts the client; the descriptor tells when it has ended. None where another agent starts it.
    ///
    /// # Errors
    /// It is not there.
    pub fn start(&mut self) -> Result<Option<&OwnedFd>, Failed> {
        self.begun = true;
        let failed = |error| (self.name.clone(), error);
        let Some(client) = &mut self.client else { return Ok(None) };
        let process = Process::start(&client.words, client.namespace.as_deref(), &client.folder, "client");
        let process = process.map_err(failed)?;
        let end = process.end().map_err(failed)?;
        Ok(Some(&client.running.insert((process, end)).1))
    }

    /// Returns true if another agent has the client.
    pub fn is_fetched(&self) -> bool {
        self.client.is_none()
    }

    /// Another agent's client has ended well.
    pub fn note_end(&mut self, at: Time) {
        self.ended = Some(at);
    }

    /// Knowledge of the other agent's end; None where it is here.
    pub fn told(&mut self) -> Option<&mut Told> {
        self.far.told()
    }

    /// The error of a program that has failed at the other agent, with its words.
    pub fn failed_there(&self, text: String) -> Failed {
        (self.name.clone(), io::Error::other(text))
    }

    /// The sending end as the kernel has it; None if there never was a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end_report(&mut self, name: &str) -> io::Result<Option<EndReport>> {
        self.near.look()?;
        Ok(self.near.end_report(name))
    }

    /// The client has ended, well or with an error.
    pub fn handle_end(&mut self, now: Time) -> Result<(), Failed> {
        let name = self.name.clone();
        let failed = |error| (name.clone(), error);
        let Some((client, _)) = self.client.as_mut().and_then(|client| client.running.as_mut()) else { return Ok(()) };
        let Some(status) = client.ended().map_err(failed)? else { return Ok(()) };
        if !status.success() {
            let server = self.server.as_ref().map(Process::words).filter(|words| !words.is_empty());
            let server = server.map_or(String::new(), |words| format!("; its server: {words}"));
            return Err(failed(io::Error::other(told(status, &client.words()) + &server)));
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
        self.begun && !self.settled
    }

    /// Payload that the receiving program has read, bytes.
    pub fn received(&self) -> u64 {
        self.far.received()
    }

    /// Reads its connections again.
    ///
    /// # Errors
    /// The kernel's; a congestion control other than the one that was asked for; a program that says that all is sent
    /// when it is not.
    pub fn look(&mut self, now: Time) -> Result<(), Failed> {
        let failed = |error| ("sock_diag".to_owned(), error);
        // Of a host that others use, too, a look may take its time.
        let shared = self.far.told().is_some();
        let near = if shared { self.near.look_at_leisure() } else { self.near.look() }.map_err(failed)?;
        self.most_streams = self.most_streams.max(self.near.streams());
        let far = self.far.look().map_err(failed)?;
        if let Some(wanted) = &self.congestion {
            let other = |s: &&SocketEntry| !s.congestion_control.is_empty() && s.congestion_control != *wanted;
            if let Some(entry) = self.near.all().find(other) {
                let given = &entry.congestion_control;
                let text = format!("the kernel gave it {given} as its congestion control, not {wanted}");
                return Err((self.name.clone(), io::Error::other(text)));
            }
        }
        let Some(ended) = self.ended.filter(|_| !self.settled) else { return Ok(()) };
        let (received, bytes) = (self.received(), self.bytes.unwrap_or(0));
        let lacks = self.confirmed && received < bytes;
        // Without connections to wait for, only data that lacks is waited for.
        let settling = near || far || self.far.is_over_udp() && lacks;
        if settling && now.since(ended) < SETTLING || shared && lacks && now.since(ended) < LAST_REPORT {
            return Ok(());
        }
        self.settled = true;
        if lacks {
            let text = format!("it ended as if all had been sent, and {received} of {bytes} bytes have arrived");
            return Err((self.name.clone(), io::Error::other(text)));
        }
        self.workload.stopped_at = Some(ended);
        self.workload.done_at = Some(ended);
        Ok(())
    }

    /// A sample of the connection that carries most; a row goes to `series` where there is one.
    pub fn sample(&mut self, now: Time, series: Option<&mut FlowSeries>) {
        let most = |entry: &SocketEntry| entry.info.raw().bytes_acked + entry.info.in_flight_bytes();
        let Some(info) = self.near.live().max_by_key(|entry| most(entry)).map(|entry| entry.info) else { return };
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
        let Some(far) = self.far.counters().filter(|_| !self.near.is_empty()) else { return Ok(counters) };
        // The SYN counts as delivered; see `Connection::counters` for why there are two counts, of which neither has
        // the whole.
        let heard = self.near.sum_told(|info| info.delivered().map(|n| n.saturating_sub(1)));
        let known = self.near.sum_told(Info::duplicates);
        let counted = known.and_then(|n| Some(far.data_segments?.saturating_sub(n)));
        counters.delivered_packets = heard.max(counted);
        counters.sent_segments = Some(self.near.sum(|s| u64::from(s.info.raw().data_segs_out)));
        counters.retransmitted_segments = Some(self.near.sum(|s| u64::from(s.info.raw().total_retrans)));
        counters.retransmitted_bytes = self.near.sum_told(Info::bytes_retrans);
        counters.timeouts = self.near.sum_told(Info::timeouts);
        counters.acks = far.acks;
        counters.sending = self.sending_times();
        let least = self.near.all().filter_map(|s| s.info.min_rtt_us()).min();
        counters.rtt = Rtt { mean: (self.srtt.0 > 0).then_some(self.srtt), min_us: least, max_us: None };
        if let Some((netstat, before)) = &self.netstat {
            let recoveries = netstat.read()?.since(before);
            counters.fast_retransmits = Some(recoveries.fast);
            counters.tlp_probes = Some(recoveries.probes);
            counters.spurious_recoveries = Some(recoveries.undone);
        }
        Ok(counters)
    }

    /// Of all its connections together.
    fn sending_times(&self) -> Option<SendingTimes> {
        let times: Vec<_> = self.near.all().map(|entry| entry.info.sending_times()).collect::<Option<_>>()?;
        let sum = |of: fn(&SendingTimes) -> u64| times.iter().map(of).sum();
        Some(SendingTimes {
            busy_us: sum(|of| of.busy_us),
            receive_window_us: sum(|of| of.receive_window_us),
            send_buffer_us: sum(|of| of.send_buffer_us),
        })
    }

    /// Ends the client, with all data in flight.
    pub fn cut(&mut self) {
        self.client = None;
        self.begun = false;
    }

    /// Returns the workload: its bytes and the time of its end. Ends server and client.
    pub fn into_workload(self) -> Workload {
        self.workload
    }

    /// Returns the notes for a reader of the metrics.
    pub fn notes(&self, spec: &FlowSpec, end: Time) -> Vec<String> {
        let (name, program) = (&spec.name, &self.name);
        let mut notes = vec![];
        if self.far.is_over_udp() {
            if !self.far.came() && spec.start_ns < end.0 {
                notes.push(format!("flow {name}: {program} had received nothing before the end"));
            }
            return notes;
        }
        if !self.far.came() && spec.start_ns < end.0 {
            notes.push(format!("flow {name}: {program} made no connection before the end"));
        }
        let (asked, most) = (self.streams, self.most_streams);
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
