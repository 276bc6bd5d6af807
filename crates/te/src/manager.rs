//! The loop: observe, detect, decide, act.

use crate::decision::{Decision, Place};
use crate::forecast::{Case, Forecast};
use crate::ledger::{Entry, Ledger, Reason, Seen, Totals};
use crate::lightpath::{Ahead, Carried, Lightpath, Row, State};
use crate::mitigation::{plan, Held, Keeping, Means, Plan};
use crate::policy::{LightpathConfig, Policy};
use crate::table::{rate_of, Activity, FlowTable};
use crate::view::{LinkView, View, Ways};
use crate::FlowKey;
use std::collections::{BTreeMap, VecDeque};
use units::{Rate, Size, Span, Time};

/// What is thought of a move.
#[derive(Clone, Copy)]
struct Thought {
    forecast: Forecast,
    plan: Plan,
    ways: Ways,
}

impl Thought {
    /// The plan, where the operator allows mitigations.
    fn mitigated(&self) -> Option<Plan> {
        let Means { hold, trim, .. } = self.ways.means;
        (hold.is_some() || trim.is_some()).then_some(self.plan)
    }
}

/// The manager. See the crate's text for how it is driven.
pub struct Manager {
    policy: Policy,
    table: FlowTable,
    lightpaths: Vec<Lightpath>,
    /// When flows that are back on IP were moved there.
    decided: BTreeMap<FlowKey, Time>,
    /// When a refusal was last written down.
    refused: BTreeMap<FlowKey, Time>,
    decisions: VecDeque<Decision>,
    ledger: Ledger,
    totals: Totals,
    rows: Vec<Row>,
    next: Time,
}

impl Manager {
    /// A manager that begins at `now`, over lightpaths that are all down.
    pub fn new(now: Time, policy: Policy, lightpaths: &[LightpathConfig]) -> Manager {
        Manager {
            table: FlowTable::new(policy.memory, policy.one_in),
            lightpaths: lightpaths.iter().map(|&config| Lightpath::new(config)).collect(),
            decided: BTreeMap::new(),
            refused: BTreeMap::new(),
            decisions: VecDeque::new(),
            ledger: Ledger::default(),
            totals: Totals::default(),
            rows: vec![],
            next: now + policy.interval,
            policy,
        }
    }

    /// When the present interval ends.
    pub fn poll_timeout(&self) -> Time {
        self.next
    }

    /// Of `flow`, `packets` were seen, of `bytes` altogether: all of them where the policy samples 1 in 1, else those sampled.
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

    /// The network has given `lightpath` back.
    pub fn handle_lightpath_down(&mut self, lightpath: usize) {
        let path = &mut self.lightpaths[lightpath];
        if path.state == State::Releasing {
            path.state = State::Down;
        }
    }

    /// `lightpath` broke, or could not be set up: what it carried goes back at once, whenever it came.
    pub fn handle_lightpath_failed(&mut self, now: Time, lightpath: usize) {
        if self.lightpaths[lightpath].state == State::Down {
            return;
        }
        self.totals.failures += 1;
        for flow in self.flows_on(lightpath) {
            self.give_back(now, flow, lightpath, Reason::Failed);
        }
        let path = &mut self.lightpaths[lightpath];
        path.waiting.clear();
        path.state = State::Down;
        self.totals.wasted_set_ups += u64::from(!path.used);
    }

    /// What the moving router has kept back so far for the move that stands at `entry` of the ledger.
    pub fn handle_held(&mut self, entry: usize, held: Held) {
        self.ledger.entry(entry).held = Some(held);
    }

    /// An interval ends: looks at everything and decides.
    pub fn handle_interval(&mut self, now: Time, view: &impl View) {
        self.next = now + self.policy.interval;
        self.observe(now, view);
        let stay = self.policy.minimum_stay;
        self.decided.retain(|_, &mut at| now.since(at) < stay);
        self.refused.retain(|_, &mut at| now.since(at) < stay);
        for lightpath in 0..self.lightpaths.len() {
            self.return_the_slow(now, lightpath);
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
            self.release_the_empty(now, lightpath);
        }
        self.set_paces(now, view);
    }

    /// What the network has to do, in order.
    pub fn poll_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// Where `flow` is.
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

    /// Time between two looks.
    pub fn interval(&self) -> Span {
        self.policy.interval
    }

    /// What was said of `lightpath` at the start.
    pub fn lightpath(&self, lightpath: usize) -> &LightpathConfig {
        &self.lightpaths[lightpath].config
    }

    /// What `lightpath` is doing.
    pub fn state(&self, lightpath: usize) -> State {
        self.lightpaths[lightpath].state
    }

    /// What the flows on `lightpath` take, or were expected to when they came.
    pub fn reserved(&self, now: Time, lightpath: usize) -> Rate {
        self.lightpaths[lightpath].reserved(now, self.policy.interval, &[])
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Counts so far; offloaded bytes are those observed.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The flow table.
    pub fn table(&self) -> &FlowTable {
        &self.table
    }

    /// A row for each lightpath and interval so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Mean load and mean wait of the IP way that `lightpath` bypasses, over the intervals in which it carried nothing and over
    /// those in which it carried something; None where there were none.
    pub fn bypassed(&self, lightpath: usize) -> [Option<(Rate, Span)>; 2] {
        let path = &self.lightpaths[lightpath];
        [path.without, path.with].map(|sum| sum.load().zip(sum.wait()))
    }

    fn observe(&mut self, now: Time, view: &impl View) {
        let (interval, one_in) = (self.policy.interval, self.policy.one_in.max(1));
        self.table.handle_interval(now, interval, self.policy.idle);
        for (index, path) in self.lightpaths.iter_mut().enumerate() {
            let ip = view.bypassed(index);
            if path.flows.is_empty() { &mut path.without } else { &mut path.with }.add(&ip);
            for carried in path.flows.values_mut() {
                carried.activity.close(now, interval, one_in);
                let bytes = carried.activity.latest().bytes;
                self.totals.offloaded.0 += bytes;
                let worth = if ip.load_ppm() >= u64::from(self.policy.busy_ppm) {
                    1_000_000
                } else {
                    u64::from(self.policy.offload_worth_ppm)
                };
                let entry = self.ledger.entry(carried.entry);
                entry.offloaded.0 += bytes;
                // The activity began with the stay.
                entry.offloaded_error = Size(carried.activity.volume(one_in).standard_error);
                entry.relief.0 += (u128::from(bytes) * u128::from(worth) / 1_000_000) as u64;
                carried.ahead.add(bytes, entry.before.rate.data_in(interval).0);
            }
            let (state, flows, carried) = (path.state, path.flows.len(), path.carried(interval));
            self.rows.push(Row { time: now, lightpath: index, state, flows, carried, ip });
        }
        let (table, lightpaths) = (&self.table, &self.lightpaths);
        self.ledger.handle_interval(now, interval, |entry| {
            let on = lightpaths[entry.lightpath].flows.get(&entry.flow).map(|c| &c.activity);
            let activity = on.or_else(|| table.get(entry.flow))?;
            let egress = view.ways(entry.flow, entry.lightpath).and_then(|ways| ways.egress);
            let (latest, ip) = (activity.latest(), view.bypassed(entry.lightpath));
            Some((rate_of(latest.bytes, interval), rate_of(latest.standard_error, interval), ip, egress))
        });
        for carried in self.lightpaths.iter().flat_map(|path| path.flows.values()) {
            let entry = self.ledger.entry(carried.entry);
            entry.gain = entry.gained(carried.ahead.sure());
        }
    }

    fn is_elephant(&self, flow: FlowKey) -> bool {
        self.table.is_elephant(flow, self.policy.interval, &self.policy.thresholds)
    }

    /// Elephants on IP on which something may be decided: the highest priority first, then the fastest, then by key.
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

    /// Moves `flow`, refuses to, or asks for a lightpath; nothing where there is no way.
    fn consider(&mut self, now: Time, flow: FlowKey, view: &impl View) {
        let Some(activity) = self.table.get(flow) else { return };
        let (rate, volume) = (activity.mean_rate(), activity.volume(self.policy.one_in));
        let busy = self.lightpaths.iter().filter(|p| p.state != State::Down).count();
        // Those that are there first; then those that can be had; the earlier in the operator's list first.
        let mut refused = None;
        for wanted in [State::Up, State::SettingUp, State::Down] {
            for lightpath in 0..self.lightpaths.len() {
                let path = &self.lightpaths[lightpath];
                let to_be_had = busy < self.policy.lightpaths_max && view.available(lightpath);
                if path.state != wanted || wanted == State::Down && !to_be_had {
                    continue;
                }
                let Some(ways) = self.ways(now, flow, lightpath, rate, view) else { continue };
                let alone = path.flows.is_empty() && path.waiting.is_empty();
                let room =
                    if wanted == State::Up || alone { path.room(now, &self.policy, &[]) } else { self.left(now, path) };
                // What is sent while the lightpath is set up does not go over it.
                let wait = if wanted == State::Up { Span::ZERO } else { path.config.set_up };
                let rest = self.policy.rest_of(Size(volume.bytes));
                let remaining = Size(rest.0.saturating_sub(rate.data_in(wait).0));
                let taken = path.buffered(now);
                let case = Case { rate, remaining, room, price: path.price(), ways: &ways };
                let (plan, thought) = plan(&case, &self.policy, taken);
                if !alone && room < rate {
                    continue;
                }
                if self.policy.refuse && thought.cost >= thought.gain {
                    // With nothing to gain yet it is only too early: what is expected of a flow grows with what it has sent.
                    if thought.gain > Size(0) {
                        refused.get_or_insert((lightpath, Thought { forecast: thought, plan, ways }));
                    }
                    continue;
                }
                match wanted {
                    State::Up => self.give(now, flow, lightpath, Thought { forecast: thought, plan, ways }, view),
                    State::SettingUp => self.lightpaths[lightpath].waiting.push(flow),
                    _ => self.set_up(lightpath, flow),
                }
                return;
            }
        }
        match refused {
            Some((lightpath, thought)) => self.refuse(now, flow, lightpath, thought),
            None => self.preempt(now, flow, view),
        }
    }

    /// What a lightpath that is being set up has left beside those that wait for it.
    fn left(&self, now: Time, path: &Lightpath) -> Rate {
        let of = |&flow: &FlowKey| self.table.get(flow).map_or(0, |a| a.mean_rate().0);
        let given = u128::from(path.config.capacity.0) * u128::from(self.policy.fill_ppm) / 1_000_000;
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

    fn refuse(&mut self, now: Time, flow: FlowKey, lightpath: usize, thought: Thought) {
        // Looked at anew in every interval, since what is expected of the flow grows; written down once per stay.
        if self.refused.contains_key(&flow) {
            return;
        }
        self.refused.insert(flow, now);
        self.totals.refusals += 1;
        let before = self.seen(flow, lightpath);
        let mut entry = Entry::new(now, flow, lightpath, Reason::Refused, Some(thought.forecast), before);
        entry.plan = thought.mitigated();
        self.ledger.add(entry, now, None);
    }

    /// Flows of a lower priority that have stayed long enough make way, where that makes room.
    fn preempt(&mut self, now: Time, flow: FlowKey, view: &impl View) {
        let priority = view.priority(flow);
        let Some(rate) = self.table.get(flow).map(Activity::mean_rate) else { return };
        for lightpath in 0..self.lightpaths.len() {
            let path = &self.lightpaths[lightpath];
            if path.state != State::Up || path.flows.is_empty() {
                continue;
            }
            let Some(ways) = self.ways(now, flow, lightpath, rate, view) else { continue };
            let mut lower: Vec<_> = path
                .flows
                .iter()
                .filter(|(_, c)| c.priority < priority && now.since(c.since) >= self.policy.minimum_stay)
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
            let case = Case { rate, remaining: self.policy.rest_of(volume), room, price: Size(0), ways: &ways };
            let (plan, thought) = plan(&case, &self.policy, taken);
            if !enough || self.policy.refuse && thought.cost >= thought.gain {
                continue;
            }
            for key in going {
                self.totals.preemptions += 1;
                self.give_back(now, key, lightpath, Reason::Preempted);
            }
            self.give(now, flow, lightpath, Thought { forecast: thought, plan, ways }, view);
            return;
        }
    }

    /// Moves `flow` to `lightpath`.
    fn give(&mut self, now: Time, flow: FlowKey, lightpath: usize, thought: Thought, view: &impl View) {
        let before = self.seen(flow, lightpath);
        let Thought { forecast, plan, ways } = thought;
        let mut entry = Entry::new(now, flow, lightpath, Reason::Elephant, Some(forecast), before);
        entry.plan = thought.mitigated();
        let index = self.ledger.add(entry, now + self.policy.watch, ways.egress);
        let path = &mut self.lightpaths[lightpath];
        let hold = ways.means.hold.filter(|_| plan.mitigation.holds());
        let empty_at = |keeping: Keeping| keeping.empty_at(now, before.rate);
        let carried = Carried {
            activity: Activity::new(now),
            since: now,
            priority: view.priority(flow),
            expected: Rate(forecast.rate_after.0.min(path.config.capacity.0)),
            kept: plan.buffer,
            kept_until: hold.map_or(now, empty_at),
            pacing: hold.map(|keeping| keeping.pacing.number),
            ahead: Ahead::default(),
            before: before.rate,
            entry: index,
        };
        path.flows.insert(flow, carried);
        path.used = true;
        self.table.forget(flow);
        self.totals.moves += 1;
        self.decisions.push_back(Decision::Move { flow, lightpath, plan, entry: index });
    }

    /// Moves `flow` back to IP.
    fn give_back(&mut self, now: Time, flow: FlowKey, lightpath: usize, reason: Reason) {
        let before = self.seen(flow, lightpath);
        let path = &mut self.lightpaths[lightpath];
        let Some(carried) = path.flows.remove(&flow) else { return };
        if path.flows.is_empty() {
            path.empty_since = now;
        }
        let there = self.ledger.entry(carried.entry);
        there.left_at = Some(now);
        self.totals.wasted_moves += u64::from(there.offloaded == Size(0));
        self.ledger.add(Entry::new(now, flow, lightpath, reason, None, before), now + self.policy.watch, None);
        self.decided.insert(flow, now);
        self.totals.returns += 1;
        self.decisions.push_back(Decision::Return { flow, lightpath });
    }

    /// What was seen of `flow` and of the bypassed IP way before now.
    fn seen(&self, flow: FlowKey, lightpath: usize) -> Seen {
        let path = &self.lightpaths[lightpath];
        let activity = path.flows.get(&flow).map(|c| &c.activity).or_else(|| self.table.get(flow));
        let rows = self.rows.iter().rev().filter(|row| row.lightpath == lightpath);
        // As many intervals as the flow's mean rate is of.
        let recent: Vec<_> = rows.take(4).map(|row| row.ip).collect();
        let mean = |of: fn(&LinkView) -> u64| {
            (recent.iter().map(|link| u128::from(of(link))).sum::<u128>() / recent.len().max(1) as u128) as u64
        };
        Seen {
            rate: activity.map_or(Rate(0), Activity::mean_rate),
            rate_error: activity.map_or(Rate(0), Activity::mean_rate_error),
            ip_load: Rate(mean(|link| link.load.0)),
            ip_wait: Span(mean(|link| link.wait().0)),
        }
    }

    fn flows_on(&self, lightpath: usize) -> Vec<FlowKey> {
        self.lightpaths[lightpath].flows.keys().copied().collect()
    }

    fn return_the_slow(&mut self, now: Time, lightpath: usize) {
        for flow in self.flows_on(lightpath) {
            let carried = &self.lightpaths[lightpath].flows[&flow];
            if now.since(carried.since) < self.policy.minimum_stay {
                continue;
            }
            let reason = if now.since(carried.activity.seen()) >= self.policy.idle {
                Reason::Over
            } else if carried.activity.mean_rate() < self.policy.thresholds.back_below {
                Reason::Slow
            } else {
                continue;
            };
            self.give_back(now, flow, lightpath, reason);
        }
    }

    fn release_the_empty(&mut self, now: Time, lightpath: usize) {
        let path = &mut self.lightpaths[lightpath];
        let idle = path.state == State::Up && path.flows.is_empty() && path.waiting.is_empty();
        if idle && now.since(path.empty_since) >= self.policy.linger {
            path.state = State::Releasing;
            self.totals.wasted_set_ups += u64::from(!path.used);
            self.decisions.push_back(Decision::Release { lightpath });
        }
    }
}

mod paces;
#[cfg(test)]
mod tests;
