//! One run from spec to outcome.

use crate::build::{build, Built, Parts};
use crate::built_in_node::{built_in_nodes, BuiltInNode};
use crate::constant_traffic;
use crate::error::RunError;
use crate::flow::Flow;
use crate::measure::{measure, report, run_to, summarize_measured, write_captured, Progress, EVENTS_PER_CALL};
use crate::metric::Metric;
use crate::mixed_transport::MixedMaker;
use crate::node::Node;
use crate::packet::Packet;
use crate::processes::{earliest_end, packets_on_fastest, plan_horizons, LOOKAHEAD_PACKETS};
use crate::shared::{divide, run_divided, Divided};
use crate::summary::{summarize, Outcome};
use crate::tcp_config::Algorithms;
use crate::transport::TransportMaker;
use crate::validate::{ValidRun, ValidSimulation};
use crate::workload::Source;
use crate::world::World;
use sim::Network;
use spec::RunSpec;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use units::{Rate, Size, Span, Time};

/// Events between two reports of progress where packets are captured, which wait in memory for it by horizons.
const CAPTURED_EVENTS_PER_CALL: u64 = 1 << 14;

/// Time before the earliest possible end of a run for which horizons are worth their beginning.
const WORTHWHILE: Span = Span(1_000_000);

/// Least packets of 1500 bytes for which several threads share a run: in a lookahead on the fastest bottleneck of a
/// flow, and in all windows. With 83 packets in a lookahead two threads took up to 0.95 times as long as one (2 to 64
/// flows, 1 Gbit/s).
const SHARED_PACKETS: u64 = 250;

/// Most rows of links in the series of a run that several threads share: each keeps those of all links.
const SHARED_ROWS: u64 = 1_000_000;

/// Threads that share a run at most. Two were measured; links where flows meet, mostly two, have one thread each, which
/// does a tenth of the work of 16 flows there, so that more than these would wait for it.
const MOST_CORES: usize = 8;

/// Links from which on horizons are worth it for flows whose ends share state, as those of iSCSI, Fibre Channel and
/// constant rate do: with 2 to 6 links, single events of 1 to 8 such flows took 0.86 to 0.97 of the time of horizons;
/// with the 34 of W6 of `make bench`, 1.3 times.
const LINKS_OF_SHARED_ENDS: usize = 10;

/// Packets in all windows from which on horizons are worth it where links have jitter: with 45, single events took 0.72
/// to 0.78 of the time of horizons, with 130 and more as much or more.
const PACKETS_WITH_JITTER: u64 = 100;

/// Order in which a run's events are handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// By horizons where the run has them and they are worth it.
    Chosen,
    /// The same, by as many threads as this where the run is long enough for them.
    Cores(NonZeroUsize),
    /// By horizons wherever the run has them, and by as many threads as this wherever it can be divided among them: for
    /// tests.
    Workers(NonZeroUsize),
    /// One event after the other: the oracle of tests.
    Events,
}

/// Does `$work` with a run that is `$built`, and with what `$make`s its transports: of TCP alone where others are not
/// needed, so that nothing is decided per packet.
macro_rules! with_built {
    ($run:expr, |$built:pat_param, $make:ident| $work:expr) => {{
        let run: ValidSimulation<'_> = $run;
        let (nodes, of_ends) = built_in_nodes(run)?;
        let probes = vec![];
        if MixedMaker::is_needed(run.spec()) {
            let $make = || MixedMaker::new(run.spec());
            let $built = build(run, Parts { maker: $make(), nodes, of_ends, probes })?;
            $work
        } else {
            let $make = Algorithms::default;
            let $built = build(run, Parts { maker: $make(), nodes, of_ends, probes })?;
            $work
        }
    }};
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
    let mut outcome = with_built!(run, |built, make| simulate_divided(run, built, engine, make, progress)?);
    outcome.notes.extend(needs_packets);
    Ok(outcome)
}

/// Returns why a run of `spec` has no horizons; None: it has.
///
/// # Errors
/// As [`simulate`], before the run begins.
pub fn without_horizons(spec: &RunSpec) -> Result<Option<String>, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    Ok(with_built!(run, |(world, mut net), _make| plan_horizons(spec, &world, &mut net).err()))
}

/// Returns whether several of `workers` share a run of `spec` by [`Engine::Workers`].
///
/// # Errors
/// As [`simulate`], before the run begins.
pub fn is_shared(spec: &RunSpec, workers: NonZeroUsize) -> Result<bool, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    Ok(with_built!(run, |mut built, _make| divide(spec, &mut built, workers.get()).is_some()))
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

/// As [`simulate_built`], by several threads where `engine` has several and the run can be divided; `make` is as for
/// [`run_divided`].
fn simulate_divided<M: TransportMaker>(
    run: ValidSimulation<'_>,
    mut built: Built<M, BuiltInNode>,
    engine: Engine,
    make: impl Fn() -> M + Sync,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    if let Engine::Cores(workers) | Engine::Workers(workers) = engine {
        let is_test = engine == Engine::Workers(workers);
        let most = if is_test { usize::MAX } else { MOST_CORES };
        let division = divide(run.spec(), &mut built, workers.get().min(most));
        let is_worthwhile = is_test || is_worth_sharing(run.spec(), &built.0, &built.1);
        if let Some(division) = division.filter(|_| is_worthwhile) {
            match run_divided(run, &division, built, make, progress)? {
                Divided::Measured(measured) => return Ok(summarize_measured(run.spec(), *measured)),
                Divided::NoThread(whole) => built = *whole,
            }
        }
    }
    simulate_built(run.spec(), built, engine, progress)
}

fn simulate_built<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    (mut world, mut net): Built<M, N>,
    engine: Engine,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Outcome, RunError> {
    let end = Time(spec.duration_ns);
    let may_have_horizons = match engine {
        Engine::Events => false,
        Engine::Workers(_) => true,
        Engine::Chosen | Engine::Cores(_) => is_worth_horizons(spec, &world),
    };
    if may_have_horizons && plan_horizons(spec, &world, &mut net).is_ok() {
        run_horizons(spec, &mut world, &mut net, progress)?;
    } else {
        run_to(&mut world, &mut net, end, end, progress)?;
    }
    let measured = measure(spec, world, net, progress)?;
    Ok(summarize_measured(spec, measured))
}

/// As [`run_to`] the end of `spec`, by horizons. Where nothing can end the run, links may be ahead of hosts; where its
/// work may, horizons are as short as links need then; where that is too short, single events take over.
fn run_horizons<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &mut World<M, N>,
    net: &mut Network<Packet>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<(), RunError> {
    let end = Time(spec.duration_ns);
    let watches =
        net.lookahead_watching().is_some_and(|lookahead| lookahead >= packets_on_fastest(spec, LOOKAHEAD_PACKETS));
    let events = if world.connections.capture.is_some() { CAPTURED_EVENTS_PER_CALL } else { EVENTS_PER_CALL };
    // A bound that was certain stays so.
    let (mut certain, mut until, mut pause) = (Time::ZERO, Time::ZERO, WORTHWHILE);
    let mut is_watching = false;
    loop {
        // At that time it may end.
        let before = Time(earliest_end(spec, world, net.now()).0.saturating_sub(1));
        certain = before.min(end).max(certain);
        // Horizons that have not reached their time go on as they were: what links are ahead by depends on it.
        let goes_on = net.is_ahead();
        let is_certain = certain > net.now() + WORTHWHILE || certain == end;
        is_watching = if goes_on { is_watching } else { watches && !is_certain };
        let reached = if !is_watching && (goes_on || is_certain) {
            (until, pause) = (certain, WORTHWHILE);
            net.run_horizons(world, until, end, events)
        } else {
            if until <= net.now() {
                // Longer and longer: some runs are never certain to go on.
                until = (net.now() + pause).min(end);
                pause = pause + pause;
            }
            if is_watching {
                net.run_horizons_watching(world, until, end, events)
            } else {
                net.run_until(world, until, end, EVENTS_PER_CALL)
            }
        };
        write_captured(world)?;
        report(world, net, end, progress)?;
        match reached {
            sim::Progress::Stopped => return Ok(()),
            sim::Progress::ReachedTime if net.now() >= end => return Ok(()),
            sim::Progress::ReachedTime | sim::Progress::ReachedEvents => {}
        }
    }
}

/// Returns whether horizons, if a run has them, take less time than single events.
fn is_worth_horizons<M: TransportMaker, N: Node<M::Transport>>(spec: &RunSpec, world: &World<M, N>) -> bool {
    let has_shared_ends = |flow: &Flow<M::Transport>| {
        flow.nodes.iter().any(Option::is_some)
            || !matches!(flow.workload.source, Source::Bulk { .. } | Source::Shared(_))
    };
    let flows = &world.connections.flows;
    if spec.links.len() < LINKS_OF_SHARED_ENDS && !flows.is_empty() && flows.iter().all(has_shared_ends) {
        return false;
    }
    !spec.links.iter().any(|link| link.jitter.is_some()) || window_packets(spec) >= PACKETS_WITH_JITTER
}

/// Packets of 1500 bytes that may be on their way, all flows together.
fn window_packets(spec: &RunSpec) -> u64 {
    let of_flows = spec.flows.iter().map(|flow| flow.transport.window_bytes);
    let of_short_flows = spec.short_flows.iter().map(|entry| entry.transport.window_bytes);
    of_flows.chain(of_short_flows).fold(0, u64::saturating_add) / 1500
}

/// Returns whether several threads take less time, since much happens in each horizon, and not much more memory.
fn is_worth_sharing<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &World<M, N>,
    net: &Network<Packet>,
) -> bool {
    let bottleneck = |route: &[usize]| route.iter().map(|&link| spec.links[link].rate_bps).min();
    let flows = world.connections.flows.iter();
    let fastest = Rate(flows.filter_map(|flow| bottleneck(&flow.spec.route)).max().unwrap_or(1));
    let samples = spec.measure.series_interval_ns.map_or(0, |interval| spec.duration_ns / interval.max(1));
    net.lookahead().is_some_and(|lookahead| lookahead >= fastest.time_for(Size(1500 * SHARED_PACKETS)))
        && window_packets(spec) >= SHARED_PACKETS
        && samples.saturating_mul(spec.links.len() as u64) <= SHARED_ROWS
        && is_worth_horizons(spec, world)
}
