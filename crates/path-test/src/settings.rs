//! Bounds of the path tests that send trains.

use serde::Deserialize;

/// Bounds of a test that sends trains; what is absent has the default of its method.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Name of the test.
    pub test: String,
    /// Bytes of a packet, from the IP header on.
    #[serde(default = "packet_bytes")]
    pub packet_bytes: u32,
    /// Rate of the line as its owner knows it, bit/s: what the budget is a share of until the test knows better.
    #[serde(default)]
    pub line_rate_bps: Option<u64>,
    /// Highest rate at which either end sends or receives, bit/s: shorter gaps are the receiver's doing.
    #[serde(default)]
    pub max_rate_bps: Option<u64>,
    /// Capacity of the path where it is known, bit/s: the test does not measure it first.
    #[serde(default)]
    pub capacity_bps: Option<u64>,
    /// Bytes that the test may send.
    #[serde(default)]
    pub max_bytes: Option<u64>,
    /// Share of the line that the test may take on average, 10^-6; 1 % unless told.
    #[serde(default = "share_ppm")]
    pub share_ppm: u32,
    /// Seed of the times of trains.
    #[serde(default)]
    pub seed: u64,
}

fn packet_bytes() -> u32 {
    1500
}

fn share_ppm() -> u32 {
    10_000
}

impl Settings {
    /// Those of `test`, all of its defaults.
    pub fn of(test: &str) -> Settings {
        Settings {
            test: test.to_owned(),
            packet_bytes: packet_bytes(),
            line_rate_bps: None,
            max_rate_bps: None,
            capacity_bps: None,
            max_bytes: None,
            share_ppm: share_ppm(),
            seed: 0,
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// A line that names key, value and what would be right.
    pub(crate) fn check(&self) -> Result<(), String> {
        let require = |right: bool, key: &str, value: u64, expected: &str| {
            if right {
                Ok(())
            } else {
                Err(format!("{key} = {value}: must be {expected}"))
            }
        };
        let bytes = self.packet_bytes;
        require((64..=65_535).contains(&bytes), "packet_bytes", bytes.into(), "from 64 to 65535")?;
        let share = self.share_ppm;
        require((1..=1_000_000).contains(&share), "share_ppm", share.into(), "from 1 to 1000000")?;
        for (key, rate) in [
            ("line_rate_bps", self.line_rate_bps),
            ("max_rate_bps", self.max_rate_bps),
            ("capacity_bps", self.capacity_bps),
        ] {
            let rate = rate.unwrap_or(1_000);
            require((1_000..=1 << 62).contains(&rate), key, rate, "from 1000 to 2^62")?;
        }
        Ok(())
    }
}
