//! The sending end of a run between two hosts, from its specification to an outcome of the simulator's form.

use crate::clock::Clock;
use crate::error::KernelError;
use crate::receive::check;
use crate::remote_plan::SendPlan;
use crate::traffic::{EndReport, MeasuredTraffic, Remote, RemoteMeasured, Traffic};
use experiment::{summarize, LinkSeries, MeasuredRun, NetworkCounters, Outcome, ValidRun};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;
use units::{Span, Time};

/// Time from the start of all parts to time zero: the other agent has to hear of it before.
const LEAD: Span = Span::from_millis(20);

/// Between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Drift of the clocks over a run that is worth a note.
const DRIFT: Span = Span::from_millis(1);

/// A connection of reports, before the run.
pub struct Connected(Remote);

/// Findings about the path and the clocks.
#[derive(Clone, Debug, Serialize)]
pub struct PathFound {
    /// Least round trip of the exchanges before the run, s.
    pub rtt_min_s: f64,
    /// The receiving host's CLOCK_MONOTONIC less this one's, s.
    pub clock_offset_s: f64,
    /// Bound of its error, s.
    pub clock_error_s: f64,
    /// Change of the offset over the run, s; None before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_drift_s: Option<f64>,
    /// MTU of the path as this host's kernel knows it.
    pub path_mtu_bytes: u64,
}

/// The result of a sending end.
pub struct Sent {
    /// As `summarize` makes it; what only a model of the network could know is absent.
    pub outcome: Outcome,
    /// Sender of each flow as the kernel has it; None: it has no connection.
    pub ends: Vec<Option<EndReport>>,
    /// The path.
    pub path: PathFound,
    /// CPU time of the thread with all sockets, ns.
    pub cpu_ns: u64,
}

/// Connects to the receiving agent and compares the clocks.
///
/// # Errors
/// Plan and run do not hold together; the other agent does not answer.
pub fn connect(run: ValidRun<'_>, plan: &SendPlan, stop: &AtomicBool) -> Result<Connected, KernelError> {
    check(run, plan.flows.len().min(plan.ports.len()), &plan.programs)?;
    Remote::connect(plan, stop).map(Connected)
}

impl Connected {
    /// The path so far.
    pub fn path(&self) -> PathFound {
        let clock = &self.0.clock;
        PathFound {
            rtt_min_s: clock.round_trip.as_secs_f64(),
            clock_offset_s: clock.offset_ns as f64 / 1e9,
            clock_error_s: clock.error().as_secs_f64(),
            clock_drift_s: None,
            path_mtu_bytes: self.0.path_mtu,
        }
    }

    /// Runs `run`, whose receivers the other agent has. `report_progress` is called on this thread some twenty times a
    /// second with the time since the run began and the payload that each flow has delivered, bytes.
    ///
    /// # Errors
    /// [`KernelError::Stopped`] when one of `stops` was set; the kernel refused something; the other agent has gone. A
    /// connection that is lost on the way is none: it is a note of the outcome.
    pub fn run(
        self,
        run: ValidRun<'_>,
        plan: &SendPlan,
        stops: &[&AtomicBool],
        report_progress: &mut dyn FnMut(Time, &[u64]),
    ) -> Result<Sent, KernelError> {
        let round_trip = self.0.clock.round_trip;
        let mut traffic = Traffic::to_remote(run, plan, self.0)?;
        let progress: Arc<[AtomicU64]> = run.flows.iter().map(|_| AtomicU64::new(0)).collect();
        // A client that the other agent starts has to know of it in time.
        let lead = if traffic.fetches() { LEAD.max(round_trip) } else { LEAD };
        let clock = Clock::starting_in(lead);
        traffic.announce(clock);
        let (stop, over, (reports, received)) = (AtomicBool::new(false), AtomicBool::new(false), channel());
        let measured = std::thread::scope(|scope| {
            let (progress, stop, over) = (&progress, &stop, &over);
            // The receiver lives until the traffic has reported.
            scope.spawn(move || drop(reports.send(traffic.run(clock, progress, stop, over, |_| ()))));
            loop {
                match received.recv_timeout(REPORT_INTERVAL) {
                    Ok(result) => break result,
                    Err(RecvTimeoutError::Timeout) => {
                        let bytes: Vec<_> = progress.iter().map(|flow| flow.load(Ordering::Relaxed)).collect();
                        report_progress(clock.now(), &bytes);
                        if stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        let error = std::io::Error::other("it panicked");
                        break Err(KernelError::machine("the traffic's thread", error));
                    }
                }
            }
        })?;
        Ok(sent(run, measured))
    }
}

fn sent(run: ValidRun<'_>, measured: MeasuredTraffic) -> Sent {
    let MeasuredTraffic { end, drained_at, flows, stripes, series, mut notes, remote, cpu_ns } = measured;
    let RemoteMeasured { clock, clock_after, path_mtu, ends } = remote.expect("the receivers are another agent's");
    let drift_ns = clock_after.offset_ns - clock.offset_ns;
    // A difference that the errors of the two offsets explain is no drift.
    if drift_ns.unsigned_abs() > DRIFT.0 + clock.error().0 + clock_after.error().0 {
        let ms = drift_ns as f64 / 1e6;
        notes.push(format!(
            "CLOCK: the hosts' clocks went apart by {ms:.1} ms during the run; latency and lag err by up to that"
        ));
    }
    let network = NetworkCounters {
        links: vec![link::Stats::default(); run.links.len()],
        background: vec![experiment::BackgroundCounters::default(); run.background.len()],
        ..NetworkCounters::default()
    };
    let measured = MeasuredRun {
        end,
        drained_at,
        flows,
        stripes,
        network,
        flow_series: series,
        link_series: LinkSeries::default(),
        event_times: run.events.iter().map(|_| None).collect(),
        windows: None,
        window_reductions: vec![],
        short_flows: vec![],
        copy: None,
        notes,
    };
    let mut outcome = summarize(&run, measured);
    // Nobody counts on a real path: absent, not zero.
    outcome.metrics.remove("dropped_packets");
    for metrics in outcome.links.iter_mut().chain(&mut outcome.background) {
        metrics.retain(|name, _| *name == "name");
    }
    let path = PathFound {
        rtt_min_s: clock.round_trip.as_secs_f64(),
        clock_offset_s: clock.offset_ns as f64 / 1e9,
        clock_error_s: clock.error().as_secs_f64(),
        clock_drift_s: Some(drift_ns as f64 / 1e9),
        path_mtu_bytes: path_mtu,
    };
    Sent { outcome, ends, path, cpu_ns }
}
