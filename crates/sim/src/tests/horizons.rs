//! Horizons give what single events give, whatever the hosts do with what comes to them.

use super::{change, drop_tail, Change, Probe};
use crate::{Hosts, Network, Processes, Progress, RouteId, Routes, TimerScope, Train, Unfit};
use link::{
    Batching, DropReason, Jitter, JitterDistribution, Link, LinkConfig, LossModel, Pacers, PolicerConfig, QueueConfig,
    Sample, Stats,
};
use proptest::prelude::*;
use units::{Rate, Span, Time};

impl Train for Probe {
    fn following(self) -> Probe {
        Probe { number: self.number + 1, ..self }
    }
}

/// An end after everything has happened.
const UNBOUNDED: u64 = 1 << 40;
/// Samples of a series, at most.
const MOST_OF_SERIES: u64 = 64;
/// Events of a process to which it reacts.
const REACTIONS: u32 = 60;

/// A network without circles, and the division of its hosts.
#[derive(Clone, Debug)]
pub struct Case {
    links: Vec<LinkConfig>,
    /// Links, host, process that sends.
    pub routes: Vec<(Vec<usize>, u32, u32)>,
    /// Further paths of routes, which timers of all select: route, links.
    pub paths: Vec<(usize, Vec<usize>)>,
    /// By host.
    pub process_of: Vec<u32>,
    pub processes: u32,
    /// First times of timers of all that go before packets.
    early: Vec<u64>,
    /// Times at which links change, by more such timers.
    changes: Vec<(u64, usize, Change)>,
    /// Process and first time of its timers.
    pub timers: Vec<(u32, u64)>,
    /// Process, another one at which it looks, and time, of timers behind these.
    pub looks: Vec<(u32, u32, u64)>,
    /// Times at which counters and queues are read, by timers after all others; at some of them somebody sends.
    samples: Vec<(u64, bool)>,
    /// First sample and interval of a series of all hosts and links, by a timer after all others but the stop.
    pub series: Option<(u64, u64)>,
    /// Work with which the run ends: process, which of its events does it.
    pub work: Vec<(u32, u32)>,
    /// A time at which the run ends itself.
    stop: Option<u64>,
    /// Times between which the engine may change, and the end.
    pub pauses: Vec<u64>,
    pub end: u64,
    /// All times that hosts choose are multiples of it, ns.
    grain: u64,
    /// Packets take whole us: many things happen at one time.
    is_aligned: bool,
}

/// Packets and bytes that wait, packets inside, counters.
pub type LinkRow = (u64, u64, u64, Stats);

#[derive(Default, PartialEq, Debug)]
pub struct Outcome {
    /// By process: time, what happened, number.
    pub seen: Vec<Vec<(u64, u32, u64)>>,
    pub dropped: Vec<(u32, u64, DropReason)>,
    /// Time, losses so far, links.
    pub samples: Vec<(u64, usize, Vec<LinkRow>)>,
    /// Time, states of processes with hosts, links.
    pub series: Vec<(u64, Vec<u64>, Vec<Sample>)>,
    pub stats: Vec<Stats>,
    pub ended: Time,
    pub events: u64,
    pub next: Time,
}

impl Outcome {
    /// A line per fact, in the order of their causes.
    pub fn lines(&self) -> Vec<String> {
        let of_processes = self
            .seen
            .iter()
            .enumerate()
            .flat_map(|(process, seen)| seen.iter().map(move |seen| format!("process {process}: {seen:?}")));
        let samples = self.samples.iter().map(|sample| format!("{sample:?}"));
        let series = self.series.iter().map(|row| format!("{row:?}"));
        let dropped = self.dropped.iter().map(|dropped| format!("{dropped:?}"));
        let stats = self.stats.iter().map(|stats| format!("{stats:?}"));
        let rest = format!("{} events, ended at {}, next {}", self.events, self.ended.0, self.next.0);
        of_processes.chain(samples).chain(series).chain(dropped).chain(stats).chain([rest]).collect()
    }
}

/// Hosts whose reaction depends on all that their process has seen.
pub struct Script<'a> {
    case: &'a Case,
    firsts: Vec<u32>,
    /// By process: it is here, not at another worker.
    pub is_here: Vec<bool>,
    states: Vec<u64>,
    reactions: Vec<u32>,
    /// By sample of the series that is not written, and process.
    noted: Vec<Vec<u64>>,
    pub outcome: Outcome,
}

const EARLY: u32 = 1 << 20;
const TIMER: u32 = 2 << 20;
const LATE: u32 = 3 << 20;

fn mix(state: u64, value: u64) -> u64 {
    // SplitMix64 (Steele, Lea and Flood 2014).
    let sum = state.wrapping_add(value).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let once = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    twice ^ (twice >> 31)
}

impl<'a> Script<'a> {
    fn new(case: &'a Case, firsts: Vec<u32>) -> Script<'a> {
        let count = case.processes as usize;
        Script {
            case,
            firsts,
            is_here: vec![true; count],
            states: vec![0; count],
            reactions: vec![0; count],
            noted: vec![],
            outcome: Outcome { seen: vec![vec![]; count], ..Outcome::default() },
        }
    }

    fn see(&mut self, now: Time, process: u32, what: u32, number: u64, net: &mut Network<Probe>) {
        assert_eq!(now, net.now());
        let at = process as usize;
        if !self.is_here[at] {
            return;
        }
        self.outcome.seen[at].push((now.0, what, number));
        self.reactions[at] += 1;
        for (piece, &work) in (0..).zip(&self.case.work) {
            // Timers of all do no work.
            let is_own = what < EARLY || (TIMER..LATE).contains(&what);
            if is_own && work == (process, self.reactions[at]) {
                net.finish_work(piece);
            }
        }
        if self.reactions[at] > REACTIONS {
            return;
        }
        let mut random = mix(mix(mix(self.states[at], now.0), u64::from(what)), number);
        self.states[at] = random;
        let mut draw = |bound: u64| {
            random = mix(random, 1);
            random % bound
        };
        let Case { routes, timers, early, changes, grain, is_aligned, .. } = self.case;
        for _ in 0..draw(3) {
            let own: Vec<_> = (0..routes.len()).filter(|&route| routes[route].2 == process).collect();
            if draw(3) > 0 && !own.is_empty() {
                let route = own[draw(own.len() as u64) as usize];
                let mut bytes = [40, 125, 1250, 1500, 40 + draw(2000) as u32][draw(5) as usize];
                if *is_aligned {
                    bytes = [125, 125, 250, 1250][draw(4) as usize];
                }
                let number = u64::from(self.reactions[at]) * 1000 + u64::from(process) * 100 + draw(9) * 10;
                let first = Probe { hop: self.firsts[route], bytes, number };
                let count = 1 + draw(4) as u32;
                let dropped = &mut self.outcome.dropped;
                net.send_train(first, count, |refused| {
                    dropped.push((refused.link, refused.packet.number, refused.reason));
                });
            } else {
                let own: Vec<_> = (0..timers.len()).filter(|&timer| timers[timer].0 == process).collect();
                if own.is_empty() {
                    continue;
                }
                let timer = (early.len() + changes.len() + own[draw(own.len() as u64) as usize]) as u32;
                let wait = [0, 0, 1, draw(5), draw(40), draw(40)][draw(6) as usize] * grain;
                net.set_timer(timer, if draw(9) == 0 { Time::NEVER } else { now + Span(wait) });
            }
        }
    }
}

impl Script<'_> {
    /// The outcome, after the run of `net`.
    pub fn finished(mut self, mut net: Network<Probe>) -> Outcome {
        self.outcome.ended = net.now();
        net.flush_drops(&mut self);
        self.outcome.events = net.events();
        self.outcome.next = net.next_event();
        self.outcome.stats = net.links().iter().map(|link| *link.stats()).collect();
        if self.case.series.is_some() {
            // As of the last look at the queue, which a link that was told of its samples needs not take.
            self.outcome.stats.iter_mut().for_each(|stats| stats.enqueued = 0);
        }
        self.outcome.dropped.sort();
        self.outcome
    }

    /// A timer of the series: all at once what [`Hosts::note_sample`] and [`Hosts::write_samples`] do.
    fn take_sample(&mut self, now: Time, interval: u64, timer: u32, net: &mut Network<Probe>) {
        for host in 0..self.case.process_of.len() as u32 {
            self.note_sample(host, now, 0);
        }
        self.write_samples(now, 1, net);
        net.set_timer(timer, now + Span(interval));
    }

    /// A timer of all selects a path, or none.
    fn move_packets(&self, now: Time, timer: u32, net: &mut Network<Probe>) {
        let random = mix(now.0, u64::from(timer));
        let Case { routes, paths, .. } = self.case;
        let Some((route, links)) = paths.get(random as usize % (paths.len() + 1)) else { return };
        let links = if random >> 60 & 1 == 0 { links } else { &routes[*route].0 };
        net.set_path(RouteId(self.firsts[*route]), links);
    }
}

impl Hosts<Probe> for Script<'_> {
    fn handle_packet(&mut self, now: Time, host: u32, packet: Probe, net: &mut Network<Probe>) {
        self.see(now, self.case.process_of[host as usize], host, packet.number, net);
    }

    fn handle_timer(&mut self, now: Time, timer: u32, net: &mut Network<Probe>) {
        let Case { early, changes, timers, looks, samples, processes, .. } = self.case;
        let mut index = timer as usize;
        if index < early.len() {
            self.move_packets(now, timer, net);
            return self.see(now, timer % processes, EARLY, 0, net);
        }
        index -= early.len();
        if let Some(&(_, link, change)) = changes.get(index) {
            return net.change_link(link as u32, |link| change.apply(now, link)).expect("such links are variable");
        }
        index -= changes.len();
        if let Some(&(process, _)) = timers.get(index) {
            return self.see(now, process, TIMER + timer, 0, net);
        }
        index -= timers.len();
        if let Some(&(process, other, _)) = looks.get(index) {
            return self.see(now, process, TIMER + timer, self.states[other as usize], net);
        }
        index -= looks.len();
        let Some(&(_, sends)) = samples.get(index) else {
            return match self.case.series {
                Some((_, interval)) if index == samples.len() => self.take_sample(now, interval, timer, net),
                _ => net.stop(),
            };
        };
        let mut rows = vec![];
        for link in net.links_mut() {
            let (packets, bytes) = link.queue(now);
            rows.push((packets, bytes, link.packets_inside(), *link.stats()));
        }
        self.outcome.samples.push((now.0, self.outcome.dropped.len(), rows));
        if sends {
            self.move_packets(now, timer, net);
            self.see(now, timer % processes, LATE + timer, 0, net);
        }
    }

    fn note_sample(&mut self, host: u32, _: Time, nth: usize) {
        let process = self.case.process_of[host as usize] as usize;
        self.noted.resize(self.noted.len().max(nth + 1), vec![0; self.states.len()]);
        self.noted[nth][process] = self.states[process];
    }

    fn write_samples(&mut self, first: Time, count: usize, net: &mut Network<Probe>) {
        let (_, interval) = self.case.series.expect("samples are those of a series");
        for nth in 0..count {
            let at = first + Span(nth as u64 * interval);
            let rows = net.links_to_sample().iter_mut().map(|link| link.sample(at)).collect();
            self.outcome.series.push((at.0, self.noted[nth].clone(), rows));
        }
    }

    fn handle_drop(&mut self, _: Time, link: u32, packet: Probe, reason: DropReason, _: &mut Network<Probe>) {
        self.outcome.dropped.push((link, packet.number, reason));
    }
}

/// Order of events between two pauses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Engine {
    Events,
    Horizons,
    InTurns,
}

/// The network of `case`, with first timers set, the division of its hosts, and these.
pub fn prepared(case: &Case) -> (Network<Probe>, Processes, Script<'_>) {
    let mut routes = Routes::default();
    let firsts: Vec<_> = case.routes.iter().map(|(links, host, _)| routes.add(links, *host).0).collect();
    for (route, links) in &case.paths {
        routes.add_path(RouteId(firsts[*route]), links);
    }
    let links = case.links.iter().enumerate().map(|(index, config)| {
        let changes = case.changes.iter().any(|&(_, link, _)| link == index);
        if changes {
            Link::variable(config, index as u64)
        } else {
            Link::fixed(config, index as u64)
        }
    });
    let early = case.early.len() + case.changes.len();
    let times: Vec<_> = (case.early.iter().copied())
        .chain(case.changes.iter().map(|change| change.0))
        .chain(case.timers.iter().map(|timer| timer.1))
        .chain(case.looks.iter().map(|look| look.2))
        .chain(case.samples.iter().map(|sample| sample.0))
        .chain(case.series.map(|series| series.0))
        .chain(case.stop)
        .collect();
    let mut net = Network::new(links.collect(), Pacers::default(), routes, times.len(), early);
    for (timer, &time) in (0..).zip(&times) {
        net.set_timer(timer, Time(time));
    }
    let mut of_timer = vec![TimerScope::All; times.len()];
    let of_processes = case.timers.iter().map(|timer| timer.0).chain(case.looks.iter().map(|look| look.0));
    for (scope, process) in of_timer[early..].iter_mut().zip(of_processes) {
        *scope = TimerScope::Process(process);
    }
    let first_look = (early + case.timers.len()) as u32;
    let looks = (first_look..).zip(&case.looks).map(|(timer, _)| timer).collect();
    if let Some((_, interval)) = case.series {
        of_timer[times.len() - 1 - usize::from(case.stop.is_some())] = TimerScope::HostSamples(Span(interval));
    }
    if case.stop.is_some() {
        of_timer[times.len() - 1] = TimerScope::AllAndEnds;
    }
    let senders = firsts.iter().copied().zip(case.routes.iter().map(|route| route.2)).collect();
    let later_delays = case.changes.iter().filter_map(|&(_, link, change)| match change {
        Change::Delay(delay) => Some((link as u32, Span(delay))),
        _ => None,
    });
    let processes = Processes {
        of_host: case.process_of.clone(),
        of_timer,
        senders,
        later_delays: later_delays.collect(),
        looks,
        packet_bytes: [40, 2039],
        of_work: case.work.iter().map(|work| work.0).collect(),
    };
    net.end_with_work(case.work.len() as u32);
    (net, processes, Script::new(case, firsts))
}

/// Tells the links of `net` when they are sampled.
pub fn take_samples(case: &Case, net: &mut Network<Probe>) {
    if let Some((first, interval)) = case.series {
        net.take_samples(Time(first), Span(interval));
    }
}

/// Runs `case`; the error tells why it has no horizons.
pub fn run(case: &Case, engine: Engine) -> Result<Outcome, Unfit> {
    let (mut net, processes, mut script) = prepared(case);
    net.plan_horizons(processes)?;
    if engine != Engine::Events {
        take_samples(case, &mut net);
    }
    let watches = !case.work.is_empty();
    if watches && net.lookahead_watching() == Some(Span(0)) {
        return Err(Unfit::NoLookahead);
    }
    let mut by_horizons = engine != Engine::Events;
    'run: for until in case.pauses.iter().copied().filter(|&pause| pause < case.end).chain([case.end]) {
        loop {
            let (until, end) = (Time(until), Time(case.end));
            let progress = if by_horizons && watches {
                net.run_horizons_watching(&mut script, until, end, 100)
            } else if by_horizons {
                net.run_horizons(&mut script, until, end, 100)
            } else {
                net.run_until(&mut script, until, end, 100)
            };
            match progress {
                Progress::ReachedEvents => {}
                Progress::ReachedTime => break,
                Progress::Stopped => break 'run,
            }
        }
        by_horizons = if engine == Engine::InTurns { !by_horizons } else { by_horizons };
    }
    Ok(script.finished(net))
}

fn link_config() -> impl Strategy<Value = LinkConfig> {
    let loss = prop_oneof![
        4 => Just(LossModel::None),
        1 => (2u64..20).prop_map(|n| LossModel::EveryNth { n }),
        1 => Just(LossModel::Independent { probability_e12: 100_000_000_000 }),
    ];
    let rate = prop_oneof![
        2 => Just(1_000_000_000u64),
        2 => Just(100_000_000_000),
        2 => 100_000_000u64..20_000_000_000,
        1 => Just(1 << 42),
    ];
    let delay = prop_oneof![Just(0u64), Just(10_000), 0u64..20_000];
    let packets = prop_oneof![2 => (1u64..10).prop_map(Some), 1 => Just(Some(104)), 2 => Just(None)];
    let limits = (packets, prop::option::of(2_000u64..9_000));
    (rate, delay, limits, loss).prop_map(|(rate, delay, (limit_packets, limit_bytes), loss)| LinkConfig {
        queue: QueueConfig::DropTail { limit_bytes, limit_packets },
        ..drop_tail(rate, delay, None, loss)
    })
}

/// A queue discipline, jitter or policer of a link that decides late.
fn late() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        3 => Just(None),
        1 => (1u64..6, any::<bool>()).prop_map(|(min, ecn)| Some(QueueConfig::Red {
            limit_bytes: 9_000,
            min_bytes: min * 500,
            max_bytes: min * 1_500,
            max_probability_ppm: 300_000,
            weight_shift: 2,
            ecn,
        })),
        1 => (2u64..20, any::<bool>()).prop_map(|(limit_packets, ecn)| {
            let (target, interval) = (Span(5_000), Span(20_000));
            Some(QueueConfig::Codel { limit_packets, target, interval, ecn })
        }),
        1 => (2u64..20, any::<bool>()).prop_map(|(limit_packets, ecn)| Some(QueueConfig::FqCodel {
            limit_packets,
            flows: 2,
            quantum_bytes: 1_500,
            target: Span(5_000),
            interval: Span(20_000),
            ecn,
        })),
    ];
    let distribution = prop_oneof![
        Just(JitterDistribution::Uniform),
        Just(JitterDistribution::Exponential),
        Just(JitterDistribution::Normal)
    ];
    let jitter = (distribution, prop_oneof![0u64..20, 0u64..20_000], any::<bool>());
    let policer = (1_000_000u64..2_000_000_000, 1_500u64..9_000);
    let batching = (0u32..5_000, prop_oneof![Just(0u64), 0u64..5_000], prop::option::of(1u64..5));
    let batched = (link_config(), batching).prop_map(|(config, (max_bytes, wait, wait_packets))| LinkConfig {
        loss: LossModel::None,
        batching: Some(Batching { max_bytes, wait: Span(wait), wait_packets }),
        ..config
    });
    let other = (link_config(), queue, prop::option::of(jitter), prop::option::weighted(0.3, policer)).prop_map(
        |(config, queue, jitter, policer)| LinkConfig {
            queue: queue.unwrap_or_else(|| config.queue.clone()),
            jitter: jitter.map(|(distribution, scale, reordering)| Jitter {
                distribution,
                scale: Span(scale),
                reordering,
            }),
            policer: policer.map(|(rate, burst_bytes)| PolicerConfig { rate: Rate(rate), burst_bytes }),
            ..config
        },
    );
    prop_oneof![4 => other, 1 => batched]
}

/// A route as drawn: which links, to the host of an earlier route, process that sends or receives.
type DrawnRoute = (u32, bool, u32, u32);

pub fn case() -> impl Strategy<Value = Case> {
    let time = || prop_oneof![0u64..30, (0u64..30).prop_map(|at| at * 1000 / 250), 0u64..120];
    let route = (1u32..256, any::<bool>(), 0u32..4, 0u32..4);
    let times = (
        prop::collection::vec(time(), 0..3),
        prop::collection::vec((0u32..4, time()), 0..8),
        prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec((0u32..4, 0u32..4, time()), 1..4)],
        prop::collection::vec((time(), any::<bool>()), 0..5),
        prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec((0u32..4, 1u32..20), 1..6)],
        prop::option::weighted(0.2, time()),
        prop::collection::vec(time(), 0..4),
        prop_oneof![Just(UNBOUNDED), 0u64..200_000],
        prop::option::of((time(), prop_oneof![1u64..20, 20u64..200])),
    );
    let form = (1u32..5, any::<bool>(), prop_oneof![Just(1000u64), Just(333), Just(10_000)], any::<bool>());
    // Half of the networks have links that decide late or change.
    let links = prop_oneof![
        (prop::collection::vec(link_config(), 1..8), Just(vec![])),
        (
            prop::collection::vec(prop_oneof![2 => link_config().boxed(), 1 => late().boxed()], 1..8),
            prop::collection::vec((time(), any::<usize>(), change()), 0..4),
        ),
    ];
    let paths = prop_oneof![
        2 => Just(vec![]),
        1 => prop::collection::vec((0usize..8, 1u32..256), 1..5),
    ];
    let routes = (prop::collection::vec(route, 1..8), paths);
    (links, routes, form, times).prop_map(built)
}

/// Links, and their changes: time, link, change.
type DrawnLinks = (Vec<LinkConfig>, Vec<(u64, usize, Change)>);

type Times = (
    Vec<u64>,
    Vec<(u32, u64)>,
    Vec<(u32, u32, u64)>,
    Vec<(u64, bool)>,
    Vec<(u32, u32)>,
    Option<u64>,
    Vec<u64>,
    u64,
    Option<(u64, u64)>,
);

/// Processes, routes lead down the numbers of links, grain, aligned.
type Form = (u32, bool, u64, bool);

/// Routes, and for further paths of them: route, which links.
type DrawnRoutes = (Vec<DrawnRoute>, Vec<(usize, u32)>);

fn built(((mut links, changes), (drawn, paths), form, times): (DrawnLinks, DrawnRoutes, Form, Times)) -> Case {
    let (processes, is_downward, mut grain, is_aligned) = form;
    if is_aligned {
        grain = 1000;
        for link in &mut links {
            (link.rate, link.delay) = (Rate(1_000_000_000), Span(link.delay.0 / 1000 * 1000));
        }
    }
    let (early, timers, looks, samples, work, stop, mut pauses, mut end, series) = times;
    let mut series = series.map(|(first, interval)| (first * 1000, interval * 1000));
    // Beside a series that processes take in their turns timers of all send nothing.
    if !early.is_empty() || samples.iter().any(|&(_, sends)| sends) {
        series = None;
    }
    if let Some((first, interval)) = series {
        end = end.min(first + MOST_OF_SERIES * interval);
    }
    let mut routes: Vec<(Vec<usize>, u32, u32)> = vec![];
    let mut process_of = vec![];
    let over = |mask: u32| {
        let mut over: Vec<_> = (0..links.len()).filter(|link| mask >> link & 1 == 1).collect();
        if over.is_empty() {
            over.push(mask as usize % links.len());
        }
        if is_downward {
            over.reverse();
        }
        over
    };
    let paths = paths.into_iter().map(|(route, mask)| (route % drawn.len(), over(mask))).collect();
    for (mask, shares, receiver, sender) in drawn {
        let over = over(mask);
        let same_last = |links: &[usize]| mask & 3 == 0 || links.last() == over.last();
        let earlier = routes.iter().find(|(links, ..)| shares && same_last(links)).map(|route| route.1);
        let host = earlier.unwrap_or_else(|| {
            process_of.push(receiver % processes);
            process_of.len() as u32 - 1
        });
        routes.push((over, host, sender % processes));
    }
    pauses.iter_mut().for_each(|pause| *pause *= 1000);
    pauses.sort_unstable();
    let count = links.len();
    let is_batched: Vec<_> = links.iter().map(|link| link.batching.is_some()).collect();
    Case {
        links,
        routes,
        paths,
        process_of,
        processes,
        // Batches do not change.
        changes: (changes.into_iter().map(|(at, link, change)| (at * 1000, link % count, change)))
            .filter(|change| !is_batched[change.1])
            .collect(),
        early: early.into_iter().map(|at| at * 1000).collect(),
        timers: timers.into_iter().map(|(process, at)| (process % processes, at * 1000)).collect(),
        looks: looks.into_iter().map(|(one, other, at)| (one % processes, other % processes, at * 1000)).collect(),
        samples: samples.into_iter().map(|(at, sends)| (at * 1000, sends)).collect(),
        series,
        work: work.into_iter().map(|(process, event)| (process % processes, event)).collect(),
        stop: stop.map(|at| at * 1000),
        pauses,
        end,
        grain,
        is_aligned,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Arrivals and timers of each process, losses, samples, counters, the number of events and what is still to come
    /// are those of single events; also when the two take turns.
    #[test]
    fn horizons_change_nothing(case in case()) {
        let Ok(events) = run(&case, Engine::Events) else { return Ok(()) };
        for engine in [Engine::Horizons, Engine::InTurns] {
            let found = run(&case, engine).expect("it has horizons");
            let difference = found.lines().into_iter().zip(events.lines()).find(|(found, events)| found != events);
            prop_assert_eq!(difference, None, "{:?}", engine);
            prop_assert_eq!(&found, &events);
        }
    }
}
