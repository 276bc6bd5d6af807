//! The loop: observe, detect, decide, act.

use crate::decision::{Decision, Place};
use crate::flow_key::FlowKey;
use crate::forecast::{Case, Forecast};
use crate::lightpath::{CarriedFlow, Lightpath, LightpathSample, State, Surplus};
use crate::link_view::LinkView;
use crate::mitigation::{AllowedMitigations, HoldConfig, HoldStats};
use crate::move_log::{MoveLog, MoveRecord, Observation, Reason, Totals};
use crate::plan::{plan, Plan};
use crate::policy::{LightpathConfig, Policy};
use crate::table::{rate_of, Activity, FlowTable};
use crate::view::{Paths, View};
use std::collections::{BTreeMap, VecDeque};
use units::{Rate, Size, Span, Time};

/// The forecast of a move with the best mitigation.
#[derive(Clone, Copy)]
struct Assessment {
    forecast: Forecast,
    plan: Plan,
    paths: Paths,
}

impl Assessment {
    /// The plan, where the operator allows mitigations.
    fn allowed_plan(&self) -> Option<Plan> {
        let AllowedMitigations { hold_buffer, cwnd_reduction, .. } = self.paths.allowed;
        (hold_buffer.is_some() || cwnd_reduction.is_some()).then_some(self.plan)
    }
}

/// The manager. See the crate's text for how it is driven.
pub struct Manager {
    policy: Policy,
    table: FlowTable,
    lightpaths: Vec<Lightpath>,
    /// Time at which flows returned to IP.
    decided: BTreeMap<FlowKey, Time>,
    /// Time at which a refusal of a flow was last logged.
    refused: BTreeMap<FlowKey, Time>,
    decisions: VecDeque<Decision>,
    move_log: MoveLog,
    totals: Totals,
    samples: Vec<LightpathSample>,
    next: Time,
}

impl Manager {
    /// A manager that begins at `now`, over lightpaths that are all down.
    pub fn new(now: Time, policy: Policy, lightpaths: &[LightpathConfig]) -> Manager {
        Manager {
            table: FlowTable::new(policy.flow_table_size, policy.one_in),
            lightpaths: lightpaths.iter().map(|&config| Lightpath::new(config)).collect(),
            decided: BTreeMap::new(),
            refused: BTreeMap::new(),
            decisions: VecDeque::new(),
            move_log: MoveLog::default(),
            totals: Totals::default(),
            samples: vec![],
            next: now + policy.interval,
            policy,
        }
    }

    /// Time at which the present interval ends.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    /// Counts `packets` of `flow`, with `bytes` in total: all packets where the policy samples 1 in 1, else the
    /// sampled ones.
    pub fn handle_counters(&mut self, now: Time, flow: FlowKey, packets: u64, bytes: u64) {
        match self.lightpaths.iter_mut().find_map(|l| l.flows.get_mut(&flow)) {
            Some(carried) => carried.activity.add(packets, bytes),
            None => self.table.handle_sampled(now, flow, packets, bytes),
        }
    }

    /// One packet of `flow`, of `bytes`, was sampled.
    pub fn handle_sample(&mut self, now: Time, flow: FlowKey, bytes: u64) {
        self.handle_counters(now, flow, 1, bytes);
    }

    /// The network has set `lightpath` up.
    pub fn handle_lightpath_up(&mut self, now: Time, lightpath: usize) {
        let path = &mut self.lightpaths[lightpath];
        if path.state == State::SettingUp {
            path.state = State::Up;
            path.empty_since = now;
        }
    }

    /// The network has released `lightpath`.
    pub fn handle_lightpath_down(&mut self, lightpath: usize) {
        let path = &mut self.lightpaths[lightpath];
        if path.state == State::Releasing {
            path.state = State::Down;
        }
    }

    /// `lightpath` failed, or could not be set up: its flows return to IP at once, whatever their dwell time.
    pub fn handle_lightpath_failed(&mut self, now: Time, lightpath: usize) {
        if self.lightpaths[lightpath].state == State::Down {
            return;
        }
        self.totals.failures += 1;
        for flow in self.flows_on(lightpath) {
            self.return_to_ip(now, flow, lightpath, Reason::Failed);
        }
        let path = &mut self.lightpaths[lightpath];
        path.waiting.clear();
        path.state = State::Down;
        self.totals.wasted_set_ups += u64::from(!path.used);
    }

    /// Counters of the hold buffer for the move at index `record` of the move log.
    pub fn handle_hold_stats(&mut self, record: usize, stats: HoldStats) {
        self.move_log.record_mut(record).hold_stats = Some(stats);
    }

    /// An interval ends: observes the network and decides.
    pub fn handle_interval(&mut self, now: Time, view: &impl View) {
        self.next = now + self.policy.interval;
        self.observe(now, view);
        let stay = self.policy.min_dwell_time;
        self.decided.retain(|_, &mut at| now.since(at) < stay);
        self.refused.retain(|_, &mut at| now.since(at) < stay);
        for lightpath in 0..self.lightpaths.len() {
            self.return_slow_flows(now, lightpath);
        }
        for lightpath in 0..self.lightpaths.len() {
            if self.lightpaths[lightpath].state == State::Up {
                for flow in std::mem::take(&mut self.lightpaths[lightpath].waiting) {
                    if self.is_elephant(flow) {
                        self.consider(now, flow, view);
                    }
                }
            }
        }
        for flow in self.candidates(view) {
            self.consider(now, flow, view);
        }
        for lightpath in 0..self.lightpaths.len() {
            self.release_idle(now, lightpath);
        }
        self.set_pacing_rates(now, view);
    }

    /// The next decision, in order.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The path of `flow`.
    pub fn place(&self, flow: FlowKey) -> Place {
        for (index, path) in self.lightpaths.iter().enumerate() {
            if path.flows.contains_key(&flow) {
                return Place::On(index);
            }
            if path.waiting.contains(&flow) {
                return Place::Waiting(index);
            }
        }
        Place::Ip
    }

    /// Time between two decisions.
    pub fn interval(&self) -> Span {
        self.policy.interval
    }

    /// Configuration of `lightpath`.
    pub fn lightpath(&self, lightpath: usize) -> &LightpathConfig {
        &self.lightpaths[lightpath].config
    }

    /// State of `lightpath`.
    pub fn state(&self, lightpath: usize) -> State {
        self.lightpaths[lightpath].state
    }

    /// Rate of the flows on `lightpath`, observed or still expected.
    pub fn reserved(&self, now: Time, lightpath: usize) -> Rate {
        self.lightpaths[lightpath].reserved(now, self.policy.interval, &[])
    }

    /// The move log.
    pub fn move_log(&self) -> &MoveLog {
        &self.move_log
    }

    /// Counts so far; offloaded bytes are those observed.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The flow table.
    pub fn table(&self) -> &FlowTable {
        &self.table
    }

    /// A sample per lightpath and interval so far.
    pub fn samples(&self) -> &[LightpathSample] {
        &self.samples
    }

    /// Mean load and mean wait of the IP path that `lightpath` bypasses, over the intervals in which it was empty and
    /// over those in which it carried flows; None where there were none.
    pub fn bypassed(&self, lightpath: usize) -> [Option<(Rate, Span)>; 2] {
        let path = &self.lightpaths[lightpath];
        [path.while_empty, path.while_carrying].map(|sum| sum.load().zip(sum.wait()))
    }

    fn observe(&mut self, now: Time, view: &impl View) {
        let (interval, one_in) = (self.policy.interval, self.policy.one_in.max(1));
        self.table.handle_interval(now, interval, self.policy.inactive_timeout);
        for (index, path) in self.lightpaths.iter_mut().enumerate() {
            let ip = view.bypassed(index);
            if path.flows.is_empty() { &mut path.while_empty } else { &mut path.while_carrying }.add(&ip);
            for carried in path.flows.values_mut() {
                carried.activity.close(now, interval, one_in);
                let bytes = carried.activity.latest().bytes;
                self.totals.offloaded.0 += bytes;
                let worth = if ip.load_ppm() >= u64::from(self.policy.congestion_threshold_ppm) {
                    1_000_000
                } else {
                    u64::from(self.policy.offload_weight_ppm)
                };
                let record = self.move_log.record_mut(carried.record);
                record.offloaded.0 += bytes;
                // The activity began with the move.
                record.offloaded_error = Size(carried.activity.volume(one_in).standard_error);
                record.relief.0 += (u128::from(bytes) * u128::from(worth) / 1_000_000) as u64;
                carried.surplus.add(bytes, record.before.rate.data_in(interval).0);
            }
            let (state, flows, carried) = (path.state, path.flows.len(), path.carried(interval));
            self.samples.push(LightpathSample { time: now, lightpath: index, state, flows, carried, ip });
        }
        let (table, lightpaths) = (&self.table, &self.lightpaths);
        self.move_log.handle_interval(now, interval, |record| {
            let on = lightpaths[record.lightpath].flows.get(&record.flow).map(|c| &c.activity);
            let activity = on.or_else(|| table.get(record.flow))?;
            let egress = view.paths(record.flow, record.lightpath).and_then(|paths| paths.egress);
            let (latest, ip) = (activity.latest(), view.bypassed(record.lightpath));
            Some((rate_of(latest.bytes, interval), rate_of(latest.standard_error, interval), ip, egress))
        });
        for carried in self.lightpaths.iter().flat_map(|path| path.flows.values()) {
            let record = self.move_log.record_mut(carried.record);
            record.gain = record.gained(carried.surplus.confirmed());
        }
    }

    fn is_elephant(&self, flow: FlowKey) -> bool {
        self.table.is_elephant(flow, self.policy.interval, &self.policy.thresholds)
    }

    /// Elephants on IP that may move: the highest priority first, then the fastest, then by key.
    fn candidates(&self, view: &impl View) -> Vec<FlowKey> {
        let free = |flow| !self.decided.contains_key(&flow) && self.place(flow) == Place::Ip && self.is_elephant(flow);
        let mut found: Vec<_> = self
            .table
            .flows()
            .filter(|&(flow, _)| free(flow))
            .map(|(flow, activity)| {
                (std::cmp::Reverse(view.priority(flow)), std::cmp::Reverse(activity.latest().bytes), flow)
            })
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, flow)| flow).collect()
    }

    /// Moves `flow`, refuses to, or requests a lightpath; does nothing where no lightpath fits.
    fn consider(&mut self, now: Time, flow: FlowKey, view: &impl View) {
        let Some(activity) = self.table.get(flow) else { return };
        let (rate, volume) = (activity.mean_rate(), activity.volume(self.policy.one_in));
        let busy = self.lightpaths.iter().filter(|p| p.state != State::Down).count();
        // Lightpaths that are up first, then those in set-up, then those that may be set up; each in the operator's
        // order.
        let mut refused = None;
        for wanted in [State::Up, State::SettingUp, State::Down] {
            for lightpath in 0..self.lightpaths.len() {
                let path = &self.lightpaths[lightpath];
                let may_set_up = busy < self.policy.lightpaths_max && view.available(lightpath);
                if path.state != wanted || wanted == State::Down && !may_set_up {
                    continue;
                }
                let Some(paths) = self.paths(now, flow, lightpath, rate, view) else { continue };
                let alone = path.flows.is_empty() && path.waiting.is_empty();
                let room = if wanted == State::Up || alone {
                    path.room(now, &self.policy, &[])
                } else {
                    self.unreserved(now, path)
                };
                // Bytes sent during the set-up do not go over the lightpath.
                let wait = if wanted == State::Up { Span::ZERO } else { path.config.set_up };
                let rest = self.policy.expected_rest(Size(volume.bytes));
                let remaining = Size(rest.0.saturating_sub(rate.data_in(wait).0));
                let taken = path.buffered(now);
                let case = Case { rate, remaining, room, lightpath_cost: path.remaining_cost(), paths: &paths };
                let (plan, assessment) = plan(&case, &self.policy, taken);
                if !alone && room < rate {
                    continue;
                }
                if self.policy.refuse && assessment.cost >= assessment.gain {
                    // No gain yet means too early, not refused: the expected rest of a flow grows with its volume.
                    if assessment.gain > Size(0) {
                        refused.get_or_insert((lightpath, Assessment { forecast: assessment, plan, paths }));
                    }
                    continue;
                }
                match wanted {
                    State::Up => {
                        self.move_to(now, flow, lightpath, Assessment { forecast: assessment, plan, paths }, view)
                    }
                    State::SettingUp => self.lightpaths[lightpath].waiting.push(flow),
                    _ => self.set_up(lightpath, flow),
                }
                return;
            }
        }
        match refused {
            Some((lightpath, assessment)) => self.refuse(now, flow, lightpath, assessment),
            None => self.preempt(now, flow, view),
        }
    }

    /// Rate left on a lightpath in set-up beside the flows that wait for it.
    fn unreserved(&self, now: Time, path: &Lightpath) -> Rate {
        let of = |&flow: &FlowKey| self.table.get(flow).map_or(0, |a| a.mean_rate().0);
        let given = u128::from(path.config.capacity.0) * u128::from(self.policy.max_utilization_ppm) / 1_000_000;
        let taken = path.reserved(now, self.policy.interval, &[]).0 + path.waiting.iter().map(of).sum::<u64>();
        Rate((given as u64).saturating_sub(taken))
    }

    fn set_up(&mut self, lightpath: usize, flow: FlowKey) {
        let path = &mut self.lightpaths[lightpath];
        path.state = State::SettingUp;
        path.used = false;
        path.waiting.push(flow);
        self.totals.set_ups += 1;
        self.decisions.push_back(Decision::SetUp { lightpath });
    }

    fn refuse(&mut self, now: Time, flow: FlowKey, lightpath: usize, assessment: Assessment) {
        // Assessed in every interval, since the expected rest of the flow grows; logged once per dwell time.
        if self.refused.contains_key(&flow) {
            return;
        }
        self.refused.insert(flow, now);
        self.totals.refusals += 1;
        let before = self.observe_flow(flow, lightpath);
        let mut record = MoveRecord::new(now, flow, lightpath, Reason::Refused, Some(assessment.forecast), before);
        record.plan = assessment.allowed_plan();
        self.move_log.add(record, now, None);
    }

    /// Returns flows of lower priority to IP, after their minimum dwell time, where that makes room for `flow`.
    fn preempt(&mut self, now: Time, flow: FlowKey, view: &impl View) {
        let priority = view.priority(flow);
        let Some(rate) = self.table.get(flow).map(Activity::mean_rate) else { return };
        for lightpath in 0..self.lightpaths.len() {
            let path = &self.lightpaths[lightpath];
            if path.state != State::Up || path.flows.is_empty() {
                continue;
            }
            let Some(paths) = self.paths(now, flow, lightpath, rate, view) else { continue };
            let mut lower: Vec<_> = path
                .flows
                .iter()
                .filter(|(_, c)| c.priority < priority && now.since(c.since) >= self.policy.min_dwell_time)
                .map(|(&key, c)| (c.priority, c.activity.mean_rate(), key))
                .collect();
            // The lowest priority goes first, of equals the slowest.
            lower.sort_unstable();
            let (mut room, mut going) = (path.room(now, &self.policy, &[]), vec![]);
            for (_, _, key) in lower {
                if room >= rate {
                    break;
                }
                going.push(key);
                room = path.room(now, &self.policy, &going);
            }
            let enough = room >= rate || going.len() == path.flows.len();
            let volume = Size(self.table.get(flow).map_or(0, |a| a.volume(self.policy.one_in).bytes));
            let taken = path.buffered(now);
            let case = Case {
                rate,
                remaining: self.policy.expected_rest(volume),
                room,
                lightpath_cost: Size(0),
                paths: &paths,
            };
            let (plan, assessment) = plan(&case, &self.policy, taken);
            if !enough || self.policy.refuse && assessment.cost >= assessment.gain {
                continue;
            }
            for key in going {
                self.totals.preemptions += 1;
                self.return_to_ip(now, key, lightpath, Reason::Preempted);
            }
            self.move_to(now, flow, lightpath, Assessment { forecast: assessment, plan, paths }, view);
            return;
        }
    }

    /// Moves `flow` to `lightpath`.
    fn move_to(&mut self, now: Time, flow: FlowKey, lightpath: usize, assessment: Assessment, view: &impl View) {
        let before = self.observe_flow(flow, lightpath);
        let Assessment { forecast, plan, paths } = assessment;
        let mut record = MoveRecord::new(now, flow, lightpath, Reason::Elephant, Some(forecast), before);
        record.plan = assessment.allowed_plan();
        let index = self.move_log.add(record, now + self.policy.observation_window, paths.egress);
        let path = &mut self.lightpaths[lightpath];
        let hold = paths.allowed.hold_buffer.filter(|_| plan.mitigation.holds());
        let empty_at = |hold: HoldConfig| hold.empty_at(now, before.rate);
        let carried = CarriedFlow {
            activity: Activity::new(now),
            since: now,
            priority: view.priority(flow),
            expected: Rate(forecast.rate_after.0.min(path.config.capacity.0)),
            held_bytes: plan.buffer,
            held_until: hold.map_or(now, empty_at),
            pacer: hold.map(|hold| hold.pacing.pacer),
            surplus: Surplus::default(),
            before: before.rate,
            record: index,
        };
        path.flows.insert(flow, carried);
        path.used = true;
        self.table.forget(flow);
        self.totals.moves += 1;
        self.decisions.push_back(Decision::Move { flow, lightpath, plan, record: index });
    }

    /// Moves `flow` back to IP.
    fn return_to_ip(&mut self, now: Time, flow: FlowKey, lightpath: usize, reason: Reason) {
        let before = self.observe_flow(flow, lightpath);
        let path = &mut self.lightpaths[lightpath];
        let Some(carried) = path.flows.remove(&flow) else { return };
        if path.flows.is_empty() {
            path.empty_since = now;
        }
        let there = self.move_log.record_mut(carried.record);
        there.left_at = Some(now);
        self.totals.wasted_moves += u64::from(there.offloaded == Size(0));
        self.move_log.add(
            MoveRecord::new(now, flow, lightpath, reason, None, before),
            now + self.policy.observation_window,
            None,
        );
        self.decided.insert(flow, now);
        self.totals.returns += 1;
        self.decisions.push_back(Decision::Return { flow, lightpath });
    }

    /// Rate of `flow` and load of the bypassed IP path before now.
    fn observe_flow(&self, flow: FlowKey, lightpath: usize) -> Observation {
        let path = &self.lightpaths[lightpath];
        let activity = path.flows.get(&flow).map(|c| &c.activity).or_else(|| self.table.get(flow));
        let samples = self.samples.iter().rev().filter(|row| row.lightpath == lightpath);
        // As many intervals as in the flow's mean rate.
        let recent: Vec<_> = samples.take(4).map(|row| row.ip).collect();
        let mean = |of: fn(&LinkView) -> u64| {
            (recent.iter().map(|link| u128::from(of(link))).sum::<u128>() / recent.len().max(1) as u128) as u64
        };
        Observation {
            rate: activity.map_or(Rate(0), Activity::mean_rate),
            rate_error: activity.map_or(Rate(0), Activity::mean_rate_error),
            ip_load: Rate(mean(|link| link.load.0)),
            ip_wait: Span(mean(|link| link.wait().0)),
        }
    }

    fn flows_on(&self, lightpath: usize) -> Vec<FlowKey> {
        self.lightpaths[lightpath].flows.keys().copied().collect()
    }

    fn return_slow_flows(&mut self, now: Time, lightpath: usize) {
        for flow in self.flows_on(lightpath) {
            let carried = &self.lightpaths[lightpath].flows[&flow];
            if now.since(carried.since) < self.policy.min_dwell_time {
                continue;
            }
            let reason = if now.since(carried.activity.last_seen()) >= self.policy.inactive_timeout {
                Reason::Ended
            } else if carried.activity.mean_rate() < self.policy.thresholds.return_rate {
                Reason::Slow
            } else {
                continue;
            };
            self.return_to_ip(now, flow, lightpath, reason);
        }
    }

    fn release_idle(&mut self, now: Time, lightpath: usize) {
        let path = &mut self.lightpaths[lightpath];
        let idle = path.state == State::Up && path.flows.is_empty() && path.waiting.is_empty();
        if idle && now.since(path.empty_since) >= self.policy.lightpath_timeout {
            path.state = State::Releasing;
            self.totals.wasted_set_ups += u64::from(!path.used);
            self.decisions.push_back(Decision::Release { lightpath });
        }
    }
}

mod pacing;
#[cfg(test)]
mod tests;
