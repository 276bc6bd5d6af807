//! The tail of a statistic's distribution, learned as it goes by.

use serde::{Deserialize, Serialize};

/// Its 99th percentile, and beyond it a Weibull tail: one shape fits tails lighter and heavier than a Gaussian's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Tail {
    q99: f64,
    /// Sum of the logarithms of exceeding values over the percentile, and their number.
    excess: f64,
    exceeding: f64,
    seen: u32,
}

/// -ln 0.01.
const AT_Q99: f64 = 2.0 * core::f64::consts::LN_10;
/// What the shape is drawn to, and with the weight of so many exceeding values.
const USUAL_SHAPE: f64 = 1.4;
const USUAL_WEIGHT: f64 = 30.0;
/// Exceeding values that are remembered; each counts as this at most.
const REMEMBERED: f64 = 600.0;
const EXCESS_MOST: f64 = 0.7;

impl Tail {
    /// Below the usual values: a quantile that is too low rises faster than one that is too high falls.
    pub(crate) const NEW: Tail = Tail { q99: 0.7, excess: 0.0, exceeding: 0.0, seen: 0 };
    /// Values below carry no weight.
    const LEAST: f64 = 1e-6;

    /// Moves the percentile by a factor, up at a value beyond it and down at one below, in balance where it is right.
    pub(crate) fn learn(&mut self, value: f64, slowest: f64) {
        self.seen = self.seen.saturating_add(1);
        if value > self.q99 && self.seen > 200 {
            self.excess += libm::log(value / self.q99).min(EXCESS_MOST);
            self.exceeding += 1.0;
            if self.exceeding > REMEMBERED {
                self.excess /= 2.0;
                self.exceeding /= 2.0;
            }
        }
        let step = (4.0 / (f64::from(self.seen) + 10.0)).max(slowest);
        let by = if value > self.q99 { 0.99 } else { -0.01 };
        self.q99 = (self.q99 * (1.0 + step * by)).max(Self::LEAST);
    }

    /// The mean of ln(x / q99) beyond q99 is about 1 / (shape * -ln 0.01).
    fn shape(&self) -> f64 {
        let usual = USUAL_WEIGHT / (USUAL_SHAPE * AT_Q99);
        let mean = (self.excess + usual) / (self.exceeding + USUAL_WEIGHT);
        (1.0 / (mean * AT_Q99)).clamp(0.6, 1.8)
    }

    /// The value that is exceeded with this probability.
    pub(crate) fn threshold(&self, probability: f64) -> f64 {
        self.q99 * libm::pow(-libm::log(probability) / AT_Q99, 1.0 / self.shape())
    }

    /// The probability of a value beyond this.
    pub(crate) fn probability(&self, value: f64) -> f64 {
        libm::exp(-AT_Q99 * libm::pow((value / self.q99).max(0.0), self.shape()))
    }

    pub(crate) fn q99(&self) -> f64 {
        self.q99
    }

    pub(crate) fn seen(&self) -> u32 {
        self.seen
    }
}
