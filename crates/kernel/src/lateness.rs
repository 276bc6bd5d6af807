//! How late the emulator was, in log-linear buckets: constant memory, quantiles within 7 %.

/// Buckets per octave: 16; a bucket is at most 1/16 of its value wide.
const SUB_BITS: u32 = 4;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = ((64 - SUB_BITS + 1) as usize) << SUB_BITS;

/// Distribution of delays, ns.
#[derive(Clone, Debug)]
pub struct Lateness {
    buckets: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { buckets: vec![0; BUCKETS], count: 0, max_ns: 0 }
    }
}

impl Lateness {
    /// Counts one packet.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = if ns < SUB {
            ns
        } else {
            let octave = 63 - ns.leading_zeros() - SUB_BITS;
            (u64::from(octave) + 1) * SUB + (ns >> octave) - SUB
        };
        self.buckets[bucket as usize] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Packets counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest, ns, exact; None when no packet came.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// What `per_mille` of all do not exceed, ns, rounded up to the end of its bucket; None when no packet came.
    pub fn quantile_ns(&self, per_mille: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut seen = 0u128;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if count > 0 && seen >= rank {
                return Some(last(index as u64).min(self.max_ns));
            }
        }
        None
    }
}

/// The largest value of a bucket.
fn last(index: u64) -> u64 {
    if index < SUB {
        return index;
    }
    let octave = index / SUB - 1;
    let above = u128::from(index % SUB + SUB + 1) << octave;
    u64::try_from(above - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_never_below_the_truth_and_at_most_a_sixteenth_above() {
        let mut all = Lateness::default();
        for ns in 1..=100_000u64 {
            all.record(ns);
        }
        for per_mille in [1, 10, 500, 990, 999, 1000] {
            let (truth, got) = (per_mille * 100, all.quantile_ns(per_mille).unwrap());
            assert!((truth..=truth + truth / 16 + 1).contains(&got), "{per_mille}: {got}, not {truth}");
        }
        assert_eq!(all.max_ns(), Some(100_000));
    }

    #[test]
    fn the_ends_of_the_range_have_their_bucket() {
        let mut all = Lateness::default();
        all.record(0);
        assert_eq!(all.quantile_ns(990), Some(0));
        all.record(u64::MAX);
        assert_eq!(all.quantile_ns(1000), Some(u64::MAX));
        assert_eq!(Lateness::default().quantile_ns(500), None);
    }
}
