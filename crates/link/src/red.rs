//! Random early detection: an average queue length, and a drop probability that grows with it.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993 (section 4 and figure 2);
//! gentle as Floyd, "Recommendation on using the gentle variant of RED", 2000. Integers throughout.

use crate::config::QueueConfig;
use crate::random::Random;
use units::{Rate, Size};

/// Size of the "typical small packet" by which the average decays while the queue is idle (1993, section 4): bytes.
/// Linux's manual suggests 1000 for `avpkt`, by which it does the same.
const TYPICAL_BYTES: u64 = 1000;
/// Fraction bits of probabilities.
const PROBABILITY_BITS: u32 = 32;
/// Probability 1.
const CERTAIN: u64 = 1 << PROBABILITY_BITS;
/// Longest queue that the average follows, bytes: 2^43, so that it fits u64 with 20 fraction bits.
const LONGEST: u64 = 1 << 43;

/// RED's decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RedDecision {
    Pass,
    Mark,
    Drop,
}

pub(crate) struct Red {
    /// Average queue, bytes with `shift` fraction bits.
    average: u64,
    shift: u32,
    min: u64,
    max: u64,
    /// Probability at `max`, 2^-32.
    max_probability: u64,
    ecn: bool,
    /// Packets since the last mark or drop while the average is above `min`.
    count: u64,
    /// Transmission time of a typical packet, ns.
    typical: u64,
    random: Random,
}

impl Red {
    /// From [`QueueConfig::Red`]; None from any other.
    pub fn new(config: &QueueConfig, rate: Rate, random: Random) -> Option<Red> {
        let QueueConfig::Red { min_bytes, max_bytes, max_probability_ppm, weight_shift, ecn, .. } = *config else {
            return None;
        };
        let max_probability = u64::from(max_probability_ppm) * CERTAIN / 1_000_000;
        let mut red = Red {
            average: 0,
            shift: weight_shift,
            min: min_bytes,
            max: max_bytes,
            max_probability,
            ecn,
            count: 0,
            typical: 1,
            random,
        };
        red.set_rate(rate);
        Some(red)
    }

    /// A new rate of the line.
    pub fn set_rate(&mut self, rate: Rate) {
        self.typical = rate.time_for(Size(TYPICAL_BYTES)).0.max(1);
    }

    /// A packet arrives at a queue of `queued` bytes that is idle since `idle_since`.
    pub fn admit(&mut self, now: u64, queued: u64, idle_since: Option<u64>, ect: bool) -> RedDecision {
        match idle_since {
            // As if m packets had arrived at an empty queue: avg <- (1 - w)^m avg.
            Some(since) => self.decay(now.saturating_sub(since) / self.typical),
            None => self.average = self.average - (self.average >> self.shift) + queued.min(LONGEST),
        }
        let probability = self.probability();
        if probability == 0 {
            self.count = 0;
            return RedDecision::Pass;
        }
        if probability < CERTAIN {
            // p_a = p_b / (1 - count * p_b): drops come at even distances rather than in clusters.
            let spent = u128::from(self.count) * u128::from(probability);
            self.count += 1;
            let left = u128::from(CERTAIN).saturating_sub(spent);
            let draw = u128::from(self.random.next_u64() >> PROBABILITY_BITS);
            if draw * left >= u128::from(probability) << PROBABILITY_BITS {
                return RedDecision::Pass;
            }
        }
        self.count = 0;
        // RFC 3168, section 7: beyond the region of early detection, drop even what could be marked.
        if self.ecn && ect && probability < CERTAIN {
            RedDecision::Mark
        } else {
            RedDecision::Drop
        }
    }

    /// p_b of the average, 2^-32.
    fn probability(&self) -> u64 {
        let average = u128::from(self.average);
        let at = |bytes: u64| u128::from(bytes) << self.shift;
        let (low, high) = (at(self.min), at(self.max));
        let p = if average < low {
            0
        } else if average < high {
            u128::from(self.max_probability) * (average - low) / (high - low)
        } else if average < 2 * high {
            let rest = u128::from(CERTAIN - self.max_probability);
            u128::from(self.max_probability) + rest * (average - high) / high
        } else {
            u128::from(CERTAIN)
        };
        p as u64
    }

    fn decay(&mut self, packets: u64) {
        // (1 - 2^-shift)^packets by squaring, 2^-64. One step keeps 1 - 2^-shift exact; shift is at least 1.
        let mut base = (1u64 << (64 - self.shift)).wrapping_neg();
        let mut power = packets;
        while power > 0 && self.average > 0 {
            if power & 1 == 1 {
                self.average = scale(self.average, base);
            }
            base = scale(base, base);
            power >>= 1;
        }
    }

    /// Average queue, bytes.
    #[cfg(test)]
    pub fn average_bytes(&self) -> u64 {
        self.average >> self.shift
    }
}

fn scale(value: u64, fraction: u64) -> u64 {
    ((u128::from(value) * u128::from(fraction)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn red(shift: u32, ppm: u32, ecn: bool) -> Red {
        let config = QueueConfig::Red {
            limit_bytes: 1_000_000,
            min_bytes: 30_000,
            max_bytes: 90_000,
            max_probability_ppm: ppm,
            weight_shift: shift,
            ecn,
        };
        Red::new(&config, Rate(8_000_000), Random::new(1)).unwrap()
    }

    #[test]
    fn the_average_follows_its_formula() {
        let mut red = red(9, 0, false);
        let mut exact = 0.0f64;
        for i in 0..5000u64 {
            let queued = 20_000 + (i % 7) * 1500;
            red.admit(0, queued, None, false);
            exact += (queued as f64 - exact) / 512.0;
        }
        assert!((red.average_bytes() as f64 - exact).abs() < 3.0, "{} and {exact}", red.average_bytes());
        // 1000 B at 8 Mbit/s take 1 ms: 300 ms idle are 300 packets.
        red.admit(400_000_000, 0, Some(100_000_000), false);
        exact *= (511.0f64 / 512.0).powi(300);
        assert!((red.average_bytes() as f64 - exact).abs() < 3.0, "{} and {exact}", red.average_bytes());
    }

    #[test]
    fn the_probability_is_linear_then_gentle_then_one() {
        let mut red = red(9, 100_000, false);
        let mut at = |bytes: u64| {
            red.average = bytes << 9;
            red.probability() as f64 / CERTAIN as f64
        };
        for (bytes, expected) in [
            (29_999, 0.0),
            (30_000, 0.0),
            (60_000, 0.05),
            (90_000, 0.1),
            (135_000, 0.55),
            (180_000, 1.0),
            (1 << 41, 1.0),
        ] {
            assert!((at(bytes) - expected).abs() < 1e-4, "at {bytes}: {} instead of {expected}", at(bytes));
        }
    }

    #[test]
    fn drops_come_at_uniform_distances() {
        // With p_b constant, 1993 section 7: distances are uniform on 1 .. 1/p_b, mean (1/p_b + 1) / 2.
        let mut red = red(20, 1_000_000, false);
        red.average = 36_000 << 20; // p_b = 0.1
        let (mut last, mut distances) = (0u64, vec![]);
        for i in 1..200_000u64 {
            red.average = 36_000 << 20;
            if red.admit(0, 36_000, None, false) == RedDecision::Drop {
                distances.push(i - last);
                last = i;
            }
        }
        let mean = distances.iter().sum::<u64>() as f64 / distances.len() as f64;
        assert!((5.4..5.6).contains(&mean), "mean distance {mean}");
        assert!(distances.iter().all(|&d| d <= 11), "longest distance {:?}", distances.iter().max());
    }

    #[test]
    fn ecn_is_marked_early_and_dropped_late() {
        let mut red = red(1, 1_000_000, true);
        red.average = 89_000 << 1;
        let early: Vec<_> = (0..50).map(|_| red.admit(0, 89_000, None, true)).collect();
        assert!(early.contains(&RedDecision::Mark) && !early.contains(&RedDecision::Drop), "{early:?}");
        red.average = 400_000 << 1;
        assert_eq!(red.admit(0, 400_000, None, true), RedDecision::Drop);
    }
}
