//! Patterns that fill the frames of a stream.
//!
//! A pattern is laid over the whole frame from its first address on, so that its bytes meet the lanes that the standard
//! has for them; header and stamp take the place of the first 44.

use serde::{Deserialize, Serialize};

/// One lane's bytes of the modified random pattern (IEEE 802.3, 48A.4 and, on one lane, 36A.4).
const RANDOM: [u8; 12] = [0xbe, 0xd7, 0x23, 0x47, 0x6b, 0x8f, 0xb3, 0x14, 0x5e, 0xfb, 0x35, 0x59];
/// Lanes of XGMII and XAUI.
const LANES: usize = 4;

/// A pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Pattern {
    /// Continuous random test pattern of 10 Gbit/s (IEEE 802.3, 48A.4): 48 bytes, each octet on all four lanes.
    Crpat = 0,
    /// Continuous jitter test pattern (IEEE 802.3, 48A.5): 1504 bytes of low, then high density of transitions.
    Cjpat = 1,
    /// Pseudo-random bits of x^31 + x^28 + 1, inverted (ITU-T O.150, 5.8), which begin anew with each frame.
    Prbs31 = 2,
    /// All bits 0.
    Zeros = 3,
    /// All bits 1.
    Ones = 4,
    /// Bytes 0, 1, 2 and so on.
    Counter = 5,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 6] =
        [Pattern::Crpat, Pattern::Cjpat, Pattern::Prbs31, Pattern::Zeros, Pattern::Ones, Pattern::Counter];

    /// The pattern with a number, as a stamp has it.
    pub fn of(number: u8) -> Option<Pattern> {
        Pattern::ALL.get(usize::from(number)).copied()
    }

    /// The first `length` bytes, repeated as often as needed.
    pub fn bytes(self, length: usize) -> Vec<u8> {
        let round: Vec<u8> = match self {
            Pattern::Crpat => RANDOM.iter().flat_map(|octet| [*octet; LANES]).collect(),
            Pattern::Cjpat => jitter(),
            Pattern::Prbs31 => return prbs31().take(length).collect(),
            Pattern::Zeros => vec![0],
            Pattern::Ones => vec![0xff],
            Pattern::Counter => (0..=255).collect(),
        };
        round.into_iter().cycle().take(length).collect()
    }
}

/// The jitter pattern: twice the same, the second time with the other disparity, which the first column's only other
/// octet sees to on lane 0.
fn jitter() -> Vec<u8> {
    let mut columns: Vec<[u8; LANES]> = vec![[0x0b, 0x7e, 0x7e, 0x7e]];
    for low_density in [131, 132] {
        columns.extend(vec![[0x7e; LANES]; low_density]);
        for octet in [0xf4, 0xeb, 0xf4, 0xeb, 0xf4, 0xeb, 0xf4, 0xab] {
            columns.push([octet; LANES]);
        }
        columns.extend(vec![[0xb5; LANES]; 40]);
        for octet in [0xeb, 0xf4, 0xeb, 0xf4, 0xeb, 0xf4, 0xeb, 0xf4] {
            columns.push([octet; LANES]);
        }
    }
    columns.into_iter().flatten().collect()
}

fn prbs31() -> impl Iterator<Item = u8> {
    let mut state: u32 = 0x7fff_ffff;
    std::iter::repeat_with(move || {
        (0..8).fold(0, |byte, _| {
            let bit = (state >> 30 ^ state >> 27) & 1;
            state = (state << 1 | bit) & 0x7fff_ffff;
            byte << 1 | (bit as u8 ^ 1)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fcs(bytes: &[u8]) -> [u8; 4] {
        crc32fast::hash(bytes).to_le_bytes()
    }

    #[test]
    fn patterns_have_the_check_sequences_that_the_standard_prints() {
        // The standard ends each pattern with its frame check sequence: 36A.4, 36A.5, 48A.4, 48A.5.
        let one_lane = |times| RANDOM.repeat(times);
        assert_eq!(fcs(&one_lane(126)), [0x94, 0xd2, 0x54, 0xac]);
        assert_eq!(fcs(&one_lane(29)), [0x2f, 0xe0, 0xaa, 0xef]);
        assert_eq!(fcs(&Pattern::Crpat.bytes(31 * 48)), [0xf8, 0x79, 0x05, 0x59]);
        assert_eq!(fcs(&Pattern::Cjpat.bytes(1504)), [0xbd, 0x9f, 0x1e, 0xab]);
    }

    #[test]
    fn a_round_of_random_bits_has_the_properties_of_its_polynomial() {
        let bytes = Pattern::Prbs31.bytes(9252);
        let bits: Vec<bool> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 0)).collect();
        assert!((31..bits.len()).all(|at| bits[at] == bits[at - 31] ^ bits[at - 28]));
        let ones = bits.iter().filter(|bit| **bit).count();
        assert!(ones.abs_diff(bits.len() / 2) < bits.len() / 50, "{ones} of {}", bits.len());
    }

    #[test]
    fn numbers_and_patterns_are_one_to_one() {
        assert!(Pattern::ALL.iter().all(|pattern| Pattern::of(*pattern as u8) == Some(*pattern)));
        assert_eq!(Pattern::of(6), None);
    }
}
