//! Estimators by the name of their path test, made of JSON.

use crate::available::Available;
use crate::capacity::Capacity;
use crate::estimate::Estimator;
use crate::loss::Loss;
use crate::policer::Policer;
use crate::queue::Queue;
use crate::settings::Settings;
use crate::{hops, mtu};
use serde::de::DeserializeOwned;
use serde::Deserialize;

/// Names of the tests that [`estimator`] makes.
pub const TESTS: [&str; 7] = ["capacity", "available", "queue", "policer", "loss", "hops", "mtu"];

#[derive(Deserialize)]
struct Named {
    test: String,
}

/// Makes the estimator that `json` asks for: `{"test": "capacity", "packet_bytes": 1500, ...}`, see [`Settings`],
/// [`hops::Settings`] and [`mtu::Settings`].
///
/// # Errors
/// A line that names key, value and what would be right.
pub fn estimator(json: &str) -> Result<Box<dyn Estimator + Send>, String> {
    let Named { test } = keys(json)?;
    Ok(match test.as_str() {
        "capacity" => Box::new(Capacity::new(trains(json)?)),
        "available" => Box::new(Available::new(trains(json)?)),
        "queue" => Box::new(Queue::new(trains(json)?)),
        "policer" => Box::new(Policer::new(trains(json)?)),
        "loss" => Box::new(Loss::new(trains(json)?)),
        "hops" => Box::new(hops::Hops::new(keys(json)?)?),
        "mtu" => Box::new(mtu::Mtu::new(keys(json)?)?),
        other => return Err(format!("test = \"{other}\": must be one of {}", TESTS.join(", "))),
    })
}

fn trains(json: &str) -> Result<Settings, String> {
    let settings: Settings = keys(json)?;
    settings.check()?;
    Ok(settings)
}

fn keys<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| format!("the test: {error}"))
}
