//! From the spec to a world and a network, with every index and number checked on the way.

use crate::applications::Applications;
use crate::background::Background;
use crate::capture::Capture;
use crate::changes::{self, Change};
use crate::error::LabError;
use crate::flow::Flow;
use crate::packet::Packet;
use crate::spec::{FlowSpec, JitterKind, JitterSpec, LinkSpec, LossSpec, QueueSpec, RunSpec, WhenSpec};
use crate::stack::{tcp_config, Algorithms};
use crate::world::{Timers, World};
use link::random::stream_seed;
use link::{Jitter, JitterDistribution, Link, LinkConfig, LossModel, QueueConfig};
use sim::{Network, Routes};
use storage::trace::Summary;
use storage::Format;
use tcp::Endpoint;
use units::{Rate, Span, Time};

/// The form of [`RunSpec`] that this version reads.
const FORMAT: u32 = 1;

/// Builds everything that `spec` describes, with all first timers set.
pub fn assemble(spec: &RunSpec) -> Result<(World, Network<Packet>), LabError> {
    if spec.format != FORMAT {
        return Err(LabError::Spec(format!("format = {}: this version reads {FORMAT}", spec.format)));
    }
    let mut routes = Routes::default();
    let mut builder =
        Builder { spec, routes: &mut routes, algorithms: Algorithms::default(), applications: Applications::default() };
    let flows = builder.flows()?;
    let background = builder.background(flows.len())?;
    let links = (0..spec.links.len()).map(|l| build_link(l, spec)).collect::<Result<Vec<_>, _>>()?;

    // Changes at a time go before packets of the same ns; changes that watch a flow look after them.
    let mut events = spec.events.clone();
    events.sort_by_key(|e| match e.when {
        WhenSpec::At { time_ns } => (0, time_ns),
        WhenSpec::FlowReaches { .. } => (1, 0),
    });
    for event in &events {
        changes::check(event, spec.links.len(), spec.flows.len(), spec.background.len())?;
    }
    let timers = Timers::new(events.len(), flows.len(), background.len());
    let mut net = Network::new(links, routes, timers.count(), events.len());
    let capture = match &spec.measure.pcap {
        Some(path) => Some(Capture::create(path, spec.measure.pcap_node, spec.measure.pcap_packets)?),
        None => None,
    };
    let changes: Vec<_> = events.into_iter().map(Change::new).collect();
    let mut world = World::new(spec, flows, background, changes, timers, capture);
    set_first_timers(spec, &mut world, &mut net);
    Ok((world, net))
}

fn set_first_timers(spec: &RunSpec, world: &mut World, net: &mut Network<Packet>) {
    for (index, change) in world.changes.iter().enumerate() {
        net.set_timer(index as u32, change.first_look());
    }
    for (index, flow) in world.flows.iter().enumerate() {
        net.set_timer(world.timers.application(index), Time(flow.spec.start_ns));
        if let Some(stop) = flow.spec.stop_ns {
            net.set_timer(world.timers.stop(index), Time(stop));
        }
    }
    for index in 0..world.background.len() {
        if world.background[index].enabled {
            let start = Time(world.background[index].spec.start_ns);
            let due = world.background[index].start(start);
            net.set_timer(world.timers.background(index), due);
        }
    }
    if spec.measure.warmup_ns > 0 {
        net.set_timer(world.timers.warmup(), Time(spec.measure.warmup_ns));
    }
    if let Some(interval) = spec.measure.series_interval_ns {
        net.set_timer(world.timers.sampler(), Time(interval));
    }
}

struct Builder<'a> {
    spec: &'a RunSpec,
    routes: &'a mut Routes,
    algorithms: Algorithms,
    applications: Applications,
}

impl Builder<'_> {
    fn flows(&mut self) -> Result<Vec<Flow>, LabError> {
        let spec = self.spec;
        spec.flows.iter().enumerate().map(|(index, flow)| self.flow(index, flow)).collect()
    }

    fn flow(&mut self, index: usize, spec: &FlowSpec) -> Result<Flow, LabError> {
        let what = format!("flow {}", spec.name);
        check_route(&what, "route", &spec.route, spec.source, spec.destination, &self.spec.links)?;
        check_route(&what, "return_route", &spec.return_route, spec.destination, spec.source, &self.spec.links)?;
        let config = tcp_config(&spec.name, &spec.stack)?;
        let sender_control = self.algorithms.controller(&spec.name, &spec.stack)?;
        let receiver_control = self.algorithms.controller(&spec.name, &spec.stack)?;
        // Host numbers: the sender of flow i is 2i, its receiver 2i + 1; packets go to the other end.
        let sender_host = 2 * index as u32;
        let hops =
            [self.routes.add(&spec.route, sender_host + 1).0, self.routes.add(&spec.return_route, sender_host).0];
        Ok(Flow {
            sender: Endpoint::new_client(config.clone(), sender_control, Time::ZERO),
            receiver: Endpoint::new_server(config, receiver_control, Time::ZERO),
            workload: self.applications.build(spec)?,
            spec: Box::new(spec.clone()),
            hops,
            armed: [Time::NEVER; 2],
            dropped_packets: 0,
            received_at_warmup: 0,
            received_at_sample: 0,
        })
    }

    fn background(&mut self, flows: usize) -> Result<Vec<Background>, LabError> {
        let spec = self.spec;
        let mut sources = vec![];
        for (index, source) in spec.background.iter().enumerate() {
            let what = format!("background {}", source.name);
            check_chain(&what, "route", &source.route, &spec.links)?;
            if source.rate_bps == 0 || source.packet_bytes == 0 || source.packet_bytes > 65_535 {
                return Err(LabError::Spec(format!("{what}: rate above zero and packets of 1 to 65535 B")));
            }
            let host = (2 * flows + index) as u32;
            let hop = self.routes.add(&source.route, host).0;
            sources.push(Background::new(source.clone(), hop, spec.seed));
        }
        Ok(sources)
    }
}

fn check_chain(what: &str, key: &str, route: &[usize], links: &[LinkSpec]) -> Result<(), LabError> {
    if route.is_empty() {
        return Err(LabError::Spec(format!("{what}: {key} is empty: at least one link")));
    }
    if let Some(bad) = route.iter().find(|&&l| l >= links.len()) {
        return Err(LabError::Spec(format!("{what}: {key}: link {bad} does not exist, there are {}", links.len())));
    }
    for pair in route.windows(2) {
        if links[pair[0]].to != links[pair[1]].from {
            let (a, b) = (&links[pair[0]].name, &links[pair[1]].name);
            return Err(LabError::Spec(format!("{what}: {key}: {b} does not begin where {a} ends")));
        }
    }
    Ok(())
}

fn check_route(
    what: &str,
    key: &str,
    route: &[usize],
    from: usize,
    to: usize,
    links: &[LinkSpec],
) -> Result<(), LabError> {
    check_chain(what, key, route, links)?;
    if links[route[0]].from != from || links[route[route.len() - 1]].to != to {
        return Err(LabError::Spec(format!("{what}: {key} does not lead from node {from} to node {to}")));
    }
    Ok(())
}

fn build_link(index: usize, run: &RunSpec) -> Result<Link<Packet>, LabError> {
    let spec = &run.links[index];
    if spec.from >= run.nodes.len() || spec.to >= run.nodes.len() {
        return Err(LabError::Spec(format!("link {}: its nodes do not exist", spec.name)));
    }
    if spec.rate_bps == 0 {
        return Err(LabError::Spec(format!("link {}: rate = 0: above zero", spec.name)));
    }
    let config = link_config(spec);
    let seed = link_seed(run.seed, &spec.name);
    let changes = run.events.iter().any(|e| e.action.link() == Some(index));
    Ok(if changes { Link::new(config, seed) } else { Link::fixed(config, seed) })
}

/// The link crate's configuration for `spec`: what the simulator runs, for whoever runs it elsewhere.
pub fn link_config(spec: &LinkSpec) -> LinkConfig {
    LinkConfig {
        rate: Rate(spec.rate_bps),
        delay: Span(spec.delay_ns),
        queue: queue_config(&spec.queue),
        loss: loss_model(&spec.loss),
        jitter: spec.jitter.as_ref().map(jitter),
    }
}

/// Seed of the random streams of the link called `name` in a run with seed `run`.
pub fn link_seed(run: u64, name: &str) -> u64 {
    stream_seed(run, &format!("link/{name}"))
}

fn queue_config(spec: &QueueSpec) -> QueueConfig {
    match *spec {
        QueueSpec::DropTail { limit_bytes, limit_packets } => QueueConfig::DropTail { limit_bytes, limit_packets },
        QueueSpec::Red { limit_bytes, min_bytes, max_bytes, max_probability_ppm, weight_shift, ecn } => {
            QueueConfig::Red { limit_bytes, min_bytes, max_bytes, max_probability_ppm, weight_shift, ecn }
        }
        QueueSpec::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            QueueConfig::Codel { limit_packets, target: Span(target_ns), interval: Span(interval_ns), ecn }
        }
        QueueSpec::FqCodel { limit_packets, flows, quantum_bytes, target_ns, interval_ns, ecn } => {
            QueueConfig::FqCodel {
                limit_packets,
                flows,
                quantum_bytes,
                target: Span(target_ns),
                interval: Span(interval_ns),
                ecn,
            }
        }
    }
}

/// The link crate's loss model for `spec`.
pub fn loss_model(spec: &LossSpec) -> LossModel {
    match spec.clone() {
        LossSpec::None => LossModel::None,
        LossSpec::Independent { probability_e12 } => LossModel::Independent { probability_e12 },
        LossSpec::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 } => {
            LossModel::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 }
        }
        LossSpec::EveryNth { n } => LossModel::EveryNth { n },
        LossSpec::BitErrorRate { probability_e18 } => LossModel::BitErrorRate { probability_e18 },
        LossSpec::List { packets } => LossModel::List { packets },
    }
}

fn jitter(spec: &JitterSpec) -> Jitter {
    let distribution = match spec.distribution {
        JitterKind::Uniform => JitterDistribution::Uniform,
        JitterKind::Exponential => JitterDistribution::Exponential,
        JitterKind::Normal => JitterDistribution::Normal,
    };
    Jitter { distribution, scale: Span(spec.scale_ns), reordering: spec.reordering }
}

/// What is in a trace, and its format; `format` as in a [`TraceSpec`]. Holds one request at a time.
///
/// # Errors
/// [`LabError::Trace`] names file, place and what would be right.
pub fn check_trace(path: &str, format: &str) -> Result<(Format, Summary), LabError> {
    let wrong = |e: storage::TraceError| LabError::Trace(e.to_string());
    let reader = storage::stream(path, Format::asked(format).map_err(wrong)?).map_err(wrong)?;
    let (format, mut summary) = (reader.format(), Summary::default());
    for request in reader {
        summary.add(&request.map_err(wrong)?);
    }
    if summary.requests == 0 {
        return Err(wrong(storage::TraceError::Empty { name: path.to_owned() }));
    }
    Ok((format, summary))
}
