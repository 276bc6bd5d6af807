//! The request `run`: one end of a run between two hosts.

use crate::apart::{self, Apart};
use crate::changes::Changes;
use crate::controls::ControlPlan;
use crate::error::{AgentError, Kind};
use crate::hex;
use crate::output::Output;
use crate::probe::{Bounds, Echo, Found, Pinger};
use crate::site::Site;
use experiment::{FlowSeries, RunError, ValidRun};
use kernel::{
    EndReport, KernelError, OutcomeRecord, PathFound, ProgramEndPlan, ReceivePlan, Receiver, SendPlan, SocketPlan,
    Token,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use spec::RunSpec;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Span, Time};

/// Rows of the series in one event: some 3 MB.
const ROWS: usize = 20_000;

/// Flows up to which progress tells of each.
const MAX_TOLD: usize = 64;

/// Keys of the request `run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    role: Role,
    spec: RunSpec,
    local: IpAddr,
    peer: IpAddr,
    token: String,
    flows: Vec<FlowKeys>,
    #[serde(default)]
    ports: [u16; 2],
    #[serde(default)]
    report_port: u16,
    #[serde(default)]
    controls: Vec<ControlPlan>,
    #[serde(default)]
    sysctls: BTreeMap<String, String>,
    #[serde(default)]
    guard: Option<Bounds>,
    #[serde(default = "progress_ms")]
    progress_ms: u64,
    #[serde(default = "connect_s")]
    connect_s: f64,
}

fn progress_ms() -> u64 {
    100
}

fn connect_s() -> f64 {
    5.0
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    Receive,
    Send,
}

/// A flow: its port, and the options of its sockets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowKeys {
    #[serde(default)]
    port: u16,
    #[serde(default)]
    congestion_control: Option<String>,
    #[serde(default)]
    window_clamp_bytes: Option<u64>,
    #[serde(default)]
    receive_buffer_bytes: Option<u64>,
    #[serde(default)]
    send_buffer_bytes: Option<u64>,
    #[serde(default)]
    max_segment_bytes: Option<u32>,
    #[serde(default)]
    pacing: bool,
    #[serde(default)]
    max_pacing_bps: Option<u64>,
    #[serde(default)]
    rto_max_ms: Option<u32>,
    #[serde(default)]
    program: Option<ProgramKeys>,
}

/// A program's end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramKeys {
    name: String,
    words: Vec<String>,
    serves: bool,
    ports: Vec<[u16; 2]>,
    streams: usize,
    confirmed: bool,
    folder: PathBuf,
    /// Everything that it has to itself; None: it runs as any process of this user.
    #[serde(default)]
    apart: Option<Apart>,
}

impl ProgramKeys {
    fn plan(&self, site: Option<&Site>) -> Result<ProgramEndPlan, AgentError> {
        let site = site.ok_or_else(|| AgentError::input("run: a program needs the folder that place makes"))?;
        site.require(&self.folder)?;
        let words = match &self.apart {
            Some(apart) => apart::command(apart, &self.words),
            None => self.words.clone(),
        };
        Ok(ProgramEndPlan {
            name: self.name.clone(),
            words,
            serves: self.serves,
            ports: self.ports.clone(),
            streams: self.streams,
            confirmed: self.confirmed,
            folder: self.folder.clone(),
        })
    }
}

impl FlowKeys {
    fn sockets(&self) -> SocketPlan {
        SocketPlan {
            congestion_control: self.congestion_control.clone(),
            window_clamp_bytes: self.window_clamp_bytes,
            receive_buffer_bytes: self.receive_buffer_bytes,
            send_buffer_bytes: self.send_buffer_bytes,
            max_segment_bytes: self.max_segment_bytes,
            pacing: self.pacing,
            max_pacing_bps: self.max_pacing_bps,
            rto_max_ms: self.rto_max_ms,
        }
    }
}

/// Everything that one end is made from.
struct End<'a> {
    run: ValidRun<'a>,
    token: Token,
    connect: Span,
    programs: Vec<Option<ProgramEndPlan>>,
    /// To listen on.
    ports: [u16; 2],
}

/// The answer of a sending agent.
#[derive(Serialize)]
struct SentAnswer {
    outcome: OutcomeRecord,
    ends: Vec<Option<EndReport>>,
    path: PathFound,
    /// Findings of the probes beside the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<Found>,
    cpu_s: f64,
}

impl Run {
    /// Runs one end, and tells of it on `output` as request `id`, until it has ended or `stop` is set. Whatever it
    /// changed of the host is undone afterwards.
    ///
    /// # Errors
    /// See [`Kind`].
    pub fn execute(
        &self,
        id: u64,
        output: &Output,
        site: Option<&Site>,
        stop: &AtomicBool,
    ) -> Result<Value, AgentError> {
        let run = ValidRun::new(&self.spec).map_err(|error| AgentError::input(format_args!("run: {error}")))?;
        let token = Token(hex::token(&self.token)?);
        if let Some(bounds) = &self.guard {
            bounds.check()?;
        }
        if self.local.is_ipv4() != self.peer.is_ipv4() {
            return Err(AgentError::input("run: local and peer: addresses of one family"));
        }
        if !(self.connect_s > 0.0 && self.connect_s <= 3600.0) {
            return Err(AgentError::input("run: connect_s: above 0, at most 3600"));
        }
        let planned = self.flows.iter().map(|flow| flow.program.as_ref().map(|program| program.plan(site)).transpose());
        let programs = planned.collect::<Result<Vec<_>, _>>()?;
        let ports = site.map_or(self.ports, Site::ports_left);
        let end = End { run, token, connect: Span((self.connect_s * 1e9) as u64), programs, ports };
        let changes = Changes::make(&self.controls, &self.sysctls)?;
        let ran = match self.role {
            Role::Receive => self.receive(end, id, output, stop),
            Role::Send => self.send(end, id, output, stop),
        };
        let changed = changes.changed_since();
        let undone = changes.undo();
        let mut answer = ran?;
        undone?;
        if !changed.is_empty() {
            answer["sysctls_changed"] = json!(changed.into_iter().collect::<BTreeMap<_, _>>());
        }
        Ok(answer)
    }

    fn receive(&self, end: End<'_>, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
        let End { run, token, connect, programs, ports } = end;
        let plan = ReceivePlan {
            local: self.local,
            peer: self.peer,
            ports,
            token,
            flows: self.flows.iter().map(FlowKeys::sockets).collect(),
            programs,
            connect,
        };
        let receiver = Receiver::open(run, plan).map_err(|error| of_kernel(&error))?;
        let (report_port, ports) = receiver.ports();
        // Probes take the same number, so that a firewall's rule is one of a number too.
        let echo = self.guard.map(|_| Echo::open(self.local, report_port, self.peer, token.0)).transpose()?;
        output.event(id, "listening", json!({"report_port": report_port, "ports": ports}));
        let mut progress = Progress::new(self.progress_ms);
        let over = AtomicBool::new(false);
        let received = std::thread::scope(|scope| {
            if let Some(echo) = &echo {
                scope.spawn(|| echo.serve(stop, || !over.load(Ordering::Relaxed)));
            }
            let _ends = Sets(&over);
            receiver.run(stop, &mut |bytes| progress.tell(id, output, None, bytes))
        });
        let received = received.map_err(|error| of_kernel(&error))?;
        Ok(json!(received))
    }

    fn send(&self, end: End<'_>, id: u64, output: &Output, stop: &AtomicBool) -> Result<Value, AgentError> {
        let End { run, token, connect, programs, .. } = end;
        let plan = SendPlan {
            local: self.local,
            peer: self.peer,
            report_port: self.report_port,
            ports: self.flows.iter().map(|flow| flow.port).collect(),
            token,
            flows: self.flows.iter().map(FlowKeys::sockets).collect(),
            programs,
            connect,
        };
        let mut own = plan.ports.iter().zip(&plan.programs).filter(|(_, program)| program.is_none());
        if plan.report_port == 0 || own.any(|(port, _)| *port == 0) {
            return Err(AgentError::input("run: report_port and each flow's port: those of the event listening"));
        }
        let connected = kernel::connect(run, &plan, stop).map_err(|error| of_kernel(&error))?;
        output.event(id, "connected", json!(connected.path()));
        let mut progress = Progress::new(self.progress_ms);
        let end = Time(self.spec.duration_ns);
        let to = SocketAddr::new(self.peer, self.report_port);
        let mut guard = None;
        if let Some(bounds) = self.guard {
            let mut pinger = Pinger::open(self.local, to, token.0, bounds.interval_ms)?;
            pinger.begin(&bounds, connect, stop)?;
            guard = Some((bounds, pinger));
        }
        let (over, harmed) = (AtomicBool::new(false), AtomicBool::new(false));
        let (sent, watched) = std::thread::scope(|scope| {
            let (over, harmed) = (&over, &harmed);
            let guard = guard.map(|(bounds, pinger)| scope.spawn(move || watch(bounds, pinger, over, harmed)));
            let ends = Sets(over);
            // A run that does harm is stopped as the front stops one.
            let sent = connected.run(run, &plan, &[stop, harmed], &mut |now, bytes| {
                progress.tell(id, output, Some((now, end)), bytes);
            });
            drop(ends);
            (sent, guard.map(|guard| guard.join().expect("it does not panic")))
        });
        let (probes, harm) = watched.unzip();
        if let Some((text, found)) = harm.flatten() {
            output.event(id, "harm", json!({"text": text, "rtt_s": found.rtt_median_s, "loss_ppm": found.loss_ppm}));
            return Err(AgentError::new(Kind::Harm, format_args!("the run was stopped: {text}")));
        }
        let sent = sent.map_err(|error| of_kernel(&error))?;
        let (outcome, mut series) = OutcomeRecord::split(sent.outcome);
        while !series.time_s.is_empty() && !stop.load(Ordering::Relaxed) {
            let rows: FlowSeries = series.take_rows(ROWS);
            output.event(id, "series", json!(rows));
        }
        let cpu_s = Span(sent.cpu_ns).as_secs_f64();
        Ok(json!(SentAnswer { outcome, ends: sent.ends, path: sent.path, probes, cpu_s }))
    }
}

/// Sets a flag when it is dropped, so that a thread that waits for it ends on every way.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Probes the path until the run is over, or until it is worse than `bounds` allow; returns what was found, and the
/// harm.
fn watch(
    bounds: Bounds,
    mut pinger: Pinger,
    over: &AtomicBool,
    harmed: &AtomicBool,
) -> (Found, Option<(String, Found)>) {
    while !over.load(Ordering::Relaxed) {
        pinger.turn();
        if let Some(harm) = pinger.harm(&bounds) {
            harmed.store(true, Ordering::Relaxed);
            return (pinger.found(), Some(harm));
        }
    }
    (pinger.found(), None)
}

/// Events of progress, at most one per interval.
struct Progress {
    interval: Span,
    last_ns: Option<u64>,
}

impl Progress {
    fn new(interval_ms: u64) -> Progress {
        Progress { interval: Span::from_millis(interval_ms.clamp(10, 60_000)), last_ns: None }
    }

    fn tell(&mut self, id: u64, output: &Output, times: Option<(Time, Time)>, bytes: &[u64]) {
        let now_ns = kernel::monotonic_ns();
        if self.last_ns.is_some_and(|last| now_ns - last < self.interval.0) {
            return;
        }
        self.last_ns = Some(now_ns);
        let mut fields = json!({"delivered_bytes": bytes.iter().sum::<u64>()});
        if let Some((now, end)) = times {
            fields["now_s"] = json!(now.as_secs_f64());
            fields["end_s"] = json!(end.as_secs_f64());
        }
        if bytes.len() <= MAX_TOLD {
            fields["flows_bytes"] = json!(bytes);
        }
        output.passing_event(id, "progress", fields);
    }
}

fn of_kernel(error: &KernelError) -> AgentError {
    let kind = match error {
        KernelError::Stopped | KernelError::Spec(RunError::Stopped) => Kind::Stopped,
        KernelError::Spec(_) => Kind::Input,
        KernelError::Port(_) => Kind::Port,
        KernelError::Peer(_) => Kind::Peer,
        KernelError::Flow { .. } | KernelError::Machine { .. } => Kind::Kernel,
    };
    AgentError::new(kind, error)
}
