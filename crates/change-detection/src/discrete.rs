//! Quantities that are the same or different: hops, TTL, path MTU.

use crate::change::{Found, Kind};
use crate::config::Config;
use serde::{Deserialize, Serialize};

/// Samples of one value that make it the value.
const AGREE: u32 = 3;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Discrete {
    /// The value that the path usually has.
    usual: Option<f64>,
    /// The value that it has now.
    current: Option<f64>,
    current_since_s: f64,
    /// Last value seen, since when, how often on end.
    last: Option<f64>,
    last_since_s: f64,
    times: u32,
}

impl Discrete {
    pub(crate) fn new() -> Self {
        Self { usual: None, current: None, current_since_s: 0.0, last: None, last_since_s: 0.0, times: 0 }
    }

    pub(crate) fn interrupt(&mut self) {
        self.last = None;
        self.times = 0;
    }

    pub(crate) fn handle(&mut self, config: &Config, at_s: f64, value: f64) -> Option<Found> {
        if self.last == Some(value) {
            self.times += 1;
        } else {
            self.last = Some(value);
            self.last_since_s = at_s;
            self.times = 1;
        }
        let usual = *config.agreed.as_ref().or(self.usual.as_ref()).unwrap_or(&value);
        if self.times < AGREE {
            return None;
        }
        self.usual.get_or_insert(value);
        let current = *self.current.get_or_insert(usual);
        let found = |kind, since_s, before, note| {
            Some(Found { kind, since_s, before, after: value, confidence: 1.0, samples: AGREE, note })
        };
        if value != current {
            let since_s = self.current_since_s;
            self.current = Some(value);
            self.current_since_s = self.last_since_s;
            return if value == usual {
                found(Kind::Recovered, since_s, current, "the value is the usual one again")
            } else {
                let kind = if config.agreed.is_some() { Kind::AgreedMissed } else { Kind::Step };
                found(kind, self.last_since_s, current, "")
            };
        }
        if value != usual && config.agreed.is_none() && at_s - self.current_since_s >= config.adopt_s {
            self.usual = Some(value);
            return found(Kind::NewBenchmark, self.current_since_s, usual, "the value is the usual one from now on");
        }
        None
    }

    pub(crate) fn benchmark(&self, config: &Config) -> Option<(f64, f64, f64)> {
        config.agreed.or(self.usual).map(|value| (value, value, value))
    }
}
