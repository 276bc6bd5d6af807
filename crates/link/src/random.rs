//! Seeded random numbers: equal on every machine, integers only.
//!
//! Every random stream has a name and its own seed ([`stream_seed`]), so that adding one does not change another.

use std::fmt;

/// Weyl increment of SplitMix64: 2^64 divided by the golden ratio (Steele, Lea, Flood 2014).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Generator xoshiro256++ (Blackman and Vigna 2021), period 2^256 - 1.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

/// Output function of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Seed of the stream called `name` in the run with seed `run_seed`.
///
/// FNV-1a over the name, mixed with the run's seed by SplitMix64's output function: names that differ in a character,
/// and seeds that differ by one, give unrelated streams.
pub fn stream_seed(run_seed: u64, name: &str) -> u64 {
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| {
        // FNV prime, 2^40 + 2^8 + 0xb3.
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    mix(mix(run_seed.wrapping_add(GOLDEN)) ^ hash)
}

impl Random {
    /// A generator; every seed is good.
    pub fn new(seed: u64) -> Random {
        // SplitMix64 fills the state, as xoshiro's authors advise; four outputs of it are never all zero.
        let word = |i: u64| mix(seed.wrapping_add(GOLDEN.wrapping_mul(i)));
        Random { state: [word(1), word(2), word(3), word(4)] }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number from 0 to `bound` - 1, each equally likely (Lemire 2019); 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            // The first (2^64 mod bound) values of the low half are one too many.
            if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound.max(1) {
                return (product >> 64) as u64;
            }
        }
    }

    /// True with probability `numerator / denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// An exponential deviate of mean `mean`, on whole numbers: geometric, P(x >= k) = (mean / (mean + 1))^k.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        Geometric::with_mean(mean).sample(self)
    }
}

/// Number of failures before the first success of independent trials: P(x >= k) = (1 - p)^k.
///
/// Found by inversion without a logarithm: the largest k with (1 - p)^k above a uniform number, built bit by bit from
/// the stored powers (1 - p)^(2^j) in 128-bit fixed point. Exact to 2^-100 whatever p, on every machine; a drawing
/// costs at most 64 multiplications, and replaces one drawing per trial.
#[derive(Clone)]
pub struct Geometric {
    /// (1 - p)^(2^j), units of 2^-128; empty when p = 1.
    powers: Box<[u128]>,
    never: bool,
}

impl fmt::Debug for Geometric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Geometric").field("levels", &self.powers.len()).field("never", &self.never).finish()
    }
}

impl Geometric {
    /// With p = `numerator / denominator`; 1 when the quotient is above 1.
    pub fn new(numerator: u64, denominator: u64) -> Geometric {
        Geometric::of_ratio(u128::from(numerator), u128::from(denominator))
    }

    /// With mean (1 - p) / p = `mean`.
    pub fn with_mean(mean: u64) -> Geometric {
        Geometric::of_ratio(1, u128::from(mean) + 1)
    }

    /// `denominator` at most 2^64.
    fn of_ratio(numerator: u128, denominator: u128) -> Geometric {
        if numerator == 0 {
            return Geometric { powers: Box::default(), never: true };
        }
        let mut powers = Vec::new();
        if numerator < denominator {
            // p * 2^128 by long division, 64 bits at a time.
            let high = (numerator << 64) / denominator;
            let low = (((numerator << 64) % denominator) << 64) / denominator;
            let p = high << 64 | low;
            let mut power = p.wrapping_neg();
            // A power below 2^-64 is a run that nobody will see.
            while powers.len() < 64 && power >> 64 != 0 {
                powers.push(power);
                power = high_half(power, power);
            }
        }
        Geometric { powers: powers.into(), never: false }
    }

    /// A number of failures; `u64::MAX` when p = 0.
    pub fn sample(&self, random: &mut Random) -> u64 {
        if self.never {
            return u64::MAX;
        }
        let uniform = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let (mut survival, mut failures) = (u128::MAX, 0);
        for (j, &power) in self.powers.iter().enumerate().rev() {
            let longer = high_half(survival, power);
            if longer > uniform {
                survival = longer;
                failures |= 1 << j;
            }
        }
        failures
    }
}

/// Upper 128 bits of a product of 128-bit numbers.
fn high_half(a: u128, b: u128) -> u128 {
    const LOW: u128 = u64::MAX as u128;
    let (ah, al, bh, bl) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (cross1, cross2) = (ah * bl, al * bh);
    // Each term is below 2^64: the sum cannot overflow.
    let carry = ((al * bl) >> 64) + (cross1 & LOW) + (cross2 & LOW);
    ah * bh + (cross1 >> 64) + (cross2 >> 64) + (carry >> 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xoshiro_gives_its_published_first_numbers() {
        // From the reference implementation with state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!(random.next_u64(), 41_943_041);
        assert_eq!(random.next_u64(), 58_720_359);
        assert_eq!(random.next_u64(), 3_588_806_011_781_223);
    }

    #[test]
    fn split_mix_gives_its_published_first_number() {
        // SplitMix64 with seed 1234567: 6457827717110365317, 3203168211198807973.
        let random = Random::new(1_234_567);
        assert_eq!(random.state[0], 6_457_827_717_110_365_317);
        assert_eq!(random.state[1], 3_203_168_211_198_807_973);
    }

    #[test]
    fn streams_differ_by_name_and_by_seed() {
        let seeds = [stream_seed(1, "a"), stream_seed(1, "b"), stream_seed(2, "a"), stream_seed(1, "aa")];
        for (i, a) in seeds.iter().enumerate() {
            for b in &seeds[..i] {
                assert!((a ^ b).count_ones() > 10, "{a:x} and {b:x} are too close");
            }
        }
    }

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut random = Random::new(5);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[random.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    #[test]
    fn high_half_of_known_products() {
        assert_eq!(high_half(u128::MAX, u128::MAX), u128::MAX - 1);
        assert_eq!(high_half(1 << 127, 1 << 127), 1 << 126);
        assert_eq!(high_half(u128::MAX, 1), 0);
    }

    #[test]
    fn geometric_has_its_mean_and_tail() {
        let mut random = Random::new(11);
        for (p, of) in [(1u64, 2u64), (1, 10), (1, 1000), (333, 1_000_000_000_000)] {
            let geometric = Geometric::new(p, of);
            let (n, mean) = (40_000u64, (of - p) as f64 / p as f64);
            let (mut sum, mut above) = (0.0, 0u64);
            for _ in 0..n {
                let x = geometric.sample(&mut random) as f64;
                sum += x;
                above += u64::from(x >= mean.ceil());
            }
            // The deviation of the mean is about mean / sqrt(n): five of them.
            assert!((sum / n as f64 - mean).abs() < 5.0 * (mean + 1.0) / (n as f64).sqrt(), "p = {p}/{of}");
            let tail = ((of - p) as f64 / of as f64).powf(mean.ceil());
            let deviation = (n as f64 * tail * (1.0 - tail)).sqrt();
            assert!((above as f64 - n as f64 * tail).abs() < 5.0 * deviation, "p = {p}/{of}");
        }
    }

    #[test]
    fn geometric_at_its_ends() {
        let mut random = Random::new(3);
        assert_eq!(Geometric::new(0, 10).sample(&mut random), u64::MAX);
        assert_eq!(Geometric::new(10, 10).sample(&mut random), 0);
        assert_eq!(Geometric::with_mean(0).sample(&mut random), 0);
        // p = 1e-18: a mean of 1e18 bits, near the end of u64 but inside.
        let rare = Geometric::new(1, 1_000_000_000_000_000_000);
        let mean = (0..1000).map(|_| rare.sample(&mut random) as f64).sum::<f64>() / 1000.0;
        assert!((0.8e18..1.2e18).contains(&mean), "{mean}");
    }
}
