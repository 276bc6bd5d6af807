//! The sender's side: which frame is due when.

use super::settings::{Settings, WrongSettings};
use super::stamp::{load_frame, Stamp};
use crate::fc::link::LINE_OVERHEAD_BYTES;
use wire::fc::{FcId, Frame, CRC_BYTES, FRAME_HEADER_BYTES};

/// Bits of a byte times nanoseconds of a second times the 1000 of per mille.
const SCALE: u128 = 8 * 1_000_000_000 * 1000;

/// A frame to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Number and time.
    pub stamp: Stamp,
    /// Payload, bytes.
    pub payload_bytes: u16,
}

impl Due {
    /// The frame as bytes.
    pub fn frame(&self, from: FcId, to: FcId) -> Frame {
        load_frame(from, to, &self.stamp, self.payload_bytes)
    }
}

/// A generator of frames at a steady rate: each frame is followed by a gap that makes its share of the line's time.
#[derive(Clone, Debug)]
pub struct Generator {
    settings: Settings,
    weights: u64,
    random: u64,
    next_ns: u64,
    /// Fraction of a nanosecond beyond `next_ns`, in 1 / (rate x per mille).
    fraction: u128,
    sent: u64,
    payload_bytes: u64,
    left_out_ns: u64,
}

impl Generator {
    /// A generator whose first frame is due at `start_ns`.
    ///
    /// # Errors
    /// The settings make no load.
    pub fn new(settings: Settings, start_ns: u64) -> Result<Generator, WrongSettings> {
        let weights = settings.check()?;
        let random = settings.seed;
        let (fraction, sent, payload_bytes, left_out_ns) = (0, 0, 0, 0);
        Ok(Generator { settings, weights, random, next_ns: start_ns, fraction, sent, payload_bytes, left_out_ns })
    }

    /// Frames sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes of their payloads.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Time of the schedule that was left out because the sender was held back, ns.
    pub fn left_out_ns(&self) -> u64 {
        self.left_out_ns
    }

    /// Time of the next frame, ns; None when all are sent.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.settings.frames.is_none_or(|frames| self.sent < frames).then_some(self.next_ns)
    }

    /// The next frame, if one is due. Poll only with room for it: the stamp has the time of the call, so that the
    /// latency is the network's.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<Due> {
        if self.poll_timeout()? > now_ns {
            return None;
        }
        let latest = now_ns.saturating_sub(self.settings.catch_up_ns);
        if self.next_ns < latest {
            self.left_out_ns += latest - self.next_ns;
            (self.next_ns, self.fraction) = (latest, 0);
        }
        let payload_bytes = self.draw();
        let content = FRAME_HEADER_BYTES + usize::from(payload_bytes).next_multiple_of(4) + CRC_BYTES;
        let line = (content + LINE_OVERHEAD_BYTES) as u128;
        let denominator = u128::from(self.settings.rate.0) * u128::from(self.settings.share_per_mille);
        let sum = line * SCALE + self.fraction;
        self.next_ns += (sum / denominator) as u64;
        self.fraction = sum % denominator;
        let stamp = Stamp { load: self.settings.load, sequence: self.sent, sent_ns: now_ns };
        self.sent += 1;
        self.payload_bytes += u64::from(payload_bytes);
        Some(Due { stamp, payload_bytes })
    }

    /// A size of the mix, by SplitMix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self) -> u16 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let mut place = ((u128::from(word ^ (word >> 31)) * u128::from(self.weights)) >> 64) as u64;
        for size in &self.settings.sizes {
            match place.checked_sub(u64::from(size.weight)) {
                Some(beyond) => place = beyond,
                None => return size.payload_bytes,
            }
        }
        // Not reached: the place is below the sum of the weights.
        self.settings.sizes[0].payload_bytes
    }
}
