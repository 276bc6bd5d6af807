//! One run by several threads: each builds the whole run and moves its part of it, and what all have measured is put
//! together.

use crate::build::{build, Built, Parts};
use crate::built_in_node::{built_in_nodes, BuiltInNode};
use crate::counters::MeasuredRun;
use crate::error::RunError;
use crate::flow::Flow;
use crate::measure::{measure, report, Measured, Progress, EVENTS_PER_CALL};
use crate::node::Node;
use crate::packet::Packet;
use crate::processes::{earliest_end, plan_horizons};
use crate::series::{FlowSeries, LinkSeries};
use crate::transport::TransportMaker;
use crate::validate::ValidSimulation;
use sim::{Shards, Team};
use spec::{ActionSpec, RunSpec, TransportSpec, WhenSpec};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use units::{Span, Time};

/// Outcome of a divided run.
pub enum Divided<M: TransportMaker> {
    /// It has been measured.
    Measured(Box<Measured>),
    /// Nothing has happened: the machine gave no thread.
    NoThread(Box<Built<M, BuiltInNode>>),
}

/// The division of a run among workers.
pub struct Division {
    shards: Shards,
    /// By flow, those of the specification first.
    of_flow: Vec<usize>,
    /// By background source.
    of_background: Vec<usize>,
}

/// Returns whether the parts of a run of `spec` need nothing of each other but packets. A user's congestion control may
/// have variables of its own that all flows share.
fn may_be_shared(spec: &RunSpec) -> bool {
    let is_apart = |event: &spec::EventSpec| {
        matches!(event.when, WhenSpec::At { .. })
            && matches!(event.action, ActionSpec::BackgroundOn { .. } | ActionSpec::BackgroundOff { .. })
    };
    let transports = spec.flows.iter().map(|flow| &flow.transport);
    let mut transports = transports.chain(spec.short_flows.iter().map(|entry| &entry.transport));
    spec.manager.is_none()
        && spec.measure.pcap.is_none()
        && spec.extrapolate.is_none()
        && spec.events.iter().all(is_apart)
        && !transports.any(TransportSpec::has_own_control)
}

/// Plans horizons of a run and its division among `workers`. None: one thread takes it.
pub fn divide<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    (world, net): &mut Built<M, N>,
    workers: usize,
) -> Option<Division> {
    // The rest of such work drains behind the end, one event after the other.
    let drains = |flow: &Flow<M::Transport>| flow.workload.messages().is_some() || flow.workload.share().is_some();
    let is_plain = world.probes.is_empty() && world.path_test.is_none() && !world.connections.flows.iter().any(drains);
    let ends_itself = earliest_end(spec, world, Time::ZERO) <= Time(spec.duration_ns);
    if workers < 2 || !is_plain || ends_itself || !may_be_shared(spec) {
        return None;
    }
    let processes = plan_horizons(spec, world, net).ok()?;
    let shards = net.shards(&processes, workers);
    let owner = |&process: &u32| shards.of_process(process);
    let flows = world.connections.flows.len();
    let of_flow = processes.of_host[..2 * flows].iter().step_by(2).map(owner).collect();
    let of_background = processes.of_host[2 * flows..].iter().map(owner).collect();
    (shards.workers() > 1).then_some(Division { shards, of_flow, of_background })
}

/// Runs what [`divide`] has divided, with its horizons planned; `make` makes what makes ends of connections, once for
/// each further thread. Gives `built` back, as it was, where the machine has no room for as many threads.
///
/// # Errors
/// As [`crate::simulate`].
pub fn run_divided<M: TransportMaker>(
    run: ValidSimulation<'_>,
    division: &Division,
    built: Built<M, BuiltInNode>,
    make: impl Fn() -> M + Sync,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Divided<M>, RunError> {
    let team = Arc::new(Team::new(division.shards.workers(), thread::yield_now));
    let joined = |(world, mut net): Built<M, BuiltInNode>, worker| {
        net.join(Arc::clone(&team), worker, division.shards.clone());
        (world, net)
    };
    let further = |worker| {
        let (nodes, of_ends) = built_in_nodes(run)?;
        let parts = Parts { maker: make(), nodes, of_ends, probes: vec![] };
        let mut built = build(run, parts)?;
        // As for the first one.
        plan_horizons(run.spec(), &built.0, &mut built.1).map_err(RunError::Spec)?;
        let measured = work(run.spec(), joined(built, worker), &mut |_| ControlFlow::Continue(()))?;
        Ok(Measured { other_threads_cpu: cpu_of_thread(), ..measured })
    };
    let measured = thread::scope(|scope| {
        let further = &further;
        let team = &*team;
        let begin =
            |worker| thread::Builder::new().spawn_scoped(scope, move || Ending(team).after(|| further(worker))).ok();
        let threads: Vec<_> = (1..team.workers()).map_while(begin).collect();
        if threads.len() + 1 < team.workers() {
            // Those that were made wait for the others.
            team.dissolve();
            return Err(Box::new(built));
        }
        let first = Ending(team).after(|| work(run.spec(), joined(built, 0), progress));
        let others = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let mut all: Vec<_> = others.collect();
        all.insert(0, first);
        Ok(all)
    });
    let measured = match measured {
        Ok(measured) => measured,
        Err(built) => return Ok(Divided::NoThread(built)),
    };
    // The error of one ends the others, which are then stopped.
    let (mut parts, mut error) = (vec![], None);
    for part in measured {
        match part {
            Ok(part) => parts.push(part),
            Err(RunError::Stopped) => error = error.or(Some(RunError::Stopped)),
            Err(other) => error = Some(other),
        }
    }
    match error {
        Some(error) => Err(error),
        None => Ok(Divided::Measured(Box::new(division.put_together(parts)))),
    }
}

/// CPU time of this thread so far: the first field, ns, of Linux's schedstat. 0 elsewhere.
fn cpu_of_thread() -> Span {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Span(text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0))
}

/// Ends the run of all workers when one of them cannot go on.
struct Ending<'a>(&'a Team<Packet>);

impl Ending<'_> {
    fn after<T>(self, work: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
        let done = work();
        if done.is_err() {
            self.0.dissolve();
        }
        done
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.dissolve();
        }
    }
}

/// The part of a worker, from beginning to end.
fn work<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    (mut world, mut net): Built<M, N>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Measured, RunError> {
    let end = Time(spec.duration_ns);
    loop {
        let reached = net.run_horizons(&mut world, end, end, EVENTS_PER_CALL);
        report(&world, &net, end, progress)?;
        match reached {
            sim::Progress::ReachedEvents => {}
            sim::Progress::ReachedTime => return measure(spec, world, net, progress),
            sim::Progress::Stopped => return Err(RunError::Stopped),
        }
    }
}

impl Division {
    /// The whole, of what its `parts` have measured: of each thing what its worker has.
    fn put_together(&self, mut parts: Vec<Measured>) -> Measured {
        let of_link = |link: usize| self.shards.of_link(link);
        let events = parts.iter().map(|part| part.events).sum();
        let other_threads_cpu = Span(parts.iter().map(|part| part.other_threads_cpu.0).sum());
        let flow_series = FlowSeries::joined(&parts.iter().map(|part| &part.run.flow_series).collect::<Vec<_>>());
        let of_links: Vec<_> = parts.iter().map(|part| &part.run.link_series).collect();
        let link_series = LinkSeries::joined(&of_links, of_link);
        let mut whole = parts.remove(0);
        let is_of = |flow: usize, worker: usize| self.of_flow[flow] == worker;
        whole.node_notes.1.retain(|&(flow, _)| is_of(flow, 0));
        let named = whole.run.flows.len();
        for (worker, part) in (1..).zip(parts) {
            let Measured { run: theirs, short_flows, node_notes, .. } = part;
            whole.node_notes.1.extend(node_notes.1.into_iter().filter(|&(flow, _)| is_of(flow, worker)));
            let MeasuredRun { flows, network, windows, .. } = theirs;
            let ours = &mut whole.run;
            let is_theirs = |index: usize| is_of(index, worker);
            for (index, flow) in flows.into_iter().enumerate().filter(|&(index, _)| is_theirs(index)) {
                ours.flows[index] = flow;
            }
            for (link, stats) in network.links.into_iter().enumerate().filter(|&(link, _)| of_link(link) == worker) {
                ours.network.links[link] = stats;
            }
            for (source, of_it) in network.background.into_iter().enumerate() {
                if self.of_background[source] == worker {
                    ours.network.background[source] = of_it;
                }
            }
            for (window, of_it) in ours.windows.iter_mut().flatten().zip(windows.into_iter().flatten()) {
                for (index, flow) in of_it.flows.into_iter().enumerate().filter(|&(index, _)| is_theirs(index)) {
                    window.flows[index] = flow;
                }
            }
            for (index, flow) in short_flows.into_iter().enumerate().filter(|&(index, _)| is_theirs(named + index)) {
                whole.short_flows[index] = flow;
            }
        }
        // Nodes are in the order of their flows.
        whole.node_notes.1.sort_by_key(|&(flow, _)| flow);
        (whole.run.flow_series, whole.run.link_series) = (flow_series, link_series);
        Measured { events, other_threads_cpu, ..whole }
    }
}
