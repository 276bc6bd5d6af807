//! From a checked specification to a world and a network.

use crate::applications::Applications;
use crate::capture::Capture;
use crate::copy_study::CopyStudy;
use crate::environment::Environment;
use crate::error::RunError;
use crate::flow::Flow;
use crate::mixed_transport::has_udt;
use crate::node::Node;
use crate::node_number::EndNodes;
use crate::packet::Packet;
use crate::probe::Probe;
use crate::series::FlowSeries;
use crate::short_flows;
use crate::transport::TransportMaker;
use crate::validate::ValidSimulation;
use crate::windows::Windows;
use crate::world::{Connections, Nodes, Samples, Stripes, Timers, World};
use sim::{Network, Routes};
use spec::{FlowSpec, RunSpec};
use storage::trace::Summary;
use storage::Format;
use units::{Span, Time};

/// The parts of a run beside its specification.
pub struct Parts<M, N> {
    /// Makes the ends of connections.
    pub maker: M,
    /// Nodes, which drive ends of flows in place of their workloads.
    pub nodes: Vec<N>,
    /// By flow of the specification: the nodes that drive its sender and its receiver.
    pub of_ends: Vec<EndNodes>,
    /// Measurements beside the series.
    pub probes: Vec<Box<dyn Probe>>,
}

/// A built run: its hosts and its network.
pub type Built<M, N> = (World<M, N>, Network<Packet>);

/// Builds everything that `run` describes of `parts`, with all first timers set.
///
/// # Errors
/// [`RunError`] names a file that it could not open, read or write, or what is wrong in it.
pub fn build<M: TransportMaker, N: Node<M::Transport>>(
    run: ValidSimulation<'_>,
    parts: Parts<M, N>,
) -> Result<Built<M, N>, RunError> {
    let spec = run.spec();
    let Parts { maker, nodes, of_ends, probes } = parts;
    let study = CopyStudy::new(run);
    let short_flows = short_flows::members(run);
    let all: Vec<&FlowSpec> = spec.flows.iter().chain(short_flows.iter().map(|(_, flow)| flow)).collect();
    let windows = Windows::new(spec);
    let probing = study.iter().len() + windows.iter().len() + probes.len();
    let timers = Timers::new(spec.events.len(), all.len(), spec.background.len(), probing);
    let mut environment = Environment::new(*run, &all, Time::ZERO, timers.numbering());
    let mut routes = Routes::default();
    let mut builder =
        Builder { run, environment: &environment, routes: &mut routes, maker, applications: Applications::new(*run)? };
    let flows = all
        .iter()
        .enumerate()
        .map(|(i, flow)| builder.flow(i, flow, of_ends.get(i).copied().unwrap_or_default()))
        .collect::<Result<Vec<_>, _>>()?;
    let Builder { maker, applications, .. } = builder;
    environment.add_background(*run, &mut routes);
    let (links, pacers) = environment.links(*run, true);
    let mut net = Network::new(links, pacers, routes, timers.count(), environment.early_timers());
    let capture = match &spec.measure.pcap {
        Some(path) => Some(Capture::create(path, spec.measure.pcap_node, spec.measure.pcap_packets, &all)?),
        None => None,
    };
    let mut world = World {
        connections: Connections::new(flows, spec.flows.len(), timers, capture),
        environment,
        nodes: Nodes::new(nodes, maker),
        stripes: Stripes(applications.into_stripes()),
        short_flows: short_flows.iter().map(|&(entry, _)| entry).collect(),
        study,
        windows,
        probes,
        path_test: None,
        flow_series: FlowSeries::default(),
        samples: Samples::new(spec.flows.len()),
        series_interval: spec.measure.series_interval_ns.map(Span),
        has_udt: has_udt(spec),
    };
    set_first_timers(spec, &mut world, &mut net);
    if spec.stop_when_done {
        // The work of each flow is a piece with its number.
        net.end_with_work(world.connections.flows.len() as u32);
    }
    Ok((world, net))
}

fn set_first_timers<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &mut World<M, N>,
    net: &mut Network<Packet>,
) {
    world.environment.set_timers(net);
    let timers = world.connections.timers;
    for (index, flow) in world.connections.flows.iter().enumerate() {
        net.set_timer(timers.application(index), Time(flow.spec.start_ns));
        if let Some(stop) = flow.spec.stop_ns {
            net.set_timer(timers.stop(index), Time(stop));
        }
    }
    if spec.measure.warmup_ns > 0 {
        net.set_timer(timers.warmup(), Time(spec.measure.warmup_ns));
    }
    let study = world.study.iter().map(|study| study as &dyn Probe);
    let windows = world.windows.iter().map(|windows| windows as &dyn Probe);
    for (index, probe) in study.chain(windows).chain(world.probes.iter().map(|probe| &**probe)).enumerate() {
        net.set_timer(timers.probe(index), probe.poll_timeout());
    }
}

struct Builder<'a, M> {
    run: ValidSimulation<'a>,
    environment: &'a Environment,
    routes: &'a mut Routes,
    maker: M,
    applications: Applications,
}

impl<M: TransportMaker> Builder<'_, M> {
    fn flow(&mut self, index: usize, spec: &FlowSpec, nodes: EndNodes) -> Result<Flow<M::Transport>, RunError> {
        let [sender, receiver] = self.maker.make(spec, Time::ZERO)?;
        // Host numbers: the sender of flow i is 2i, its receiver 2i + 1; packets go to the other end.
        let sender_host = 2 * index as u32;
        let sides = [self.routes.add(&spec.route, sender_host + 1), self.routes.add(&spec.return_route, sender_host)];
        self.environment.add_alternates(*self.run, index, sides, self.routes);
        Ok(Flow {
            sender,
            receiver,
            workload: self.applications.build(index, spec)?,
            nodes,
            earlier: None,
            spec: Box::new(spec.clone()),
            hops: sides.map(|route| route.0),
            armed: [Time::NEVER; 2],
            dropped_packets: [0; 2],
            received_at_warmup: [0; 2],
            received_at_sample: [0; 2],
        })
    }
}

/// Returns the format and a summary of a trace whose format is called `format` ("auto": by its content), with the
/// columns that go with format "columns". Holds one request at a time.
///
/// # Errors
/// [`RunError::Trace`] names file, place and what would be right.
pub fn check_trace(path: &str, format: &str, columns: Option<&str>) -> Result<(Format, Summary), RunError> {
    let wrong = |e: storage::TraceError| RunError::Trace(e.to_string());
    let reader = storage::stream(path, Format::from_name(format, columns).map_err(wrong)?).map_err(wrong)?;
    let (format, mut summary) = (reader.format(), Summary::default());
    for request in reader {
        summary.add(&request.map_err(wrong)?);
    }
    if summary.requests == 0 {
        return Err(wrong(storage::TraceError::Empty { name: path.to_owned() }));
    }
    Ok((format, summary))
}
