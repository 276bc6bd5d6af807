//! The manager at work on a run's network, whichever ground carries the packets: what it sees, and what its decisions do.

mod mitigated;
mod told;

pub use mitigated::Word;
pub use told::{ManagerOutcome, Timeline};

use crate::error::LabError;
use crate::gates;
use crate::network::check_chain;
use crate::spec::{FlowSpec, LinkSpec, ManagerSpec, QueueDelaySpec, QueueSpec, RunSpec};
use link::hold_buffer::Stats as Kept;
use link::random::stream_seed;
use link::{Link, Pacers, Packet};
use mitigated::{Gates, Going, Mitigations, Over};
use sim::{Network, RouteId, Routed, Routes};
use te::{Decision, LightpathConfig, LinkView, Manager, Paths, Place, Policy, Sampler, State, Thresholds, View};
use units::{Rate, Size, Span, Time};

/// A flow as the manager's network knows it: its ways and what is on them.
struct Managed {
    route: Vec<usize>,
    /// By lightpath: its data's links over it; None where it does not pass both ends.
    over: Vec<Option<Over>>,
    return_delay: Span,
    packet: Size,
    priority: i32,
    /// Packets and bytes that left the network in the present interval.
    packets: u64,
    bytes: u64,
}

/// Looks at the queues per interval, at equal distances: one would often find empty what is full for half the time.
const LOOKS: u64 = 10;

/// A manager, the counters it reads and the lightpaths it commands.
pub struct Management {
    manager: Manager,
    sampler: Sampler,
    net: Observed,
    /// Set-ups and releases that are under way: when they are done.
    under_way: Vec<(Time, usize)>,
    mitigations: Mitigations,
    /// When the queues are looked at next.
    look: Time,
    begin: Time,
}

/// What the manager's view is made of.
struct Observed {
    links: Vec<LinkSpec>,
    flows: Vec<Managed>,
    /// By link.
    views: Vec<LinkView>,
    delivered: Vec<u64>,
    /// Bytes found waiting, by link, in the looks of the present interval.
    waiting: Vec<u64>,
    looks: u64,
    /// By lightpath: whether all its links carried at the latest look.
    up: Vec<bool>,
    /// By lightpath: the links that it bypasses.
    bypassed: Vec<Vec<usize>>,
    lightpaths: Vec<(String, Vec<usize>)>,
}

impl Management {
    /// The manager of `run`, which begins at `begin`, over its `flows`; None when it has none.
    ///
    /// # Errors
    /// [`LabError::Spec`] names the lightpath or key and what is wrong with it.
    pub fn new(run: &RunSpec, flows: &[&FlowSpec], begin: Time) -> Result<Option<Management>, LabError> {
        let Some(spec) = &run.manager else { return Ok(None) };
        check(spec, run)?;
        let net = Observed::new(spec, run, flows);
        for (lightpath, bypassed) in spec.lightpaths.iter().zip(&net.bypassed) {
            if bypassed.is_empty() {
                let name = &lightpath.name;
                return Err(LabError::Spec(format!("lightpath {name}: no flow passes the routers that it joins")));
            }
        }
        let manager = Manager::new(begin, policy(spec), &spec.lightpaths.iter().map(lightpath).collect::<Vec<_>>());
        let sampler = Sampler::new(spec.sampling_rate, stream_seed(run.seed, "manager/samples"));
        let look = begin + Span(spec.interval_ns / LOOKS);
        Ok(Some(Management {
            manager,
            sampler,
            net,
            under_way: vec![],
            mitigations: Mitigations::default(),
            look,
            begin,
        }))
    }

    /// Makes the ways known that data of flow `flow`, whose first is `route`, may come to take.
    pub fn add_ways(&self, flow: usize, route: RouteId, routes: &mut Routes) {
        for over in self.net.flows[flow].over.iter().flatten() {
            routes.add_path(route, &over.way);
        }
    }

    /// The gates at moving routers: links of the network behind those of [`crate::network::links`].
    pub fn gates<P: Packet>(&self, pacers: &mut Pacers) -> Vec<Link<P>> {
        let ways = self.net.flows.iter().flat_map(|flow| flow.over.iter().flatten());
        gates::make(ways.filter_map(|over| Some((over.line?, over.gate()?))), pacers)
    }

    /// What senders have to be told, after each [`Management::handle_timer`].
    pub fn poll_word(&mut self) -> Option<Word> {
        self.mitigations.poll_word()
    }

    /// What gates have kept back for moves before their latest, which [`crate::gates_of`] tells.
    pub fn kept_before(&self) -> &[Kept] {
        self.mitigations.earlier()
    }

    /// A packet of `bytes` of flow `flow`'s data has left the network.
    #[inline]
    pub fn handle_packet(&mut self, flow: usize, bytes: u32) {
        let flow = &mut self.net.flows[flow];
        flow.packets += 1;
        flow.bytes += u64::from(bytes);
    }

    /// When it wants to be called.
    pub fn poll_timeout(&self) -> Time {
        let first = self.manager.poll_timeout().min(self.look).min(self.mitigations.poll_timeout());
        self.under_way.iter().map(|&(at, _)| at).fold(first, Time::min)
    }

    /// Its time has come: looks at the network and moves flows; `route` is the first route of a flow's data.
    pub fn handle_timer<P: Packet + Routed>(
        &mut self,
        now: Time,
        route: impl Fn(usize) -> Option<RouteId>,
        net: &mut Network<P>,
    ) {
        let manager = &mut self.manager;
        self.under_way.retain(|&(at, lightpath)| {
            if at <= now && manager.state(lightpath) == State::SettingUp {
                manager.handle_lightpath_up(now, lightpath);
            } else if at <= now {
                manager.handle_lightpath_down(lightpath);
            }
            at > now
        });
        let interval = manager.interval();
        // What is kept back now decides how fast it is let go.
        self.mitigations.tell(now, manager, net);
        if now >= self.look {
            self.net.look(now, net);
            self.look = now + Span((interval.0 / LOOKS).max(1));
            for lightpath in (0..self.net.lightpaths.len()).filter(|&path| !self.net.up[path]) {
                manager.handle_lightpath_failed(now, lightpath);
                self.under_way.retain(|&(_, of)| of != lightpath);
            }
        }
        if now >= manager.poll_timeout() {
            self.observe(now, interval, net);
        }
        self.act(now, &route, net);
        self.mitigations.handle_timer(now, &self.net, route, net);
        self.mitigations.tell(now, &mut self.manager, net);
    }

    /// An interval ends.
    fn observe<P: Packet + Routed>(&mut self, now: Time, interval: Span, net: &mut Network<P>) {
        let manager = &mut self.manager;
        self.net.read(interval, net);
        for (key, flow) in (0u64..).zip(&mut self.net.flows) {
            let taken = self.sampler.handle_packets(flow.packets);
            // Samples are taken to be of the interval's mean size.
            let bytes = u128::from(flow.bytes) * u128::from(taken) / u128::from(flow.packets.max(1));
            manager.handle_counters(now, key, taken, bytes as u64);
            (flow.packets, flow.bytes) = (0, 0);
        }
        manager.handle_interval(now, &self.net);
    }

    /// What is kept back for lines of `number` is let go at `rate` altogether.
    fn set_pace<P: Packet + Routed>(&self, number: usize, rate: Rate, net: &mut Network<P>) {
        for (flow, managed) in (0u64..).zip(&self.net.flows) {
            if let Place::On(lightpath) = self.manager.place(flow) {
                let gate =
                    managed.over[lightpath].as_ref().filter(|over| over.line == Some(number)).and_then(Over::link);
                if let Some(gate) = gate {
                    if let Some((buffer, pacers)) = net.hold_buffer_mut(gate) {
                        buffer.set_pace(rate, pacers);
                    }
                    return;
                }
            }
        }
    }

    /// Does what the manager decided.
    fn act<P: Packet + Routed>(&mut self, now: Time, route: impl Fn(usize) -> Option<RouteId>, net: &mut Network<P>) {
        while let Some(decision) = self.manager.poll_decision() {
            match decision {
                Decision::SetUp { lightpath } => {
                    self.under_way.push((now + self.manager.lightpath(lightpath).set_up, lightpath));
                }
                // Giving one back takes no time that anybody waits for.
                Decision::Release { lightpath } => self.manager.handle_lightpath_down(lightpath),
                Decision::Move { flow, lightpath, plan, record: entry } => {
                    let going = Going { flow: flow as usize, lightpath, plan, entry };
                    self.mitigations.begin(now, going, &self.net, route(going.flow), net);
                }
                Decision::Pace { pacer: number, rate } => self.set_pace(number, rate, net),
                Decision::Return { flow, .. } => {
                    self.mitigations.forget(flow as usize);
                    if let Some(id) = route(flow as usize) {
                        net.set_path(id, &self.net.flows[flow as usize].route);
                    }
                }
            }
        }
    }
}

impl Observed {
    fn new(spec: &ManagerSpec, run: &RunSpec, flows: &[&FlowSpec]) -> Observed {
        let delay = |links: &[usize]| Span(links.iter().map(|&l| run.links[l].delay_ns).sum());
        let mut gates = Gates::new(spec, run);
        let mut over = |route: &[usize], lightpath: usize| {
            let path = &spec.lightpaths[lightpath].route;
            let (_, from, to) = between(route, path, &run.links)?;
            Some(gates.over(route, lightpath, [&route[..from], path, &route[to + 1..]].concat(), from))
        };
        let managed: Vec<_> = flows
            .iter()
            .enumerate()
            .map(|(index, flow)| Managed {
                route: flow.route.clone(),
                over: (0..spec.lightpaths.len()).map(|lightpath| over(&flow.route, lightpath)).collect(),
                return_delay: delay(&flow.return_route),
                packet: Size(u64::from(flow.transport.mtu_bytes)),
                priority: spec.priorities.get(index).copied().unwrap_or(0),
                packets: 0,
                bytes: 0,
            })
            .collect();
        let bypassed = |path: &crate::spec::LightpathSpec| {
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
            looks: 0,
            up: vec![true; spec.lightpaths.len()],
            bypassed: spec.lightpaths.iter().map(bypassed).collect(),
            lightpaths: spec.lightpaths.iter().map(|path| (path.name.clone(), path.route.clone())).collect(),
            links: run.links.clone(),
            flows: managed,
        }
    }

    /// Looks at the queues of all links, and whether the lightpaths' are up.
    fn look<P: Packet + Routed>(&mut self, now: Time, net: &mut Network<P>) {
        self.looks += 1;
        for (waiting, link) in self.waiting.iter_mut().zip(net.links_mut()) {
            *waiting += link.queue(now).1;
        }
        for (up, (_, route)) in self.up.iter_mut().zip(&self.lightpaths) {
            *up = route.iter().all(|&link| net.links()[link].is_up());
        }
    }

    /// Reads the counters of all links.
    fn read<P: Packet + Routed>(&mut self, interval: Span, net: &mut Network<P>) {
        let looks = std::mem::take(&mut self.looks).max(1);
        let counters = self.views.iter_mut().zip(&mut self.delivered).zip(&mut self.waiting);
        for (((view, before), waiting), link) in counters.zip(net.links_mut()) {
            let stats = link.stats();
            let bits_ns = u128::from(stats.delivered_bytes - *before) * 8 * u128::from(units::NS_PER_S);
            view.load = Rate((bits_ns / u128::from(interval.0.max(1))) as u64);
            view.queue = Size(std::mem::take(waiting) / looks);
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

    /// The way over the lightpath of a decision to move.
    fn over(&self, going: &Going) -> Option<&Over> {
        self.flows[going.flow].over[going.lightpath].as_ref()
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
        // What others leave of a line that both ways lead over; one that only lightpaths lead over has all that is let go for it.
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

/// `route` with its first and last link between the routers that `lightpath` joins.
fn between<'a>(route: &'a [usize], lightpath: &[usize], links: &[LinkSpec]) -> Option<(&'a [usize], usize, usize)> {
    let (a, b) = (links[lightpath[0]].from, links[lightpath[lightpath.len() - 1]].to);
    let from = route.iter().position(|&link| links[link].from == a)?;
    let to = route.iter().position(|&link| links[link].to == b)?;
    (from <= to).then_some((route, from, to))
}

/// What fits into a queue; packets are taken to be of 1500 bytes.
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

fn check(spec: &ManagerSpec, run: &RunSpec) -> Result<(), LabError> {
    let wrong = |text: String| Err(LabError::Spec(text));
    if spec.interval_ns == 0 || spec.lightpaths.is_empty() {
        return wrong("manager: an interval above zero and at least one lightpath".into());
    }
    if spec.priorities.len() != run.flows.len() {
        let (given, flows) = (spec.priorities.len(), run.flows.len());
        return wrong(format!("manager: priorities: {given} for {flows} flows"));
    }
    for path in &spec.lightpaths {
        check_chain(&format!("lightpath {}", path.name), "route", &path.route, &run.links)?;
        if path.capacity_bps == 0 {
            return wrong(format!("lightpath {}: capacity = 0: above zero", path.name));
        }
    }
    for of in &spec.mitigations {
        let count = spec.lightpaths.len();
        if of.lightpath >= count {
            return wrong(format!(
                "manager: mitigations: lightpath {} does not exist, there are {count}",
                of.lightpath
            ));
        }
        if let Some(problem) = of.mitigation.hold_buffer.as_ref().and_then(|gate| gates::problem(gate, &run.links)) {
            return wrong(format!("manager: mitigations: {problem}"));
        }
        if let Some(link) = of.route.iter().copied().find(|&link| link >= run.links.len()) {
            return wrong(format!("manager: mitigations: link {link} does not exist, there are {}", run.links.len()));
        }
    }
    if spec.pareto_shape_e3 <= 1000 {
        return wrong(format!("manager: tail = {}: above 1", f64::from(spec.pareto_shape_e3) / 1e3));
    }
    Ok(())
}

fn policy(spec: &ManagerSpec) -> Policy {
    Policy {
        interval: Span(spec.interval_ns),
        one_in: spec.sampling_rate,
        flow_table_size: spec.flow_table_size,
        inactive_timeout: Span(spec.inactive_timeout_ns),
        thresholds: Thresholds {
            rate: Rate(spec.rate_bps),
            volume: Size(spec.volume_bytes),
            confidence_sigmas_e3: spec.confidence_sigmas_e3,
            return_rate: Rate(spec.return_rate_bps),
        },
        min_dwell_time: Span(spec.min_dwell_time_ns),
        lightpath_timeout: Span(spec.lightpath_timeout_ns),
        lightpaths_max: spec.lightpaths_max,
        max_utilization_ppm: spec.max_utilization_ppm,
        offload_weight_ppm: spec.offload_weight_ppm,
        congestion_threshold_ppm: spec.congestion_threshold_ppm,
        refuse: spec.refuse,
        observation_window: Span(spec.observation_window_ns),
        cc_beta_ppm: spec.cc_beta_ppm,
        pareto_shape_e3: spec.pareto_shape_e3,
    }
}

fn lightpath(spec: &crate::spec::LightpathSpec) -> LightpathConfig {
    LightpathConfig { capacity: Rate(spec.capacity_bps), set_up: Span(spec.set_up_ns), cost: Size(spec.cost_bytes) }
}
