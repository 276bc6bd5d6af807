//! Packet sampling 1 in N, as in sFlow and sampled NetFlow, and the error of estimates from samples.

use link::random::{Geometric, Random};

/// Takes each packet with probability 1/N, independently: what sFlow's random skip counts give (sFlow version 5, 3.1).
///
/// Cost: a random draw per sampled packet.
#[derive(Clone, Debug)]
pub struct Sampler {
    gaps: Geometric,
    random: Random,
    /// Packets that still pass before the next sample.
    gap: u64,
    one_in: u64,
}

impl Sampler {
    /// A sampler that takes one packet in `one_in` (0 counts as 1: all), seeded by a stream of its own.
    pub fn new(one_in: u64, seed: u64) -> Sampler {
        let (gaps, mut random) = (Geometric::new(1, one_in.max(1)), Random::new(seed));
        let gap = gaps.sample(&mut random);
        Sampler { gaps, random, gap, one_in: one_in.max(1) }
    }

    /// Counts `packets`; returns how many of them are sampled.
    pub fn handle_packets(&mut self, packets: u64) -> u64 {
        if self.one_in == 1 {
            return packets;
        }
        let (mut left, mut taken) = (packets, 0);
        while self.gap < left {
            left -= self.gap + 1;
            taken += 1;
            self.gap = self.gaps.sample(&mut self.random);
        }
        self.gap -= left;
        taken
    }
}

/// Samples of a flow: enough for an estimate and its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sampled {
    /// Packets sampled.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of the squares of their sizes, B^2. Range: u128; 2^64 packets of 65,535 B are 2^96.
    pub squares: u128,
}

/// An amount of data estimated from samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// Bytes, estimated without bias.
    pub bytes: u64,
    /// Standard error of `bytes`, bytes; 0 when every packet was counted.
    pub standard_error: u64,
}

impl Sampled {
    /// Adds `packets` sampled packets of `bytes` altogether, which are taken to be of one size.
    pub fn add(&mut self, packets: u64, bytes: u64) {
        self.packets += packets;
        self.bytes += bytes;
        if packets > 0 {
            self.squares += u128::from(bytes) * u128::from(bytes) / u128::from(packets);
        }
    }

    /// Estimates the volume, when one packet in `one_in` was sampled.
    ///
    /// Each sampled packet stands for N. With inclusion probability p = 1/N for each packet alone, the variance is
    /// estimated without bias by sum of s^2 (1 - p) / p^2 = N (N - 1) sum of s^2 (Horvitz and Thompson 1952). For
    /// packets of one size this is sFlow's rule: c samples give a relative error of 1/sqrt(c) (Phaal and Panchen,
    /// Packet Sampling Basics).
    pub fn estimate(&self, one_in: u64) -> Estimate {
        let n = one_in.max(1);
        // sqrt is exact to the last bit on every machine (IEEE 754).
        let variance = n as f64 * (n - 1) as f64 * self.squares as f64;
        Estimate { bytes: self.bytes.saturating_mul(n), standard_error: variance.sqrt() as u64 }
    }
}

impl std::ops::AddAssign for Sampled {
    fn add_assign(&mut self, other: Sampled) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.squares += other.squares;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_one_takes_everything_and_has_no_error() {
        let mut sampler = Sampler::new(1, 7);
        assert_eq!(sampler.handle_packets(123), 123);
        let mut sampled = Sampled::default();
        sampled.add(123, 123 * 1500);
        assert_eq!(sampled.estimate(1), Estimate { bytes: 184_500, standard_error: 0 });
    }

    #[test]
    fn the_number_sampled_does_not_depend_on_how_packets_are_grouped() {
        let (mut whole, mut parts) = (Sampler::new(50, 3), Sampler::new(50, 3));
        let in_parts: u64 = (0..1000).map(|i| parts.handle_packets(i % 37)).sum();
        let all = (0..1000u64).map(|i| i % 37).sum();
        assert_eq!(whole.handle_packets(all), in_parts);
    }

    /// Over many flows the estimate is off by its standard error: the mean square of (error / standard error) is near
    /// one, and the mean error near zero.
    #[test]
    fn estimates_err_as_much_as_they_say() {
        let mut sampler = Sampler::new(100, 11);
        let (flows, packets, bytes) = (4000u64, 10_000u64, 1500);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..flows {
            let taken = sampler.handle_packets(packets);
            let mut sampled = Sampled::default();
            sampled.add(taken, taken * bytes);
            let estimate = sampled.estimate(100);
            let off = (estimate.bytes as f64 - (packets * bytes) as f64) / estimate.standard_error as f64;
            sum += off;
            squares += off * off;
        }
        // Deviation of the mean of 4000 is 0.016, of the mean square 0.022; an estimated error correlates a little
        // with it.
        assert!((sum / flows as f64).abs() < 0.12, "mean {}", sum / flows as f64);
        assert!((squares / flows as f64 - 1.0).abs() < 0.12, "mean square {}", squares / flows as f64);
    }
}
