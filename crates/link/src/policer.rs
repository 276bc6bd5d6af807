//! A token-bucket policer: drops at once what exceeds a rate and a burst. It has no queue and delays nothing.

use crate::config::PolicerConfig;
use units::NS_PER_S;

/// Tokens of one byte.
const PER_BYTE: u128 = 8 * NS_PER_S as u128;

/// A token bucket. It starts full (RFC 2697, 3).
///
/// A token is a bit/s x ns, 10^-9 bit: a rate fills whole tokens in any ns, so nothing is rounded or divided, and
/// nothing drifts however long it runs.
pub(crate) struct Policer {
    rate: u128,
    /// At most 2^40 x 8 x 10^9 < 2^73.
    capacity: u128,
    /// In the bucket at `filled_at`; at most `capacity`.
    tokens: u128,
    filled_at: u64,
}

impl Policer {
    pub fn new(config: &PolicerConfig) -> Policer {
        let capacity = u128::from(config.burst_bytes) * PER_BYTE;
        Policer { rate: config.rate.0.into(), capacity, tokens: capacity, filled_at: 0 }
    }

    /// Returns whether a packet that comes at `now` conforms, and takes its tokens if so. `now` does not go back.
    pub fn admits(&mut self, now: u64, bytes: u32) -> bool {
        // 2^62 bit/s for 2^64 ns and a full bucket stay below 2^127.
        let filled = self.tokens + self.rate * u128::from(now.saturating_sub(self.filled_at));
        self.filled_at = now;
        self.tokens = filled.min(self.capacity);
        let needed = u128::from(bytes) * PER_BYTE;
        let conforms = needed <= self.tokens;
        if conforms {
            self.tokens -= needed;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{MAX_BURST_BYTES, MAX_RATE};
    use proptest::prelude::*;
    use units::Rate;

    fn policer(rate: u64, burst_bytes: u64) -> Policer {
        let config = PolicerConfig { rate: Rate(rate), burst_bytes };
        config.check().expect("a valid policer");
        Policer::new(&config)
    }

    #[test]
    fn a_full_bucket_passes_its_burst_at_once_and_no_more() {
        let mut bucket = policer(45_000_000, 8192);
        let passed = (0..100).filter(|_| bucket.admits(0, 1500)).count();
        assert_eq!(passed, 5, "5 x 1500 B in 8192 B");
        assert!(bucket.admits(0, 692) && !bucket.admits(0, 1), "the rest of the bucket, to the byte");
    }

    #[test]
    fn packets_at_the_rate_pass_however_long_and_one_ns_sooner_do_not() {
        // 1500 B at 7 bit/s take 12000/7 s: no whole number of ns.
        for rate in [7, 45_000_000, 9_953_280_000, 400_000_000_000, MAX_RATE.0] {
            // Room for a packet and for what a ns brings: a full bucket would lose what rounding a time up brought.
            let burst = 3000 + rate / 8_000_000_000;
            let mut bucket = policer(rate, burst);
            assert!(bucket.admits(0, burst as u32), "all of it");
            let due = |n: u64| {
                let ns = (u128::from(n) * 1500 * PER_BYTE).div_ceil(u128::from(rate));
                u64::try_from(ns).expect("within 584 years")
            };
            for n in 1..100_000 {
                assert!(bucket.admits(due(n), 1500), "rate {rate}, packet {n}");
                if due(n + 1) > due(n) && n % 1000 == 0 {
                    assert!(!bucket.admits(due(n + 1) - 1, 1500), "rate {rate}, packet {n}: a ns early");
                }
            }
        }
    }

    #[test]
    fn tokens_of_years_do_not_overflow() {
        let mut bucket = policer(MAX_RATE.0, MAX_BURST_BYTES);
        assert!(bucket.admits(u64::MAX - 1, 65_535) && bucket.admits(u64::MAX, 65_535));
        let mut bucket = policer(400_000_000_000, 50_000_000_000);
        let passed = (0..2_000_000).filter(|_| bucket.admits(0, 65_535)).count();
        assert_eq!(passed, 50_000_000_000 / 65_535, "a second of 400 Gbit/s in one burst");
    }

    #[test]
    fn values_out_of_range_are_refused_by_field() {
        let refused = |rate, burst_bytes| {
            PolicerConfig { rate: Rate(rate), burst_bytes }.check().expect_err("out of range").to_string()
        };
        assert_eq!(refused(0, 1500), "policer.rate = 0bit/s: must be from 1 bit/s to 2^62 bit/s");
        assert_eq!(refused(1, 0), "policer.burst_bytes = 0: must be from 1 to 2^40 bytes");
        assert!(refused(1, MAX_BURST_BYTES + 1).ends_with("must be from 1 to 2^40 bytes"));
    }

    proptest! {
        /// Over any interval at most burst + rate x time passes, and a packet is dropped only where it would exceed
        /// that over some interval that ends with it.
        #[test]
        fn exactly_burst_plus_rate_times_time_passes(
            rate in prop_oneof![1..200u64, 1_000_000..100_000_000_000u64],
            burst in 1..20_000u64,
            arrivals in prop::collection::vec((0..40_000u64, 1..3000u32), 1..120),
        ) {
            let mut bucket = policer(rate, burst);
            let mut now = 0;
            let mut passed: Vec<(u64, u128)> = vec![];
            for (wait, bytes) in arrivals {
                now += wait;
                let needed = u128::from(bytes) * PER_BYTE;
                // Every interval from an earlier packet (or from now) to now, with this packet.
                let mut exceeds = needed > u128::from(burst) * PER_BYTE;
                let mut inside = needed;
                for &(at, tokens) in passed.iter().rev() {
                    inside += tokens;
                    let room = u128::from(burst) * PER_BYTE + u128::from(rate) * u128::from(now - at);
                    exceeds |= inside > room;
                }
                let admitted = bucket.admits(now, bytes);
                prop_assert_eq!(admitted, !exceeds);
                if admitted {
                    passed.push((now, needed));
                }
            }
        }
    }
}
