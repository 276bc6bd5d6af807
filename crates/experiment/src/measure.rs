//! Measuring of a run whose proper part is over: its counters, then what drains, then what became of it.

use crate::capture::Capture;
use crate::copy_study::CopyStudy;
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::error::RunError;
use crate::metric::Metric;
use crate::mixed_transport::has_udt;
use crate::node::Node;
use crate::packet::Packet;
use crate::short_flows::{self, MeasuredShortFlow};
use crate::side::Side;
use crate::summary::{summarize, Outcome};
use crate::transport::TransportMaker;
use crate::world::World;
use sim::Network;
use spec::{ProgramName, RunSpec, WorkloadSpec};
use std::ops::ControlFlow;
use units::{Span, Time};

/// Events between two reports of progress: some 20 ms of work, so that Ctrl-C is prompt and a report costs nothing.
pub const EVENTS_PER_CALL: u64 = 1 << 18;

/// The drain of mirrored writes lasts at most this many times the run's duration.
pub const DRAIN_LIMIT: u64 = 100;

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

/// A run, or the part of one that a worker has moved.
pub struct Measured {
    /// Without the sums of short flows.
    pub run: MeasuredRun,
    /// Each short flow, in the order of the world.
    pub short_flows: Vec<MeasuredShortFlow>,
    /// Notes of nodes, each with its node's first flow, and how many of the run's notes go before them.
    pub node_notes: (usize, Vec<(usize, String)>),
    /// Events handled.
    pub events: u64,
    /// CPU time of threads other than the caller's.
    pub other_threads_cpu: Span,
}

/// Measures the run of `world`, and lets drain what has to.
///
/// # Errors
/// [`RunError`]: the capture cannot be written, or `progress` said stop.
pub fn measure<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    mut world: World<M, N>,
    mut net: Network<Packet>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, RunError> {
    let end = Time(spec.duration_ns);
    let measured_end = net.now().min(end);
    net.flush_drops(&mut world);
    let windows = world.finish_windows(measured_end, &mut net);
    let (named, members) = world.connections.flows.split_at(world.connections.named);
    let counters: Vec<_> = named.iter().map(|flow| (flow.counters(), flow.reverse())).collect();
    let short_flows = members.iter().zip(&world.short_flows).map(|(flow, &entry)| MeasuredShortFlow::of(flow, entry));
    let short_flows = short_flows.collect();
    let names: Vec<_> = world.connections.flows.iter().map(|flow| flow.spec.name.as_str()).collect();
    let mut network = world.environment.counters(&net, &names);
    let mut notes = stand_ins(spec);
    let node_notes = (notes.len(), world.nodes.finish(&mut world.connections));
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
    if let Some(captured) = captured {
        if captured.skipped > 0 {
            notes.push(format!("the capture is full: {} later packets are not in it", captured.skipped));
        }
        if captured.has_fibre_channel {
            // libpcap refuses a second link type (sf-pcapng.c).
            notes.push("the capture has two link types: Wireshark and tshark read it, tcpdump does not".to_owned());
        }
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
    let run = MeasuredRun {
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
        short_flows: vec![],
        copy: world.study.and_then(CopyStudy::into_found),
        notes,
    };
    Ok(Measured { run, short_flows, node_notes, events: net.events(), other_threads_cpu: Span(0) })
}

/// Sums up a finished run.
pub fn summarize_measured(spec: &RunSpec, measured: Measured) -> Outcome {
    let Measured { mut run, short_flows, node_notes: (before, of_nodes), events, other_threads_cpu } = measured;
    run.notes.splice(before..before, of_nodes.into_iter().map(|(_, note)| note));
    let summary = |(index, entry)| {
        let of_it = short_flows.iter().filter(|flow| flow.entry == index);
        short_flows::summarize(entry, &of_it.collect::<Vec<_>>(), run.end)
    };
    run.short_flows = spec.short_flows.iter().enumerate().map(summary).collect();
    let mut outcome = summarize(spec, run);
    outcome.metrics.insert("events", Metric::Integer(events));
    outcome.other_threads_cpu = other_threads_cpu;
    outcome
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

/// Runs one event after the other until `to`.
///
/// # Errors
/// [`RunError`]: the capture cannot be written, or `progress` said stop.
pub fn run_to<M: TransportMaker, N: Node<M::Transport>>(
    world: &mut World<M, N>,
    net: &mut Network<Packet>,
    to: Time,
    end: Time,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    loop {
        let reached = net.run(world, to, EVENTS_PER_CALL);
        report(world, net, end, progress)?;
        write_captured(world)?;
        if reached != sim::Progress::ReachedEvents {
            return Ok(());
        }
    }
}

/// Writes what waits for it to the capture, if there is one.
///
/// # Errors
/// The capture could not be written.
pub fn write_captured<M: TransportMaker, N: Node<M::Transport>>(world: &mut World<M, N>) -> Result<(), RunError> {
    let of = &mut world.connections;
    of.capture.iter_mut().for_each(Capture::write_noted);
    if of.capture.as_ref().is_some_and(Capture::has_failed) {
        of.capture.take().map(Capture::finish).transpose()?;
    }
    Ok(())
}

/// Tells `progress`.
///
/// # Errors
/// [`RunError::Stopped`]: it said stop.
pub fn report<M: TransportMaker, N: Node<M::Transport>>(
    world: &World<M, N>,
    net: &Network<Packet>,
    end: Time,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let end = world.study.as_ref().map_or(end, |study| study.expected_end(net.now()).min(end));
    match progress(Progress { now: net.now(), end, events: net.events_of_all() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(RunError::Stopped),
    }
}
