//! Sizes of flows with a heavy tail, equal on every machine: Pareto and lognormal deviates.

use libm::{exp2, log2};
use link::random::Random;

/// Distribution of a positive quantity: bytes of a flow, or its rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Distribution {
    /// P(X > x) = (min / x)^shape from `min` on, truncated at `max` (the bounded Pareto distribution). Sizes of files
    /// and transfers follow it with a shape of 1.0 to 1.5 (Crovella and Bestavros 1997).
    Pareto {
        /// Shape (tail index), above 0.
        shape: f64,
        /// Smallest value, above 0.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// exp of a normal deviate: the body of file sizes (Downey 2001), and the rates of flows (Zhang, Breslau, Paxson,
    /// Shenker 2002).
    Lognormal {
        /// Half are below it.
        median: f64,
        /// Standard deviation of the logarithm (natural).
        sigma: f64,
    },
}

impl Distribution {
    /// A value, rounded down, at least 1.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let value = match *self {
            Distribution::Pareto { shape, min, max } => {
                // Inversion: with u uniform on (0, 1], x = min (1 - u (1 - (min / max)^shape))^(-1 / shape).
                let beyond = exp2(shape * log2(min / max));
                let survival = 1.0 - uniform(random) * (1.0 - beyond);
                min * exp2(-log2(survival) / shape)
            }
            Distribution::Lognormal { median, sigma } => {
                median * exp2(sigma * normal(random) * std::f64::consts::LOG2_E)
            }
        };
        (value as u64).max(1)
    }

    /// The mean: of the bounded Pareto by its formula, of the lognormal median exp(sigma^2 / 2).
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Pareto { shape, min, max } if (shape - 1.0).abs() < 1e-9 => {
                let ratio = max / min;
                min * log2(ratio) * std::f64::consts::LN_2 / (1.0 - 1.0 / ratio)
            }
            Distribution::Pareto { shape, min, max } => {
                let (share, beyond) = (min / max, exp2(shape * log2(min / max)));
                shape * min / (shape - 1.0) * (1.0 - beyond / share) / (1.0 - beyond)
            }
            Distribution::Lognormal { median, sigma } => median * exp2(sigma * sigma / 2.0 * std::f64::consts::LOG2_E),
        }
    }
}

/// Uniform on (0, 1), in steps of 2^-53.
fn uniform(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// A normal deviate by the polar method (Marsaglia and Bray 1964).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * uniform(random) - 1.0, 2.0 * uniform(random) - 1.0);
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * (-2.0 * log2(s) * std::f64::consts::LN_2 / s).sqrt();
        }
    }
}

/// An exponential deviate of mean `mean`.
pub fn exponential(mean: f64, random: &mut Random) -> f64 {
    -log2(uniform(random)) * std::f64::consts::LN_2 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(distribution: Distribution) -> Vec<f64> {
        let mut random = Random::new(5);
        let mut all: Vec<f64> = (0..100_000).map(|_| distribution.draw(&mut random) as f64).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn pareto_has_its_tail_and_its_mean() {
        let distribution = Distribution::Pareto { shape: 1.2, min: 1e4, max: 1e9 };
        let all = draws(distribution);
        for x in [2e4, 1e5, 1e6] {
            let share = all.iter().filter(|&&v| v > x).count() as f64 / all.len() as f64;
            let exact = (1e4 / x).powf(1.2);
            assert!(
                (share - exact).abs() < 4.0 * (exact / all.len() as f64).sqrt() + 1e-5,
                "{x}: {share}, not {exact}"
            );
        }
        assert!(all[0] >= 1e4 && all[all.len() - 1] <= 1e9);
        // Heavy-tailed: the mean of 100,000 is within a tenth.
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean / distribution.mean() - 1.0).abs() < 0.1, "{mean}, not {}", distribution.mean());
        let flat = Distribution::Pareto { shape: 1.0, min: 1.0, max: std::f64::consts::E };
        assert!((flat.mean() - 1.0 / (1.0 - 1.0 / std::f64::consts::E)).abs() < 1e-9);
    }

    #[test]
    fn lognormal_has_its_quantiles_and_its_mean() {
        let distribution = Distribution::Lognormal { median: 1e6, sigma: 1.5 };
        let all = draws(distribution);
        // Quantiles of N(0, 1): 0 at 1/2, 1 at 0.8413, -1.645 at 0.05.
        for (part, z) in [(0.5, 0.0), (0.8413, 1.0), (0.05, -1.645)] {
            let got = (all[(part * all.len() as f64) as usize] / 1e6).ln() / 1.5;
            assert!((got - z).abs() < 0.02, "{part}: {got}, not {z}");
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean / distribution.mean() - 1.0).abs() < 0.05);
    }
}
