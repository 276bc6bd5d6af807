//! The tail of a statistic's distribution, learned as it goes by.

use serde::{Deserialize, Serialize};

/// Its 95th percentile, and beyond it a Weibull tail: one shape fits tails lighter and heavier than a Gaussian's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Tail {
    q95: f64,
    /// Sum of the logarithms of exceeding values over the percentile, and their number.
    excess: f64,
    exceeding: f64,
    seen: u32,
}

/// -ln 0.05 = ln 20.
const AT_Q95: f64 = core::f64::consts::LN_10 + core::f64::consts::LN_2;
/// The shape before any value exceeds; it has the weight of so many exceeding values.
const USUAL_SHAPE: f64 = 1.25;
const USUAL_WEIGHT: f64 = 100.0;
/// Exceeding values that are remembered; each counts as this at most.
const REMEMBERED: f64 = 2000.0;
const EXCESS_MOST: f64 = 0.9;

impl Tail {
    /// Below the usual values: a quantile that is too low rises faster than one that is too high falls.
    pub(crate) const NEW: Tail = Tail { q95: 0.5, excess: 0.0, exceeding: 0.0, seen: 0 };
    /// Values below carry no weight.
    const LEAST: f64 = 1e-6;

    /// Moves the percentile by a factor, up at a value beyond it and down at one below, in balance where it is right.
    pub(crate) fn learn(&mut self, value: f64, slowest: f64) {
        self.seen = self.seen.saturating_add(1);
        if value > self.q95 && self.seen > 200 {
            self.excess += libm::log(value / self.q95).min(EXCESS_MOST);
            self.exceeding += 1.0;
            if self.exceeding > REMEMBERED {
                self.excess /= 2.0;
                self.exceeding /= 2.0;
            }
        }
        let step = (4.0 / (f64::from(self.seen) + 10.0)).max(slowest);
        let by = if value > self.q95 { 0.95 } else { -0.05 };
        self.q95 = (self.q95 * (1.0 + step * by)).max(Self::LEAST);
    }

    /// The mean of ln(x / q95) beyond q95 is about 1 / (shape * -ln 0.05).
    fn shape(&self) -> f64 {
        let usual = USUAL_WEIGHT / (USUAL_SHAPE * AT_Q95);
        let mean = (self.excess + usual) / (self.exceeding + USUAL_WEIGHT);
        (1.0 / (mean * AT_Q95)).clamp(0.8, 1.8)
    }

    /// The value that is exceeded with this probability.
    pub(crate) fn threshold(&self, probability: f64) -> f64 {
        self.q95 * libm::pow(-libm::log(probability) / AT_Q95, 1.0 / self.shape())
    }

    /// The probability of a value beyond this.
    pub(crate) fn probability(&self, value: f64) -> f64 {
        libm::exp(-AT_Q95 * libm::pow((value / self.q95).max(0.0), self.shape()))
    }

    pub(crate) fn q95(&self) -> f64 {
        self.q95
    }

    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }
}
