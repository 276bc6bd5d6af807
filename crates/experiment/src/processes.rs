//! Division of a run into logical processes, for horizons; and how long it certainly goes on.

use crate::flow::Flow;
use crate::node::Node;
use crate::packet::Packet;
use crate::routes;
use crate::side::Side;
use crate::transport::{Transport, TransportMaker};
use crate::workload::Source;
use crate::world::World;
use sim::{Groups, Network, Processes, TimerScope};
use spec::{ActionSpec, FlowSpec, RunSpec};
use std::collections::BTreeMap;
use units::{Rate, Size, Span, Time};

/// IPv4 and TCP headers without options; those of IPv6, and of UDT over UDP, are longer.
const HEADER_BYTES: u32 = 40;
/// The most that a header adds to them.
const OPTION_BYTES: u32 = 40;

/// The logical processes of `world`: each end of a flow is one, but ends that share state without delay are one
/// together. None: something looks at all packets in the order of their times.
fn processes<M: TransportMaker, N: Node<M::Transport>>(spec: &RunSpec, world: &World<M, N>) -> Option<Processes> {
    let of = &world.connections;
    if world.path_test.is_some() {
        return None;
    }
    let mut groups = Groups::new(2 * of.flows.len());
    // An end of the first flow of each node and of each stripe, and of those with a user's own control, which may have
    // variables that all flows share.
    let (mut of_node, mut of_stripe, mut of_control) = (BTreeMap::new(), BTreeMap::new(), None);
    for (index, flow) in of.flows.iter().enumerate() {
        let ends = [2 * index as u32, 2 * index as u32 + 1];
        // A stop of work that watches deliveries is at both ends, an application that sees them may answer at the other
        // end, and a node may do anything at either.
        let has_node = flow.nodes.iter().any(Option::is_some);
        let stops = flow.spec.stop_ns.is_some() && flow.workload.watches_delivery;
        if has_node || stops || !matches!(flow.workload.source, Source::Bulk { .. }) {
            groups.join(ends[0], ends[1]);
        }
        if flow.spec.transport.has_own_control() {
            groups.join(ends[0], ends[1]);
            groups.join(ends[0], *of_control.get_or_insert(ends[0]));
        }
        for node in flow.nodes.into_iter().flatten() {
            groups.join(ends[0], *of_node.entry(node.index()).or_insert(ends[0]));
        }
        if let Some(share) = flow.workload.share() {
            groups.join(ends[0], *of_stripe.entry(share.stripe).or_insert(ends[0]));
        }
    }
    let (mut of_host, ends) = groups.numbered();
    let background = world.environment.background_hops();
    let sources = background.len() as u32;
    let mut senders: Vec<(u32, u32)> = vec![];
    for (flow, of_it) in of.flows.iter().zip(of_host.chunks_exact(2)) {
        senders.extend(flow.hops.iter().copied().zip(of_it.iter().copied()));
    }
    senders.extend(background.into_iter().zip(ends..));
    // Work is done where data is delivered, or by a stop.
    let of_ends = of.flows.iter().zip(of_host.chunks_exact(2));
    let of_work = of_ends.map(|(flow, of_it)| of_it[usize::from(flow.workload.watches_delivery)]).collect();
    // A stop looks at what has been delivered.
    let is_apart = |index: usize| of_host[2 * index] != of_host[2 * index + 1];
    let stopped = (0..of.flows.len()).filter(|&index| of.flows[index].spec.stop_ns.is_some() && is_apart(index));
    let looks = stopped.map(|index| of.timers.stop(index)).collect();
    of_host.extend(ends..ends + sources);
    let timers = of.timers;
    let mut of_timer = vec![TimerScope::All; timers.count()];
    for (index, of_it) in of_host[..2 * of.flows.len()].chunks_exact(2).enumerate() {
        let mut set = |timer: u32, process: u32| of_timer[timer as usize] = TimerScope::Process(process);
        set(timers.endpoint(index, Side::Sender), of_it[0]);
        set(timers.endpoint(index, Side::Receiver), of_it[1]);
        set(timers.application(index), of_it[0]);
        set(timers.stop(index), of_it[0]);
    }
    for (timer, process) in (timers.first_background()..).zip(ends..ends + sources) {
        of_timer[timer as usize] = TimerScope::Process(process);
    }
    // Rows of nodes, of shared work and of UDT show more.
    let is_plain = |flow: &Flow<M::Transport>| flow.workload.share().is_none();
    let is_noted = world.nodes.is_empty() && !world.has_udt && of.flows.iter().all(is_plain);
    of_timer[timers.sampler() as usize] = match world.series_interval {
        Some(interval) if is_noted => TimerScope::HostSamples(interval),
        _ => TimerScope::Samples,
    };
    let windows = world.windows.is_some().then(|| timers.probe(world.study.iter().len()));
    for timer in timers.probe(0)..timers.path_test() {
        if Some(timer) != windows {
            of_timer[timer as usize] = TimerScope::AllAndEnds;
        }
    }
    let later_delays = spec.events.iter().filter_map(|event| match event.action {
        ActionSpec::Delay { link, delay_ns } => Some((link as u32, Span(delay_ns))),
        _ => None,
    });
    let later_delays = later_delays.collect();
    let packet_bytes = packet_bytes(world);
    Some(Processes { of_host, of_timer, senders, later_delays, looks, packet_bytes, of_work })
}

/// Sizes of the smallest and the largest packet, bytes.
fn packet_bytes<M: TransportMaker, N: Node<M::Transport>>(world: &World<M, N>) -> [u32; 2] {
    let sizes = world.environment.background_bytes().map(|bytes| [bytes; 2]);
    let of_flow = |flow: &Flow<_>| [HEADER_BYTES, flow.spec.transport.mtu_bytes + OPTION_BYTES];
    let all = sizes.chain(world.connections.flows.iter().map(of_flow));
    all.fold([u32::MAX, 1], |[least, most], [small, large]| [least.min(small), most.max(large)])
}

/// Least lookahead that is worth horizons, as packets of 1500 bytes on the fastest link: at 1 Gbit/s one flow took 60
/// times as long with 30 ns as single events, 4 times with 1 us and 1.5 times with 100 us.
pub const LOOKAHEAD_PACKETS: u64 = 8;

/// Prepares horizons; returns their processes, or tells why there are none.
pub fn plan_horizons<M: TransportMaker, N: Node<M::Transport>>(
    spec: &RunSpec,
    world: &World<M, N>,
    net: &mut Network<Packet>,
) -> Result<Processes, String> {
    let processes = processes(spec, world).ok_or("something looks at all packets in the order of their times")?;
    net.plan_horizons(processes.clone()).map_err(|unfit| format!("{unfit:?}"))?;
    let least = packets_on_fastest(spec, LOOKAHEAD_PACKETS);
    if let Some(lookahead) = net.lookahead().filter(|&lookahead| lookahead < least) {
        return Err(format!("a lookahead of {} ns is too short", lookahead.0));
    }
    if let Some(interval) = world.series_interval {
        net.take_samples(Time::ZERO + interval, interval);
    }
    Ok(processes)
}

/// Time that `count` packets of 1500 bytes take on the fastest link.
pub fn packets_on_fastest(spec: &RunSpec, count: u64) -> Span {
    let fastest = Rate(spec.links.iter().map(|link| link.rate_bps).max().unwrap_or(1));
    fastest.time_for(Size(1500 * count))
}

/// Returns a time before which a run that ends with its last finite work cannot end: what a flow has not sent yet still
/// has to pass the slowest link of its route.
pub fn earliest_end<M: TransportMaker, N: Node<M::Transport>>(spec: &RunSpec, world: &World<M, N>, now: Time) -> Time {
    if !spec.stop_when_done {
        return Time::NEVER;
    }
    let unfinished = world.connections.flows.iter().enumerate().filter(|(_, flow)| flow.workload.done_at.is_none());
    unfinished.map(|(index, flow)| earliest_end_of(spec, index, flow, now)).max().unwrap_or(now)
}

fn earliest_end_of<T: Transport>(spec: &RunSpec, index: usize, flow: &Flow<T>, now: Time) -> Time {
    let bytes = match flow.workload.source {
        Source::Bulk { bytes } => bytes,
        // Without end until it is stopped.
        Source::ConstantRate(_) | Source::Replicate(_) => None,
        Source::Iscsi(_) | Source::Fc(_) | Source::Fcp(_) | Source::Shared(_) => return now,
    };
    let slowest = slowest_rate(spec, index, &flow.spec);
    let begin = now.max(Time(flow.spec.start_ns));
    let ends = match bytes {
        None => Time::NEVER,
        Some(bytes) if begin > now => begin + Rate(slowest).time_for(Size(bytes)),
        Some(_) => now + Rate(slowest).time_for(Size(flow.sender.bytes_unsent() + flow.workload.backlog())),
    };
    flow.spec.stop_ns.map_or(ends, |stop| ends.min(Time(stop))).max(now)
}

/// Rate of the slowest link that data of flow `index` passes in any case, bit/s: events and the manager may move it,
/// and events may change links.
fn slowest_rate(spec: &RunSpec, index: usize, flow: &FlowSpec) -> u64 {
    let changed = |link: usize| {
        spec.events.iter().filter_map(move |event| match event.action {
            ActionSpec::Rate { link: of, rate_bps } if of == link => Some(rate_bps),
            _ => None,
        })
    };
    // A hold buffer of a move is a number behind those of links.
    let rate = |&link: &usize| spec.links.get(link).map(|of| changed(link).fold(of.rate_bps, u64::max));
    let of_route = |route: &[usize]| route.iter().filter_map(rate).min().unwrap_or(u64::MAX);
    let moved = routes::of_flow(spec, index, Side::Sender).map(|route| of_route(&route));
    let lightpaths = spec.manager.iter().flat_map(|manager| &manager.lightpaths);
    let over = lightpaths.filter_map(|lightpath| {
        let (route, from, to) = routes::between(&flow.route, &lightpath.route, &spec.links)?;
        Some(of_route(&[&route[..from], &lightpath.route, &route[to + 1..]].concat()))
    });
    moved.chain(over).fold(of_route(&flow.route), u64::max)
}
