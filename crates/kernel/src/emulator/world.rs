//! The hosts' ends of the emulated network: packets that arrive go to their host's device; the simulator's
//! [`Environment`] acts on the network.

use super::change::{BackgroundRateChange, MtuChange, NetworkChange, PolicerChange};
use super::report::{CarrierCounters, EmulatorReport};
use super::routers::Routers;
use super::sender_commands::{CommandMaps, IssuedCommand};
use crate::clock::Clock;
use crate::icmp::{fragments, is_whole_only, Problem};
use crate::packet::{Pool, Token};
use crate::plan::Join;
use crate::tun::Tun;
use crate::{icmp, icmpv6};
use experiment::{AddressedCommand, Environment, FlowProgress, MoveId, Senders};
use link::{DropReason, Packet as _};
use sim::{Hosts, Network, RouteId};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use units::{Span, Time};

/// Everything that is not the network. Hosts of routes are devices by their index, then background sources.
pub(super) struct World {
    pub devices: Arc<[Tun]>,
    pub pool: Pool,
    pub report: EmulatorReport,
    pub environment: Environment,
    pub senders: HostSenders,
    routers: Routers,
    /// Latest reading of the clock.
    looked: Time,
    /// Names of the spec's flows.
    names: Vec<String>,
    flow_drops: Vec<u64>,
    join: Join,
    /// By host.
    groups: Vec<Group>,
    /// Hosts whose group waits.
    waiting: Vec<u32>,
}

/// The senders of flows, which are this machine's.
pub(super) struct HostSenders {
    /// By flow of the spec: routes of its packets, from its sender and from its receiver; None: this machine does not
    /// run it.
    pub routes: Vec<Option<[RouteId; 2]>>,
    /// By flow of the spec: payload bytes that it has delivered.
    pub progress: Arc<[AtomicU64]>,
    /// Maps that carry the commands to senders.
    pub maps: CommandMaps,
    /// Shows the network's time.
    pub clock: Clock,
    /// Start of the run, in the network's time.
    pub begin: Time,
    /// Events of the spec: the entries of the manager's log are counted on from them.
    pub events: usize,
    pub issued: Vec<IssuedCommand>,
}

impl Senders<Token> for HostSenders {
    fn progress(&self, flow: usize) -> FlowProgress {
        let received_bytes = self.progress.get(flow).map_or(0, |bytes| bytes.load(Ordering::Relaxed));
        // Its senders are the kernel's: a run that asks for their retransmissions is refused.
        FlowProgress { received_bytes, retransmitted_segments: 0 }
    }

    fn routes(&self, flow: usize) -> Option<[RouteId; 2]> {
        self.routes[flow]
    }

    fn command(&mut self, now: Time, addressed: &AddressedCommand, _net: &mut Network<Token>) {
        let number = match addressed.why {
            MoveId::Event(event) => event,
            MoveId::Entry(entry) => self.events + entry,
        };
        let (due, by_clock) = (Time(now.since(self.begin).0), self.clock.monotonic_ns_at(now));
        self.issued.extend(self.maps.give(addressed, number, due, by_clock));
    }
}

/// Packets for a host that are handed over as one.
#[derive(Default)]
struct Group {
    first: Option<Token>,
    last: Option<Token>,
    /// Time at which each was due.
    due: Vec<Time>,
}

/// From here on a thread did not just take long over a packet, nor did the scheduler just make it wait for its next
/// share: the machine was held up, as a virtual one is by its host.
const STALL: Span = Span::from_millis(5);

/// Least lateness at which packets are joined with [`Join::Late`]: just below a fault, above batches and wake-ups.
const JOIN_AFTER: Span = Span::from_micros(150);

impl World {
    /// The ends of a network with `environment`; `names` are those of the flows of `senders`.
    pub fn new(
        devices: Arc<[Tun]>,
        environment: Environment,
        senders: HostSenders,
        routers: Routers,
        names: Vec<String>,
        join: Join,
    ) -> World {
        World {
            pool: Pool::new(),
            report: EmulatorReport::default(),
            looked: Time::ZERO,
            flow_drops: vec![0; names.len()],
            groups: devices.iter().map(|_| Group::default()).collect(),
            waiting: vec![],
            devices,
            environment,
            senders,
            routers,
            names,
            join,
        }
    }

    /// The time. The thread has not slept since the last look: how long it was kept from its work is counted.
    pub fn look(&mut self) -> Time {
        let now = self.senders.clock.now();
        self.was_away(now.since(self.looked));
        self.looked = now;
        now
    }

    /// The time after a sleep that took `over_ns` longer than was asked for.
    pub fn wake(&mut self, over_ns: u64) -> Time {
        self.was_away(Span(over_ns));
        self.looked = self.senders.clock.now();
        self.looked
    }

    fn was_away(&mut self, away: Span) {
        if away >= STALL {
            self.report.stalls += 1;
            self.report.stalled_ns += away.0;
        }
    }

    /// The network's counters at `now`.
    pub fn counters(&self, now: Time, net: &Network<Token>) -> CarrierCounters {
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        CarrierCounters {
            at: Time(now.since(self.senders.begin).0),
            flow_drops: self.flow_drops.clone(),
            network: self.environment.counters(net, &names),
        }
    }

    /// Changes the network at `now`; the change fits its spec.
    pub fn change(&mut self, now: Time, change: &NetworkChange, net: &mut Network<Token>) {
        for action in &change.actions {
            self.environment.act(now, action, &self.senders, net);
        }
        for PolicerChange { link, policer } in &change.policers {
            self.environment.set_policer(*link, policer.as_ref(), net);
        }
        for &MtuChange { link, mtu_bytes } in &change.mtus {
            self.routers.set_mtu(link, mtu_bytes);
        }
        for &BackgroundRateChange { source, rate_bps } in &change.background_rates {
            self.environment.set_background_rate(now, source, rate_bps, net);
        }
    }

    /// `token` is lost in the network.
    pub fn lose(&mut self, token: Token) {
        if let Some(source) = token.source() {
            if !self.environment.handle_drop(source, &token) {
                self.flow_drops[source as usize / 2] += 1;
            }
        }
        self.pool.give_back(&token, 1);
    }

    /// Router `router` cannot forward `token`: tells its sender, where it may (RFC 1812, 4.3.2).
    #[cold]
    fn refuse(&mut self, now: Time, router: u32, token: Token, problem: Problem, net: &mut Network<Token>) {
        self.report.routers.count(problem);
        let packet = self.pool.packet_of(&token);
        self.lose(token);
        let Some(to) = sender_of(&packet) else { return };
        let Some(reply) = self.routers.reply(now, router, to) else { return };
        let about = match reply.address {
            IpAddr::V4(own) => icmp::message(&packet, problem, own, reply.id),
            IpAddr::V6(own) => icmpv6::message(&packet, problem, own),
        };
        let Some(about) = about else { return };
        let answer = self.pool.insert(&about, reply.hop);
        self.report.routers.messages += 1;
        self.pass_on(answer, net);
    }

    /// Router `router` has `token`, which is too big for the next link's `mtu` bytes.
    #[cold]
    fn fit(&mut self, now: Time, router: u32, token: Token, mtu: u32, net: &mut Network<Token>) {
        let packet = self.pool.packet_of(&token);
        let pieces = if is_whole_only(&packet) { vec![] } else { fragments(&packet, mtu as usize) };
        if pieces.is_empty() {
            return self.refuse(now, router, token, Problem::TooBig(mtu), net);
        }
        self.report.routers.fragmented += 1;
        let pieces: Vec<_> = pieces.iter().map(|piece| self.pool.insert_fragment(piece, &token)).collect();
        self.pool.give_back(&token, 1);
        for piece in pieces {
            self.pass_on(piece, net);
        }
    }

    /// A router sends `token`.
    fn pass_on(&mut self, token: Token, net: &mut Network<Token>) {
        if let Err(refused) = net.send(token) {
            self.lose(refused.packet);
        }
    }

    /// Hands over the packets that wait to be joined with more.
    pub fn hand_over(&mut self) {
        while let Some(host) = self.waiting.pop() {
            self.hand_over_to(host);
        }
    }

    fn hand_over_to(&mut self, host: u32) {
        let Some(token) = self.groups[host as usize].first.take() else { return };
        // Before the write: the work of the far transport on a packet, which the write waits for, is its own.
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
}

/// Source address of an IP packet.
fn sender_of(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(12..16)?.first_chunk::<4>().map(|&address| address.into()),
        6 => packet.get(8..24)?.first_chunk::<16>().map(|&address| address.into()),
        _ => None,
    }
}

impl Hosts<Token> for World {
    fn handle_packet(&mut self, due: Time, host: u32, token: Token, _net: &mut Network<Token>) {
        if self.environment.handle_arrival(due, host, &token) {
            return;
        }
        // Data of flows has the even numbers.
        if let Some(source) = token.source().filter(|source| source & 1 == 0) {
            self.environment.handle_data(source as usize / 2, token.bytes());
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
        if !self.environment.handle_timer(now, timer, &mut self.senders, net) {
            self.environment.sample(now, net);
        }
    }

    fn handle_transit(&mut self, now: Time, link: u32, next: u32, token: &mut Token, net: &mut Network<Token>) -> bool {
        let Some(router) = self.routers.behind(link) else { return true };
        if !token.count_down() {
            self.refuse(now, router, *token, Problem::TimeExceeded, net);
            return false;
        }
        let mtu = self.routers.mtu_bytes(next);
        if token.bytes() > mtu && token.has_content() {
            self.fit(now, router, *token, mtu, net);
            return false;
        }
        true
    }

    fn handle_drop(&mut self, _: Time, _: u32, token: Token, _: DropReason, _: &mut Network<Token>) {
        self.lose(token);
    }
}
