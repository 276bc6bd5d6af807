//! Changes of a loss rate: cumulative sums of the likelihood of more loss than the path has at this time of day.

use crate::change::{Found, Kind};
use crate::config::Config;
use serde::{Deserialize, Serialize};

/// Hours of a day, on working days and at weekends.
const BINS: usize = 48;
/// Loss that matters at least, as a rate.
const LEAST_RATE: f64 = 1e-3;
/// Rises that it looks for: so many times the usual rate, and at least so much.
const RISES: [(f64, f64); 2] = [(3.0, LEAST_RATE), (12.0, 10.0 * LEAST_RATE)];
/// A path without a loss so far has lost so many of so many packets.
const PRIOR_LOST: f64 = 0.5;
const PRIOR_PACKETS: f64 = 50_000.0;
/// Counts of a bin halve when they reach the packets of so many of its visits.
const VISITS_REMEMBERED: f64 = 30.0;
/// Of the threshold, what one sample adds at most: a burst in one sample is not yet a change.
const ONE_SAMPLE: f64 = 0.4;
/// Losses of a sample that are learned from, at most, where few are expected.
const BURST: f64 = 3.0;
/// Losses expected from before the first sample, and how many are remembered.
const PRIOR_EXPECTED: f64 = 20.0;
const EXPECTED_REMEMBERED: f64 = 1000.0;
/// Log likelihood ratio for the usual rate at which a change has recovered.
const RECOVERED: f64 = 7.0;
/// Packets before the first report.
const LEAST_PACKETS: f64 = 2000.0;

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Bin {
    lost: f64,
    packets: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Lasting {
    since_s: f64,
    before: f64,
    lost: f64,
    packets: f64,
    towards_usual: f64,
}

/// A cumulative sum, and what it was read from.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Sum {
    value: f64,
    since_s: f64,
    lost: f64,
    samples: u32,
}

impl Sum {
    fn add(&mut self, at_s: f64, gain: f64, lost: f64) {
        if self.value <= 0.0 {
            *self = Self { value: 0.0, since_s: at_s, lost: 0.0, samples: 0 };
        }
        self.value = (self.value + gain).max(0.0);
        self.lost += lost;
        self.samples += 1;
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Loss {
    bins: Vec<Bin>,
    all: Bin,
    /// Squared deviations of samples' losses from what was expected, and what was: bursts raise their ratio.
    squares: f64,
    expected: f64,
    sums: [Sum; RISES.len()],
    lasting: Option<Lasting>,
    missed_since_s: Option<f64>,
}

impl Loss {
    pub(crate) fn new() -> Self {
        Self {
            bins: vec![Bin::default(); BINS],
            all: Bin::default(),
            squares: PRIOR_EXPECTED,
            expected: PRIOR_EXPECTED,
            sums: Default::default(),
            lasting: None,
            missed_since_s: None,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.bins.len() == BINS
    }

    pub(crate) fn interrupt(&mut self) {
        self.sums = Default::default();
    }

    fn bin(local_s: f64) -> usize {
        let day = libm::floor(local_s / 86_400.0);
        let hour = (((local_s - day * 86_400.0) / 3600.0) as usize).min(23);
        let weekend = (day as i64 + 3).rem_euclid(7) >= 5;
        usize::from(weekend) * 24 + hour
    }

    /// Usual rate at this time: the greatest of this hour and its neighbours, drawn to the rate of all hours.
    fn usual(&self, local_s: f64) -> f64 {
        let all = (self.all.lost + PRIOR_LOST) / (self.all.packets + PRIOR_PACKETS);
        let bin = Self::bin(local_s);
        let (kind, hour) = (bin / 24, bin % 24);
        [23, 0, 1].into_iter().fold(0.0, |most: f64, ahead| {
            let near = &self.bins[kind * 24 + (hour + ahead) % 24];
            most.max((near.lost + all * PRIOR_PACKETS) / (near.packets + PRIOR_PACKETS))
        })
    }

    pub(crate) fn handle(&mut self, config: &Config, at_s: f64, rate: f64) -> Option<Found> {
        let local_s = at_s + config.utc_offset_s;
        let packets = config.packets;
        let lost = (rate.clamp(0.0, 1.0) * packets).min(packets);
        let usual = self.usual(local_s);
        if let Some(agreed) = config.agreed {
            return self.judge_agreed(config, at_s, agreed, lost);
        }
        if self.lasting.is_some() {
            return self.follow(config, at_s, usual, lost);
        }
        let threshold = threshold(config);
        let dispersion = (self.squares / self.expected).max(1.0);
        for (sum, (times, least)) in self.sums.iter_mut().zip(RISES) {
            let raised = (times * usual).max(least).min(1.0);
            let gain = (lost * libm::log(raised / usual) - packets * (raised - usual)) / dispersion;
            sum.add(at_s, gain.min(ONE_SAMPLE * threshold), lost);
        }
        let most = self.sums.iter().copied().find(|sum| sum.value > threshold);
        if let Some(sum) = most.filter(|_| self.all.packets >= LEAST_PACKETS) {
            let seen = f64::from(sum.samples) * packets;
            self.lasting = Some(Lasting {
                since_s: sum.since_s,
                before: usual,
                lost: sum.lost,
                packets: seen,
                towards_usual: 0.0,
            });
            self.sums = Default::default();
            return Some(Found {
                kind: Kind::Step,
                since_s: sum.since_s,
                before: usual,
                after: sum.lost / seen,
                confidence: 1.0 - config.false_alarms_per_month.min(1.0),
                samples: sum.samples,
                note: "",
            });
        }
        self.learn(config, local_s, usual, lost);
        None
    }

    fn learn(&mut self, config: &Config, local_s: f64, usual: f64, lost: f64) {
        let packets = config.packets;
        let expected = packets * usual;
        // A burst counts as a few losses: it says little of the rate.
        let lost = lost.min(BURST.max(4.0 * expected));
        let visit = 3600.0 / config.period_s * packets;
        let remembered = (VISITS_REMEMBERED * visit).max(PRIOR_PACKETS);
        let bin = Self::bin(local_s);
        for (counts, most) in [(&mut self.bins[bin], remembered), (&mut self.all, 24.0 * remembered)] {
            counts.lost += lost;
            counts.packets += packets;
            if counts.packets > most {
                counts.lost /= 2.0;
                counts.packets /= 2.0;
            }
        }
        self.squares += (lost - expected) * (lost - expected);
        self.expected += expected;
        if self.expected > EXPECTED_REMEMBERED {
            self.squares /= 2.0;
            self.expected /= 2.0;
        }
    }

    fn follow(&mut self, config: &Config, at_s: f64, usual: f64, lost: f64) -> Option<Found> {
        let packets = config.packets;
        let lasting = self.lasting.as_mut()?;
        let raised = (lasting.lost / lasting.packets).max(1.5 * usual);
        let gain = packets * (raised - usual) - lost * libm::log(raised / usual);
        lasting.towards_usual = (lasting.towards_usual + gain).max(0.0);
        let (since_s, before) = (lasting.since_s, lasting.before);
        if lasting.towards_usual > RECOVERED {
            self.lasting = None;
            return Some(Found {
                kind: Kind::Recovered,
                since_s,
                before,
                after: usual,
                confidence: 1.0 - libm::exp(-RECOVERED),
                samples: 1,
                note: "loss is as usual again",
            });
        }
        if lasting.towards_usual <= 0.0 {
            lasting.lost += lost;
            lasting.packets += packets;
        }
        if at_s - since_s >= config.adopt_s {
            let after = lasting.lost / lasting.packets;
            self.lasting = None;
            let visit = 3600.0 / config.period_s * packets;
            self.all = Bin { lost: after * 24.0 * visit, packets: 24.0 * visit };
            for bin in &mut self.bins {
                *bin = Bin::default();
            }
            return Some(Found {
                kind: Kind::NewBenchmark,
                since_s,
                before,
                after,
                confidence: 1.0,
                samples: 1,
                note: "the change has lasted so long that its level is the benchmark from now on",
            });
        }
        None
    }

    /// Judges by what was agreed: cumulative sums for twice the agreed rate and for the rate itself.
    fn judge_agreed(&mut self, config: &Config, at_s: f64, agreed: f64, lost: f64) -> Option<Found> {
        let packets = config.packets;
        let allowed = (agreed * (1.0 + config.tolerance)).max(1e-9);
        let raised = (2.0 * allowed).min(1.0);
        let gain = lost * libm::log(raised / allowed) - packets * (raised - allowed);
        let gain = if self.missed_since_s.is_some() { -gain } else { gain };
        let sum = &mut self.sums[0];
        sum.add(at_s, gain.min(ONE_SAMPLE * threshold(config)), lost);
        if sum.value <= threshold(config) {
            return None;
        }
        let done = *sum;
        *sum = Sum::default();
        let after = done.lost / (f64::from(done.samples) * packets);
        let (kind, since_s, note) = match self.missed_since_s.take() {
            Some(since_s) => (Kind::Recovered, since_s, "loss is within the agreed rate again"),
            None => {
                self.missed_since_s = Some(done.since_s);
                (Kind::AgreedMissed, done.since_s, "loss is beyond the agreed rate and its tolerance")
            }
        };
        let confidence = 1.0 - config.false_alarms_per_month.min(1.0);
        Some(Found { kind, since_s, before: agreed, after, confidence, samples: done.samples, note })
    }

    pub(crate) fn benchmark(&self, config: &Config, at_s: f64) -> Option<(f64, f64, f64)> {
        if let Some(agreed) = config.agreed {
            return Some((0.0, agreed, agreed * (1.0 + config.tolerance)));
        }
        if self.all.packets < LEAST_PACKETS {
            return None;
        }
        let usual = self.usual(at_s + config.utc_offset_s);
        Some((0.0, usual, (RISES[0].0 * usual).max(LEAST_RATE)))
    }
}

/// The sum that a path without a change reaches as often as it may.
fn threshold(config: &Config) -> f64 {
    libm::log(30.0 * 86_400.0 / config.period_s / config.false_alarms_per_month)
}
