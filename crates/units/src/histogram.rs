//! Durations counted in log-linear buckets: constant memory, exact count, mean and maximum, quantiles within 0.4 %, or
//! bounds on them within 0.8 %.

/// Buckets per octave: the half-width of a bucket is 1/256 of its value.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// One linear group for values below `SUB`, then one group per leading-bit position.
const BUCKETS: usize = ((64 - SUB_BITS + 1) as usize) << SUB_BITS;

/// A distribution of durations, ns.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts one duration, ns.
    #[inline]
    pub fn record(&mut self, value: u64) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Durations counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest, ns, exact; None when empty.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The mean, ns; None when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest duration that `per_mille` of all do not exceed, ns, within 0.4 %; None when empty.
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        self.bucket_of(per_mille).map(|index| middle(index).min(self.max))
    }

    /// The same for each of `per_mille`, which ascend; empty when nothing was counted. One pass over the buckets.
    ///
    /// # Panics
    /// When `per_mille` does not ascend.
    pub fn quantiles(&self, per_mille: &[u64]) -> Vec<u64> {
        assert!(per_mille.is_sorted(), "quantiles in ascending order");
        if self.count == 0 {
            return vec![];
        }
        let mut found = Vec::with_capacity(per_mille.len());
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate().filter(|(_, &count)| count > 0) {
            seen += count;
            while let Some(&next) = per_mille.get(found.len()) {
                if self.rank(next) > seen {
                    break;
                }
                found.push(middle(index).min(self.max));
            }
        }
        found
    }

    /// The same, ns, as a bound: never below the true value, at most 0.8 % above it; None when empty.
    pub fn quantile_bound(&self, per_mille: u64) -> Option<u64> {
        self.bucket_of(per_mille).map(|index| last(index).min(self.max))
    }

    /// The bucket that holds the smallest duration that `per_mille` of all do not exceed.
    fn bucket_of(&self, per_mille: u64) -> Option<usize> {
        let rank = self.rank(per_mille);
        let mut seen = 0;
        self.buckets.iter().position(|&count| {
            seen += count;
            seen >= rank && count > 0
        })
    }

    /// The place, from 1, of the smallest duration that `per_mille` of all do not exceed.
    fn rank(&self, per_mille: u64) -> u64 {
        (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1) as u64
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.count == 0 {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS];
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    (((u64::from(shift) + 1) << SUB_BITS) + (value >> shift) - SUB) as usize
}

fn middle(index: usize) -> u64 {
    let (low, width) = extent(index);
    low + (width >> 1)
}

/// The largest value of a bucket.
fn last(index: usize) -> u64 {
    let (low, width) = extent(index);
    low + (width - 1)
}

/// The smallest value of a bucket, and how many values it holds.
fn extent(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < SUB {
        return (index, 1);
    }
    let shift = (index >> SUB_BITS) - 1;
    (((index & (SUB - 1)) + SUB) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_within_its_bucket() {
        for shift in 0..64 {
            for offset in [0u64, 1, 77] {
                let value = (1u64 << shift).saturating_add(offset);
                let middle = middle(bucket(value));
                let error = middle.abs_diff(value) as f64 / value as f64;
                assert!(error <= 1.0 / 256.0, "{value} became {middle}");
            }
        }
        assert!(bucket(u64::MAX) < BUCKETS);
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut histogram = Histogram::default();
        (1..=1000u64).for_each(|v| histogram.record(v * 1_000_000));
        let p99 = histogram.quantile(990).unwrap() as f64;
        assert!((p99 / 990e6 - 1.0).abs() < 0.004, "{p99}");
        assert_eq!(histogram.max(), Some(1_000_000_000));
        assert_eq!(histogram.mean(), Some(500.5e6));
        assert_eq!(Histogram::default().quantile(500), None);
    }

    #[test]
    fn a_table_of_quantiles_is_what_each_of_them_is() {
        let mut histogram = Histogram::default();
        assert!(histogram.quantiles(&[0, 500, 1000]).is_empty());
        (1..=777u64).for_each(|v| histogram.record(v * v * 1000));
        let table: Vec<u64> = (0..=1000).collect();
        let each: Vec<u64> = table.iter().map(|&p| histogram.quantile(p).unwrap()).collect();
        assert_eq!(histogram.quantiles(&table), each);
        assert!(each.is_sorted() && histogram.quantiles(&[500, 500]).len() == 2);
    }

    #[test]
    fn a_bound_is_never_below_the_truth_and_at_most_a_128th_above() {
        let mut histogram = Histogram::default();
        (1..=100_000u64).for_each(|v| histogram.record(v));
        for per_mille in [1, 10, 500, 990, 999, 1000] {
            let (truth, got) = (per_mille * 100, histogram.quantile_bound(per_mille).unwrap());
            assert!((truth..=truth + truth / 128 + 1).contains(&got), "{per_mille}: {got}, not {truth}");
        }
        assert_eq!(histogram.max(), Some(100_000));
    }

    #[test]
    fn the_ends_of_the_range_have_their_bucket() {
        let mut histogram = Histogram::default();
        histogram.record(0);
        assert_eq!(histogram.quantile_bound(990), Some(0));
        histogram.record(u64::MAX);
        assert_eq!(histogram.quantile_bound(1000), Some(u64::MAX));
        assert_eq!(Histogram::default().quantile_bound(500), None);
    }
}
