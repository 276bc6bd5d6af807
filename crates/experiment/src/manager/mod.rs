//! The manager at work on a run's network on any backend: its observations and the effects of its decisions.

mod alternate_routes;
mod metrics;
mod mitigation;
mod observed;

pub use metrics::{ManagerOutcome, Timeline};

use crate::hold_buffers;
use crate::sender_command::AddressedCommand;
use crate::validate::ValidRun;
use alternate_routes::AlternateRoute;
use link::hold_buffer;
use link::random::stream_seed;
use link::{Link, Pacers, Packet};
use mitigation::Mitigations;
use observed::{Observed, PendingMove};
use sim::{Network, RouteId, Routed, Routes};
use spec::{FlowSpec, LightpathSpec, ManagerSpec};
use te::{Decision, LightpathConfig, Manager, Place, Policy, Sampler, State, Thresholds};
use units::{Rate, Size, Span, Time};

/// Samples of the queues per interval, at equal distances. A single one would often find a queue empty that is full for
/// half the time.
const SAMPLES: u64 = 10;

/// A manager, the counters it reads and the lightpaths it commands.
pub struct Management {
    manager: Manager,
    sampler: Sampler,
    net: Observed,
    /// Set-ups and releases in progress: the time of their end.
    under_way: Vec<(Time, usize)>,
    mitigations: Mitigations,
    /// Time of the next sample of the queues.
    next_sample: Time,
    begin: Time,
}

impl Management {
    /// The manager of `run`, which begins at `begin`, over its `flows`; None when it has none.
    pub fn new(run: ValidRun<'_>, flows: &[&FlowSpec], begin: Time) -> Option<Management> {
        let spec = run.spec().manager.as_ref()?;
        let net = Observed::new(spec, run.spec(), flows);
        let manager = Manager::new(begin, policy(spec), &spec.lightpaths.iter().map(lightpath).collect::<Vec<_>>());
        let sampler = Sampler::new(spec.sampling_rate, stream_seed(run.seed, "manager/samples"));
        let next_sample = begin + Span(spec.interval_ns / SAMPLES);
        Some(Management {
            manager,
            sampler,
            net,
            under_way: vec![],
            mitigations: Mitigations::default(),
            next_sample,
            begin,
        })
    }

    /// Adds the alternate routes of flow `flow`'s data, whose first route is `route`.
    pub fn add_alternates(&self, flow: usize, route: RouteId, routes: &mut Routes) {
        for over in self.net.flows[flow].over.iter().flatten() {
            routes.add_path(route, &over.elements);
        }
    }

    /// The hold buffers at moving routers: links of the network behind those of [`crate::network::links`].
    pub fn hold_buffers<P: Packet>(&self, pacers: &mut Pacers) -> Vec<Link<P>> {
        let alternates = self.net.flows.iter().flat_map(|flow| flow.over.iter().flatten());
        hold_buffers::make(alternates.filter_map(|over| Some((over.line?, over.hold_buffer()?))), pacers)
    }

    /// Returns the next command to a sender. To be called after each [`Management::handle_timer`].
    pub fn poll_command(&mut self) -> Option<AddressedCommand> {
        self.mitigations.poll_command()
    }

    /// Returns the statistics of hold buffers for moves before their latest.
    pub fn kept_before(&self) -> &[hold_buffer::Stats] {
        self.mitigations.earlier()
    }

    /// A packet of `bytes` of flow `flow`'s data has left the network.
    #[inline]
    pub fn handle_packet(&mut self, flow: usize, bytes: u32) {
        let flow = &mut self.net.flows[flow];
        flow.packets += 1;
        flow.bytes += u64::from(bytes);
    }

    /// Returns the manager's outcome, with the flows' `names`.
    pub fn outcome(&self, names: &[&str]) -> ManagerOutcome {
        let lightpaths: Vec<_> = self.net.lightpaths.iter().map(|(name, _)| name.as_str()).collect();
        metrics::outcome(&self.manager, self.begin, names, &lightpaths, self.net.flows.len())
    }

    /// Returns the time of the next call.
    pub fn poll_timeout(&self) -> Time {
        let first = self.manager.poll_timeout().min(self.next_sample).min(self.mitigations.poll_timeout());
        self.under_way.iter().map(|&(at, _)| at).fold(first, Time::min)
    }

    /// Its time has come: samples the network and moves flows; `route` is the first route of a flow's data.
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
        // The packets held now decide the rate of their release.
        self.mitigations.report(now, manager, net);
        if now >= self.next_sample {
            self.net.sample(now, net);
            self.next_sample = now + Span((interval.0 / SAMPLES).max(1));
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
        self.mitigations.report(now, &mut self.manager, net);
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

    /// Sets the total release rate of the hold buffers that feed line `number`.
    fn set_pace<P: Packet + Routed>(&self, number: usize, rate: Rate, net: &mut Network<P>) {
        for (flow, managed) in (0u64..).zip(&self.net.flows) {
            if let Place::On(lightpath) = self.manager.place(flow) {
                let hold_buffer = managed.over[lightpath]
                    .as_ref()
                    .filter(|over| over.line == Some(number))
                    .and_then(AlternateRoute::link);
                if let Some(hold_buffer) = hold_buffer {
                    if let Some((buffer, pacers)) = net.hold_buffer_mut(hold_buffer) {
                        buffer.set_pace(rate, pacers);
                    }
                    return;
                }
            }
        }
    }

    /// Carries out the manager's decisions.
    fn act<P: Packet + Routed>(&mut self, now: Time, route: impl Fn(usize) -> Option<RouteId>, net: &mut Network<P>) {
        while let Some(decision) = self.manager.poll_decision() {
            match decision {
                Decision::SetUp { lightpath } => {
                    self.under_way.push((now + self.manager.lightpath(lightpath).set_up, lightpath));
                }
                // Giving one back takes no time that anybody waits for.
                Decision::Release { lightpath } => self.manager.handle_lightpath_down(lightpath),
                Decision::Move { flow, lightpath, plan, record: entry } => {
                    let pending = PendingMove { flow: flow as usize, lightpath, plan, entry };
                    self.mitigations.begin(now, pending, &self.net, route(pending.flow), net);
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

fn policy(spec: &ManagerSpec) -> Policy {
    let ManagerSpec {
        interval_ns,
        sampling_rate,
        flow_table_size,
        inactive_timeout_ns,
        rate_bps,
        volume_bytes,
        confidence_sigmas_e3,
        return_rate_bps,
        min_dwell_time_ns,
        lightpath_timeout_ns,
        lightpaths_max,
        max_utilization_ppm,
        offload_weight_ppm,
        congestion_threshold_ppm,
        refuse,
        observation_window_ns,
        cc_beta_ppm,
        pareto_shape_e3,
        // Those of the network that the manager acts on.
        mitigations: _,
        priorities: _,
        lightpaths: _,
    } = *spec;
    Policy {
        interval: Span(interval_ns),
        one_in: sampling_rate,
        flow_table_size,
        inactive_timeout: Span(inactive_timeout_ns),
        thresholds: Thresholds {
            rate: Rate(rate_bps),
            volume: Size(volume_bytes),
            confidence_sigmas_e3,
            return_rate: Rate(return_rate_bps),
        },
        min_dwell_time: Span(min_dwell_time_ns),
        lightpath_timeout: Span(lightpath_timeout_ns),
        lightpaths_max,
        max_utilization_ppm,
        offload_weight_ppm,
        congestion_threshold_ppm,
        refuse,
        observation_window: Span(observation_window_ns),
        cc_beta_ppm,
        pareto_shape_e3,
    }
}

fn lightpath(spec: &LightpathSpec) -> LightpathConfig {
    let LightpathSpec { name: _, route: _, capacity_bps, set_up_ns, cost_bytes } = *spec;
    LightpathConfig { capacity: Rate(capacity_bps), set_up: Span(set_up_ns), cost: Size(cost_bytes) }
}
