//! Detects that a series has become steady, from where on, and how well its mean is known.
//!
//! The start-up is cut off by MSER-m (White, Cobb and Spratt 2000: MSER-5): the cut after which the mean of what is
//! left has the least standard error, over means of m observations. With m = 5 throughout, cycles of hundreds of
//! observations would make a short rest look best; so m grows with the series. The rest is cut into 20 batches, or 10,
//! whose means are taken as independent (method of batch means; Schmeiser 1982: 10 to 30 batches) where their von
//! Neumann ratio does not speak against it (Fishman and Yarberry 1997).

/// Observations of which MSER takes the mean, at least.
const GROUP: usize = 5;
/// Means that it looks at, at most, but for those of a rest.
const GROUPS: usize = 128;
/// Batches, and Student's t at 97.5 % for one degree of freedom less (Abramowitz and Stegun 1964, table 26.10). Fewer
/// and longer ones are tried where the first are not independent.
const BATCHES: [(usize, f64); 2] = [(20, 2.0930), (10, 2.2622)];
/// The normal distribution's 95 % point: correlation is looked for on one side.
const Z_95: f64 = 1.645;

/// Index of the first observation that is not start-up, in the first half: what changes beyond that shows in the
/// batches, which are not independent then. None: too few to tell.
///
/// `values` up to 2^36 each, 2^20 of them: sums of squares stay within 128 bits.
pub fn first_steady(values: &[u64]) -> Option<usize> {
    let length = GROUP.max(values.len() / GROUPS);
    let sum_of = |group: &[u64]| group.iter().map(|&value| u128::from(value)).sum();
    let groups: Vec<u128> = values.chunks_exact(length).map(sum_of).collect();
    let count = groups.len();
    let (mut sum, mut squares) = (0u128, 0u128);
    let mut best: Option<(f64, usize)> = None;
    for first in (0..count).rev() {
        sum += groups[first];
        squares += groups[first] * groups[first];
        let left = (count - first) as u128;
        if left < GROUP as u128 || 2 * first > count {
            continue;
        }
        let error = (left * squares - sum * sum) as f64 / (left * left * left) as f64;
        // Of equal ones the first: it leaves most.
        if best.is_none_or(|(least, _)| error <= least) {
            best = Some((error, first));
        }
    }
    best.map(|(_, first)| first * length)
}

/// Means of batches of a series.
pub struct Batches {
    sums: Vec<u64>,
    /// Observations in each.
    pub length: usize,
    t_975: f64,
}

impl Batches {
    /// The batches of `values` that are independent, as many as possible; None: neither 20 nor 10 are.
    pub fn independent(values: &[u64]) -> Option<Batches> {
        let all = BATCHES.iter().filter_map(|&(count, t_975)| Batches::of(values, count, t_975));
        all.into_iter().find(Batches::are_independent)
    }

    /// The fewest batches of `values`, whether they are independent or not. None: fewer values than that.
    pub fn all(values: &[u64]) -> Option<Batches> {
        BATCHES.last().and_then(|&(count, t_975)| Batches::of(values, count, t_975))
    }

    /// The first few of `values` are left out where they do not go evenly. None: fewer than one observation for each.
    fn of(values: &[u64], count: usize, t_975: f64) -> Option<Batches> {
        let length = values.len() / count;
        if length == 0 {
            return None;
        }
        let batches = values[values.len() - count * length..].chunks_exact(length);
        Some(Batches { sums: batches.map(|batch| batch.iter().sum()).collect(), length, t_975 })
    }

    /// Number of batches.
    pub fn count(&self) -> usize {
        self.sums.len()
    }

    /// Sum of the batch with the least, and the observations in it.
    pub fn slowest(&self) -> Option<(u64, usize)> {
        self.sums.iter().min().map(|&sum| (sum, self.length))
    }

    /// Mean of an observation.
    pub fn mean(&self) -> f64 {
        self.sums.iter().map(|&sum| u128::from(sum)).sum::<u128>() as f64 / (self.count() * self.length) as f64
    }

    /// The sum of the squared deviations of the batches' sums, times their number.
    fn spread(&self) -> u128 {
        let squares: u128 = self.sums.iter().map(|&sum| u128::from(sum) * u128::from(sum)).sum();
        let sum: u128 = self.sums.iter().map(|&sum| u128::from(sum)).sum();
        self.count() as u128 * squares - sum * sum
    }

    /// Returns true if the batches look independent at the 5 % level: no trend, no cycle longer than a batch.
    fn are_independent(&self) -> bool {
        let spread = self.spread();
        if spread == 0 {
            return true;
        }
        let steps = self.sums.windows(2).map(|pair| u128::from(pair[0].abs_diff(pair[1])));
        let steps: u128 = steps.map(|step| step * step).sum();
        // 1 - sum of squared steps / (2 sum of squared deviations); its variance is (n - 2) / (n^2 - 1).
        let n = self.count() as f64;
        let correlation = 1.0 - steps as f64 * n / (2.0 * spread as f64);
        correlation <= Z_95 * ((n - 2.0) / (n * n - 1.0)).sqrt()
    }

    /// Half of the 95 % interval of the mean over `ahead` further batches, as a part of the mean: how well the mean is
    /// known, and how much so many may differ from it.
    pub fn half_width(&self, ahead: f64) -> f64 {
        let n = self.count() as f64;
        let deviation = (self.spread() as f64 / n / (n - 1.0)).sqrt() / self.length as f64;
        self.t_975 * deviation * (1.0 / n + 1.0 / ahead).sqrt() / self.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use link::random::Random;

    /// Noise around `level`, after a start-up of `start` observations that begins at zero.
    fn noisy(count: usize, start: usize, level: u64, seed: u64) -> Vec<u64> {
        let mut random = Random::new(seed);
        let value = |i: usize| if i < start { level * i as u64 / start as u64 } else { level };
        (0..count).map(|i| value(i) + random.below(level / 5)).collect()
    }

    fn twenty(values: &[u64]) -> Batches {
        let (count, t_975) = BATCHES[0];
        Batches::of(values, count, t_975).expect("there are as many values")
    }

    #[test]
    fn the_cut_lies_at_the_end_of_the_start_up() {
        for seed in 1..20 {
            let cut = first_steady(&noisy(2000, 200, 10_000, seed)).expect("it is steady");
            assert!((150..300).contains(&cut), "{cut}");
        }
        assert_eq!(first_steady(&[7; 1000]), Some(0), "nothing to cut off");
    }

    #[test]
    fn a_series_that_is_still_growing_is_not_steady() {
        let growing: Vec<u64> = (0..2000).map(|i| i * 100).collect();
        let first = first_steady(&growing).expect("there are enough");
        assert!(first > 950 && Batches::independent(&growing[first..]).is_none(), "{first}");
        assert_eq!(first_steady(&[]), None);
        assert_eq!(first_steady(&[1; 20]), None, "too few to tell");
    }

    #[test]
    fn values_at_the_end_of_the_range_do_not_overflow() {
        let largest = (1u64 << 36) - 1;
        let values: Vec<u64> = (0..1 << 20).map(|i| if i % 2 == 0 { largest } else { 0 }).collect();
        assert!(first_steady(&values).is_some());
        assert!((twenty(&values).mean() / (largest as f64 / 2.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_interval_holds_the_mean_nineteen_times_in_twenty() {
        // Noise is from 0 to 1999.
        let truth = 10_000.0 + 999.5;
        let holds = |seed| {
            let batches = twenty(&noisy(1000, 0, 10_000, seed));
            (batches.mean() / truth - 1.0).abs() <= batches.half_width(f64::INFINITY)
        };
        let held = (0..1000).filter(|&seed| holds(seed + 1)).count();
        assert!((930..970).contains(&held), "{held} of 1000");
    }

    #[test]
    fn what_is_ahead_widens_the_interval() {
        let batches = twenty(&noisy(1000, 0, 10_000, 3));
        let (short, long) = (batches.half_width(20.0), batches.half_width(f64::INFINITY));
        assert!((short / long - 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn trends_and_slow_cycles_are_not_independent_and_noise_mostly_is() {
        let series = |value: &dyn Fn(u64) -> u64| (0..2000).map(value).collect::<Vec<u64>>();
        let independent = |values: &[u64]| twenty(values).are_independent();
        assert!(!independent(&series(&|i| 1_000_000 + i)), "a trend of a part in a thousand");
        assert!(!independent(&series(&|i| if (i / 500) % 2 == 0 { 100 } else { 120 })), "a cycle of half the series");
        assert!(independent(&series(&|i| 100 + i % 50)), "twenty cycles in each batch");
        assert!(independent(&[5; 2000]));
        let accepted = (1..1000).filter(|&seed| independent(&noisy(2000, 0, 10_000, seed))).count();
        assert!((930..970).contains(&accepted), "{accepted} of 1000 at 5 %");
        // With ten of twice the length to fall back on hardly anything is turned down by chance.
        let one_of_both = |seed| Batches::independent(&noisy(2000, 0, 10_000, seed)).is_some();
        let accepted = (1..1000).filter(|&seed| one_of_both(seed)).count();
        assert!((975..1000).contains(&accepted), "{accepted} of 1000");
    }

    #[test]
    fn long_cycles_are_no_start_up() {
        // A thousand teeth of a saw, each with its own length around 100 observations.
        let is_steady = |seed: &u64| {
            let (mut random, mut values) = (Random::new(*seed), vec![]);
            while values.len() < 100_000 {
                let length = random.exponential(100);
                values.extend((0..length).map(|i| 10_000 + 100 * i));
            }
            let cut = first_steady(&values).expect("there are enough");
            Batches::independent(&values[cut..]).is_some()
        };
        let steady = (1..=100).filter(is_steady).count();
        assert!(steady >= 95, "{steady} of 100");
    }
}
