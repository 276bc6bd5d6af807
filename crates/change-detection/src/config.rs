//! Settings of a detector: its quantity and what matters of it.

use serde::Deserialize;
use thiserror::Error;

/// Settings of a detector.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name with its unit at the end: `rtt_s`, `available_bps`, `loss`; `answer` has a value that never changes.
    pub quantity: String,
    /// Time between samples, s.
    pub period_s: f64,
    /// Relative change that matters: 0.2 is 20 %. A change of less than half of it is never reported.
    #[serde(default = "default_change")]
    pub change: f64,
    /// Value that was agreed, in the quantity's unit. It takes the place of the learned benchmark.
    #[serde(default)]
    pub agreed: Option<f64>,
    /// Part of the agreed value that a level may lie beyond it.
    #[serde(default = "default_tolerance")]
    pub tolerance: f64,
    /// Scale of relative changes for delays of one way, s: their clocks' offset makes them relative to nothing.
    #[serde(default = "default_reference_s")]
    pub reference_s: f64,
    /// Local time is UTC plus so much, s: it says when days and weekends begin.
    #[serde(default)]
    pub utc_offset_s: f64,
    /// A change that lasts so long becomes the benchmark, s.
    #[serde(default = "default_adopt_s")]
    pub adopt_s: f64,
    /// So many missing samples one after the other are silence, and more where many are missing anyway.
    #[serde(default = "default_silence_samples")]
    pub silence_samples: u32,
    /// False alarms that this quantity may give in 30 days.
    #[serde(default = "default_false_alarms")]
    pub false_alarms_per_month: f64,
}

fn default_change() -> f64 {
    0.2
}
fn default_tolerance() -> f64 {
    0.1
}
fn default_reference_s() -> f64 {
    0.01
}
fn default_adopt_s() -> f64 {
    3.0 * 86_400.0
}
fn default_silence_samples() -> u32 {
    5
}
fn default_false_alarms() -> f64 {
    0.02
}

/// A setting that cannot be.
#[derive(Clone, PartialEq, Debug, Error)]
#[error("{key}: {value} is not {right}")]
pub struct ConfigError {
    key: &'static str,
    value: String,
    right: &'static str,
}

/// The comparison of a quantity's values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Scale {
    /// By their ratio; the floor, in the quantity's unit, keeps values near zero from counting.
    Ratio { floor: f64 },
    /// By their difference in parts of the unit.
    Difference { unit: f64 },
    /// A packet was lost (1) or not (0).
    Loss,
    /// Same or different.
    Discrete,
}

/// Direction in which a quantity gets worse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Worse {
    Up,
    Down,
    /// Neither is worse.
    Neither,
}

impl Config {
    /// Reads and checks settings.
    pub fn check(self) -> Result<Self, ConfigError> {
        let wrong = |key, value: f64, right| Err(ConfigError { key, value: value.to_string(), right });
        if self.quantity.is_empty() {
            return Err(ConfigError { key: "quantity", value: "\"\"".into(), right: "a name as in rtt_s" });
        }
        for (key, value) in [
            ("period_s", self.period_s),
            ("change", self.change),
            ("reference_s", self.reference_s),
            ("adopt_s", self.adopt_s),
            ("false_alarms_per_month", self.false_alarms_per_month),
        ] {
            if !(value.is_finite() && value > 0.0) {
                return wrong(key, value, "a number above 0");
            }
        }
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return wrong("tolerance", self.tolerance, "a number of 0 or above");
        }
        if !(self.utc_offset_s.is_finite() && self.utc_offset_s.abs() <= 86_400.0) {
            return wrong("utc_offset_s", self.utc_offset_s, "an offset of a day at most");
        }
        if self.silence_samples == 0 {
            return wrong("silence_samples", 0.0, "1 or above");
        }
        match self.agreed {
            Some(value) if !(value.is_finite() && value >= 0.0) => wrong("agreed", value, "a number of 0 or above"),
            _ => Ok(self),
        }
    }

    pub(crate) fn scale(&self) -> Scale {
        match self.quantity.as_str() {
            "loss" => Scale::Loss,
            "answer" | "hops" | "ttl" | "path_mtu_bytes" => Scale::Discrete,
            "forward_delay_s" | "reverse_delay_s" | "clock_offset_s" => Scale::Difference { unit: self.reference_s },
            name if name.ends_with("_s") => Scale::Ratio { floor: 50e-6 },
            name if name.ends_with("_bps") => Scale::Ratio { floor: 1000.0 },
            name if name.ends_with("_bytes") => Scale::Ratio { floor: 100.0 },
            _ => Scale::Ratio { floor: 1e-9 },
        }
    }

    pub(crate) fn worse(&self) -> Worse {
        match self.quantity.as_str() {
            "ttl" | "clock_offset_s" => Worse::Neither,
            "path_mtu_bytes" => Worse::Down,
            name if name.ends_with("_bps") => Worse::Down,
            _ => Worse::Up,
        }
    }
}

impl Scale {
    /// A value as the detector compares it: a difference of 0.18 is a change of 20 %.
    pub(crate) fn inward(self, value: f64) -> f64 {
        match self {
            Scale::Ratio { floor } => libm::log(value.max(0.0) + floor),
            Scale::Difference { unit } => value / unit,
            Scale::Loss | Scale::Discrete => value,
        }
    }

    pub(crate) fn outward(self, level: f64) -> f64 {
        match self {
            Scale::Ratio { floor } => (libm::exp(level) - floor).max(0.0),
            Scale::Difference { unit } => level * unit,
            Scale::Loss | Scale::Discrete => level,
        }
    }
}
