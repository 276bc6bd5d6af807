//! Speeds of ports, by the names that the field gives them.

use std::fmt;
use std::str::FromStr;
use units::Rate;

/// Bytes of a frame's time on the line beside its content: two delimiters of 4 bytes, and the 6 words that a
/// transmitter sends at least between frames (FC-FS-2, 5.2.7).
pub const LINE_OVERHEAD_BYTES: usize = 4 + 4 + 6 * 4;

/// Speed of a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PortSpeed {
    /// 1GFC: 1.0625 GBd with 8b/10b.
    Gfc1,
    /// 2GFC: 2.125 GBd with 8b/10b.
    Gfc2,
    /// 4GFC: 4.25 GBd with 8b/10b.
    Gfc4,
    /// 8GFC: 8.5 GBd with 8b/10b.
    Gfc8,
    /// 16GFC: 14.025 GBd with 64b/66b.
    Gfc16,
    /// 32GFC: 28.05 GBd with 64b/66b.
    Gfc32,
}

impl PortSpeed {
    /// All speeds, the slowest first.
    pub const ALL: [PortSpeed; 6] =
        [PortSpeed::Gfc1, PortSpeed::Gfc2, PortSpeed::Gfc4, PortSpeed::Gfc8, PortSpeed::Gfc16, PortSpeed::Gfc32];

    /// Name: "1GFC" to "32GFC".
    pub fn name(self) -> &'static str {
        match self {
            PortSpeed::Gfc1 => "1GFC",
            PortSpeed::Gfc2 => "2GFC",
            PortSpeed::Gfc4 => "4GFC",
            PortSpeed::Gfc8 => "8GFC",
            PortSpeed::Gfc16 => "16GFC",
            PortSpeed::Gfc32 => "32GFC",
        }
    }

    /// Bits of frames, delimiters and fill words per second: the line's rate without its code. Of 1GFC 850 Mbit/s,
    /// which is 106.25 MB/s, and 103.3 MB/s of payload in frames of 2112 bytes.
    pub fn data_rate(self) -> Rate {
        Rate(match self {
            PortSpeed::Gfc1 => 850_000_000,
            PortSpeed::Gfc2 => 1_700_000_000,
            PortSpeed::Gfc4 => 3_400_000_000,
            PortSpeed::Gfc8 => 6_800_000_000,
            PortSpeed::Gfc16 => 13_600_000_000,
            PortSpeed::Gfc32 => 27_200_000_000,
        })
    }
}

impl fmt::Display for PortSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text names no speed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no speed of a Fibre Channel port; write 1GFC, 2GFC, 4GFC, 8GFC, 16GFC or 32GFC")]
pub struct UnknownSpeed(String);

impl FromStr for PortSpeed {
    type Err = UnknownSpeed;

    fn from_str(text: &str) -> Result<PortSpeed, UnknownSpeed> {
        PortSpeed::ALL.into_iter().find(|speed| speed.name() == text).ok_or_else(|| UnknownSpeed(text.to_string()))
    }
}
