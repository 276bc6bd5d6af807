//! Changes of a loss rate: sequential tests of more loss than was agreed, or than the path has at this time of day.
//!
//! A loss and those within some packets after it are one loss event, as in TFRC (RFC 5348, 5.2): a burst says as much
//! of the rate as a single loss. Packets of a burst are not observed, so that their number does not matter. The others
//! are a sequence of trials, and each rate looked for has a cumulative sum of its log likelihood ratio against the
//! usual rate (Page 1954). Its threshold follows from the number of false alarms: on a path that holds, a ratio of
//! likelihoods exceeds e^h in at most e^-h of its starts (Ville), of which there is one per packet at most.

use crate::change::{Found, Kind};
use crate::config::Config;
use serde::{Deserialize, Serialize};

/// Hours of a day, on working days and at weekends.
const BINS: usize = 48;
/// Loss that matters at least where none was agreed, and its multiple of the usual rate.
const LEAST_RATE: f64 = 1e-3;
const LEAST_TIMES: f64 = 3.0;
/// The rate looked for first, in parts of what was agreed with its tolerance.
const AGREED_TIMES: f64 = 2.0;
/// From one rate looked for to the next, the greatest of them, and how many there are at most.
const RATE_STEP: f64 = 4.0;
const GREATEST_RATE: f64 = 0.5;
const RATES_MOST: usize = 16;
/// A loss event lasts for so many packets, and so long.
const EVENT_PACKETS: f64 = 10.0;
const EVENT_S: f64 = 3.0;
/// Of the threshold, what one event adds at most: it takes three.
const ONE_EVENT: f64 = 0.4;
/// A threshold is never below this.
const LEAST_THRESHOLD: f64 = 5.0;
/// An agreed rate of zero is this.
const ZERO_RATE: f64 = 1e-9;
/// A path without a loss so far has had so many events in so many packets.
const PRIOR_EVENTS: f64 = 0.5;
const PRIOR_PACKETS: f64 = 50_000.0;
/// Counts of a bin halve when they reach the packets of so many of its visits.
const VISITS_REMEMBERED: f64 = 30.0;
/// Packets before the first report where nothing was agreed.
const LEAST_PACKETS: f64 = 2000.0;
/// Events that the rate of a change is read from, at most; then they halve.
const EVENTS_REMEMBERED: f64 = 64.0;
/// A change has ended where loss is so much less than that of the change: from a part of its rate, whose estimate began
/// with an accidental cluster, to a fraction of that.
const ENDED_FROM: f64 = 0.5;
const ENDED_TO: f64 = 8.0;
/// The same for a change that is as small as can be, in parts of the usual rate. Between both, at 1.1 times the usual
/// rate, neither a change nor its end is likely: so a constant rate does not alternate.
const NEAR_FROM: f64 = 1.5;
const NEAR_TO: f64 = 0.75;
/// A gap of so long separates what was seen before it, s.
const LONG_GAP_S: f64 = 6.0 * 3600.0;

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Counts {
    /// Packets that were observed, and those among them that began a loss event.
    observed: f64,
    events: f64,
    packets: f64,
    lost: f64,
}

impl Counts {
    fn add(&mut self, is_observed: bool, is_lost: bool) {
        let count = |is: bool| f64::from(u8::from(is));
        self.observed += count(is_observed);
        self.events += count(is_observed && is_lost);
        self.packets += 1.0;
        self.lost += count(is_lost);
    }

    fn halve(&mut self) {
        for value in [&mut self.observed, &mut self.events, &mut self.packets, &mut self.lost] {
            *value /= 2.0;
        }
    }

    /// Moves counts here, and forgets early ones.
    fn take(&mut self, from: &mut Counts) {
        let Counts { observed, events, packets, lost } = std::mem::take(from);
        *self = Self {
            observed: self.observed + observed,
            events: self.events + events,
            packets: self.packets + packets,
            lost: self.lost + lost,
        };
        if self.events > EVENTS_REMEMBERED {
            self.halve();
        }
    }

    /// The counts less later ones, where enough are left to know a rate of.
    fn without(&self, later: &Counts) -> Counts {
        if self.events - later.events < 1.0 || self.observed <= later.observed {
            return *self;
        }
        Self { observed: self.observed - later.observed, events: self.events - later.events, ..*self }
    }

    /// Events per packet, half of a standard deviation less; the first event opened the counts.
    fn rate_at_least(&self) -> f64 {
        (self.events - 1.0 - 0.5 * libm::sqrt(self.events)).max(0.0) / self.observed.max(1.0)
    }

    /// Packets lost per event: the length of a burst.
    fn burst(&self) -> f64 {
        if self.events > 0.0 {
            (self.lost / self.events).max(1.0)
        } else {
            1.0
        }
    }
}

/// A cumulative sum, and what it was read from since it was zero.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Sum {
    value: f64,
    since_s: f64,
    counts: Counts,
}

impl Sum {
    /// Adds the log likelihood ratio of `rate` against `usual`; true where it exceeds the threshold.
    fn add(&mut self, at_s: f64, packet: Packet, rate: f64, usual: f64, threshold: f64) -> bool {
        if self.value <= 0.0 {
            if !packet.begins_event() {
                return false;
            }
            *self = Self { value: 0.0, since_s: at_s, counts: Counts::default() };
        }
        if packet.is_observed {
            let gain = log_ratio(packet.is_lost, rate, usual);
            self.value = (self.value + gain.min(ONE_EVENT * threshold)).max(0.0);
        }
        self.counts.add(packet.is_observed, packet.is_lost);
        self.value > threshold
    }

    /// Packets lost of packets sent. Its first event opened it and so tells nothing of the time between two.
    fn loss(&self) -> f64 {
        let counts = &self.counts;
        (counts.lost * (1.0 - 1.0 / counts.events.max(2.0)) / counts.packets.max(1.0)).min(1.0)
    }
}

fn log_ratio(is_lost: bool, rate: f64, usual: f64) -> f64 {
    if is_lost {
        libm::log(rate / usual)
    } else {
        libm::log1p(-rate) - libm::log1p(-usual)
    }
}

#[derive(Clone, Copy)]
struct Packet {
    is_lost: bool,
    is_observed: bool,
}

impl Packet {
    fn begins_event(self) -> bool {
        self.is_lost && self.is_observed
    }
}

/// A change that lasts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Lasting {
    since_s: f64,
    before: f64,
    counts: Counts,
    /// Log likelihood ratio of an end of the change, and packets since it was zero: they are not the change's yet.
    end: f64,
    since_end: Counts,
    /// Of a further rise.
    further: Sum,
}

impl Lasting {
    fn new(since_s: f64, before: f64, counts: Counts) -> Self {
        Self { since_s, before, counts, end: 0.0, since_end: Counts::default(), further: Sum::default() }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Loss {
    bins: Vec<Counts>,
    all: Counts,
    sums: Vec<Sum>,
    lasting: Option<Lasting>,
    /// Packets for which the loss event lasts.
    event_left: f64,
}

impl Loss {
    pub(crate) fn new() -> Self {
        Self {
            bins: vec![Counts::default(); BINS],
            all: Counts::default(),
            sums: vec![],
            lasting: None,
            event_left: 0.0,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.bins.len() == BINS && self.sums.len() <= RATES_MOST
    }

    /// Nothing was seen for `gap_s`. Losses before and after it are still of one rate unless it was long.
    pub(crate) fn interrupt(&mut self, gap_s: f64) {
        self.event_left = 0.0;
        if gap_s > LONG_GAP_S {
            self.sums.clear();
        }
    }

    fn bin(local_s: f64) -> usize {
        let day = libm::floor(local_s / 86_400.0);
        let hour = (((local_s - day * 86_400.0) / 3600.0) as usize).min(23);
        let weekend = (day as i64 + 3).rem_euclid(7) >= 5;
        usize::from(weekend) * 24 + hour
    }

    /// Usual events per packet at this time: the most of this hour and its neighbours, drawn to those of all hours.
    fn usual(&self, local_s: f64) -> f64 {
        let all = (self.all.events + PRIOR_EVENTS) / (self.all.observed + PRIOR_PACKETS);
        let bin = Self::bin(local_s);
        let (kind, hour) = (bin / 24, bin % 24);
        [23, 0, 1].into_iter().fold(0.0, |most: f64, ahead| {
            let near = &self.bins[kind * 24 + (hour + ahead) % 24];
            most.max((near.events + all * PRIOR_PACKETS) / (near.observed + PRIOR_PACKETS))
        })
    }

    /// Usual rate and the least rate looked for, events per packet.
    fn rates(&self, config: &Config, at_s: f64) -> (f64, f64) {
        match config.agreed {
            Some(agreed) => {
                let allowed = (agreed * (1.0 + config.tolerance)).clamp(ZERO_RATE, GREATEST_RATE);
                (allowed, AGREED_TIMES * allowed)
            }
            None => {
                let usual = self.usual(at_s + config.utc_offset_s).min(GREATEST_RATE);
                (usual, (LEAST_TIMES * usual).max(LEAST_RATE))
            }
        }
    }

    /// Takes in a packet.
    pub(crate) fn handle(&mut self, config: &Config, at_s: f64, is_lost: bool) -> Option<Found> {
        let packet = Packet { is_lost, is_observed: self.event_left <= 0.0 };
        if packet.begins_event() {
            self.event_left = EVENT_PACKETS.max(libm::ceil(EVENT_S / config.period_s));
        } else {
            self.event_left -= 1.0;
        }
        let (usual, least) = self.rates(config, at_s);
        if self.lasting.is_some() {
            return self.follow(config, at_s, usual, least, packet);
        }
        if let Some(sum) = self.look(config, at_s, usual, least, packet) {
            if config.agreed.is_some() || self.all.packets >= LEAST_PACKETS {
                let before = config.agreed.unwrap_or(usual * self.all.burst());
                self.lasting = Some(Lasting::new(sum.since_s, before, sum.counts));
                self.sums.clear();
                return Some(found(config, &sum, before));
            }
        }
        if config.agreed.is_none() {
            self.learn(config, at_s + config.utc_offset_s, packet);
        }
        None
    }

    /// Adds a packet to the sum of each rate; returns the one that exceeds its threshold.
    fn look(&mut self, config: &Config, at_s: f64, usual: f64, least: f64, packet: Packet) -> Option<Sum> {
        let mut rate = least.min(GREATEST_RATE.max(usual * 1.5)).min(0.999);
        let mut exceeding = None;
        for index in 0..RATES_MOST {
            if index == self.sums.len() {
                self.sums.push(Sum::default());
            }
            let sum = &mut self.sums[index];
            if sum.add(at_s, packet, rate, usual, threshold(config, rate)) {
                exceeding.get_or_insert(*sum);
            }
            if rate >= GREATEST_RATE {
                break;
            }
            rate = (rate * RATE_STEP).min(GREATEST_RATE);
        }
        exceeding
    }

    fn learn(&mut self, config: &Config, local_s: f64, packet: Packet) {
        let visit = 3600.0 / config.period_s;
        let remembered = (VISITS_REMEMBERED * visit).max(PRIOR_PACKETS);
        let bin = Self::bin(local_s);
        for (counts, most) in [(&mut self.bins[bin], remembered), (&mut self.all, 24.0 * remembered)] {
            counts.add(packet.is_observed, packet.is_lost);
            if counts.packets > most {
                counts.halve();
            }
        }
    }

    /// Looks for the end of a change, and for a further rise.
    fn follow(&mut self, config: &Config, at_s: f64, usual: f64, least: f64, packet: Packet) -> Option<Found> {
        let lasting = self.lasting.as_mut()?;
        lasting.since_end.add(packet.is_observed, packet.is_lost);
        if lasting.end <= 0.0 {
            lasting.counts.take(&mut lasting.since_end);
        }
        // Packets of a possible further rise are no part of the rate that it is compared with.
        let known = lasting.counts.without(&lasting.further.counts);
        let rate = (known.events / known.observed.max(1.0)).clamp(ZERO_RATE, GREATEST_RATE);
        if packet.is_observed {
            // Against the usual rate where one is known, else against the least that is looked for.
            let near = if config.agreed.is_some() { usual } else { usual.max(least / 2.0) };
            let from = (ENDED_FROM * lasting.counts.rate_at_least()).max(NEAR_FROM * near).min(GREATEST_RATE);
            let to = (from / ENDED_TO).max(NEAR_TO * near);
            lasting.end = (lasting.end + log_ratio(packet.is_lost, to, from)).max(0.0);
            if lasting.end > threshold(config, from) {
                return self.ended(config);
            }
        }
        let further = (RATE_STEP * rate).min(0.999);
        if lasting.further.value <= 0.0 {
            lasting.further.counts = Counts::default();
        }
        if rate < GREATEST_RATE && lasting.further.add(at_s, packet, further, rate, threshold(config, further)) {
            let sum = lasting.further;
            let before = lasting.before;
            self.lasting = Some(Lasting { since_s: lasting.since_s, ..Lasting::new(sum.since_s, before, sum.counts) });
            return Some(found(config, &sum, before));
        }
        self.adopt(config, at_s)
    }

    fn ended(&mut self, config: &Config) -> Option<Found> {
        let lasting = self.lasting.take()?;
        let Counts { packets, lost, .. } = lasting.since_end;
        Some(Found {
            kind: Kind::Recovered,
            since_s: lasting.since_s,
            before: lasting.before,
            after: lost / packets.max(1.0),
            confidence: 1.0 - config.false_alarms_per_month.min(1.0),
            samples: 1,
            note: if config.agreed.is_some() {
                "loss is within the agreed rate again"
            } else {
                "loss is as usual again"
            },
        })
    }

    /// A change that lasts becomes what is usual, unless a rate was agreed.
    fn adopt(&mut self, config: &Config, at_s: f64) -> Option<Found> {
        let lasting = self.lasting.as_ref()?;
        if config.agreed.is_some() || at_s - lasting.since_s < config.adopt_s {
            return None;
        }
        let lasting = self.lasting.take()?;
        let scale = 24.0 * 3600.0 / config.period_s / lasting.counts.packets.max(1.0);
        let Counts { observed, events, packets, lost } = lasting.counts;
        self.all =
            Counts { observed: observed * scale, events: events * scale, packets: packets * scale, lost: lost * scale };
        self.bins.fill(Counts::default());
        Some(Found {
            kind: Kind::NewBenchmark,
            since_s: lasting.since_s,
            before: lasting.before,
            after: lost / packets.max(1.0),
            confidence: 1.0,
            samples: 1,
            note: "the change has lasted so long that its level is the benchmark from now on",
        })
    }

    pub(crate) fn benchmark(&self, config: &Config, at_s: f64) -> Option<(f64, f64, f64)> {
        if let Some(agreed) = config.agreed {
            return Some((0.0, agreed, agreed * (1.0 + config.tolerance)));
        }
        if self.all.packets < LEAST_PACKETS {
            return None;
        }
        let (usual, least) = self.rates(config, at_s);
        Some((0.0, (usual * self.all.burst()).min(1.0), (least * self.all.burst()).min(1.0)))
    }
}

fn found(config: &Config, sum: &Sum, before: f64) -> Found {
    let agreed = config.agreed.is_some();
    Found {
        kind: if agreed { Kind::AgreedMissed } else { Kind::Step },
        since_s: sum.since_s,
        before,
        after: sum.loss(),
        confidence: 1.0 - config.false_alarms_per_month.min(1.0),
        samples: sum.counts.packets.min(f64::from(u32::MAX)) as u32,
        note: if agreed { "loss is beyond the agreed rate and its tolerance" } else { "" },
    }
}

/// The sum for a rate that a path without a change exceeds as often as all sums together may.
///
/// Starts with an event are as frequent as the usual rate, and each begins with the ratio of both rates: their product
/// is the rate looked for.
fn threshold(config: &Config, rate: f64) -> f64 {
    let packets = 30.0 * 86_400.0 / config.period_s;
    let starts = rate * packets * RATES_MOST as f64;
    libm::log(starts / config.false_alarms_per_month).max(LEAST_THRESHOLD)
}
