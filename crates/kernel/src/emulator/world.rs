//! What the network's ends do: packets that arrive go to their host's device; timers are changes, background, samples.

use super::orders::{Given, Orders};
use super::report::{EmulatorReport, NetworkCounters};
use crate::clock::Clock;
use crate::packet::{Pool, Token};
use crate::plan::Join;
use crate::tun::Tun;
use experiment::spec::RunSpec;
use experiment::{apply_change, gates_of, Background, BackgroundTally, Change, LabError, Look, Management, Word};
use link::{DropReason, Packet as _};
use sim::{Hosts, Network, RouteId, Routes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use units::{Span, Time};

/// Everything that is not the network. Hosts of routes are devices by their index, then background sources.
pub(super) struct World {
    pub devices: Arc<[Tun]>,
    pub pool: Pool,
    pub report: EmulatorReport,
    /// Shows the network's time.
    clock: Clock,
    /// When the clock was last looked at.
    looked: Time,
    /// When the run begins, in the network's time.
    begin: Time,
    changes: Vec<Change>,
    background: Vec<Background>,
    /// By flow of the spec: routes of its packets, from its sender and from its receiver; None: nobody runs it.
    pub flow_routes: Vec<Option<[RouteId; 2]>>,
    /// Counts what arrives of flows, and moves them.
    pub management: Option<Management>,
    /// How senders are told.
    pub orders: Option<Orders>,
    /// Names of the spec's flows.
    names: Vec<String>,
    /// Source number of the first background source.
    first_source: u32,
    flow_drops: Vec<u64>,
    progress: Arc<[AtomicU64]>,
    series_interval: Span,
    /// Links of the spec; gates follow them.
    links: usize,
    join: Join,
    /// By host.
    groups: Vec<Group>,
    /// Hosts whose group waits.
    waiting: Vec<u32>,
}

/// Packets for a host that are handed over as one.
#[derive(Default)]
struct Group {
    first: Option<Token>,
    last: Option<Token>,
    /// When each was due.
    due: Vec<Time>,
}

/// From here on a thread did not just take long over a packet, nor did the scheduler just make it wait for its next share: the
/// machine was held up, as a virtual one is by its host.
const STALL: Span = Span::from_millis(5);

/// From this lateness on packets are joined with [`Join::Late`]: just below what is a fault, above what batches and wake-ups take.
const JOIN_AFTER: Span = Span::from_micros(150);

impl World {
    /// The ends of the network of `spec`, which begins at `begin` by `clock`.
    ///
    /// # Errors
    /// What in the spec does not hold together.
    pub fn new(
        spec: &RunSpec,
        devices: Arc<[Tun]>,
        clock: Clock,
        begin: Time,
        progress: Arc<[AtomicU64]>,
        join: Join,
        routes: &mut Routes,
    ) -> Result<World, LabError> {
        let changes = Change::all(spec, begin)?;
        let background = Background::all(spec, begin, devices.len() as u32, routes)?;
        Ok(World {
            pool: Pool::new(),
            report: EmulatorReport::default(),
            clock,
            looked: Time::ZERO,
            begin,
            changes,
            background,
            flow_routes: vec![None; spec.flows.len()],
            management: None,
            orders: None,
            names: spec.flows.iter().map(|flow| flow.name.clone()).collect(),
            first_source: 2 * spec.flows.len() as u32,
            flow_drops: vec![0; spec.flows.len()],
            progress,
            groups: devices.iter().map(|_| Group::default()).collect(),
            waiting: vec![],
            devices,
            join,
            links: spec.links.len(),
            series_interval: Span(spec.measure.series_interval_ns.unwrap_or(0)),
        })
    }

    /// How many timers it needs, and how many of them go before links.
    pub fn timers(&self) -> (usize, usize) {
        (self.sampler() as usize + 1, self.changes.len())
    }

    fn first_background(&self) -> u32 {
        self.changes.len() as u32
    }

    fn manager(&self) -> u32 {
        self.first_background() + self.background.len() as u32
    }

    fn sampler(&self) -> u32 {
        self.manager() + 1
    }

    /// The time. The thread has not slept since the last look: how long it was kept from its work is counted.
    pub fn look(&mut self) -> Time {
        let now = self.clock.now();
        self.was_away(now.since(self.looked));
        self.looked = now;
        now
    }

    /// The time after a sleep that took `over_ns` longer than was asked for.
    pub fn wake(&mut self, over_ns: u64) -> Time {
        self.was_away(Span(over_ns));
        self.looked = self.clock.now();
        self.looked
    }

    fn was_away(&mut self, away: Span) {
        if away >= STALL {
            self.report.stalls += 1;
            self.report.stalled_ns += away.0;
        }
    }

    /// Sets all first timers.
    pub fn set_timers(&mut self, net: &mut Network<Token>) {
        Change::set_timers(&self.changes, net);
        let first = self.first_background();
        Background::set_timers(&mut self.background, first, net);
        if let Some(management) = &self.management {
            net.set_timer(self.manager(), management.poll_timeout());
        }
        if self.series_interval > Span::ZERO {
            net.set_timer(self.sampler(), self.begin + self.series_interval);
        }
    }

    /// The network's counters at `now`.
    pub fn counters(&self, now: Time, net: &Network<Token>) -> NetworkCounters {
        let of = |b: &Background| BackgroundTally {
            sent: b.sent_packets,
            dropped: b.dropped_packets,
            received: b.received_packets,
        };
        NetworkCounters {
            at: Time(now.since(self.begin).0),
            links: net.links()[..self.links].iter().map(|l| *l.stats()).collect(),
            background: self.background.iter().map(of).collect(),
            flow_drops: self.flow_drops.clone(),
            managed: self.managed(),
            gates: self.gates(net),
        }
    }

    fn gates(&self, net: &Network<Token>) -> (Vec<link::hold_buffer::Stats>, Vec<link::Stats>) {
        let (mut kept, stats) = gates_of(net);
        kept.extend(self.management.iter().flat_map(|management| management.kept_before()));
        (kept, stats)
    }

    /// When each event of the spec happened, since the run began.
    pub fn happened(&self) -> Vec<Option<Time>> {
        Change::times(&self.changes)
    }

    /// What the manager did.
    fn managed(&self) -> Option<experiment::ManagerOutcome> {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        self.management.as_ref().map(|management| management.outcome(&names))
    }

    /// `token` is lost in the network.
    pub fn lose(&mut self, token: Token) {
        let source = token.source();
        if source < self.first_source {
            self.flow_drops[source as usize / 2] += 1;
        } else if let Some(background) = self.background.get_mut((source - self.first_source) as usize) {
            background.dropped_packets += 1;
        }
        self.pool.give_back(&token, 1);
    }

    /// Hands over what waits to be joined with more.
    pub fn hand_over(&mut self) {
        while let Some(host) = self.waiting.pop() {
            self.hand_over_to(host);
        }
    }

    fn hand_over_to(&mut self, host: u32) {
        let Some(token) = self.groups[host as usize].first.take() else { return };
        // Before the write: what the far transport does with a packet, which the write waits for, is its own.
        let now = self.look();
        let group = &mut self.groups[host as usize];
        let count = group.due.len() as u16;
        for due in group.due.drain(..) {
            self.report.lateness.record(now.since(due).0);
        }
        if count > 1 {
            self.report.joined += u64::from(count);
        }
        if !self.pool.write(&self.devices[host as usize], &token, count) {
            self.report.refused += u64::from(count);
        }
        self.pool.give_back(&token, count);
    }

    fn handle_change(&mut self, now: Time, index: usize, net: &mut Network<Token>) {
        let progress = &self.progress;
        let received = |flow: usize| progress.get(flow).map_or(0, |bytes| bytes.load(Ordering::Relaxed));
        match self.changes[index].handle_timer(now, received) {
            // Patience is the hosts' from the start.
            Look::Tell(notice, again) => {
                net.set_timer(index as u32, again);
                let event = self.changes[index].index;
                if let Some(trim) = &notice.trim {
                    self.order(&notice.flows, now, |orders, flow, due, by_clock| {
                        orders.trim(event, flow, trim, due, by_clock)
                    });
                }
            }
            Look::Restore(flows) => {
                let event = self.changes[index].index;
                self.order(&flows, now, |orders, flow, due, by_clock| orders.restore(event, flow, due, by_clock));
            }
            Look::Now(action, again) => {
                if let Some(again) = again {
                    net.set_timer(index as u32, again);
                }
                let first = self.first_background();
                let routes = |flow: usize| self.flow_routes[flow];
                apply_change(&action, now, &mut self.background, first, routes, net);
            }
            Look::Later(again) => net.set_timer(index as u32, again),
            Look::Done => {}
        }
    }

    /// Tells senders of a move by the manager; the ledger's entries are counted on from the events.
    fn pass_on(&mut self, now: Time, word: &Word) {
        let events = self.changes.len();
        match word {
            Word::Trim { notice, entry } => {
                let Some(trim) = &notice.trim else { return };
                self.order(&notice.flows, now, |orders, flow, due, by_clock| {
                    orders.trim(events + entry, flow, trim, due, by_clock)
                });
            }
            &Word::Restore { flow, entry } => {
                self.order(&[flow], now, |orders, flow, due, by_clock| {
                    orders.restore(events + entry, flow, due, by_clock)
                });
            }
        }
    }

    /// Gives an order, due `now`, to the sender of each of `flows`.
    fn order(&mut self, flows: &[usize], now: Time, give: impl Fn(&Orders, usize, Time, u64) -> Given) {
        let Some(orders) = &self.orders else { return };
        let (due, by_clock) = (Time(now.since(self.begin).0), self.clock.monotonic_ns_at(now));
        self.report.orders.extend(flows.iter().map(|&flow| give(orders, flow, due, by_clock)));
    }

    fn handle_background(&mut self, now: Time, timer: u32, net: &mut Network<Token>) {
        let index = timer - self.first_background();
        let source = &mut self.background[index as usize];
        let (goes, due) = source.handle_timer(now);
        if goes {
            source.sent_packets += 1;
            let token = Token::background(source.spec.packet_bytes, source.hop, self.first_source + index);
            if let Err(refused) = net.send(token) {
                self.lose(refused.packet);
            }
        }
        net.set_timer(timer, due);
    }
}

impl Hosts<Token> for World {
    fn handle_packet(&mut self, due: Time, host: u32, token: Token, _net: &mut Network<Token>) {
        if host as usize >= self.devices.len() {
            self.background[host as usize - self.devices.len()].received_packets += 1;
            return;
        }
        if let Some(management) = &mut self.management {
            // Data has the even numbers; what is no flow's has none.
            if token.source() < self.first_source && token.source() & 1 == 0 {
                management.handle_packet(token.source() as usize / 2, token.bytes());
            }
        }
        let group = &mut self.groups[host as usize];
        if group.last.is_some_and(|last| group.first.is_some() && last.is_followed_by(&token)) {
            group.last = Some(token);
            group.due.push(due);
            return;
        }
        self.hand_over_to(host);
        let group = &mut self.groups[host as usize];
        (group.first, group.last) = (Some(token), Some(token));
        group.due.push(due);
        let joins = match self.join {
            Join::Never => false,
            Join::Late => self.look().since(due) > JOIN_AFTER,
            Join::Due => true,
        };
        if joins {
            self.waiting.push(host);
        } else {
            self.hand_over_to(host);
        }
    }

    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<Token>) {
        if timer < self.first_background() {
            self.handle_change(now, timer as usize, net);
        } else if timer < self.manager() {
            self.handle_background(now, timer, net);
        } else if timer == self.manager() {
            let Some(management) = &mut self.management else { return };
            let routes = &self.flow_routes;
            management.handle_timer(now, |flow| routes[flow].map(|sides| sides[0]), net);
            net.set_timer(timer, management.poll_timeout());
            while let Some(word) = self.management.as_mut().and_then(Management::poll_word) {
                self.pass_on(now, &word);
            }
        } else {
            let time_s = now.since(self.begin).as_secs_f64();
            self.report.link_series.sample(time_s, now, &mut net.links_mut()[..self.links]);
            net.set_timer(timer, now + self.series_interval);
        }
    }

    fn handle_drop(&mut self, _: Time, _: u32, token: Token, _: DropReason, _: &mut Network<Token>) {
        self.lose(token);
    }
}
