//! Changes of a quantity's level.
//!
//! A sample's residual is its distance from the daily pattern. The residuals of the last 5, 8 and 12 samples are
//! compared with an exponential mean of those before them, of three memories: noise whose neighbours are alike wants a
//! short one, white noise a long one. The path itself teaches how large such a difference becomes while nothing
//! changes. That takes in heavy tails and autocorrelation, and sets the threshold.

use crate::change::{Found, Kind};
use crate::config::{Config, Scale};
use crate::profile::{Profile, CURVES, KIND, OTHER, OWN};
use crate::tail::Tail;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Samples whose location is compared.
const WINDOWS: [usize; 3] = [5, 8, 12];
/// Of them, so many lie beyond a difference that is reported: a few stray values do not.
const BEYOND: [usize; 3] = [4, 6, 8];
const LONGEST: usize = WINDOWS[WINDOWS.len() - 1];
/// Memories of the mean before them, in samples.
const MEMORIES: [f64; 3] = [8.0, 32.0, 128.0];
/// The mean before a window holds so many samples at least, or the window waits.
const LEAST_BEFORE: f64 = 12.0;
/// The tails are kept every so many samples, and a change takes them back to those of once or twice as many ago.
const EARLIER: f64 = 16.0;
/// Values of a statistic that its tail is learned from before it may report.
const LEAST_LEARNED: u32 = 200;
/// Days of data until the first report, and until the pattern of a week is known.
const FIRST_DAYS: f64 = 1.0;
const YOUNG_DAYS: f64 = 7.0;
/// Factor of the thresholds until then.
const YOUNG: f64 = 1.5;
/// Of the shortest window, the nearer samples beyond lie so near to each other: in spreads, or in parts of the
/// difference.
const SCATTER_SPREADS: f64 = 6.0;
const SCATTER_PART: f64 = 0.25;
/// The own kind of day does not fit where samples lie so far off on average, in parts of `Config::change`.
const MISFIT_PART: f64 = 0.25;
/// Part of `Config::change` that a difference has at least, to be reported.
const LEAST_PART: f64 = 0.5;
/// A level that lies so near the benchmark again, in parts of the change, has recovered.
const RECOVERED_PART: f64 = 0.4;
/// Part of the tolerance within which an agreed value is met again after it was missed.
const ENDED_TOLERANCE: f64 = 0.5;
/// Time constants of the slow level and of its usual size, s.
const SLOW_S: f64 = 12.0 * 3600.0;
const SLOW_USUAL_S: f64 = 14.0 * 86_400.0;
/// The slow level has drifted where it is so many times its usual size.
const SLOW_TIMES: f64 = 5.0;
/// The level around which the means before windows return over a gap, s.
const GAP_S: f64 = 6.0 * 3600.0;
/// Outliers are clipped to so many spreads, and a spread is never below the least.
const CLIP: f64 = 5.0;
const LEAST_SPREAD: f64 = 1e-3;

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Sample {
    at_s: f64,
    value: f64,
    curves: [f64; CURVES],
}

/// Means of residuals before one window: by memory, by curve.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Before {
    means: [[f64; CURVES]; MEMORIES.len()],
    samples: f64,
    tails: [Tail; MEMORIES.len()],
    /// The tails of some samples ago, and those that will be: a change is not part of what is usual.
    earlier: [[Tail; MEMORIES.len()]; 2],
}

/// A change that lasts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Lasting {
    since_s: f64,
    /// Level before, as `Scale` has it.
    before: f64,
    /// Distance from the benchmark.
    offset: f64,
    /// Mean distance of its samples from the pattern, and their number.
    mean: f64,
    samples: f64,
    drift: bool,
    /// First of the curves that fitted before it, and until when: the kind of a day is that of the day.
    fits: usize,
    fits_until_s: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Level {
    started: bool,
    profile: Profile,
    recent: VecDeque<Sample>,
    befores: [Before; WINDOWS.len()],
    slow: f64,
    slow_usual: f64,
    slow_samples: f64,
    lasting: Option<Lasting>,
    /// The agreed value is missed, since this time.
    missed_since_s: Option<f64>,
}

/// Returns the median of five, else the mean of the middle half: two stray values of a side leave it alone.
fn location(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let cut = match values.len() {
        n @ 0..=5 => n.saturating_sub(1) / 2,
        n => n / 4,
    };
    let middle = &values[cut..values.len() - cut];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Returns the value nearest to zero where all have one sign, else zero.
fn nearest(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low > 0.0 {
        low
    } else if high < 0.0 {
        high
    } else {
        0.0
    }
}

/// A difference that is beyond its threshold.
struct Exceeding {
    window: usize,
    memory: usize,
    difference: f64,
    /// In spreads.
    statistic: f64,
    excess: f64,
}

impl Level {
    pub(crate) fn new() -> Self {
        let tails = [Tail::NEW; MEMORIES.len()];
        let before = Before { means: [[0.0; CURVES]; MEMORIES.len()], samples: 0.0, tails, earlier: [tails; 2] };
        Self {
            started: false,
            profile: Profile::new(),
            recent: VecDeque::new(),
            befores: std::array::from_fn(|_| before.clone()),
            slow: 0.0,
            slow_usual: 0.0,
            slow_samples: 0.0,
            lasting: None,
            missed_since_s: None,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.profile.is_whole() && self.recent.len() <= LONGEST + 1
    }

    /// The time series is not continuous: no window goes across. `gap_s` is how long nothing was seen.
    pub(crate) fn interrupt(&mut self, gap_s: f64) {
        self.recent.clear();
        let keep = libm::exp(-gap_s.max(0.0) / GAP_S);
        for mean in self.befores.iter_mut().flat_map(|before| before.means.iter_mut().flatten()) {
            *mean *= keep;
        }
        self.slow *= keep;
    }

    pub(crate) fn handle(&mut self, config: &Config, at_s: f64, value: f64) -> Option<Found> {
        let local_s = at_s + config.utc_offset_s;
        if !self.started {
            self.started = true;
            self.profile.shift(value);
        }
        let curves = self.profile.curves(local_s);
        let spread = self.profile.spread(local_s).max(LEAST_SPREAD);
        self.recent.push_back(Sample { at_s, value, curves });
        if self.recent.len() > LONGEST + 1 {
            self.recent.pop_front();
        }
        let mut exceeding: Option<Exceeding> = None;
        for index in 0..WINDOWS.len() {
            if let Some(found) = self.compare(config, index, spread) {
                if exceeding.as_ref().is_none_or(|best| found.excess > best.excess) {
                    exceeding = Some(found);
                }
            }
        }
        if self.recent.len() < WINDOWS[0] {
            return None;
        }
        let from_benchmark = self.distance(WINDOWS[0]);
        if let Some(agreed) = config.agreed {
            self.learn(config, spread);
            return self.judge_agreed(config, agreed);
        }
        if let Some(found) = self.follow_lasting(config, at_s, spread) {
            return Some(found);
        }
        if let Some(found) = exceeding {
            return self.report(config, &found);
        }
        if self.lasting.is_none() {
            self.learn(config, spread);
            return self.judge_drift(config, at_s, from_benchmark);
        }
        None
    }

    /// Residuals of the last samples from the curve `OWN`, and how far each curve lies from that on average.
    fn residuals(&self, window: usize) -> ([f64; LONGEST], [f64; CURVES]) {
        let mut residuals = [0.0; LONGEST];
        let mut moves = [0.0; CURVES];
        for (residual, sample) in residuals.iter_mut().zip(self.recent.iter().rev().take(window)) {
            *residual = sample.value - sample.curves[OWN];
            for (sum, curve) in moves.iter_mut().zip(sample.curves) {
                *sum += sample.curves[OWN] - curve;
            }
        }
        (residuals, moves.map(|sum| sum / window as f64))
    }

    /// Location of the last samples' residuals, by curve.
    fn locations(&self, window: usize) -> [f64; CURVES] {
        let (mut residuals, moves) = self.residuals(window);
        let own = location(&mut residuals[..window]);
        moves.map(|by| own + by)
    }

    /// Distance of the last samples from what the pattern has near this time.
    fn distance(&self, window: usize) -> f64 {
        nearest(&self.locations(window.min(self.recent.len())))
    }

    /// Compares a window with what was before it and learns how large the difference usually is.
    fn compare(&mut self, config: &Config, index: usize, spread: f64) -> Option<Exceeding> {
        let window = WINDOWS[index];
        if self.recent.len() > window {
            let leaving = self.recent[self.recent.len() - 1 - window];
            let before = &mut self.befores[index];
            before.samples += 1.0;
            for (means, memory) in before.means.iter_mut().zip(MEMORIES) {
                let gain = 1.0 / before.samples.min(memory);
                for (mean, curve) in means.iter_mut().zip(leaving.curves) {
                    let off = leaving.value - curve - *mean;
                    let clip = if before.samples < LEAST_BEFORE { f64::INFINITY } else { CLIP * spread };
                    *mean += gain * off.clamp(-clip, clip);
                }
            }
        }
        if self.recent.len() < window || self.befores[index].samples < LEAST_BEFORE {
            return None;
        }
        let (mut residuals, moves) = self.residuals(window);
        residuals[..window].sort_unstable_by(f64::total_cmp);
        let (above, below) = (residuals[window - BEYOND[index]], residuals[BEYOND[index] - 1]);
        // A new level has the noise of the old one; stray values that happen to come together lie anywhere.
        let (last, first, more) = (window - BEYOND[index], BEYOND[index] - 1, BEYOND[index] / 2);
        let scatter = (residuals[last + more] - residuals[last], residuals[first] - residuals[first - more]);
        let days = self.profile.days();
        let young = if days < YOUNG_DAYS { YOUNG } else { 1.0 };
        let least = LEAST_PART * young * libm::log(1.0 + config.change);
        // The nine statistics share the budget; a statistic that exceeds does so for some samples on end.
        let budget = config.false_alarms_per_month * config.period_s / (30.0 * 86_400.0) / 3.0;
        let slowest = 0.003 * (config.period_s / 60.0).min(1.0);
        let mut found: Option<Exceeding> = None;
        let before = &mut self.befores[index];
        if before.samples % EARLIER == 0.0 {
            before.earlier = [before.earlier[1], before.tails];
        }
        for memory in 0..MEMORIES.len() {
            let before = &mut self.befores[index];
            let mut differences = moves;
            for (difference, mean) in differences.iter_mut().zip(before.means[memory]) {
                let by = *difference - mean;
                // Up by what most samples exceed, or down by it.
                *difference = (above + by).max(0.0) + (below + by).min(0.0);
            }
            let difference = nearest(&differences);
            let statistic = difference.abs() / spread;
            let tail = &mut before.tails[memory];
            let apart = difference.abs() >= least && statistic > tail.q95();
            let excess = if apart { statistic / (young * tail.threshold(budget)) } else { 0.0 };
            if self.lasting.is_none() {
                tail.learn(statistic, slowest);
            }
            let scatter = if difference > 0.0 { scatter.0 } else { scatter.1 };
            if excess > 1.0
                && (index > 0 || scatter <= (SCATTER_SPREADS * spread).max(SCATTER_PART * difference.abs()))
                && days >= FIRST_DAYS
                && tail.seen() >= LEAST_LEARNED
                && found.as_ref().is_none_or(|best| excess > best.excess)
            {
                found = Some(Exceeding { window: index, memory, difference, statistic, excess });
            }
        }
        found
    }

    /// Learns the median of five samples as the level at the third: it neither lags nor rounds the pattern's edges.
    fn learn(&mut self, config: &Config, spread: f64) {
        let centre = self.recent[self.recent.len() - 1 - WINDOWS[0] / 2];
        let level = centre.curves[OWN] + self.locations(WINDOWS[0])[OWN];
        let clip = if self.profile.days() < FIRST_DAYS { f64::INFINITY } else { CLIP * spread };
        let around = centre.curves[OWN] + self.befores[0].means[1][OWN];
        let deviation = (centre.value - around).abs().min(clip);
        self.profile.learn(centre.at_s + config.utc_offset_s, level, deviation, 86_400.0 / config.period_s);
    }

    fn report(&mut self, config: &Config, found: &Exceeding) -> Option<Found> {
        let window = WINDOWS[found.window];
        let locations = self.locations(window);
        // The kind of day that fitted best until now: a holiday is like a weekend.
        let means = &self.befores[found.window].means[MEMORIES.len() - 1];
        let misfit = means[OWN].abs();
        let other_fits = misfit > 1.5 * means[OTHER].abs() && misfit > MISFIT_PART * libm::log(1.0 + config.change);
        let fits = if other_fits { KIND } else { 0 };
        let from_benchmark = nearest(&locations[fits..fits + KIND]);
        let newest = self.recent[self.recent.len() - 1];
        let before = newest.curves[OWN] + self.befores[found.window].means[found.memory][OWN];
        let after = newest.curves[OWN] + locations[OWN];
        // A level that only returns to where it belongs is no change.
        let away = from_benchmark * found.difference > 0.0 && from_benchmark.abs() >= 0.3 * found.difference.abs();
        let young = self.profile.days() < YOUNG_DAYS;
        let further = self.lasting.as_ref().is_none_or(|lasting| {
            from_benchmark * lasting.offset < 0.0 || from_benchmark.abs() > 1.2 * lasting.offset.abs()
        });
        let local_s = newest.at_s + config.utc_offset_s;
        let fits_until_s = (libm::floor(local_s / 86_400.0) + 1.0) * 86_400.0 - config.utc_offset_s;
        let since_s = self.onset(found.difference, before - newest.curves[OWN]);
        let probability = self.befores[found.window].tails[found.memory].probability(found.statistic);
        self.settle_at(locations);
        self.recent.retain(|sample| sample.at_s >= since_s);
        if !(away || young) || !further {
            return None;
        }
        let first = self.lasting.as_ref().map_or(before, |lasting| lasting.before);
        let offset = if away { from_benchmark } else { found.difference };
        self.lasting =
            Some(Lasting { since_s, before: first, offset, mean: 0.0, samples: 0.0, drift: false, fits, fits_until_s });
        let expected = 30.0 * 86_400.0 / config.period_s * probability;
        Some(Found {
            kind: Kind::Step,
            since_s,
            before,
            after,
            confidence: libm::exp(-expected).clamp(0.0, 1.0),
            samples: window as u32,
            note: "",
        })
    }

    /// The first of the last samples that lie beyond half of the difference; one among them may lie elsewhere.
    fn onset(&self, difference: f64, mean: f64) -> f64 {
        let mut since_s = self.recent[self.recent.len() - 1].at_s;
        let mut strays = 0;
        for sample in self.recent.iter().rev() {
            let beyond = (sample.value - sample.curves[OWN] - mean) * difference.signum();
            if beyond > 0.5 * difference.abs() {
                since_s = sample.at_s;
            } else {
                strays += 1;
                if strays > 1 {
                    break;
                }
            }
        }
        since_s
    }

    /// Compares the samples to come with the new level.
    fn settle_at(&mut self, locations: [f64; CURVES]) {
        for before in &mut self.befores {
            before.means = [locations; MEMORIES.len()];
            before.samples = 0.0;
            before.tails = before.earlier[0];
            before.earlier[1] = before.earlier[0];
        }
    }

    fn follow_lasting(&mut self, config: &Config, at_s: f64, spread: f64) -> Option<Found> {
        let drift = self.lasting.as_ref()?.drift;
        let offset = self.lasting.as_ref()?.offset;
        let window = if !drift && offset.abs() > 3.0 * spread { WINDOWS[0] } else { LONGEST };
        if self.recent.len() < window {
            return None;
        }
        let locations = self.locations(window);
        let newest = self.recent[self.recent.len() - 1];
        let level = newest.curves[OWN] + locations[OWN];
        let lasting = self.lasting.as_ref()?;
        let fits = if newest.at_s < lasting.fits_until_s { lasting.fits } else { 0 };
        let now = nearest(&locations[fits..fits + KIND]);
        let gain = (config.period_s / SLOW_S).min(1.0);
        self.slow += gain * (now - self.slow);
        let lasting = self.lasting.as_mut()?;
        lasting.samples += 1.0;
        lasting.mean += (locations[OWN] - lasting.mean) / lasting.samples.min(86_400.0 / config.period_s);
        let (since_s, before, mean) = (lasting.since_s, lasting.before, lasting.mean);
        let distance = if drift { self.slow } else { now };
        if distance * offset.signum() < RECOVERED_PART * offset.abs() {
            self.lasting = None;
            self.slow = now;
            if !drift {
                self.settle_at(locations);
            }
            return Some(Found {
                kind: Kind::Recovered,
                since_s,
                before,
                after: level,
                confidence: 1.0,
                samples: window as u32,
                note: "the level is back at the benchmark",
            });
        }
        if at_s - since_s >= config.adopt_s {
            self.lasting = None;
            self.profile.shift(mean);
            self.slow = 0.0;
            for sample in &mut self.recent {
                sample.curves = sample.curves.map(|curve| curve + mean);
            }
            for value in self.befores.iter_mut().flat_map(|before| before.means.iter_mut().flatten()) {
                *value -= mean;
            }
            return Some(Found {
                kind: Kind::NewBenchmark,
                since_s,
                before,
                after: level,
                confidence: 1.0,
                samples: window as u32,
                note: "the change has lasted so long that its level is the benchmark from now on",
            });
        }
        None
    }

    fn judge_drift(&mut self, config: &Config, at_s: f64, from_benchmark: f64) -> Option<Found> {
        let days = self.profile.days();
        if days < YOUNG_DAYS {
            return None;
        }
        self.slow_samples += 1.0;
        let gain = |time_s: f64| (config.period_s / time_s).min(1.0);
        self.slow += gain(SLOW_S) * (from_benchmark - self.slow);
        let usual = (1.0 / self.slow_samples).max(gain(SLOW_USUAL_S));
        let least = libm::log(1.0 + config.change);
        if self.slow.abs() > least.max(SLOW_TIMES * self.slow_usual) {
            let newest = self.recent[self.recent.len() - 1];
            let before = newest.curves[OWN];
            self.lasting = Some(Lasting {
                since_s: at_s - SLOW_S,
                before,
                offset: self.slow,
                mean: 0.0,
                samples: 0.0,
                drift: true,
                fits: 0,
                fits_until_s: 0.0,
            });
            return Some(Found {
                kind: Kind::Drift,
                since_s: at_s - SLOW_S,
                before,
                after: before + self.slow,
                confidence: 1.0 - self.slow_usual / self.slow.abs(),
                samples: (SLOW_S / config.period_s) as u32,
                note: "the level left the benchmark slowly, or in noise that hid a step",
            });
        }
        self.slow_usual += usual * (self.slow.abs() - self.slow_usual);
        None
    }

    /// Judges the level of the last samples by what was agreed; twelve must lie within it again for it to be met.
    fn judge_agreed(&mut self, config: &Config, agreed: f64) -> Option<Found> {
        let scale = config.scale();
        let window = if self.missed_since_s.is_some() { LONGEST } else { WINDOWS[0] };
        let oldest_s = self.recent.len().checked_sub(window).map(|index| self.recent[index].at_s)?;
        if self.missed_since_s.is_some_and(|since_s| oldest_s < since_s) {
            return None;
        }
        let mut values = [0.0; LONGEST];
        for (value, sample) in values.iter_mut().zip(self.recent.iter().rev()) {
            *value = sample.value;
        }
        let level = location(&mut values[..window]);
        // A level at the edge of the tolerance does not alternate: the end needs half of it.
        let tolerance =
            if self.missed_since_s.is_some() { ENDED_TOLERANCE * config.tolerance } else { config.tolerance };
        let (low, high) = agreed_band(config, scale, agreed, tolerance);
        let within = low <= level && level <= high;
        let found = |kind, since_s, note| {
            Some(Found {
                kind,
                since_s,
                before: scale.inward(agreed),
                after: level,
                confidence: 1.0,
                samples: window as u32,
                note,
            })
        };
        match self.missed_since_s {
            None if !within => {
                let beyond = |sample: &&Sample| !(low <= sample.value && sample.value <= high);
                let since_s = self.recent.iter().skip(self.recent.len() - window).find(beyond)?.at_s;
                self.missed_since_s = Some(since_s);
                found(Kind::AgreedMissed, since_s, "the level is beyond the agreed value and its tolerance")
            }
            Some(since_s) if within => {
                self.missed_since_s = None;
                found(Kind::Recovered, since_s, "the level is within the agreed value again")
            }
            _ => None,
        }
    }

    /// Low, usual and high level at a time; None until a day has been seen.
    pub(crate) fn benchmark(&self, config: &Config, at_s: f64) -> Option<(f64, f64, f64)> {
        let local_s = at_s + config.utc_offset_s;
        if let Some(agreed) = config.agreed {
            let scale = config.scale();
            let (low, high) = agreed_band(config, scale, agreed, config.tolerance);
            return Some((low, scale.inward(agreed), high));
        }
        if self.profile.days() < FIRST_DAYS && self.profile.visits(local_s) == 0.0 {
            return None;
        }
        let curves = self.profile.curves(local_s);
        // A Gaussian's mean absolute deviation times 2.5 is two of its standard deviations.
        let room = 2.5 * (self.profile.spread(local_s) + self.slow_usual);
        let near = &curves[..CURVES / 2];
        let low = near.iter().copied().fold(f64::INFINITY, f64::min);
        let high = near.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low - room, curves[OWN], high + room))
    }
}

/// Levels that meet what was agreed: better ones always do.
fn agreed_band(config: &Config, scale: Scale, agreed: f64, tolerance: f64) -> (f64, f64) {
    use crate::config::Worse;
    let low = scale.inward(agreed * (1.0 - tolerance).max(0.0));
    let high = scale.inward(agreed * (1.0 + tolerance));
    match config.worse() {
        Worse::Up => (f64::NEG_INFINITY, high),
        Worse::Down => (low, f64::INFINITY),
        Worse::Neither => (low, high),
    }
}
