//! Settings of a load.

use super::stamp::STAMP_BYTES;
use units::Rate;
use wire::fc::PAYLOAD_BYTES_MAX;

/// A size of frames and its weight in the mix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Payload, bytes: 24 to 2112.
    pub payload_bytes: u16,
    /// Share of the frames, relative to the other sizes'.
    pub weight: u32,
}

/// Settings of a load.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Number of the load in its stamps.
    pub load: u32,
    /// Rate of the port, as [`crate::fc::link::PortSpeed::data_rate`] gives it.
    pub rate: Rate,
    /// Share of the port's rate that the frames take, with delimiters and fill words, per mille: 1 to 1000.
    pub share_per_mille: u32,
    /// Sizes of the frames.
    pub sizes: Vec<Size>,
    /// Frames to send; None = without end.
    pub frames: Option<u64>,
    /// Time that a sender which was held back may catch up at the line's rate, ns. More is left out: the load is what
    /// the port took, as with a card whose port has no credit.
    pub catch_up_ns: u64,
    /// Seed of the order of sizes.
    pub seed: u64,
}

/// Settings that make no load.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongSettings {
    /// The share.
    #[error("share of the port's rate: {0} per mille; 1 to 1000 would be right")]
    Share(u32),
    /// A size.
    #[error("payload of {0} bytes; {STAMP_BYTES} (number and time) to {PAYLOAD_BYTES_MAX} would be right")]
    Size(u16),
    /// The weights.
    #[error("sizes of frames: none has a weight")]
    NoSizes,
    /// The rate.
    #[error("rate of the port: 0 bit/s")]
    NoRate,
}

impl Settings {
    /// A load of frames of one size, without end.
    pub fn of(rate: Rate, share_per_mille: u32, payload_bytes: u16) -> Settings {
        Settings {
            load: 0,
            rate,
            share_per_mille,
            sizes: vec![Size { payload_bytes, weight: 1 }],
            frames: None,
            catch_up_ns: 1_000_000,
            seed: 1,
        }
    }

    /// Checks the settings; the sum of all weights.
    pub(super) fn check(&self) -> Result<u64, WrongSettings> {
        if !(1..=1000).contains(&self.share_per_mille) {
            return Err(WrongSettings::Share(self.share_per_mille));
        }
        if self.rate.0 == 0 {
            return Err(WrongSettings::NoRate);
        }
        let right = STAMP_BYTES..=PAYLOAD_BYTES_MAX;
        if let Some(wrong) = self.sizes.iter().find(|size| !right.contains(&usize::from(size.payload_bytes))) {
            return Err(WrongSettings::Size(wrong.payload_bytes));
        }
        let weights = self.sizes.iter().map(|size| u64::from(size.weight)).sum();
        if weights == 0 {
            return Err(WrongSettings::NoSizes);
        }
        Ok(weights)
    }
}
