//! Series for tests: a level with a daily pattern and noise from a generator with a seed.

use change_detection::{Change, Config, Detector, Kind};
use serde_json::json;

/// Monday, 2026-01-05, 00:00 UTC.
pub const START_S: f64 = 1_767_571_200.0;
pub const DAY_S: f64 = 86_400.0;

/// xorshift64*: the sum of twelve of its numbers is nearly Gaussian.
pub struct Noise(pub u64);

impl Noise {
    pub fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn gaussian(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

pub fn config(quantity: &str, period_s: f64) -> Config {
    settings(json!({"quantity": quantity, "period_s": period_s}))
}

pub fn settings(json: serde_json::Value) -> Config {
    serde_json::from_value::<Config>(json).expect("settings").check().expect("right settings")
}

/// A path of 32 ms that is 3 ms longer in working hours.
pub fn rtt_s(at_s: f64) -> f64 {
    let hour = at_s.rem_euclid(DAY_S) / 3600.0;
    let weekend = ((at_s / DAY_S) as i64 + 3).rem_euclid(7) >= 5;
    0.032 + if (8.0..17.0).contains(&hour) && !weekend { 0.003 } else { 0.0 }
}

/// Gives a detector samples from `from_s` until `to_s` and returns the changes.
pub fn feed(
    detector: &mut Detector,
    period_s: f64,
    (from_s, to_s): (f64, f64),
    mut value: impl FnMut(f64) -> Option<f64>,
) -> Vec<Change> {
    let samples = ((to_s - from_s) / period_s) as u32;
    (0..samples)
        .filter_map(|index| {
            let at_s = from_s + period_s * f64::from(index);
            detector.handle_sample(at_s, value(at_s))
        })
        .collect()
}

pub fn kinds(changes: &[Change]) -> Vec<Kind> {
    changes.iter().map(|change| change.kind).collect()
}
