//! Durations counted in log-linear buckets: constant memory, exact count, mean and maximum, quantiles within 0.4 %.

/// Buckets per octave: the half-width of a bucket is 1/256 of its value.
const SUB_BITS: u32 = 7;
const SUB: u64 = 1 << SUB_BITS;
/// One linear group for values below `SUB`, then one group per leading-bit position.
const BUCKETS: usize = ((64 - SUB_BITS + 1) as usize) << SUB_BITS;

/// A distribution of durations, ns.
#[derive(Clone, Default)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts one duration, ns.
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
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && count > 0 {
                return Some(middle(index).min(self.max));
            }
        }
        None
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
    let index = index as u64;
    if index < SUB {
        return index;
    }
    let shift = (index >> SUB_BITS) - 1;
    let low = ((index & (SUB - 1)) + SUB) << shift;
    low + ((1u64 << shift) >> 1)
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
}
