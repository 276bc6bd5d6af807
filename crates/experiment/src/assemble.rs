//! From the spec to a world and a network, with every index and number checked on the way.

use crate::applications::Applications;
use crate::background::Background;
use crate::capture::Capture;
use crate::changes::Change;
use crate::crowd;
use crate::error::LabError;
use crate::flow::Flow;
use crate::managed::Management;
use crate::network::{check_route, links};
use crate::packet::Packet;
use crate::spec::{FlowSpec, RunSpec};
use crate::study::Study;
use crate::transport::{tcp_config, Algorithms};
use crate::ways;
use crate::world::{Timers, World};
use link::Pacers;
use sim::{Network, Routes};
use storage::trace::Summary;
use storage::Format;
use tcp::Endpoint;
use units::Time;

/// The form of [`RunSpec`] that this version reads.
const FORMAT: u32 = 2;

/// Builds everything that `spec` describes, with all first timers set.
pub fn assemble(spec: &RunSpec) -> Result<(World, Network<Packet>), LabError> {
    if spec.format != FORMAT {
        return Err(LabError::Spec(format!("format = {}: this version reads {FORMAT}", spec.format)));
    }
    // Before routes are made of what events name.
    let changes = Change::all(spec, Time::ZERO)?;
    let mut routes = Routes::default();
    let (sessions, of_flow) = crate::iscsi::sessions(spec)?;
    let members = crowd::members(spec)?;
    let all: Vec<&FlowSpec> = spec.flows.iter().chain(members.iter().map(|(_, flow)| flow)).collect();
    for (what, flow) in all.iter().map(|flow| (format!("flow {}", flow.name), flow)) {
        check_route(&what, "route", &flow.route, flow.source, flow.destination, &spec.links)?;
        check_route(&what, "return_route", &flow.return_route, flow.destination, flow.source, &spec.links)?;
    }
    let management = Management::new(spec, &all, Time::ZERO)?;
    let mut builder = Builder {
        spec,
        management: management.as_ref(),
        routes: &mut routes,
        algorithms: Algorithms::default(),
        applications: Applications::new(spec)?,
    };
    let flows = all
        .iter()
        .enumerate()
        .map(|(i, flow)| builder.flow(i, flow, of_flow.get(i).copied().unwrap_or(crate::iscsi::NONE)))
        .collect::<Result<Vec<_>, _>>()?;
    let Builder { algorithms, applications, .. } = builder;
    let background = Background::all(spec, Time::ZERO, 2 * flows.len() as u32, &mut routes)?;
    let mut pacers = Pacers::default();
    let mut links = links(spec, true, &mut pacers)?;
    links.extend(management.iter().flat_map(|management| management.gates(&mut pacers)));
    let timers = Timers::new(changes.len(), flows.len(), background.len());
    let mut net = Network::new(links, pacers, routes, timers.count(), changes.len());
    let capture = match &spec.measure.pcap {
        Some(path) => Some(Capture::create(path, spec.measure.pcap_node, spec.measure.pcap_packets)?),
        None => None,
    };
    let mut world = World::new(spec, flows, sessions, background, changes, timers, capture);
    world.crowds = members.iter().map(|&(crowd, _)| crowd).collect();
    world.management = management;
    world.algorithms = algorithms;
    world.stripes = applications.into_stripes();
    world.study = Study::new(spec)?;
    set_first_timers(spec, &mut world, &mut net);
    Ok((world, net))
}

fn set_first_timers(spec: &RunSpec, world: &mut World, net: &mut Network<Packet>) {
    Change::set_timers(&world.changes, net);
    for (index, flow) in world.flows.iter().enumerate() {
        net.set_timer(world.timers.application(index), Time(flow.spec.start_ns));
        if let Some(stop) = flow.spec.stop_ns {
            net.set_timer(world.timers.stop(index), Time(stop));
        }
    }
    Background::set_timers(&mut world.background, world.timers.background(0), net);
    if let Some(management) = &world.management {
        net.set_timer(world.timers.manager(), management.poll_timeout());
    }
    if spec.measure.warmup_ns > 0 {
        net.set_timer(world.timers.warmup(), Time(spec.measure.warmup_ns));
    }
    if let Some(study) = &world.study {
        net.set_timer(world.timers.observer(), study.first());
    }
    if let Some(interval) = spec.measure.series_interval_ns {
        net.set_timer(world.timers.sampler(), Time(interval));
    }
}

struct Builder<'a> {
    spec: &'a RunSpec,
    management: Option<&'a Management>,
    routes: &'a mut Routes,
    algorithms: Algorithms,
    applications: Applications,
}

impl Builder<'_> {
    fn flow(&mut self, index: usize, spec: &FlowSpec, session: u32) -> Result<Flow, LabError> {
        let config = tcp_config(&spec.name, &spec.transport)?;
        let sender_control = self.algorithms.controller(&spec.name, &spec.transport)?;
        let receiver_control = self.algorithms.controller(&spec.name, &spec.transport)?;
        // Host numbers: the sender of flow i is 2i, its receiver 2i + 1; packets go to the other end.
        let sender_host = 2 * index as u32;
        let sides = [self.routes.add(&spec.route, sender_host + 1), self.routes.add(&spec.return_route, sender_host)];
        ways::add_of_flow(self.spec, index, sides, self.routes);
        if let Some(management) = self.management {
            management.add_ways(index, sides[0], self.routes);
        }
        Ok(Flow {
            sender: Endpoint::new_client(config.clone(), sender_control, Time::ZERO),
            receiver: Endpoint::new_server(config, receiver_control, Time::ZERO),
            workload: self.applications.build(index, spec)?,
            session,
            connection: 0,
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

/// What is in a trace, and its format; `format` as in a [`crate::spec::TraceSpec`]. Holds one request at a time.
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
