//! One run from spec to outcome.

use crate::build::{build, Parts};
use crate::built_in_node::built_in_nodes;
use crate::capture::Capture;
use crate::constant_traffic;
use crate::copy_study::CopyStudy;
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::error::RunError;
use crate::metric::Metric;
use crate::mixed_transport::{has_udt, MixedMaker};
use crate::node::Node;
use crate::packet::Packet;
use crate::processes::{earliest_end, processes};
use crate::short_flows;
use crate::side::Side;
use crate::summary::{summarize, Outcome};
use crate::tcp_config::Algorithms;
use crate::transport::TransportMaker;
use crate::validate::{ValidRun, ValidSimulation};
use crate::world::World;
use sim::Network;
use spec::{ProgramName, RunSpec, WorkloadSpec};
use std::ops::ControlFlow;
use units::{Rate, Size, Span, Time};

/// Events between two reports of progress: some 20 ms of work, so that Ctrl-C is prompt and a report costs nothing.
const EVENTS_PER_CALL: u64 = 1 << 18;

/// The drain of mirrored writes lasts at most this many times the run's duration.
pub const DRAIN_LIMIT: u64 = 100;

/// Time before the earliest possible end of a run for which horizons are worth their beginning.
const WORTHWHILE: Span = Span(1_000_000);

/// Least lookahead that is worth horizons, as packets of 1500 bytes on the fastest link: at 1 Gbit/s one flow took 60
/// times as long with 30 ns as single events, 4 times with 1 us and 1.5 times with 100 us.
const LOOKAHEAD_PACKETS: u64 = 8;

/// Order in which a run's events are handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// By horizons where the run has them.
    Chosen,
    /// One event after the other: the oracle of tests.
    Events,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time so far.
    pub now: Time,
    /// Simulated time at the end of the run; draining may follow.
    pub end: Time,
    /// Events so far.
    pub events: u64,
}

/// Runs `spec` to its end and measures. `progress` is called every few hundred thousand events.
///
/// # Errors
/// [`RunError`]: the spec does not hold together, a file that it names cannot be read or written, or `progress` said
/// stop.
pub fn simulate(spec: &RunSpec, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Outcome, RunError> {
    simulate_with_engine(spec, Engine::Chosen, progress)
}

/// As [`simulate`], with a given engine: the outcome is the same.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_engine(
    spec: &RunSpec,
    engine: Engine,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    let needs_packets = match spec.closed_form.then(|| constant_traffic::count(*run)) {
        Some(Ok(counted)) => {
            let mut outcome = summarize(spec, counted);
            outcome.metrics.insert("events", Metric::Integer(0));
            return Ok(outcome);
        }
        Some(Err(why)) => Some(format!("simulated packet by packet: {why}")),
        None => None,
    };
    let (nodes, of_ends) = built_in_nodes(run)?;
    let probes = vec![];
    let mut outcome = if MixedMaker::is_needed(spec) {
        let parts = Parts { maker: MixedMaker::new(spec), nodes, of_ends, probes };
        simulate_built(spec, build(run, parts)?, engine, progress)?
    } else {
        let parts = Parts { maker: Algorithms::default(), nodes, of_ends, probes };
        simulate_built(spec, build(run, parts)?, engine, progress)?
    };
    outcome.notes.extend(needs_packets);
    Ok(outcome)
}

/// Returns why [`Engine::Chosen`] handles the events of `spec` one after the other; None: by horizons.
///
/// # Errors
/// As [`simulate`], before the run begins.
pub fn without_horizons(spec: &RunSpec) -> Result<Option<String>, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    let (nodes, of_ends) = built_in_nodes(run)?;
    let probes = vec![];
    Ok(if MixedMaker::is_needed(spec) {
        let (world, mut net) = build(run, Parts { maker: MixedMaker::new(spec), nodes, of_ends, probes })?;
        plan_horizons(spec, &world, &mut net).err()
    } else {
        let (world, mut net) = build(run, Parts { maker: Algorithms::default(), nodes, of_ends, probes })?;
        plan_horizons(spec, &world, &mut net).err()
    })
}

/// Prepares horizons, or tells why there are none.
fn plan_horizons<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &World<M, N>,
    net: &mut Network<Packet>,
) -> Result<(), String> {
    let processes = processes(spec, world).ok_or("something looks at all packets in the order of their times")?;
    net.plan_horizons(processes).map_err(|unfit| format!("{unfit:?}"))?;
    let fastest = Rate(spec.links.iter().map(|link| link.rate_bps).max().unwrap_or(1));
    let least = fastest.time_for(Size(1500 * LOOKAHEAD_PACKETS));
    if let Some(lookahead) = net.lookahead().filter(|&lookahead| lookahead < least) {
        return Err(format!("a lookahead of {} ns is too short", lookahead.0));
    }
    if let Some(interval) = world.series_interval {
        net.take_samples(Time::ZERO + interval, interval);
    }
    Ok(())
}

/// As [`simulate`], with parts of one's own: another transport, nodes in mid path, probes.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    parts: Parts<M, N>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    simulate_built(spec, build(run, parts)?, Engine::Chosen, progress)
}

fn simulate_built<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    (mut world, mut net): (World<M, N>, Network<Packet>),
    engine: Engine,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let end = Time(spec.duration_ns);
    if engine == Engine::Chosen && plan_horizons(spec, &world, &mut net).is_ok() {
        run_horizons(spec, &mut world, &mut net, progress)?;
    } else {
        run_to(&mut world, &mut net, end, end, progress)?;
    }
    let measured_end = net.now().min(end);
    net.flush_drops(&mut world);
    let windows = world.finish_windows(measured_end, &mut net);
    let (named, members) = world.connections.flows.split_at(world.connections.named);
    let counters: Vec<_> = named.iter().map(|flow| (flow.counters(), flow.reverse())).collect();
    let short_flows = spec.short_flows.iter().enumerate().map(|(index, entry)| {
        let of_it = members.iter().zip(&world.short_flows).filter(|(_, &of)| of == index);
        short_flows::summarize(entry, &of_it.map(|(flow, _)| flow).collect::<Vec<_>>(), measured_end)
    });
    let short_flows = short_flows.collect();
    let names: Vec<_> = world.connections.flows.iter().map(|flow| flow.spec.name.as_str()).collect();
    let mut network = world.environment.counters(&net, &names);
    let mut notes = stand_ins(spec);
    world.nodes.finish(&mut world.connections, &mut notes);
    for index in 0..world.connections.flows.len() {
        world.stop(measured_end, index);
    }
    let mut limit = end;
    while !world.drained() && limit.0 < end.0.saturating_mul(DRAIN_LIMIT) {
        limit = Time(limit.0.saturating_add((end.0 / 8).max(1)));
        run_to(&mut world, &mut net, limit, end, progress)?;
    }
    let captured = world.connections.capture.take().map(Capture::finish).transpose()?;
    if captured.is_some() && has_udt(spec) {
        notes.push("the capture has no packets of flows over UDT".to_owned());
    }
    notes.extend(world.environment.missed_events());
    if let Some((_, skipped)) = captured.filter(|&(_, skipped)| skipped > 0) {
        notes.push(format!("the capture is full: {skipped} later packets are not in it"));
    }
    // Background sources go on while the rest drains, and are counted with it.
    network.background = world.environment.background_counters();
    let connections = world.connections;
    let flows = connections.flows.into_iter().zip(counters).map(|(flow, (counters, reverse))| MeasuredFlow {
        counters,
        reverse,
        received_at_warmup: flow.received_at_warmup[Side::Receiver as usize],
        workload: flow.workload,
    });
    let measured = MeasuredRun {
        end: measured_end,
        drained_at: net.now(),
        flows: flows.collect(),
        stripes: world.stripes.0,
        network,
        flow_series: world.flow_series,
        link_series: world.environment.take_link_series(),
        event_times: world.environment.event_times(),
        windows: Some(windows),
        window_reductions: connections.window_reductions,
        short_flows,
        copy: world.study.and_then(CopyStudy::into_found),
        notes,
    };
    let mut outcome = summarize(spec, measured);
    outcome.metrics.insert("events", Metric::Integer(net.events()));
    Ok(outcome)
}

/// Programs that were simulated as bulk transfers.
fn stand_ins(spec: &RunSpec) -> Vec<String> {
    let mut notes: Vec<String> = vec![];
    for flow in &spec.flows {
        if let WorkloadSpec::Program(program) = &flow.workload {
            let bytes = program.bytes.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
            // Only a program of several streams has a group of flows that are one program.
            let count = || spec.flows.iter().filter(|other| other.group == flow.group).count();
            let streams = if program.streams > 1 { count() } else { 1 };
            let over = match streams {
                1 => String::new(),
                _ if program.bytes.is_some() => format!(" over {streams} connections that share it"),
                _ => format!(" over {streams} connections"),
            };
            let by = match (&flow.transport.udt, program.program) {
                (None, _) => "",
                // Its FileCC is UDT's control, modified (draft-sharabayko-srt-01, 5.2).
                (Some(_), ProgramName::Srt) => " of UDT4, of which its file mode has a modified control",
                (Some(_), _) => " of UDT4",
            };
            let name = program.program.name();
            let note = format!(
                "{name} was simulated as a bulk flow{bytes}{over}{by}: what the program itself does is not in it"
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// As [`run_to`] the end of `spec`, by horizons as long as nothing can end the run.
fn run_horizons<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &mut World<M, N>,
    net: &mut Network<Packet>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let end = Time(spec.duration_ns);
    // A bound that was certain stays so.
    let (mut certain, mut until, mut pause) = (Time::ZERO, Time::ZERO, WORTHWHILE);
    loop {
        certain = earliest_end(spec, world, net.now()).min(end).max(certain);
        let reached = if certain > net.now() + WORTHWHILE || certain == end {
            (until, pause) = (certain, WORTHWHILE);
            net.run_horizons(world, until, end, EVENTS_PER_CALL)
        } else {
            if until <= net.now() {
                // Longer and longer: some runs are never certain to go on.
                until = (net.now() + pause).min(end);
                pause = pause + pause;
            }
            net.run_until(world, until, end, EVENTS_PER_CALL)
        };
        report(world, net, end, progress)?;
        match reached {
            sim::Progress::Stopped => return Ok(()),
            sim::Progress::ReachedTime if net.now() >= end => return Ok(()),
            sim::Progress::ReachedTime | sim::Progress::ReachedEvents => {}
        }
    }
}

fn run_to<M: TransportMaker, N: Node<M::Transport>>(
    world: &mut World<M, N>,
    net: &mut Network<Packet>,
    to: Time,
    end: Time,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    loop {
        let reached = net.run(world, to, EVENTS_PER_CALL);
        report(world, net, end, progress)?;
        if world.connections.capture.as_ref().is_some_and(Capture::has_failed) {
            world.connections.capture.take().map(Capture::finish).transpose()?;
        }
        if reached != sim::Progress::ReachedEvents {
            return Ok(());
        }
    }
}

fn report<M: TransportMaker, N: Node<M::Transport>>(
    world: &World<M, N>,
    net: &Network<Packet>,
    end: Time,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let end = world.study.as_ref().map_or(end, |study| study.expected_end(net.now()).min(end));
    match progress(Progress { now: net.now(), end, events: net.events() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(RunError::Stopped),
    }
}
