//! The exact times of a source's frames.

use crate::link_config::framing_of;
use spec::FramesSpec;
use units::{Span, NS_PER_S};

/// Times of frames that follow each other at a rate: frame i begins when those before it have taken their time, rounded
/// down to the ns. What rounding takes is carried on, so that a source gives exactly its rate however long it sends.
pub struct FrameClock {
    /// Of each frame of a round: bytes of its packet, and its time: whole ns, and the rest in 1/rate ns.
    round: Vec<(u32, u64, u64)>,
    place: usize,
    /// Part of a ns by which the next frame begins later than its time says, in 1/rate ns; below `rate` <= 2^62.
    rest: u64,
    rate: u64,
}

/// Time of one byte at 1 bit/s, ns.
pub const NS_PER_BYTE: u128 = 8 * NS_PER_S as u128;

impl FrameClock {
    /// Frames of `spec`, which has at least one, at `rate_bps`.
    pub fn new(spec: &FramesSpec, rate_bps: u64) -> FrameClock {
        let rate = u128::from(rate_bps);
        let framing = framing_of(spec.framing);
        let frame = |&bytes: &u32| {
            let time = u128::from(framing.line_bytes(bytes)) * NS_PER_BYTE;
            // At 1 bit/s a frame of 2^32 B takes 3.4e19 ns: more than u64 has, and than a run lasts.
            (bytes, u64::try_from(time / rate).unwrap_or(u64::MAX), (time % rate) as u64)
        };
        FrameClock { round: spec.packets_bytes.iter().map(frame).collect(), place: 0, rest: 0, rate: rate_bps }
    }

    /// Returns the bytes of the packet that goes now, and the time until the next one goes.
    pub fn next(&mut self) -> (u32, Span) {
        let (bytes, whole, part) = self.round[self.place];
        self.place = (self.place + 1) % self.round.len();
        // Both are below 2^62.
        self.rest += part;
        let carry = self.rest >= self.rate;
        self.rest -= if carry { self.rate } else { 0 };
        (bytes, Span(whole.saturating_add(u64::from(carry))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::FramingSpec;

    #[test]
    fn a_million_frames_do_not_drift() {
        let framing = FramingSpec { header_bytes: 18, min_frame_bytes: 64, gap_bytes: 20 };
        let spec = FramesSpec { packets_bytes: vec![1500, 1500, 46], framing };
        for rate in [9_294_196_364u64, 1_000_000_007, 3] {
            let (mut clock, mut at, mut sent) = (FrameClock::new(&spec, rate), 0u128, 0u128);
            for number in 0..1_000_000 {
                let (bytes, gap) = clock.next();
                assert_eq!(bytes, [1500, 1500, 46][number % 3]);
                sent += if bytes == 46 { 84 } else { 1538 };
                at += u128::from(gap.0);
                assert_eq!(at, sent * NS_PER_BYTE / u128::from(rate), "rate {rate}, frame {number}");
            }
        }
    }
}
