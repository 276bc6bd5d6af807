//! One run from spec to outcome.

use crate::assemble::assemble;
use crate::capture::Capture;
use crate::changes::Change;
use crate::crowd;
use crate::error::LabError;
use crate::flow::Side;
use crate::outcome::{sum_up, Metric, Outcome};
use crate::packet::Packet;
use crate::spec::{RunSpec, WorkloadSpec};
use crate::study::Study;
use crate::tally::{gates_of, BackgroundTally, FlowTally, RunTally};
use crate::world::World;
use sim::{Network, Progress};
use units::Time;

/// Events between two pulses: some 20 ms of work, so that Ctrl-C is prompt and the pulse costs nothing.
const EVENTS_PER_PULSE: u64 = 1 << 18;

/// Mirrored writes that are still on their way at the end are waited for: at most this many times the run's duration.
pub const DRAIN_LIMIT: u64 = 100;

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Simulated time so far.
    pub now: Time,
    /// Simulated time at the end of the run; draining may follow.
    pub end: Time,
    /// Events so far.
    pub events: u64,
}

/// What the caller wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Go on.
    Continue,
    /// Stop now; [`simulate`] returns [`LabError::Stopped`].
    Stop,
}

/// Runs `spec` to its end and measures. `pulse` is called every few hundred thousand events.
///
/// # Errors
/// [`LabError`]: the spec does not hold together, a file that it names cannot be read or written, or `pulse` said stop.
pub fn simulate(spec: &RunSpec, pulse: &mut dyn FnMut(Pulse) -> Verdict) -> Result<Outcome, LabError> {
    let (mut world, mut net) = assemble(spec)?;
    let end = Time(spec.duration_ns);
    run_to(&mut world, &mut net, end, end, pulse)?;
    let measured_end = net.now().min(end);
    net.flush_drops(&mut world);
    let (named, members) = world.flows.split_at(world.named);
    let counters: Vec<_> = named.iter().map(|flow| (flow.counters(), flow.reverse())).collect();
    let crowds = spec.short_flows.iter().enumerate().map(|(index, crowd)| {
        let of_it = members.iter().zip(&world.crowds).filter(|(_, &of)| of == index);
        crowd::sum_up(crowd, &of_it.map(|(flow, _)| flow).collect::<Vec<_>>(), measured_end)
    });
    let crowds = crowds.collect();
    let names: Vec<_> = world.flows.iter().map(|flow| flow.spec.name.as_str()).collect();
    let managed = world.management.as_ref().map(|management| management.outcome(&names));
    let mut notes = stand_ins(spec);
    world.close_sessions(&mut notes);
    let links: Vec<_> = net.links()[..spec.links.len()].iter().map(|l| *l.stats()).collect();
    let (mut kept, gates) = gates_of(&net);
    kept.extend(world.management.iter().flat_map(|management| management.kept_before()));
    for index in 0..world.flows.len() {
        world.stop(measured_end, index);
    }
    let mut limit = end;
    while !world.drained() && limit.0 < end.0.saturating_mul(DRAIN_LIMIT) {
        limit = Time(limit.0.saturating_add((end.0 / 8).max(1)));
        run_to(&mut world, &mut net, limit, end, pulse)?;
    }
    let captured = world.capture.take().map(Capture::finish).transpose()?;
    for change in world.changes.iter().filter(|c| c.happened.is_none()) {
        notes.push(format!("an event never happened: {:?}", change.spec.when));
    }
    if let Some((_, skipped)) = captured.filter(|&(_, skipped)| skipped > 0) {
        notes.push(format!("the capture is full: {skipped} later packets are not in it"));
    }
    let flows = world.flows.into_iter().zip(counters).map(|(flow, (counters, reverse))| FlowTally {
        counters,
        reverse,
        received_at_warmup: flow.received_at_warmup[Side::Receiver as usize],
        workload: flow.workload,
    });
    let background = world.background.iter().map(|source| BackgroundTally {
        sent: source.sent_packets,
        dropped: source.dropped_packets,
        received: source.received_packets,
    });
    let tally = RunTally {
        end: measured_end,
        drained_at: net.now(),
        flows: flows.collect(),
        stripes: world.stripes,
        links,
        background: background.collect(),
        flow_series: world.flow_series,
        link_series: world.link_series,
        kept,
        gates,
        happened: Change::times(&world.changes),
        trims: world.trims,
        crowds,
        found: world.study.and_then(Study::into_found),
        managed,
        notes,
    };
    let mut outcome = sum_up(spec, tally);
    outcome.metrics.insert("events", Metric::Integer(net.events()));
    Ok(outcome)
}

/// Programs that were simulated as what they come to.
fn stand_ins(spec: &RunSpec) -> Vec<String> {
    let mut notes: Vec<String> = vec![];
    for flow in &spec.flows {
        if let WorkloadSpec::Program { program, bytes } = &flow.workload {
            let bytes = bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
            let note =
                format!("{program} was simulated as a bulk flow{bytes}: what the program itself does is not in it");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

fn run_to(
    world: &mut World,
    net: &mut Network<Packet>,
    to: Time,
    end: Time,
    pulse: &mut dyn FnMut(Pulse) -> Verdict,
) -> Result<(), LabError> {
    loop {
        let progress = net.run(world, to, EVENTS_PER_PULSE);
        let end = world.study.as_ref().map_or(end, |study| study.expected_end(net.now()).min(end));
        if pulse(Pulse { now: net.now(), end, events: net.events() }) == Verdict::Stop {
            return Err(LabError::Stopped);
        }
        if world.capture.as_ref().is_some_and(Capture::has_failed) {
            world.capture.take().map(Capture::finish).transpose()?;
        }
        if progress != Progress::ReachedEvents {
            return Ok(());
        }
    }
}
