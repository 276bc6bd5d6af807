//! Settings of a link.

use units::Rate;

/// A port without buffers can never be sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("buffer credits: 0; a port needs one at least, and 1 per 2 km at 1GFC for its full rate")]
pub struct WrongCredits;

/// Settings of a link, the same for both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Rate of the line without its code, as [`super::PortSpeed::data_rate`] gives it. Not 0: that would be no line.
    pub rate: Rate,
    /// Time that a bit takes from one end to the other, ns; 5,000 per km of glass.
    pub delay_ns: u64,
    /// Buffers of each receiver (BB_Credit): frames that may be on their way or in the buffers, 1 to 65,535.
    pub credits: u16,
    /// Frames that may wait at a transmitter, the one on the line excluded.
    pub queue_frames: usize,
}

impl Settings {
    /// Delay of light in glass, ns per km: refractive index 1.5.
    pub const NS_PER_KM: u64 = 5_000;

    /// Checks the settings.
    ///
    /// # Errors
    /// There are no credits.
    pub(super) fn checked(self) -> Result<Settings, WrongCredits> {
        if self.credits == 0 {
            return Err(WrongCredits);
        }
        Ok(Settings { rate: Rate(self.rate.0.max(1)), queue_frames: self.queue_frames.max(1), ..self })
    }
}
