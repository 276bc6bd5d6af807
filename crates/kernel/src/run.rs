//! One run on this machine, from spec and plan to an outcome of the simulator's form.

use crate::clock::Clock;
use crate::emulator::{CarrierCounters, Emulator, EmulatorReport};
use crate::error::KernelError;
use crate::plan::HostPlan;
use crate::traffic::{MeasuredTraffic, Traffic};
use experiment::{summarize, MeasuredRun, Outcome, RunError, ValidRun};
use spec::{RunSpec, WorkloadSpec};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;
use units::{Span, Time};

/// Time from the start of all parts to time zero, for the emulator's thread to begin.
const LEAD: Span = Span::from_millis(20);

/// Between two reports of progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// The carrier of packets between the hosts of a run.
pub trait Carrier: Sync {
    /// Begins, if it has not begun; events follow `clock`. `progress` holds, per flow, the payload bytes that it has
    /// delivered.
    ///
    /// # Errors
    /// The contradiction in the plan.
    fn start(
        &mut self,
        run: ValidRun<'_>,
        plan: &HostPlan,
        clock: Clock,
        progress: Arc<[AtomicU64]>,
    ) -> Result<(), RunError>;

    /// The network's counters now; None when they cannot be had.
    fn snapshot(&self) -> Option<CarrierCounters>;

    /// Returns true if it has ended by itself.
    fn has_failed(&self) -> bool;

    /// Ends it and returns its report; None if there is none.
    fn stop(&mut self) -> Option<EmulatorReport>;
}

impl Carrier for Emulator {
    fn start(
        &mut self,
        run: ValidRun<'_>,
        plan: &HostPlan,
        clock: Clock,
        progress: Arc<[AtomicU64]>,
    ) -> Result<(), RunError> {
        Emulator::start(self, run, plan, clock, progress)
    }

    fn snapshot(&self) -> Option<CarrierCounters> {
        Emulator::snapshot(self)
    }

    fn has_failed(&self) -> bool {
        Emulator::has_failed(self)
    }

    fn stop(&mut self) -> Option<EmulatorReport> {
        Emulator::stop(self)
    }
}

/// Runs `spec` with the sockets of `plan` over `carrier`, which connects the plan's hosts, up and with their addresses,
/// and which was not started. `report_progress` is called on this thread some twenty times a second with the time since
/// the run began and the time at which it ends; draining may follow. The carrier is stopped at the end, whatever it is.
///
/// # Errors
/// [`KernelError`]: spec and plan do not hold together, the kernel refused something (it says which flow), or
/// `report_progress` said stop. A connection that is lost on the way is none: it is a note of the outcome.
pub fn run(
    spec: &RunSpec,
    plan: &HostPlan,
    carrier: &mut dyn Carrier,
    report_progress: &mut dyn FnMut(Time, Time) -> ControlFlow<()>,
) -> Result<(Outcome, EmulatorReport), KernelError> {
    let run = ValidRun::new(spec).map_err(KernelError::Spec)?;
    check(spec, plan)?;
    let traffic = Traffic::open(run, plan)?;
    let progress: Arc<[AtomicU64]> = spec.flows.iter().map(|_| AtomicU64::new(0)).collect();
    let clock = Clock::starting_in(LEAD);
    carrier.start(run, plan, clock, Arc::clone(&progress))?;
    let ran = carry(traffic, clock, Time(spec.duration_ns), carrier, &progress, report_progress);
    let mut report = carrier.stop().unwrap_or_default();
    let (measured, counters) = ran?;
    report.traffic_cpu_ns = measured.cpu_ns;
    let counters = counters.unwrap_or_else(|| report.counters.clone());
    let outcome = outcome(spec, measured, counters, &mut report);
    Ok((outcome, report))
}

fn check(spec: &RunSpec, plan: &HostPlan) -> Result<(), KernelError> {
    let wrong = |text: String| Err(KernelError::Spec(RunError::Spec(text)));
    if plan.flows.len() != spec.flows.len() {
        return wrong(format!("the plan has {} flows, the spec {}", plan.flows.len(), spec.flows.len()));
    }
    if let Some(entry) = spec.short_flows.first() {
        return wrong(format!("short flows {}: the simulator alone carries them", entry.name));
    }
    if let Some(gateway) = spec.gateways.first() {
        return wrong(format!("node {}: the simulator alone has gateways", spec.nodes[gateway.node]));
    }
    let hosts = plan.hosts.len();
    for (flow, planned) in spec.flows.iter().zip(&plan.flows) {
        if let Some(host) = [planned.source, planned.destination].iter().find(|&&host| host >= hosts) {
            return wrong(format!("flow {}: host {host} does not exist, there are {hosts}", flow.name));
        }
        if matches!(flow.workload, WorkloadSpec::Iscsi(_) | WorkloadSpec::Fc(_) | WorkloadSpec::Fcp(_)) {
            return wrong(format!(
                "flow {}: workload \"iscsi\" or \"fc\": this backend carries no sessions",
                flow.name
            ));
        }
    }
    Ok(())
}

/// The traffic on a thread of its own, reports of progress on this one.
fn carry(
    traffic: Traffic<'_>,
    clock: Clock,
    end: Time,
    carrier: &dyn Carrier,
    progress: &Arc<[AtomicU64]>,
    report_progress: &mut dyn FnMut(Time, Time) -> ControlFlow<()>,
) -> Result<(MeasuredTraffic, Option<CarrierCounters>), KernelError> {
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (reports, received) = channel();
    std::thread::scope(|scope| {
        let (stop, over) = (&stop, &over);
        scope.spawn(move || {
            let mut counters = None;
            let ran = traffic.run(clock, progress, stop, over, |_| counters = carrier.snapshot());
            // The receiver is gone if a report of progress panicked.
            let _ = reports.send(ran.map(|measured| (measured, counters)));
        });
        let ends = EndsIt(stop);
        let result = loop {
            match received.recv_timeout(REPORT_INTERVAL) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Disconnected) => {
                    break Err(KernelError::machine("the traffic's thread", std::io::Error::other("it panicked")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if report_progress(clock.now(), end).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
            over.store(carrier.has_failed(), Ordering::Relaxed);
        };
        drop(ends);
        result
    })
}

/// A report of progress that panics ends the run, and does not wait for its end.
struct EndsIt<'a>(&'a AtomicBool);

impl Drop for EndsIt<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn outcome(
    spec: &RunSpec,
    mut measured: MeasuredTraffic,
    counters: CarrierCounters,
    report: &mut EmulatorReport,
) -> Outcome {
    for (flow, &dropped) in measured.flows.iter_mut().zip(&counters.flow_drops) {
        flow.counters.dropped_packets = Some(dropped);
    }
    let mut notes = measured.notes;
    notes.append(&mut report.missed_events);
    if spec.measure.pcap.is_some() {
        notes.push(
            "no capture was written: the kernel backend has none; tcpdump in the namespaces of a path does it".into(),
        );
    }
    summarize(
        spec,
        MeasuredRun {
            end: measured.end,
            drained_at: measured.drained_at,
            flows: measured.flows,
            stripes: measured.stripes,
            network: counters.network,
            flow_series: measured.series,
            link_series: std::mem::take(&mut report.link_series),
            event_times: report.event_times.clone(),
            windows: None,
            // The senders' records of their commands lie in the kernel until the controls are unloaded: the Python
            // front reads them.
            window_reductions: vec![],
            short_flows: vec![],
            // A run in real time is not extrapolated: the simulator does that.
            copy: None,
            notes,
        },
    )
}

#[cfg(test)]
mod tests;
