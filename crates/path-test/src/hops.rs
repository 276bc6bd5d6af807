//! Routers of a path, and delay, rate and queue of each link between them, by packets of limited TTL.
//!
//! Traceroute finds the routers. Then packets of several sizes end at each of them in turn, by TTL, and its ICMP
//! message tells when. The least round trip of a size is without queueing; over the sizes it rises by the sum of
//! 1/rate of the links up to that router. The difference from the router before is 1/rate of the link between
//! (Jacobson, pathchar, 1997; Downey, "Using pathchar to estimate Internet link characteristics", SIGCOMM 1999). Time
//! above the least is queueing.

use crate::estimate::{Cost, Estimate, Estimator, Next, Outcome};
use crate::train::{RouterReply, Train, TrainPacket, TrainReport};
use core::net::IpAddr;
use serde::Deserialize;

/// Routers that names of quantities are made for.
pub const MOST_HOPS: usize = 30;
/// ICMP messages of routers have at most this many bytes and quote up to then (RFC 1812, 4.3.2.3), so that beyond that
/// size of a packet they are all alike.
const QUOTE_ALL_BYTES: f64 = 576.0;
/// Older routers quote the IP header and 8 bytes (RFC 792).
const QUOTE_LEAST_BYTES: f64 = 56.0;
/// Least size of a packet about which all messages are alike, bytes.
const LEAST_BYTES: u32 = 576;
/// Sizes of packets: 45 pairs of them give a slope.
const SIZES: usize = 10;
/// Packets that look for a router.
const LOOKS: u32 = 3;
/// Routers in a row that may be silent before the far end counts as out of reach.
const SILENT: usize = 6;
/// Packets of one train, of one size and TTL.
const TRAIN: u32 = 6;
/// Least replies to a size: the least of fewer is hardly without queueing.
const LEAST_REPLIES: usize = 5;
/// Share of replies that a router may leave out, of what the far end answers: beyond, its messages are limited.
const MISSING: f64 = 0.3;
/// Share of replies that may come from other routers at the same TTL.
const OTHERS: f64 = 0.2;
/// Ratio of the bounds of a rate's interval from which there is no rate but these bounds.
const VAGUE: f64 = 3.0;
/// Rest between two trains, ns.
const REST_NS: u64 = 20_000_000;

macro_rules! names {
    ($what:literal: $($number:literal)*) => { [$(concat!("hop_", $number, "_", $what)),*] };
}

/// Names of one quantity by hop, from hop 1.
type Names = [&'static str; MOST_HOPS];
/// Rate of the link to a hop.
const CAPACITY: Names = names!("capacity_bps": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27
    28 29 30);
/// Propagation delay of the link to a hop, one way.
const DELAY: Names = names!("delay_s": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
    30);
/// Mean time in queues at the link to a hop, both ways.
const QUEUE: Names = names!("queue_delay_s": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28
    29 30);
/// Round trip to a hop, without queueing, of the smallest packet.
const RTT: Names = names!("rtt_s": 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30);

/// Bounds of the measurement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of the test.
    pub test: String,
    /// Largest packet, from the IP header on, bytes.
    pub packet_bytes: u32,
    /// Furthest router that is looked for.
    pub max_hops: u8,
    /// Packets of each size to each router; 0: traceroute alone.
    pub packets: u32,
    /// Time between two packets, ms: routers limit their messages, and each packet is to find the path at rest.
    pub gap_ms: u32,
    /// Rate of the line as its owner knows it, bit/s.
    pub line_rate_bps: Option<u64>,
    /// Share of that rate that the test may take, 10^-6.
    pub share_ppm: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            test: "hops".to_owned(),
            packet_bytes: 1500,
            max_hops: MOST_HOPS as u8,
            packets: 24,
            gap_ms: 20,
            line_rate_bps: None,
            share_ppm: 10_000,
        }
    }
}

/// Replies to packets of one size.
#[derive(Clone, Default)]
struct Samples {
    /// Round trips, ns.
    round_ns: Vec<u64>,
    /// To the far end, by two clocks.
    forward: Vec<OneWay>,
}

/// A packet to the far end.
#[derive(Clone, Copy)]
struct OneWay {
    /// Round of measurement.
    round: u32,
    /// ns of the sender's clock.
    sent_ns: u64,
    /// Receiver's clock less sender's, ns.
    took_ns: i64,
}

/// Replies of one hop.
#[derive(Clone, Default)]
struct Hop {
    /// The router that answers most; none: silent, or the far end.
    address: Option<IpAddr>,
    /// The far end.
    end: bool,
    /// Packets sent to it, and replies.
    sent: u32,
    replies: u32,
    /// Replies that came from other routers.
    others: u32,
    /// Each other router once, up to four.
    seen: Vec<IpAddr>,
    /// By size.
    samples: Vec<Samples>,
}

/// A packet's end, as a reply tells it.
enum Ended<'a> {
    At(&'a RouterReply),
    FarEnd,
    Refused(&'a RouterReply),
    Unknown,
}

fn end_of(packet: &TrainPacket) -> Ended<'_> {
    let Some(reply) = &packet.router else {
        return if packet.returned_ns.is_some() || packet.received_ns.is_some() {
            Ended::FarEnd
        } else {
            Ended::Unknown
        };
    };
    match (reply.address.is_ipv4(), reply.icmp_type, reply.icmp_code) {
        (true, 11, 0) | (false, 3, 0) => Ended::At(reply),
        // Port unreachable: the packet was there.
        (true, 3, 3) | (false, 1, 4) => Ended::FarEnd,
        _ => Ended::Refused(reply),
    }
}

/// A point of the schedule.
#[derive(Clone, Copy)]
struct Turn {
    round: u32,
    size: usize,
    hop: usize,
}

enum Phase {
    Looking,
    Measuring(Turn),
    Over,
}

/// The measurement.
pub struct Hops {
    settings: Settings,
    gap_ns: u64,
    sizes: Vec<u32>,
    hops: Vec<Hop>,
    phase: Phase,
    next_ns: u64,
    began_ns: Option<u64>,
    cost: Cost,
    /// A router that refused, in words.
    stopped: Option<String>,
}

impl Hops {
    /// A measurement by `settings`.
    ///
    /// # Errors
    /// The setting that does not fit, in a line.
    pub fn new(settings: Settings) -> Result<Hops, String> {
        if !(900..=65_535).contains(&settings.packet_bytes) {
            let given = settings.packet_bytes;
            return Err(format!("packet_bytes = {given}: 900 to 65535, or sizes differ too little for a rate"));
        }
        if !(1..=MOST_HOPS).contains(&usize::from(settings.max_hops)) {
            return Err(format!("max_hops = {}: 1 to {MOST_HOPS}", settings.max_hops));
        }
        if settings.packets != 0 && (settings.packets as usize) < LEAST_REPLIES {
            return Err(format!("packets = {}: 0 or {LEAST_REPLIES} at least", settings.packets));
        }
        if !(1..=10_000).contains(&settings.gap_ms) {
            return Err(format!("gap_ms = {}: 1 to 10000", settings.gap_ms));
        }
        if !(1..=1_000_000).contains(&settings.share_ppm) {
            return Err(format!("share_ppm = {}: 1 to 1000000", settings.share_ppm));
        }
        let steps = SIZES as u32 - 1;
        let sizes = (0..=steps).map(|at| LEAST_BYTES + (settings.packet_bytes - LEAST_BYTES) * at / steps).collect();
        let least_gap_ns = u64::from(settings.gap_ms) * 1_000_000;
        // Of the largest packets, so that the mean stays below.
        let paced = settings.line_rate_bps.filter(|&rate| rate > 0).map(|rate| {
            let bits = u128::from(settings.packet_bytes) * 8;
            bits * 1_000_000_000 * 1_000_000 / (u128::from(rate) * u128::from(settings.share_ppm))
        });
        let gap_ns = least_gap_ns.max(paced.map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX).min(10_000_000_000)));
        let phase = Phase::Looking;
        Ok(Hops {
            settings,
            gap_ns,
            sizes,
            hops: vec![],
            phase,
            next_ns: 0,
            began_ns: None,
            cost: Cost::default(),
            stopped: None,
        })
    }

    fn has_end(&self) -> bool {
        self.hops.last().is_some_and(|hop| hop.end)
    }

    fn rounds(&self) -> u32 {
        self.settings.packets.div_ceil(TRAIN)
    }

    /// The first turn from `turn` on, that one included, at a hop that answers; None: all are over.
    fn turn_from(&self, mut turn: Turn) -> Option<Turn> {
        loop {
            if turn.hop >= self.hops.len() {
                turn = Turn { hop: 0, size: turn.size + 1, ..turn };
            }
            if turn.size >= SIZES {
                turn = Turn { round: turn.round + 1, size: 0, ..turn };
            }
            if turn.round >= self.rounds() {
                return None;
            }
            match self.hops.get(turn.hop) {
                Some(hop) if hop.replies > 0 => return Some(turn),
                Some(_) => turn.hop += 1,
                None => return None,
            }
        }
    }

    /// Index of the size at place `at` of a round: far from the one before, so that a change in time is none of size.
    fn size_at(at: usize) -> usize {
        at * 3 % SIZES
    }

    fn train(&self) -> Option<(Train, usize)> {
        let (ttl, bytes, packets) = match self.phase {
            Phase::Looking => (self.hops.len() as u8 + 1, self.sizes[0], LOOKS),
            Phase::Measuring(turn) => {
                let left = self.settings.packets - turn.round * TRAIN;
                (turn.hop as u8 + 1, self.sizes[Hops::size_at(turn.size)], left.min(TRAIN))
            }
            Phase::Over => return None,
        };
        let mut train = Train::even(packets, bytes, self.gap_ns);
        train.do_not_fragment = true;
        train.ttl = ttl;
        Some((train, usize::from(ttl) - 1))
    }

    fn look(&mut self, report: &TrainReport) {
        let mut hop = Hop { samples: vec![Samples::default(); SIZES], ..Hop::default() };
        hop.sent = report.packets.len() as u32;
        let mut found: Vec<(IpAddr, u32)> = vec![];
        for packet in &report.packets {
            match end_of(packet) {
                Ended::At(reply) => match found.iter_mut().find(|(address, _)| *address == reply.address) {
                    Some((_, count)) => *count += 1,
                    None => found.push((reply.address, 1)),
                },
                Ended::FarEnd => {
                    hop.end = true;
                    hop.replies += 1;
                }
                Ended::Refused(reply) => {
                    let RouterReply { address, icmp_type, icmp_code, .. } = reply;
                    let ttl = self.hops.len() + 1;
                    self.stopped =
                        Some(format!("hop {ttl}: {address} refuses (ICMP type {icmp_type}, code {icmp_code})"));
                }
                Ended::Unknown => {}
            }
        }
        if !hop.end {
            // The first of those that answered most.
            let most = found.iter().map(|&(_, count)| count).max().unwrap_or(0);
            hop.address = found.iter().find(|&&(_, count)| count == most).map(|&(address, _)| address);
            hop.replies = found.iter().map(|&(_, count)| count).sum();
            hop.others = hop.replies - most;
            hop.seen = found.iter().map(|&(address, _)| address).filter(|&one| Some(one) != hop.address).collect();
        }
        self.hops.push(hop);
        let silent = self.hops.iter().rev().take_while(|hop| hop.replies == 0).count();
        let over = self.has_end() || silent >= SILENT || self.hops.len() >= usize::from(self.settings.max_hops);
        if over || self.stopped.is_some() {
            if !self.has_end() {
                self.hops.truncate(self.hops.len() - silent);
            }
            self.phase = match self.turn_from(Turn { round: 0, size: 0, hop: 0 }) {
                Some(turn) => Phase::Measuring(turn),
                None => Phase::Over,
            };
        }
    }

    fn measure(&mut self, turn: Turn, report: &TrainReport) {
        let size = Hops::size_at(turn.size);
        let hop = &mut self.hops[turn.hop];
        hop.sent += report.packets.len() as u32;
        // A message may quote no more than the UDP header, so that messages are told apart by their order alone: where
        // one is missing, the others may belong to other packets.
        let all_answered = report.packets.iter().all(|packet| packet.router.is_some());
        for packet in &report.packets {
            let at = match end_of(packet) {
                Ended::At(reply) if !hop.end && Some(reply.address) == hop.address => {
                    if !all_answered || reply.at_ns <= packet.sent_ns {
                        hop.replies += 1;
                        continue;
                    }
                    reply.at_ns
                }
                Ended::At(reply) => {
                    hop.replies += 1;
                    hop.others += 1;
                    if !hop.seen.contains(&reply.address) && hop.seen.len() < 4 {
                        hop.seen.push(reply.address);
                    }
                    continue;
                }
                Ended::FarEnd if hop.end => {
                    if let Some(received_ns) = packet.received_ns {
                        let took_ns = received_ns.wrapping_sub(packet.sent_ns) as i64;
                        let one_way = OneWay { round: turn.round, sent_ns: packet.sent_ns, took_ns };
                        hop.samples[size].forward.push(one_way);
                    }
                    match packet.returned_ns.or(packet.router.as_ref().map(|reply| reply.at_ns)) {
                        Some(at) => at,
                        None => continue,
                    }
                }
                // The path has become shorter.
                Ended::FarEnd => {
                    hop.replies += 1;
                    hop.others += 1;
                    continue;
                }
                Ended::Refused(_) | Ended::Unknown => continue,
            };
            hop.replies += 1;
            hop.samples[size].round_ns.push(at.saturating_sub(packet.sent_ns));
        }
        self.phase = match self.turn_from(Turn { hop: turn.hop + 1, ..turn }) {
            Some(turn) => Phase::Measuring(turn),
            None => Phase::Over,
        };
    }

    fn outcome(&self, now_ns: u64) -> Outcome {
        let mut cost = self.cost;
        cost.seconds = now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)) as f64 / 1e9;
        let mut outcome = Outcome { estimates: vec![], refused: None, notes: vec![], cost };
        if self.hops.iter().all(|hop| hop.replies == 0) {
            let why = "no router and no far end answered: ICMP messages are blocked, or there is no path";
            outcome.refused = Some(self.stopped.clone().unwrap_or_else(|| why.to_owned()));
            return outcome;
        }
        if self.has_end() {
            let count = self.hops.len() as f64;
            outcome.estimates.push(Estimate { quantity: "hops", value: count, low: count, high: count });
        } else {
            let why =
                self.stopped.clone().unwrap_or_else(|| "routers behind it, and the far end, are silent".to_owned());
            outcome.notes.push(format!("hop {} is the last that answered: {why}", self.hops.len()));
        }
        self.judge(&mut outcome);
        let measured = outcome.estimates.iter().any(|estimate| estimate.quantity.ends_with("capacity_bps"));
        if self.settings.packets > 0 && !measured {
            outcome.refused = Some(
                "no link's rate could be told: see the notes for each hop's reason; larger packets or more of them help"
                    .to_owned(),
            );
        }
        outcome
    }

    /// Adds each hop's estimates and notes.
    fn judge(&self, outcome: &mut Outcome) {
        let answered = |hop: &Hop| f64::from(hop.replies) / f64::from(hop.sent.max(1));
        let mut before = Some(Reach::default());
        for (index, hop) in self.hops.iter().enumerate() {
            let number = index + 1;
            if hop.replies == 0 {
                outcome.notes.push(format!("hop {number}: silent; what follows it holds for both links"));
                continue;
            }
            let (replies, sent) = (hop.replies, hop.sent);
            outcome.notes.push(match hop.address {
                Some(address) => format!("hop {number}: {address}, {replies} replies to {sent} packets"),
                None => format!("hop {number}: the far end, {replies} replies to {sent} packets"),
            });
            if !hop.seen.is_empty() || hop.others > 0 {
                let seen: Vec<_> = hop.seen.iter().map(ToString::to_string).collect();
                let seen = if seen.is_empty() { "the far end".to_owned() } else { seen.join(", ") };
                let others = hop.others;
                outcome.notes.push(format!("hop {number}: the route changed: {others} replies came from {seen}"));
            }
            if self.settings.packets == 0 {
                continue;
            }
            // Losses of the path itself show further on, too.
            let further = self.hops[index..].iter().map(answered).fold(0.0, f64::max);
            let refusal = if f64::from(hop.others) > OTHERS * f64::from(hop.replies) {
                Some("its packets take several routes".to_owned())
            } else if answered(hop) < further - MISSING {
                let (own, later) = (100.0 * answered(hop), 100.0 * further);
                Some(format!("its ICMP messages are limited: {own:.0} % came, where later hops answered {later:.0} %"))
            } else {
                hop.samples
                    .iter()
                    .map(|samples| samples.round_ns.len())
                    .min()
                    .filter(|&least| least < LEAST_REPLIES)
                    .map(|least| format!("{least} replies to packets of one size: {LEAST_REPLIES} at least are needed"))
            };
            if let Some(why) = refusal {
                outcome.notes.push(format!("hop {number}: not measured: {why}"));
                before = None;
                continue;
            }
            let reach = Reach::of(hop, &self.sizes);
            let rtt = least_s(&hop.samples[0]);
            let spread = reach.spread_s();
            outcome.estimates.push(Estimate {
                quantity: RTT[index],
                value: rtt,
                low: rtt - spread,
                high: rtt + spread,
            });
            if let Some(before) = &before {
                reach.add_to(outcome, index, before);
            } else {
                outcome.notes.push(format!("hop {number}: no rate: the hop before it was not measured"));
            }
            before = Some(reach);
        }
    }
}

impl Estimator for Hops {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        self.began_ns.get_or_insert(now_ns);
        match self.train() {
            Some((train, _)) => Next::Send { at_ns: self.next_ns.max(now_ns), train },
            None => Next::Done(self.outcome(now_ns)),
        }
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        let Some((train, _)) = self.train() else { return };
        self.cost.packets += report.packets.len() as u64;
        self.cost.bytes += report.packets.len() as u64 * u64::from(train.packet_bytes);
        self.next_ns = now_ns.saturating_add(REST_NS.max(self.gap_ns));
        match self.phase {
            Phase::Looking => self.look(report),
            Phase::Measuring(turn) => self.measure(turn, report),
            Phase::Over => {}
        }
    }
}

/// Least round trip, s.
fn least_s(samples: &Samples) -> f64 {
    samples.round_ns.iter().min().map_or(0.0, |&ns| ns as f64 / 1e9)
}

/// Path up to a hop.
#[derive(Clone, Copy, Default)]
struct Reach {
    /// Sum of 1/rate, s/byte, with its interval.
    slope: f64,
    slope_low: f64,
    slope_high: f64,
    /// Propagation delay one way, s, if messages have [`QUOTE_ALL_BYTES`].
    delay_s: f64,
    /// The same with [`QUOTE_LEAST_BYTES`].
    delay_most_s: f64,
    /// Half-width of the delay's interval beside the size of messages, s.
    delay_error_s: f64,
    /// Mean time in queues, there and back, s, and its standard error.
    queue_s: f64,
    queue_error_s: f64,
    /// Spread of the least times around the line, s.
    residual_s: f64,
}

impl Reach {
    fn of(hop: &Hop, sizes: &[u32]) -> Reach {
        let sizes: Vec<f64> = sizes.iter().map(|&bytes| f64::from(bytes)).collect();
        let rounds: Vec<f64> = hop.samples.iter().map(least_s).collect();
        let one_way = hop.end && hop.samples.iter().all(|samples| samples.forward.len() >= LEAST_REPLIES);
        // A message about a packet has one size; the far end's answer has the packet's.
        let line = Line::through(&sizes, &if one_way { forward_s(&hop.samples) } else { rounds.clone() });
        let answers_in_kind = hop.end && !one_way;
        let halved = if answers_in_kind { 0.5 } else { 1.0 };
        let (slope, slope_low, slope_high) = (line.slope * halved, line.low * halved, line.high * halved);
        let positive = slope.max(0.0);
        let back = |reply_bytes: f64| {
            // Way back: as fast as the way there.
            let each = sizes.iter().zip(&rounds).map(|(&bytes, &round)| {
                let reply = if hop.end { bytes } else { reply_bytes };
                (round - positive * (bytes + reply)) / 2.0
            });
            median(&mut each.collect::<Vec<_>>())
        };
        let round_line = Line::through(&sizes, &rounds);
        let mut excess = vec![];
        for (samples, &bytes) in hop.samples.iter().zip(&sizes) {
            let base = round_line.at(bytes);
            excess.extend(samples.round_ns.iter().map(|&ns| (ns as f64 / 1e9 - base).max(0.0)));
        }
        let count = excess.len().max(1) as f64;
        let queue_s = excess.iter().sum::<f64>() / count;
        let variance = excess.iter().map(|one| (one - queue_s) * (one - queue_s)).sum::<f64>() / count;
        let mean_bytes = sizes.iter().sum::<f64>() / sizes.len() as f64;
        Reach {
            slope,
            slope_low,
            slope_high,
            delay_s: back(QUOTE_ALL_BYTES),
            delay_most_s: back(QUOTE_LEAST_BYTES),
            delay_error_s: (slope_high - slope_low) / 2.0 * (mean_bytes + QUOTE_ALL_BYTES) / 2.0 + round_line.residual,
            queue_s,
            queue_error_s: (variance / count).sqrt(),
            residual_s: round_line.residual,
        }
    }

    fn spread_s(&self) -> f64 {
        self.residual_s
    }

    /// Adds what the path has more than `before`, as that of the link to hop `index`.
    fn add_to(&self, outcome: &mut Outcome, index: usize, before: &Reach) {
        let both = |own: f64, other: f64| (own * own + other * other).sqrt();
        let slope = self.slope - before.slope;
        let low = slope - both(self.slope - self.slope_low, before.slope_high - before.slope);
        let high = slope + both(self.slope_high - self.slope, before.slope - before.slope_low);
        let number = index + 1;
        if high <= 0.0 {
            outcome.notes.push(format!(
                "hop {number}: no rate: its packets seem to take less time than those to the hop before: that router's \
                 messages are slow, or routes differ"
            ));
        } else if low <= 0.0 {
            let least = 8.0 / high / 1e6;
            outcome
                .notes
                .push(format!("hop {number}: no rate: too fast for packets of this size: at least {least:.0} Mbit/s"));
        } else if high > VAGUE * low {
            let [least, most] = [high, low].map(|slope| 8.0 / slope / 1e6);
            outcome.notes.push(format!(
                "hop {number}: no rate: between {least:.0} and {most:.0} Mbit/s: more or larger packets tell more"
            ));
        } else {
            let (value, low, high) = (8.0 / slope, 8.0 / high, 8.0 / low);
            outcome.estimates.push(Estimate { quantity: CAPACITY[index], value, low, high });
        }
        let error = both(self.delay_error_s, before.delay_error_s);
        let value = self.delay_s - before.delay_s;
        let other = self.delay_most_s - before.delay_most_s;
        let (low, high) = ((value.min(other) - error).max(0.0), (value.max(other) + error).max(0.0));
        outcome.estimates.push(Estimate { quantity: DELAY[index], value: value.max(0.0), low, high });
        let value = self.queue_s - before.queue_s;
        let error = 1.96 * both(self.queue_error_s, before.queue_error_s);
        let (low, high) = ((value - error).max(0.0), (value + error).max(0.0));
        outcome.estimates.push(Estimate { quantity: QUEUE[index], value: value.max(0.0), low, high });
    }
}

/// By size: the least time one way, s, less what the two clocks' rates differ by.
fn forward_s(samples: &[Samples]) -> Vec<f64> {
    let all = || samples.iter().flat_map(|one| &one.forward);
    let rounds = all().map(|one| one.round).max().unwrap_or(0);
    let least = |samples: &Samples, round: u32| {
        samples.forward.iter().filter(|one| one.round == round).min_by_key(|one| one.took_ns).copied()
    };
    // As in a line through points by Theil and Sen: one round of a size against a later one.
    let mut drifts = vec![];
    for one in samples {
        let least: Vec<_> = (0..=rounds).filter_map(|round| least(one, round)).collect();
        for (index, earlier) in least.iter().enumerate() {
            for later in &least[index + 1..] {
                let apart_ns = later.sent_ns.saturating_sub(earlier.sent_ns).max(1);
                drifts.push((later.took_ns - earlier.took_ns) as f64 / apart_ns as f64);
            }
        }
    }
    let drift = median(&mut drifts);
    let (first, began) = (all().map(|one| one.took_ns).min(), all().map(|one| one.sent_ns).min());
    let (first, began) = (first.unwrap_or(0), began.unwrap_or(0));
    let steady = |one: &OneWay| (one.took_ns - first) as f64 - drift * (one.sent_ns - began) as f64;
    samples.iter().map(|one| one.forward.iter().map(steady).fold(f64::INFINITY, f64::min) / 1e9).collect()
}

/// A line through points by the median of the slopes of all pairs, with an interval of order statistics (Theil 1950,
/// Sen 1968): a few points that are too high do not move it.
struct Line {
    slope: f64,
    low: f64,
    high: f64,
    intercept: f64,
    /// Median distance of the points.
    residual: f64,
}

impl Line {
    fn through(xs: &[f64], ys: &[f64]) -> Line {
        let mut slopes = vec![];
        for (index, (x, y)) in xs.iter().zip(ys).enumerate() {
            slopes.extend(xs.iter().zip(ys).skip(index + 1).map(|(other_x, other_y)| (other_y - y) / (other_x - x)));
        }
        let slope = median(&mut slopes);
        // Kendall's statistic of n points without a slope has this deviation (Sen 1968).
        let count = xs.len() as f64;
        let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
        let outside = ((slopes.len() as f64 - 1.96 * deviation) / 2.0).max(0.0) as usize;
        let (low, high) = (slopes[outside], slopes[slopes.len() - 1 - outside]);
        let intercept = median(&mut xs.iter().zip(ys).map(|(x, y)| y - slope * x).collect::<Vec<_>>());
        let distance = |(x, y): (&f64, &f64)| (y - slope * x - intercept).abs();
        let residual = median(&mut xs.iter().zip(ys).map(distance).collect::<Vec<_>>());
        Line { slope, low, high, intercept, residual }
    }

    fn at(&self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The median; sorts. Zero of nothing.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    (values[last / 2] + values[last.div_ceil(2)]) / 2.0
}
