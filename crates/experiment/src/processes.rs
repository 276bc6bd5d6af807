//! Division of a run into logical processes, for horizons; and how long it certainly goes on.

use crate::flow::Flow;
use crate::node::Node;
use crate::packet::Packet;
use crate::side::Side;
use crate::transport::{Transport, TransportMaker};
use crate::workload::Source;
use crate::world::World;
use sim::{Network, Processes, TimerScope};
use spec::{ActionSpec, RunSpec};
use std::collections::BTreeMap;
use units::{Rate, Size, Span, Time};

/// The logical processes of `world`: each end of a flow is one, but ends that share state without delay are one
/// together. None: something looks at all packets in the order of their times.
fn processes<M: TransportMaker, N: Node<M::Transport>>(spec: &RunSpec, world: &World<M, N>) -> Option<Processes> {
    let of = &world.connections;
    if of.capture.is_some() || world.path_test.is_some() || world.environment.is_managed() {
        return None;
    }
    let mut groups = Groups::new(2 * of.flows.len());
    // An end of the first flow of each node and of each stripe.
    let (mut of_node, mut of_stripe) = (BTreeMap::new(), BTreeMap::new());
    for (index, flow) in of.flows.iter().enumerate() {
        let ends = [2 * index, 2 * index + 1];
        // A stop looks at both ends, an application that sees deliveries may answer them at the other end, and a node
        // may do anything at either.
        let has_node = flow.nodes.iter().any(Option::is_some);
        if has_node || flow.spec.stop_ns.is_some() || !matches!(flow.workload.source, Source::Bulk { .. }) {
            groups.join(ends[0], ends[1]);
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
    of_timer[timers.sampler() as usize] = TimerScope::Samples;
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
    Some(Processes { of_host, of_timer, senders, later_delays: later_delays.collect() })
}

/// Least lookahead that is worth horizons, as packets of 1500 bytes on the fastest link: at 1 Gbit/s one flow took 60
/// times as long with 30 ns as single events, 4 times with 1 us and 1.5 times with 100 us.
const LOOKAHEAD_PACKETS: u64 = 8;

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
    let unfinished = world.connections.flows.iter().filter(|flow| flow.workload.done_at.is_none());
    unfinished.map(|flow| earliest_end_of(spec, flow, now)).max().unwrap_or(now)
}

fn earliest_end_of<T: Transport>(spec: &RunSpec, flow: &Flow<T>, now: Time) -> Time {
    let Source::Bulk { bytes } = flow.workload.source else { return now };
    let slowest = flow.spec.route.iter().map(|&link| spec.links[link].rate_bps).min().unwrap_or(u64::MAX);
    let begin = now.max(Time(flow.spec.start_ns));
    let ends = match bytes {
        None => Time::NEVER,
        Some(bytes) if begin > now => begin + Rate(slowest).time_for(Size(bytes)),
        Some(_) => now + Rate(slowest).time_for(Size(flow.sender.bytes_unsent() + flow.workload.backlog())),
    };
    flow.spec.stop_ns.map_or(ends, |stop| ends.min(Time(stop))).max(now)
}

/// Ends of flows in groups.
struct Groups {
    /// By end: another one of its group with a lower number, or itself.
    parents: Vec<usize>,
}

impl Groups {
    fn new(count: usize) -> Groups {
        Groups { parents: (0..count).collect() }
    }

    fn first(&self, mut of: usize) -> usize {
        while self.parents[of] != of {
            of = self.parents[of];
        }
        of
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.parents[one.max(other)] = one.min(other);
    }

    /// The number of the group of each end, and the number of groups.
    fn numbered(&self) -> (Vec<u32>, u32) {
        let mut numbers = vec![0; self.parents.len()];
        let mut count = 0;
        for end in 0..self.parents.len() {
            let first = self.first(end);
            if first == end {
                numbers[end] = count;
                count += 1;
            } else {
                numbers[end] = numbers[first];
            }
        }
        (numbers, count)
    }
}
