//! The network as the manager observes it: counters and queues of links, and the routes that its flows may take.

use super::alternate_routes::{AlternateRoute, AlternateRoutes};
use crate::routes::between;
use link::Packet;
use sim::{Network, Routed};
use spec::{FlowSpec, LightpathSpec, LinkSpec, ManagerSpec, QueueDelaySpec, QueueSpec, RunSpec};
use te::{LinkView, Paths, Plan, View};
use units::{Rate, Size, Span, Time};

/// A flow as the manager's network knows it: its routes and their hold buffers.
pub struct ManagedFlow {
    pub route: Vec<usize>,
    /// By lightpath: its data's links over it; None where it does not pass both ends.
    pub over: Vec<Option<AlternateRoute>>,
    pub return_delay: Span,
    pub packet: Size,
    pub priority: i32,
    /// Packets and bytes that left the network in the present interval.
    pub packets: u64,
    pub bytes: u64,
}

/// A decision to move.
#[derive(Clone, Copy, Debug)]
pub struct PendingMove {
    pub flow: usize,
    pub lightpath: usize,
    pub plan: Plan,
    pub entry: usize,
}

/// The source of the manager's view.
pub struct Observed {
    pub links: Vec<LinkSpec>,
    pub flows: Vec<ManagedFlow>,
    /// By link.
    pub views: Vec<LinkView>,
    pub delivered: Vec<u64>,
    /// Bytes found waiting, by link, in the samples of the present interval.
    pub waiting: Vec<u64>,
    pub samples: u64,
    /// By lightpath: whether all its links carried at the latest sample.
    pub up: Vec<bool>,
    /// By lightpath: the links that it bypasses.
    pub bypassed: Vec<Vec<usize>>,
    pub lightpaths: Vec<(String, Vec<usize>)>,
}

impl Observed {
    pub fn new(spec: &ManagerSpec, run: &RunSpec, flows: &[&FlowSpec]) -> Observed {
        let delay = |links: &[usize]| Span(links.iter().map(|&l| run.links[l].delay_ns).sum());
        let mut alternates = AlternateRoutes::new(spec, run);
        let mut over = |route: &[usize], lightpath: usize| {
            let path = &spec.lightpaths[lightpath].route;
            let (_, from, to) = between(route, path, &run.links)?;
            Some(alternates.over(route, lightpath, [&route[..from], path, &route[to + 1..]].concat(), from))
        };
        let managed: Vec<_> = flows
            .iter()
            .enumerate()
            .map(|(index, flow)| ManagedFlow {
                route: flow.route.clone(),
                over: (0..spec.lightpaths.len()).map(|lightpath| over(&flow.route, lightpath)).collect(),
                return_delay: delay(&flow.return_route),
                packet: Size(u64::from(flow.transport.mtu_bytes)),
                priority: spec.priorities.get(index).copied().unwrap_or(0),
                packets: 0,
                bytes: 0,
            })
            .collect();
        let bypassed = |path: &LightpathSpec| {
            let between = managed.iter().find_map(|flow| between(&flow.route, &path.route, &run.links));
            between.map_or(vec![], |(route, from, to)| route[from..=to].to_vec())
        };
        let view = |link: &LinkSpec| LinkView {
            capacity: Rate(link.rate_bps),
            queue_limit: queue_limit(&link.queue),
            ..LinkView::default()
        };
        Observed {
            views: run.links.iter().map(view).collect(),
            delivered: vec![0; run.links.len()],
            waiting: vec![0; run.links.len()],
            samples: 0,
            up: vec![true; spec.lightpaths.len()],
            bypassed: spec.lightpaths.iter().map(bypassed).collect(),
            lightpaths: spec.lightpaths.iter().map(|path| (path.name.clone(), path.route.clone())).collect(),
            links: run.links.clone(),
            flows: managed,
        }
    }

    /// Samples the queues of all links, and whether the lightpaths' are up.
    pub fn sample<P: Packet + Routed>(&mut self, now: Time, net: &mut Network<P>) {
        self.samples += 1;
        for (waiting, link) in self.waiting.iter_mut().zip(net.links_mut()) {
            *waiting += link.queue(now).1;
        }
        for (up, (_, route)) in self.up.iter_mut().zip(&self.lightpaths) {
            *up = route.iter().all(|&link| net.links()[link].is_up());
        }
    }

    /// Reads the counters of all links.
    pub fn read<P: Packet + Routed>(&mut self, interval: Span, net: &mut Network<P>) {
        let samples = std::mem::take(&mut self.samples).max(1);
        let counters = self.views.iter_mut().zip(&mut self.delivered).zip(&mut self.waiting);
        for (((view, before), waiting), link) in counters.zip(net.links_mut()) {
            let stats = link.stats();
            let bits_ns = u128::from(stats.delivered_bytes - *before) * 8 * u128::from(units::NS_PER_S);
            view.load = Rate((bits_ns / u128::from(interval.0.max(1))) as u64);
            view.queue = Size(std::mem::take(waiting) / samples);
            view.dropped = stats.dropped();
            *before = stats.delivered_bytes;
        }
    }

    /// The slowest of `links`, the first of several.
    fn slowest(&self, links: &[usize]) -> Option<LinkView> {
        links.iter().map(|&link| self.views[link]).min_by_key(|view| view.capacity)
    }

    fn delay(&self, links: &[usize]) -> Span {
        Span(links.iter().map(|&link| self.links[link].delay_ns).sum())
    }

    /// Time that a packet of `size` takes over `links` where nothing waits.
    fn one_way(&self, links: &[usize], size: Size) -> Span {
        let line = |&link: &usize| Rate(self.links[link].rate_bps).time_for(size);
        links.iter().map(line).fold(self.delay(links), |sum, time| sum + time)
    }

    /// The route over the lightpath of a decision to move.
    pub fn over(&self, pending: &PendingMove) -> Option<&AlternateRoute> {
        self.flows[pending.flow].over[pending.lightpath].as_ref()
    }
}

impl View for Observed {
    fn priority(&self, flow: u64) -> i32 {
        self.flows[flow as usize].priority
    }

    fn paths(&self, flow: u64, lightpath: usize) -> Option<Paths> {
        let of = &self.flows[flow as usize];
        let bypass = &self.lightpaths[lightpath].1;
        let (route, from, to) = between(&of.route, bypass, &self.links)?;
        let (over, core) = (of.over[lightpath].as_ref()?, self.slowest(&route[from..=to])?);
        let (old, new) = (self.one_way(&route[from..=to], of.packet), self.one_way(bypass, of.packet));
        let difference = Span((old + core.wait()).0.saturating_sub(new.0));
        // Load of other traffic on a line that both paths cross; a line of lightpaths only has all of its release rate.
        let load = |line: usize| {
            let shared = route[to + 1..].contains(&line);
            shared.then(|| self.views[line]).filter(|view| Some(view.capacity) == over.pace()).map(|view| view.load)
        };
        let wait = |wait: &QueueDelaySpec| Rate(wait.rate_bps).time_for(self.views[wait.link].queue);
        Some(Paths {
            ip_delay: self.delay(route),
            lightpath_delay: self.delay(&over.links),
            return_delay: of.return_delay,
            ingress: self.slowest(&route[..from]),
            core,
            egress: self.slowest(&route[to + 1..]),
            packet: of.packet,
            allowed: over.means(difference, wait, load),
        })
    }

    fn available(&self, lightpath: usize) -> bool {
        self.up[lightpath]
    }

    fn bypassed(&self, lightpath: usize) -> LinkView {
        self.slowest(&self.bypassed[lightpath]).unwrap_or_default()
    }
}

/// Returns the capacity of a queue, bytes; packets are taken to be of 1500 bytes.
fn queue_limit(queue: &QueueSpec) -> Size {
    let packets = |count: u64| count.saturating_mul(1500);
    Size(match *queue {
        QueueSpec::DropTail { limit_bytes, limit_packets } => {
            limit_bytes.or(limit_packets.map(packets)).unwrap_or(u64::MAX)
        }
        QueueSpec::Red { limit_bytes, .. } => limit_bytes,
        QueueSpec::Codel { limit_packets, .. } | QueueSpec::FqCodel { limit_packets, .. } => packets(limit_packets),
    })
}
