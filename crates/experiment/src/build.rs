//! From a checked specification to a world and a network.

use crate::applications::Applications;
use crate::capture::Capture;
use crate::copy_study::CopyStudy;
use crate::environment::Environment;
use crate::error::RunError;
use crate::flow::Flow;
use crate::packet::Packet;
use crate::series::FlowSeries;
use crate::session_number::SessionNumber;
use crate::short_flows;
use crate::spec::{FlowSpec, RunSpec};
use crate::tcp_config::{tcp_config, Algorithms};
use crate::validate::ValidSimulation;
use crate::world::{Connections, Sessions, Stripes, Timers, World};
use sim::{Network, Routes};
use storage::trace::Summary;
use storage::Format;
use tcp::Endpoint;
use units::{Span, Time};

/// Builds everything that `run` describes, with all first timers set.
///
/// # Errors
/// [`RunError`] names a file that it could not open, read or write, or what is wrong in it.
pub fn build(run: ValidSimulation<'_>) -> Result<(World, Network<Packet>), RunError> {
    let spec = run.spec();
    let short_flows = short_flows::members(run);
    let all: Vec<&FlowSpec> = spec.flows.iter().chain(short_flows.iter().map(|(_, flow)| flow)).collect();
    let timers = Timers::new(spec.events.len(), all.len(), spec.background.len());
    let mut environment = Environment::new(*run, &all, Time::ZERO, timers.numbering());
    let mut routes = Routes::default();
    let (sessions, of_flow) = crate::iscsi::sessions(run)?;
    let mut builder = Builder {
        run,
        environment: &environment,
        routes: &mut routes,
        algorithms: Algorithms::default(),
        applications: Applications::new(*run)?,
    };
    let flows = all
        .iter()
        .enumerate()
        .map(|(i, flow)| builder.flow(i, flow, of_flow.get(i).copied().flatten()))
        .collect::<Result<Vec<_>, _>>()?;
    let Builder { algorithms, applications, .. } = builder;
    environment.add_background(*run, &mut routes);
    let mut net = Network::new(environment.links(*run, true), routes, timers.count(), environment.early_timers());
    let capture = match &spec.measure.pcap {
        Some(path) => Some(Capture::create(path, spec.measure.pcap_node, spec.measure.pcap_packets)?),
        None => None,
    };
    let mut world = World {
        connections: Connections::new(flows, spec.flows.len(), timers, capture, spec.stop_when_done),
        environment,
        sessions: Sessions::new(sessions, algorithms),
        stripes: Stripes(applications.into_stripes()),
        short_flows: short_flows.iter().map(|&(entry, _)| entry).collect(),
        study: CopyStudy::new(run),
        flow_series: FlowSeries::default(),
        series_interval: spec.measure.series_interval_ns.map(Span),
    };
    set_first_timers(spec, &mut world, &mut net);
    Ok((world, net))
}

fn set_first_timers(spec: &RunSpec, world: &mut World, net: &mut Network<Packet>) {
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
    if let Some(study) = &world.study {
        net.set_timer(timers.observer(), study.first());
    }
}

struct Builder<'a> {
    run: ValidSimulation<'a>,
    environment: &'a Environment,
    routes: &'a mut Routes,
    algorithms: Algorithms,
    applications: Applications,
}

impl Builder<'_> {
    fn flow(&mut self, index: usize, spec: &FlowSpec, session: Option<SessionNumber>) -> Result<Flow, RunError> {
        let config = tcp_config(&spec.stack);
        let sender_control = self.algorithms.controller(&spec.name, &spec.stack)?;
        let receiver_control = self.algorithms.controller(&spec.name, &spec.stack)?;
        // Host numbers: the sender of flow i is 2i, its receiver 2i + 1; packets go to the other end.
        let sender_host = 2 * index as u32;
        let sides = [self.routes.add(&spec.route, sender_host + 1), self.routes.add(&spec.return_route, sender_host)];
        self.environment.add_alternates(*self.run, index, sides, self.routes);
        Ok(Flow {
            sender: Endpoint::new_client(config.clone(), sender_control, Time::ZERO),
            receiver: Endpoint::new_server(config, receiver_control, Time::ZERO),
            workload: self.applications.build(index, spec)?,
            session,
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
/// [`RunError::Trace`] names file, place and what would be right.
pub fn check_trace(path: &str, format: &str) -> Result<(Format, Summary), RunError> {
    let wrong = |e: storage::TraceError| RunError::Trace(e.to_string());
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
