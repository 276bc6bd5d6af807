//! Random extra delay, drawn in integers.

use crate::config::{Jitter, JitterDistribution};
use crate::random::{Geometric, Random};

/// Cells of the table of the normal distribution, on 0 to 4 standard deviations.
const CELLS: usize = 1024;
/// Cells of one standard deviation.
const CELLS_PER_SIGMA: u64 = CELLS as u64 / 4;

/// Draws random times, such as those of jitter.
pub struct JitterSource {
    random: Random,
    shape: Shape,
}

enum Shape {
    Uniform(u64),
    Exponential(Geometric),
    Normal { sigma: u64, cells: Cells },
}

impl JitterSource {
    /// A source of times distributed as those of `jitter`.
    pub fn new(jitter: &Jitter, random: Random) -> JitterSource {
        let scale = jitter.scale.0;
        let shape = match jitter.distribution {
            JitterDistribution::Uniform => Shape::Uniform(scale),
            JitterDistribution::Exponential => Shape::Exponential(Geometric::with_mean(scale)),
            JitterDistribution::Normal => Shape::Normal { sigma: scale, cells: Cells::new(half_normal()) },
        };
        JitterSource { random, shape }
    }

    /// Extra delay of the next packet, ns.
    pub fn draw(&mut self) -> u64 {
        match &self.shape {
            Shape::Uniform(largest) => self.random.below(*largest + 1),
            Shape::Exponential(distance) => distance.sample(&mut self.random),
            Shape::Normal { sigma, cells } => {
                let mass = self.random.below(cells.mass_below[CELLS]);
                let cell = cells.of(mass);
                let (low, high) = (cells.mass_below[cell], cells.mass_below[cell + 1]);
                // Position in units of a cell, 2^-32: the density is flat within a cell.
                let inside = (u128::from(mass - low) << 32) / u128::from(high - low);
                let position = ((cell as u128) << 32) + inside;
                ((u128::from(*sigma) * position / u128::from(CELLS_PER_SIGMA)) >> 32) as u64
            }
        }
    }
}

/// Cells of a distribution, found without a search: a guide table (Chen and Asau 1974) tells where to begin.
struct Cells {
    /// Mass below each cell's lower edge; the last entry is the whole mass.
    mass_below: Box<[u64]>,
    /// By the highest bits of a mass: the cell of the least such mass.
    guide: Box<[u16]>,
    /// Bits of a mass below those.
    shift: u32,
}

impl Cells {
    fn new(mass_below: Box<[u64]>) -> Cells {
        let all = mass_below[CELLS];
        let shift = (all / CELLS as u64).ilog2();
        let cell_of = |mass: u64| mass_below.partition_point(|&below| below <= mass) as u16 - 1;
        let guide = (0..=(all - 1) >> shift).map(|bits| cell_of(bits << shift)).collect();
        Cells { mass_below, guide, shift }
    }

    /// The cell of `mass`, which is below the whole mass.
    #[inline]
    fn of(&self, mass: u64) -> usize {
        let mut cell = usize::from(self.guide[(mass >> self.shift) as usize]);
        while self.mass_below[cell + 1] <= mass {
            cell += 1;
        }
        cell
    }
}

/// Mass of a half-normal deviate below each cell's lower edge, in arbitrary units; the last entry is the whole mass.
///
/// With h = 1/256: exp(-((i+1)h)^2 / 2) = exp(-(ih)^2 / 2) * r, where r starts at exp(-h^2 / 2) and shrinks by
/// exp(-h^2) per cell, so that two constants and multiplications in 2^-64 are enough. A cell's mass by the trapezoid
/// rule: to 1.3e-6.
fn half_normal() -> Box<[u64]> {
    // exp(-x) = 1 - x + x^2/2 - x^3/6 for x = 2^-17 and 2^-16, in 2^-64 (2^64 - ... as a wrapping u64); the next terms
    // are below one unit.
    const START: u64 = (1u64 << 47).wrapping_neg() + (1 << 29) - 1365;
    const SHRINK: u64 = (1u64 << 48).wrapping_neg() + (1 << 31) - 10_922;
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    let (mut density, mut ratio) = (u64::MAX, START);
    let mut below = vec![0u64];
    let mut sum = 0;
    for _ in 0..CELLS {
        let next = times(density, ratio);
        // 1024 cells of at most 2^53 each: the sum is below 2^63.
        sum += (density >> 12) + (next >> 12);
        below.push(sum);
        (density, ratio) = (next, times(ratio, SHRINK));
    }
    below.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    fn draws(distribution: JitterDistribution, scale: u64) -> Vec<u64> {
        let jitter = Jitter { distribution, scale: Span(scale), reordering: true };
        let mut source = JitterSource::new(&jitter, Random::new(42));
        let mut all: Vec<u64> = (0..100_000).map(|_| source.draw()).collect();
        all.sort_unstable();
        all
    }

    fn mean(values: &[u64]) -> f64 {
        values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64
    }

    #[test]
    fn uniform_fills_its_range() {
        let all = draws(JitterDistribution::Uniform, 1_000_000);
        assert!(all[all.len() - 1] <= 1_000_000 && all[all.len() - 1] > 999_900);
        assert!((mean(&all) - 500_000.0).abs() < 5_000.0);
        assert!(draws(JitterDistribution::Uniform, 0).iter().all(|&v| v == 0));
    }

    #[test]
    fn exponential_has_its_mean_and_median() {
        let all = draws(JitterDistribution::Exponential, 1_000_000);
        assert!((mean(&all) - 1_000_000.0).abs() < 16_000.0, "mean {}", mean(&all));
        assert!((all[50_000] as f64 - 693_147.0).abs() < 16_000.0, "median {}", all[50_000]);
    }

    #[test]
    fn normal_has_the_quantiles_of_the_tables() {
        let all = draws(JitterDistribution::Normal, 1_000_000);
        // Quantiles of |N(0, 1)|: 0.6745 at 1/2, 1 at 0.6827, 1.9600 at 0.95, 2.5758 at 0.99.
        for (part, sigma) in [(0.5, 0.6745), (0.682_69, 1.0), (0.95, 1.96), (0.99, 2.5758)] {
            let got = all[(part * all.len() as f64) as usize] as f64 / 1e6;
            assert!((got - sigma).abs() < 0.02 * sigma + 0.01, "{part}: {got} instead of {sigma}");
        }
        assert!(all[all.len() - 1] <= 4_000_000);
    }

    #[test]
    fn the_guide_leads_to_the_cell_of_each_mass() {
        let cells = Cells::new(half_normal());
        let edges = cells.mass_below[..CELLS].iter().flat_map(|&edge| [edge, edge + 1, edge.saturating_sub(1)]);
        let all = cells.mass_below[CELLS];
        for mass in edges.chain((0..10_000).map(|part| all / 10_000 * part)).chain([all - 1]) {
            assert_eq!(cells.of(mass), cells.mass_below.partition_point(|&below| below <= mass) - 1, "{mass}");
        }
    }

    #[test]
    fn the_table_is_the_error_function() {
        let below = half_normal();
        // erf(1/sqrt 2), erf(2/sqrt 2), erf(3/sqrt 2), over erf(4/sqrt 2) = 0.999936657516.
        for (cell, exact) in [(256, 0.682_689_492_137), (512, 0.954_499_736_104), (768, 0.997_300_203_937)] {
            let got = below[cell] as f64 / below[CELLS] as f64;
            assert!((got - exact / 0.999_936_657_516).abs() < 2e-6, "cell {cell}: {got}");
        }
    }
}
