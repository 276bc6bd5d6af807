//! The tail of a statistic's distribution, learned as it goes by.

use serde::{Deserialize, Serialize};

/// Two quantiles, and between and beyond them a Weibull tail: one shape fits tails lighter and heavier than a
/// Gaussian's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Tail {
    q90: f64,
    q99: f64,
    seen: u32,
}

impl Tail {
    /// Below the usual values: a quantile that is too low rises faster than one that is too high falls.
    pub(crate) const NEW: Tail = Tail { q90: 0.4, q99: 0.7, seen: 0 };
    /// Values below carry no weight.
    const LEAST: f64 = 1e-6;

    /// Moves each quantile by a factor, up at a value beyond it and down at one below, in balance where it is right.
    pub(crate) fn learn(&mut self, value: f64, slowest: f64) {
        self.seen = self.seen.saturating_add(1);
        let step = (4.0 / (f64::from(self.seen) + 10.0)).max(slowest);
        let moved = |quantile: f64, level: f64| {
            let by = if value > quantile { level } else { level - 1.0 };
            (quantile * libm::exp(step * by)).max(Self::LEAST)
        };
        self.q90 = moved(self.q90, 0.90);
        self.q99 = moved(self.q99, 0.99).max(1.1 * self.q90);
    }

    fn shape(&self) -> f64 {
        // ln(ln 100 / ln 10) = ln 2. A Gaussian's absolute value has 1.55 between these quantiles.
        (core::f64::consts::LN_2 / libm::log(self.q99 / self.q90)).clamp(0.6, 1.7)
    }

    /// The value that is exceeded with this probability.
    pub(crate) fn threshold(&self, probability: f64) -> f64 {
        self.q99 * libm::pow(-libm::log(probability) / (2.0 * core::f64::consts::LN_10), 1.0 / self.shape())
    }

    /// The probability of a value beyond this.
    pub(crate) fn probability(&self, value: f64) -> f64 {
        libm::exp(-2.0 * core::f64::consts::LN_10 * libm::pow((value / self.q99).max(0.0), self.shape()))
    }

    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }
}
