//! A run with a path test in it, from spec to outcome.

use crate::build::{build, Built, Parts};
use crate::built_in_node::built_in_nodes;
use crate::error::RunError;
use crate::measure::Progress;
use crate::mixed_transport::MixedMaker;
use crate::node::Node;
use crate::path_test_ends::{JudgedOutcome, PathTest};
use crate::path_test_spec::PathTestSpec;
use crate::tcp_config::Algorithms;
use crate::transport::TransportMaker;
use crate::validate::{check_path_test, path_test_takes_longer, ValidRun, ValidSimulation};
use path_test::estimate::Estimator;
use sim::RouteId;
use spec::RunSpec;
use std::ops::ControlFlow;
use units::Time;

/// Events between two reports of progress.
const EVENTS_PER_CALL: u64 = 1 << 18;

/// Runs `estimator` beside the traffic of `spec`, until it is done. `progress` is called every few hundred thousand
/// events.
///
/// # Errors
/// [`RunError`]: as of [`crate::simulate`]; a route that the network does not have; the run ends before the test.
pub fn path_test(
    spec: &RunSpec,
    at: &PathTestSpec,
    estimator: Box<dyn Estimator>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<JudgedOutcome, RunError> {
    let run = ValidSimulation::new(ValidRun::new(spec)?)?;
    let (nodes, of_ends) = built_in_nodes(run)?;
    let probes = vec![];
    if MixedMaker::is_needed(spec) {
        let parts = Parts { maker: MixedMaker::new(spec), nodes, of_ends, probes };
        run_test(spec, at, estimator, build(run, parts)?, progress)
    } else {
        let parts = Parts { maker: Algorithms::default(), nodes, of_ends, probes };
        run_test(spec, at, estimator, build(run, parts)?, progress)
    }
}

fn run_test<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    at: &PathTestSpec,
    estimator: Box<dyn Estimator>,
    (mut world, mut net): Built<M, N>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<JudgedOutcome, RunError> {
    let [route, back] = check_path_test(spec, at)?;
    let timers = world.connections.timers;
    let first_number = timers.numbering().first_host + spec.background.len() as u32;
    let RouteId(there) = net.add_route(&route, first_number);
    let RouteId(and_back) = net.add_route(&back, first_number + 1);
    let timer = timers.path_test();
    net.set_timer(timer, Time(at.start_ns));
    let hops = [there, and_back];
    world.path_test = Some(Box::new(PathTest::new(estimator, at.clone(), route, hops, first_number, timer)));
    let end = Time(spec.duration_ns);
    loop {
        let reached = net.run(&mut world, end, EVENTS_PER_CALL);
        if progress(Progress { now: net.now(), end, events: net.events() }).is_break() {
            return Err(RunError::Stopped);
        }
        if reached != sim::Progress::ReachedEvents {
            break;
        }
    }
    let judged = world.path_test.take().and_then(|test| test.judged(spec, &net));
    judged.ok_or_else(|| path_test_takes_longer(spec))
}
