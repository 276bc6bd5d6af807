//! Networks with precomputed links behave, to the ns, as those whose links each have events of their own.

mod horizons;
mod moves;
mod teams;

use crate::{Hosts, Network, RouteId, Routed, Routes};
use link::{
    DropReason, Framing, Link, LinkConfig, LossModel, Pacers, Packet, PolicerConfig, QueueConfig, Stats, VariableLink,
};
use proptest::prelude::*;
use units::{Rate, Span, Time};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Probe {
    hop: u32,
    bytes: u32,
    number: u64,
}

impl Packet for Probe {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow_hash(&self) -> u64 {
        self.number % 3
    }
    fn is_ect(&self) -> bool {
        false
    }
    fn mark_ce(&mut self) {}
    fn offload_bytes(&self) -> u32 {
        self.bytes.saturating_sub(40)
    }
}

impl Routed for Probe {
    fn hop(&self) -> u32 {
        self.hop
    }
    fn advance(&mut self) {
        self.hop += 1;
    }
    fn redirect(&mut self, position: u32) {
        self.hop = position;
    }
}

/// An end after everything has happened.
const UNBOUNDED: u64 = 1 << 40;

/// A change of a link while packets are inside.
#[derive(Clone, Copy, Debug)]
enum Change {
    Rate(u64),
    Delay(u64),
    EveryNth(u64),
    Up(bool),
}

impl Change {
    fn apply(self, now: Time, link: &mut VariableLink<Probe>) {
        match self {
            Change::Rate(rate) => link.set_rate(now, Rate(rate)),
            Change::Delay(delay) => link.set_delay(now, Span(delay)),
            Change::EveryNth(n) => link.set_loss(now, LossModel::EveryNth { n }),
            Change::Up(up) => link.set_up(now, up),
        }
    }
}

#[derive(Clone, Debug)]
struct Case {
    links: Vec<LinkConfig>,
    routes: Vec<Vec<usize>>,
    /// Time, route, bytes.
    sends: Vec<(u64, usize, u32)>,
    /// Time, link, change.
    changes: Vec<(u64, usize, Change)>,
    /// Time, route, its links from then on.
    moves: Vec<(u64, usize, Vec<usize>)>,
    /// Times at which queues are read.
    samples: Vec<u64>,
}

/// The observable outcome of a run. A packet lost on the line is reported when it comes to a precomputed link and
/// when it would have arrived at another link: until then it counts as lost or as inside, and both are one here.
#[derive(Default, PartialEq, Debug)]
struct Outcome {
    delivered: Vec<(Time, u32, Probe)>,
    dropped: Vec<(u32, u64, DropReason)>,
    queues: Vec<(u64, u64, u64, Stats)>,
    stats: Vec<Stats>,
}

struct Script<'a> {
    case: &'a Case,
    firsts: Vec<u32>,
    outcome: Outcome,
}

impl Hosts<Probe> for Script<'_> {
    fn handle_packet(&mut self, now: Time, host: u32, packet: Probe, net: &mut Network<Probe>) {
        assert_eq!(now, net.now());
        self.outcome.delivered.push((now, host, packet));
    }

    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<Probe>) {
        let Case { changes, moves, sends, .. } = self.case;
        let mut timer = timer as usize;
        if let Some(&(_, link, change)) = changes.get(timer) {
            return net.change_link(link as u32, |l| change.apply(now, l)).expect("a link with changes is variable");
        }
        timer -= changes.len();
        if let Some((_, route, links)) = moves.get(timer) {
            return net.set_path(RouteId(self.firsts[*route]), links);
        }
        timer -= moves.len();
        if let Some(&(_, route, bytes)) = sends.get(timer) {
            let probe = Probe { hop: self.firsts[route], bytes, number: timer as u64 };
            if let Err(refused) = net.send(probe) {
                self.outcome.dropped.push((refused.link, refused.packet.number, refused.reason));
            }
            return;
        }
        for link in net.links_mut() {
            let (packets, bytes) = link.queue(now);
            let Stats { dropped_by_loss: lost, .. } = *link.stats();
            let stats = Stats { dropped_by_loss: 0, ..*link.stats() };
            self.outcome.queues.push((packets, bytes, link.packets_inside() + lost, stats));
        }
    }

    fn handle_drop(&mut self, now: Time, link: u32, packet: Probe, reason: DropReason, net: &mut Network<Probe>) {
        assert_eq!(now, net.now());
        self.outcome.dropped.push((link, packet.number, reason));
    }
}

/// Runs `case` to `end`, pausing at every 1000 events; returns the outcome and the number of events. With
/// `ahead`, links that nothing changes are precomputed.
fn run(case: &Case, ahead: bool, end: u64) -> (Outcome, u64) {
    let mut routes = Routes::default();
    let firsts: Vec<_> = case.routes.iter().enumerate().map(|(host, route)| routes.add(route, host as u32).0).collect();
    for (_, route, links) in &case.moves {
        routes.add_path(RouteId(firsts[*route]), links);
    }
    let link = |(i, config): (usize, &LinkConfig)| {
        let fixed = ahead && case.changes.iter().all(|change| change.1 != i);
        if fixed {
            Link::fixed(config, i as u64)
        } else {
            Link::variable(config, i as u64)
        }
    };
    let links = case.links.iter().enumerate().map(link).collect();
    let early = case.changes.len() + case.moves.len();
    let timers = early + case.sends.len() + case.samples.len();
    let mut net = Network::new(links, Pacers::default(), routes, timers, early);
    let times = case.changes.iter().map(|c| c.0).chain(case.moves.iter().map(|m| m.0));
    let times = times.chain(case.sends.iter().map(|s| s.0)).chain(case.samples.clone());
    for (timer, time) in times.enumerate() {
        net.set_timer(timer as u32, Time(time));
    }
    let mut script = Script { case, firsts, outcome: Outcome::default() };
    while net.run(&mut script, Time(end), 1000) == crate::Progress::ReachedEvents {}
    net.flush_drops(&mut script);
    let whole = end == UNBOUNDED;
    for link in net.links_mut() {
        link.queue(Time(end));
    }
    let stats = |link: &Link<Probe>| Stats {
        dropped_by_loss: u64::from(whole) * link.stats().dropped_by_loss,
        ..*link.stats()
    };
    script.outcome.stats = net.links().iter().map(stats).collect();
    script.outcome.dropped.retain(|dropped| whole || dropped.2 != DropReason::Loss);
    script.outcome.dropped.sort();
    (script.outcome, net.events())
}

fn drop_tail(rate: u64, delay: u64, limit_packets: Option<u64>, loss: LossModel) -> LinkConfig {
    let queue = QueueConfig::DropTail { limit_bytes: None, limit_packets };
    LinkConfig {
        rate: Rate(rate),
        framing: Framing::default(),
        delay: Span(delay),
        queue,
        loss,
        jitter: None,
        policer: None,
        batching: None,
    }
}

#[test]
fn a_path_of_three_links_costs_one_event_per_packet() {
    let line = |rate, delay| drop_tail(rate, delay, None, LossModel::None);
    let case = Case {
        links: vec![line(4_000_000_000, 500), line(1_000_000_000, 5_000), line(4_000_000_000, 500)],
        routes: vec![vec![0, 1, 2]],
        sends: (0..1000).map(|i| (i * 10, 0, 1500)).collect(),
        changes: vec![],
        moves: vec![],
        samples: vec![],
    };
    let (alone, ahead) = (run(&case, false, UNBOUNDED), run(&case, true, UNBOUNDED));
    assert_eq!(alone.0, ahead.0);
    assert_eq!((alone.1, ahead.1), (4000, 2000), "an event per send, and one per link or one for the path");
}

/// Places and times of the packets' arrivals.
#[derive(Default)]
struct Arrivals(Vec<(u64, u32)>);

impl Hosts<Probe> for Arrivals {
    fn handle_packet(&mut self, now: Time, host: u32, _: Probe, _: &mut Network<Probe>) {
        self.0.push((now.0, host));
    }
    fn handle_timer(&mut self, _: Time, _: u32, _: &mut Network<Probe>) {}
    fn handle_drop(&mut self, _: Time, _: u32, _: Probe, _: DropReason, _: &mut Network<Probe>) {}
}

/// Two lines of 1 Gbit/s and 5 us, with a route over the first to host 0.
fn two_lines(make: fn(&LinkConfig, u64) -> Link<Probe>) -> (Network<Probe>, u32) {
    let mut routes = Routes::default();
    let first = routes.add(&[0], 0).0;
    let line = || make(&drop_tail(1_000_000_000, 5_000, None, LossModel::None), 1);
    (Network::new(vec![line(), line()], Pacers::default(), routes, 0, 0), first)
}

#[test]
fn a_route_added_during_the_run_is_for_later_packets() {
    let (mut net, first) = two_lines(Link::variable);
    let mut arrivals = Arrivals::default();
    let probe = |hop| Probe { hop, bytes: 1250, number: 0 };
    assert!(net.send(probe(first)).is_ok());
    net.run(&mut arrivals, Time(1_000), 1000);
    let second = net.add_route(&[0, 1], 1).0;
    assert!(net.send(probe(second)).is_ok());
    assert_eq!(net.next_event(), Time(15_000));
    net.run(&mut arrivals, Time(100_000), 1000);
    // 10 us to send, 5 us on the way; the second waits for the first, and is sent twice.
    assert_eq!(arrivals.0, [(15_000, 0), (40_000, 1)]);
    assert_eq!(net.next_event(), Time::NEVER);
}

#[test]
#[should_panic(expected = "a second path")]
fn a_precomputed_link_gets_no_second_path_later() {
    let (mut net, _) = two_lines(Link::fixed);
    net.add_route(&[0, 1], 1);
    net.add_route(&[1], 1);
}

fn link_config() -> impl Strategy<Value = LinkConfig> {
    let loss = prop_oneof![
        3 => Just(LossModel::None),
        1 => (2u64..20).prop_map(|n| LossModel::EveryNth { n }),
        1 => Just(LossModel::Independent { probability_e12: 100_000_000_000 }),
    ];
    let limit = prop::option::of(1u64..10);
    let policer = (100_000_000u64..2_000_000_000, 1500u64..9000)
        .prop_map(|(rate, burst_bytes)| PolicerConfig { rate: Rate(rate), burst_bytes });
    let policer = prop_oneof![3 => Just(None), 1 => policer.prop_map(Some)];
    (100_000_000u64..4_000_000_000, 0u64..20_000, limit, loss, policer)
        .prop_map(|(r, d, l, m, policer)| LinkConfig { policer, ..drop_tail(r, d, l, m) })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (100_000_000u64..4_000_000_000).prop_map(Change::Rate),
        (0u64..20_000).prop_map(Change::Delay),
        (2u64..10).prop_map(Change::EveryNth),
        any::<bool>().prop_map(Change::Up),
    ]
}

/// Paths that share parts, fork, join and begin in the middle of each other.
const PATHS: [&[usize]; 9] = [
    &[0, 1, 2],
    &[0, 1, 2, 3],
    &[4, 1, 5],
    &[2, 3],
    &[5, 4, 3],
    &[3, 4, 5, 0],
    &[4, 5],
    // One more way for packets that move: in the middle, and at the end.
    &[0, 5, 2],
    &[0, 1, 4],
];

fn case() -> impl Strategy<Value = Case> {
    let routes = prop::sample::subsequence(PATHS[..7].iter().map(|r| r.to_vec()).collect::<Vec<_>>(), 1..=3);
    routes.prop_flat_map(|routes| {
        let send = (0u64..200_000, 0..routes.len(), 40u32..1500);
        let path = prop::sample::select(PATHS.map(|w| w.to_vec()).to_vec());
        let moved = (0u64..250_000, 0..routes.len(), path);
        (
            prop::collection::vec(link_config(), 6),
            Just(routes),
            prop::collection::vec(moved, 0..4),
            prop::collection::vec(send, 0..200),
            prop::collection::vec((0u64..300_000, 0usize..6, change()), 0..6),
            prop::collection::vec(0u64..300_000, 0..10),
        )
            .prop_map(|(links, routes, moves, sends, changes, samples)| Case {
                links,
                routes,
                sends,
                changes,
                moves,
                samples,
            })
    })
}

proptest! {
    /// Deliveries, losses, queue lengths and counters are those of links alone, at the end and in the middle.
    #[test]
    fn precomputed_links_change_nothing(case in case(), end in prop_oneof![Just(UNBOUNDED), 0u64..300_000]) {
        let (alone, ahead) = (run(&case, false, end), run(&case, true, end));
        prop_assert_eq!(&alone.0, &ahead.0);
        prop_assert!(ahead.1 <= alone.1, "{} events instead of {}", ahead.1, alone.1);
        if end == UNBOUNDED && case.changes.is_empty() {
            // With any moves a packet arrives once or is lost once.
            let mut numbers: Vec<_> = ahead.0.delivered.iter().map(|(_, _, probe)| probe.number).collect();
            numbers.extend(ahead.0.dropped.iter().map(|dropped| dropped.1));
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..case.sends.len() as u64).collect::<Vec<_>>());
        }
    }
}
