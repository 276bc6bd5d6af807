//! Reports of a detector.

use serde::Serialize;

/// The kind of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The level moved away from the benchmark within some samples.
    Step,
    /// The level moved away from the benchmark over hours or days.
    Drift,
    /// The level is back.
    Recovered,
    /// A change has lasted so long that it is the benchmark from now on.
    NewBenchmark,
    /// The level is beyond the agreed value.
    AgreedMissed,
    /// No sample has come for a while.
    Silent,
    /// Samples come again.
    Answered,
    /// Time went backwards.
    ClockStep,
}

/// A change.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Its kind.
    pub kind: Kind,
    /// Time of the first sample of it, s: of a recovery, that of the change that ended.
    pub since_s: f64,
    /// Time of the sample that showed it, s.
    pub found_s: f64,
    /// Level before, in the quantity's unit; None where there is none.
    pub before: Option<f64>,
    /// Level now.
    pub after: Option<f64>,
    /// 1 less the number of false alarms that evidence of this strength gives in 30 days, at least 0.
    pub confidence: f64,
    /// Samples that it was read from.
    pub samples: u32,
    /// True if the path got worse; None where neither direction is worse.
    pub worse: Option<bool>,
    /// A remark for a reader, else empty.
    pub note: String,
}

/// A change, levels as `Scale` has them.
pub(crate) struct Found {
    pub kind: Kind,
    pub since_s: f64,
    pub before: f64,
    pub after: f64,
    pub confidence: f64,
    pub samples: u32,
    pub note: &'static str,
}
