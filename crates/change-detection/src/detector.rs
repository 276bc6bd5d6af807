//! The detector of one quantity of one path.

use crate::change::{Change, Found, Kind};
use crate::config::{Config, Scale, Worse};
use crate::discrete::Discrete;
use crate::level::Level;
use crate::loss::Loss;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A gap of more than so many periods, or usual intervals where those are longer, interrupts the series.
const GAP_PERIODS: f64 = 4.0;
/// Samples over which the usual interval is an exponential mean.
const INTERVALS: f64 = 8.0;
/// Time by which a sample may be older than one before it, s. More is a clock that was set back: a result that is known
/// late, or a clock that is slewed or corrected a little, changes nothing.
const LATE_S: f64 = 10.0;
/// Samples that the share of missing ones is read from; then they halve.
const SHARE_SAMPLES: f64 = 400.0;
/// Probability of a run of missing samples by chance that is taken for silence: one in two weeks at ten a second.
const BY_CHANCE: f64 = 1e-7;
const SILENCE_MOST: f64 = 600.0;
/// Samples after which a silent path answers.
const ANSWERS: u32 = 3;
/// Form of the state.
const FORMAT: u32 = 2;

/// A state that no detector of this quantity wrote.
#[derive(Debug, Error)]
pub enum StateError {
    /// Not the JSON of a state.
    #[error("state: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON of another form or quantity.
    #[error("state: {0}")]
    Other(&'static str),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Model {
    Level(Box<Level>),
    Loss(Loss),
    Discrete(Discrete),
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct State {
    format: u32,
    last_s: Option<f64>,
    interval_s: f64,
    /// Samples that were missing on end, and since when.
    missing: u32,
    missing_since_s: f64,
    silent: bool,
    /// Answers since it is silent.
    answers: u32,
    /// Samples while it was not silent, and the missing ones among them but for those of the present run.
    seen: f64,
    seen_missing: f64,
    model: Model,
}

/// Follows one quantity of one path.
#[derive(Clone, PartialEq, Debug)]
pub struct Detector {
    config: Config,
    scale: Scale,
    state: State,
}

impl Detector {
    /// Starts to learn. The settings are checked ones.
    pub fn new(config: Config) -> Self {
        let scale = config.scale();
        let model = match scale {
            Scale::Loss => Model::Loss(Loss::new()),
            Scale::Discrete => Model::Discrete(Discrete::new()),
            Scale::Ratio { .. } | Scale::Difference { .. } => Model::Level(Box::new(Level::new())),
        };
        let state = State {
            format: FORMAT,
            last_s: None,
            interval_s: config.period_s,
            missing: 0,
            missing_since_s: 0.0,
            silent: false,
            answers: 0,
            seen: 0.0,
            seen_missing: 0.0,
            model,
        };
        Self { config, scale, state }
    }

    /// Goes on from a state.
    pub fn resume(config: Config, state: &str) -> Result<Self, StateError> {
        let mut detector = Self::new(config);
        let state: State = serde_json::from_str(state)?;
        if state.format != FORMAT {
            return Err(StateError::Other("it has another format"));
        }
        let whole = match (&state.model, &detector.state.model) {
            (Model::Level(level), Model::Level(_)) => level.is_whole(),
            (Model::Loss(loss), Model::Loss(_)) => loss.is_whole(),
            (Model::Discrete(_), Model::Discrete(_)) => true,
            _ => return Err(StateError::Other("it is of another kind of quantity")),
        };
        if !whole {
            return Err(StateError::Other("it is not whole"));
        }
        detector.state = state;
        Ok(detector)
    }

    /// Data to go on from, as JSON.
    pub fn state(&self) -> Result<String, StateError> {
        Ok(serde_json::to_string(&self.state)?)
    }

    /// Low, usual and high value at a time, in the quantity's unit; None while the benchmark is not known.
    ///
    /// The band holds some 95 of 100 samples. A side on which no value would be wrong is infinite.
    pub fn benchmark(&self, at_s: f64) -> Option<(f64, f64, f64)> {
        let (low, mid, high) = match &self.state.model {
            Model::Level(level) => level.benchmark(&self.config, at_s)?,
            Model::Loss(loss) => loss.benchmark(&self.config, at_s)?,
            Model::Discrete(discrete) => discrete.benchmark(&self.config)?,
        };
        let outward = |level: f64| if level.is_finite() { self.scale.outward(level) } else { level };
        Some((outward(low), outward(mid), outward(high)))
    }

    /// Takes in a sample, None where it is missing, and returns the change that it shows.
    ///
    /// `at_s` is Unix time, s; a value that is no number is missing.
    pub fn handle_sample(&mut self, at_s: f64, value: Option<f64>) -> Option<Change> {
        if !at_s.is_finite() {
            return None;
        }
        let at_s = match self.state.last_s {
            Some(last_s) if at_s < last_s - LATE_S => {
                self.state.last_s = Some(at_s);
                self.interrupt(0.0);
                self.state.missing = 0;
                let note = "time went backwards: the series starts anew";
                return Some(self.change(Kind::ClockStep, last_s, at_s, 1, note));
            }
            Some(last_s) => {
                let at_s = at_s.max(last_s);
                self.handle_interval(at_s - last_s);
                at_s
            }
            None => at_s,
        };
        self.state.last_s = Some(at_s);
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return self.handle_missing(at_s);
        };
        let missing = std::mem::take(&mut self.state.missing);
        if self.state.silent {
            self.state.answers += 1;
            if self.state.answers < ANSWERS {
                return None;
            }
            self.state.silent = false;
            let since_s = self.state.missing_since_s;
            self.interrupt(at_s - since_s);
            return Some(self.change(Kind::Answered, since_s, at_s, ANSWERS, "samples come again"));
        }
        self.state.seen += 1.0 + f64::from(missing);
        self.state.seen_missing += f64::from(missing);
        if self.state.seen > SHARE_SAMPLES {
            self.state.seen /= 2.0;
            self.state.seen_missing /= 2.0;
        }
        let value = self.scale.inward(value);
        let found = match &mut self.state.model {
            Model::Level(level) => level.handle(&self.config, at_s, value),
            Model::Loss(loss) => loss.handle(&self.config, at_s, value >= 0.5),
            Model::Discrete(discrete) => discrete.handle(&self.config, at_s, value),
        }?;
        Some(self.outward(at_s, &found))
    }

    fn handle_interval(&mut self, interval_s: f64) {
        let usual_s = self.state.interval_s.max(self.config.period_s);
        if interval_s > GAP_PERIODS * usual_s {
            self.interrupt(interval_s);
        }
        // Tests that wait for their budget are further apart than their period.
        self.state.interval_s += (interval_s.min(2.0 * GAP_PERIODS * usual_s) - self.state.interval_s) / INTERVALS;
    }

    /// Missing samples on end that are silence: more where so many would be missing by chance.
    fn silence_samples(&self) -> f64 {
        let share = (self.state.seen_missing / self.state.seen.max(SHARE_SAMPLES / 4.0)).clamp(0.0, 0.999);
        let by_chance = if share > 0.0 { libm::log(BY_CHANCE) / libm::log(share) } else { 0.0 };
        by_chance.min(SILENCE_MOST).max(f64::from(self.config.silence_samples))
    }

    fn handle_missing(&mut self, at_s: f64) -> Option<Change> {
        if self.state.missing == 0 && !self.state.silent {
            self.state.missing_since_s = at_s;
        }
        self.state.missing = self.state.missing.saturating_add(1);
        if self.state.silent && self.state.missing >= self.config.silence_samples {
            self.state.answers = 0;
        }
        if self.state.silent || f64::from(self.state.missing) < self.silence_samples() {
            return None;
        }
        self.state.silent = true;
        self.state.answers = 0;
        let samples = self.state.missing;
        Some(self.change(Kind::Silent, self.state.missing_since_s, at_s, samples, "no sample has come"))
    }

    fn interrupt(&mut self, gap_s: f64) {
        match &mut self.state.model {
            Model::Level(level) => level.interrupt(gap_s),
            Model::Loss(loss) => loss.interrupt(gap_s),
            Model::Discrete(discrete) => discrete.interrupt(),
        }
    }

    fn change(&self, kind: Kind, since_s: f64, found_s: f64, samples: u32, note: &str) -> Change {
        Change {
            kind,
            since_s,
            found_s,
            before: None,
            after: None,
            confidence: 1.0,
            samples,
            worse: match kind {
                Kind::Silent => Some(true),
                Kind::Answered => Some(false),
                _ => None,
            },
            note: note.into(),
        }
    }

    fn outward(&self, found_s: f64, found: &Found) -> Change {
        let (before, after) = (self.scale.outward(found.before), self.scale.outward(found.after));
        let worse = match (found.kind, self.config.worse()) {
            (Kind::Recovered | Kind::NewBenchmark, _) | (_, Worse::Neither) => None,
            (Kind::AgreedMissed, _) => Some(true),
            (_, Worse::Up) => Some(after > before),
            (_, Worse::Down) => Some(after < before),
        };
        Change {
            kind: found.kind,
            since_s: found.since_s,
            found_s,
            before: Some(before),
            after: Some(after),
            confidence: found.confidence,
            samples: found.samples,
            worse,
            note: found.note.into(),
        }
    }
}
