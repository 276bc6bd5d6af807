//! Sizes of a stream's frames, in an order that spreads each size evenly.

use serde::{Deserialize, Serialize};

/// Shortest frame, bytes with its check sequence (IEEE 802.3, 4A.4.2).
pub const FRAME_BYTES_MIN: u32 = 64;
/// Longest, bytes with its check sequence: what the switch of Meirosu and others takes (10GE paper, 4).
pub const FRAME_BYTES_MAX: u32 = 9252;
/// Most frames of a round. A mix of 90 % and 10 % has ten.
const ROUND_MAX: u64 = 100_000;

/// Sizes in their order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mix {
    /// Sizes of one round, bytes with the check sequence.
    round: Vec<u16>,
    bytes: u64,
}

impl Mix {
    /// The order of sizes (bytes with check sequence, weight): after each frame the size that is furthest behind its
    /// share follows.
    ///
    /// # Errors
    /// A size that no frame has, no weight at all, or weights without a common divisor that is large enough.
    pub fn new(sizes: &[(u32, u32)]) -> Result<Mix, String> {
        let right = FRAME_BYTES_MIN..=FRAME_BYTES_MAX;
        if let Some((wrong, _)) = sizes.iter().find(|(bytes, _)| !right.contains(bytes)) {
            return Err(format!("frames of {wrong} bytes; {FRAME_BYTES_MIN} to {FRAME_BYTES_MAX} would be right"));
        }
        let divisor = sizes.iter().fold(0, |divisor, (_, weight)| gcd(divisor, u64::from(*weight)));
        if divisor == 0 {
            return Err("no size of frames has a weight above 0".into());
        }
        let weights: Vec<i64> = sizes.iter().map(|(_, weight)| (u64::from(*weight) / divisor) as i64).collect();
        let total: i64 = weights.iter().sum();
        if total as u64 > ROUND_MAX {
            return Err(format!("weights of sizes: a round of {total} frames; at most {ROUND_MAX} would be right"));
        }
        let mut behind = vec![0; sizes.len()];
        let mut round = Vec::with_capacity(total as usize);
        for _ in 0..total {
            behind.iter_mut().zip(&weights).for_each(|(behind, weight)| *behind += weight);
            // The first of those that are furthest behind.
            let next = (0..sizes.len()).rev().max_by_key(|at| behind[*at]).expect("a size has a weight");
            behind[next] -= total;
            round.push(sizes[next].0 as u16);
        }
        let bytes = round.iter().map(|size| u64::from(*size)).sum();
        Ok(Mix { round, bytes })
    }

    /// Size of frame number `sequence`, bytes with its check sequence.
    pub fn size(&self, sequence: u64) -> u32 {
        u32::from(self.round[(sequence % self.round.len() as u64) as usize])
    }

    /// The largest size, bytes with the check sequence.
    pub fn largest(&self) -> u32 {
        self.round.iter().copied().map(u32::from).max().expect("a round has a frame")
    }

    /// Bytes of the first `frames` frames, with their check sequences.
    pub fn bytes(&self, frames: u64) -> u64 {
        let round = self.round.len() as u64;
        let rest = self.round[..(frames % round) as usize].iter().map(|size| u64::from(*size)).sum::<u64>();
        frames / round * self.bytes + rest
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_papers_mix_has_one_short_frame_in_ten() {
        let mix = Mix::new(&[(1518, 90), (64, 10)]).unwrap();
        let sizes: Vec<u32> = (0..20).map(|at| mix.size(at)).collect();
        assert_eq!(sizes.iter().filter(|size| **size == 64).count(), 2);
        let short: Vec<usize> = (0..20).filter(|at| sizes[*at] == 64).collect();
        assert_eq!(short[1] - short[0], 10);
        assert_eq!(mix.bytes(25), sizes.iter().cycle().take(25).map(|size| u64::from(*size)).sum::<u64>());
    }

    #[test]
    fn what_makes_no_mix_is_refused() {
        for (sizes, why) in [
            (&[(63, 1)][..], "frames of 63 bytes"),
            (&[(9253, 1)], "9252 would be right"),
            (&[(64, 0)], "no size"),
            (&[], "no size"),
            (&[(64, 100_000), (65, 1)], "a round of 100001 frames"),
        ] {
            assert!(Mix::new(sizes).unwrap_err().contains(why), "{sizes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_size_keeps_to_its_share(weights in proptest::collection::vec(0u32..20, 1..6)) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let sizes: Vec<(u32, u32)> =
                weights.iter().enumerate().map(|(at, weight)| (64 + at as u32, *weight)).collect();
            let mix = Mix::new(&sizes).unwrap();
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            let mut seen = vec![0u64; sizes.len()];
            for number in 0..3 * total {
                seen[(mix.size(number) - 64) as usize] += 1;
                for (count, weight) in seen.iter().zip(&weights) {
                    let share = (number + 1) * u64::from(*weight);
                    prop_assert!((count * total).abs_diff(share) <= total * weights.len() as u64);
                }
            }
            prop_assert!(seen.iter().zip(&weights).all(|(count, weight)| *count == 3 * u64::from(*weight)));
        }
    }
}
