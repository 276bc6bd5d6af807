//! The daily pattern of a quantity: its level and spread by quarter of an hour, on working days and at weekends.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bins of a day.
const SLOTS: usize = 96;
const SLOT_S: f64 = 86_400.0 / SLOTS as f64;
/// A bin remembers so many of its visits.
const VISITS_REMEMBERED: f64 = 15.0;
/// Weight of what a bin falls back to, in visits.
const FALLBACK_VISITS: f64 = 0.5;
/// A finished visit waits for so many bins, so that the forecast of now does not move with what was just measured.
const VISITS_WAITING: usize = 3;
/// Curves that a sample is compared with: those of both kinds of day, each a bin early, on time and a bin late.
pub(crate) const CURVES: usize = 6;
/// The curve of the own kind of day, on time.
pub(crate) const OWN: usize = 1;
/// Curves of a kind of day; the other kind's come second.
pub(crate) const KIND: usize = CURVES / 2;
pub(crate) const OTHER: usize = OWN + KIND;

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Bin {
    level: f64,
    spread: f64,
    visits: f64,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Visit {
    bin: usize,
    levels: f64,
    spreads: f64,
    samples: f64,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Profile {
    bins: Vec<Bin>,
    waiting: VecDeque<Visit>,
    level: f64,
    spread: f64,
    samples: f64,
    visits: u32,
}

/// The place of a time: the kind of day, the bin whose centre is at or before it, the part of the way to the next.
struct Place {
    weekend: bool,
    /// Bin that holds the time.
    slot: usize,
    before: usize,
    part: f64,
}

fn place(local_s: f64) -> Place {
    let day = libm::floor(local_s / 86_400.0);
    let in_day = local_s - day * 86_400.0;
    // 1970-01-01 was a Thursday.
    let weekday = (day as i64 + 3).rem_euclid(7);
    let from_centre = in_day / SLOT_S - 0.5;
    let before = libm::floor(from_centre);
    Place {
        weekend: weekday >= 5,
        slot: ((in_day / SLOT_S) as usize).min(SLOTS - 1),
        before: (before as i64).rem_euclid(SLOTS as i64) as usize,
        part: from_centre - before,
    }
}

impl Profile {
    pub(crate) fn new() -> Self {
        Self {
            bins: vec![Bin::default(); 2 * SLOTS],
            waiting: VecDeque::new(),
            level: 0.0,
            spread: 0.0,
            samples: 0.0,
            visits: 0,
        }
    }

    /// True if its data is whole, as read from a state.
    pub(crate) fn is_whole(&self) -> bool {
        self.bins.len() == 2 * SLOTS && self.waiting.iter().all(|visit| visit.bin < 2 * SLOTS)
    }

    /// Days of data that it has seen.
    pub(crate) fn days(&self) -> f64 {
        f64::from(self.visits) / SLOTS as f64
    }

    /// Visits of the kind of day at this time, at this time of day.
    pub(crate) fn visits(&self, local_s: f64) -> f64 {
        let place = place(local_s);
        self.bins[usize::from(place.weekend) * SLOTS + place.slot].visits
    }

    fn of(&self, weekend: bool, slot: usize, value: fn(&Bin) -> f64, all: f64) -> f64 {
        let slot = slot % SLOTS;
        let own = &self.bins[usize::from(weekend) * SLOTS + slot];
        let other = &self.bins[usize::from(!weekend) * SLOTS + slot];
        let fallback = if other.visits > 0.0 {
            (value(other) * other.visits + all * FALLBACK_VISITS) / (other.visits + FALLBACK_VISITS)
        } else {
            all
        };
        (value(own) * own.visits + fallback * FALLBACK_VISITS) / (own.visits + FALLBACK_VISITS)
    }

    /// Levels that the pattern has near this time.
    pub(crate) fn curves(&self, local_s: f64) -> [f64; CURVES] {
        let place = place(local_s);
        let mut curves = [0.0; CURVES];
        for (kind, weekend) in [place.weekend, !place.weekend].into_iter().enumerate() {
            let mut near = [0.0; 4];
            for (ahead, level) in near.iter_mut().enumerate() {
                *level = self.of(weekend, place.before + SLOTS - 1 + ahead, |bin| bin.level, self.level);
            }
            for shift in 0..3 {
                curves[3 * kind + shift] = near[shift] + place.part * (near[shift + 1] - near[shift]);
            }
        }
        curves
    }

    /// Mean absolute deviation of a sample from the level around it, the greatest near this time.
    pub(crate) fn spread(&self, local_s: f64) -> f64 {
        let place = place(local_s);
        (0..3)
            .map(|ahead| self.of(place.weekend, place.slot + SLOTS - 1 + ahead, |bin| bin.spread, self.spread))
            .fold(0.0, f64::max)
    }

    /// Takes in a level and the deviation of its sample.
    pub(crate) fn learn(&mut self, local_s: f64, level: f64, deviation: f64, samples_a_day: f64) {
        self.samples += 1.0;
        let gain = 1.0 / self.samples.min(samples_a_day);
        self.level += gain * (level - self.level);
        self.spread += gain * (deviation - self.spread);
        let place = place(local_s);
        let bin = usize::from(place.weekend) * SLOTS + place.slot;
        match self.waiting.back_mut() {
            Some(visit) if visit.bin == bin => {
                visit.levels += level;
                visit.spreads += deviation;
                visit.samples += 1.0;
            }
            _ => self.waiting.push_back(Visit { bin, levels: level, spreads: deviation, samples: 1.0 }),
        }
        if self.waiting.len() > VISITS_WAITING {
            if let Some(visit) = self.waiting.pop_front() {
                self.settle(&visit);
            }
        }
    }

    fn settle(&mut self, visit: &Visit) {
        self.visits = self.visits.saturating_add(1);
        let bin = &mut self.bins[visit.bin];
        let (level, spread) = (visit.levels / visit.samples, visit.spreads / visit.samples);
        let gain = 1.0 / (bin.visits + 1.0).min(VISITS_REMEMBERED);
        bin.level += gain * (level - bin.level);
        bin.spread += gain * (spread - bin.spread);
        bin.visits = (bin.visits + 1.0).min(VISITS_REMEMBERED);
    }

    /// Moves the whole pattern.
    pub(crate) fn shift(&mut self, by: f64) {
        self.level += by;
        for bin in &mut self.bins {
            bin.level += by;
        }
        self.waiting.clear();
    }
}
