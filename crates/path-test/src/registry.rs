//! Estimators by the name of their path test, made of JSON.

use crate::estimate::Estimator;
use crate::{hops, mtu};
use serde::de::DeserializeOwned;
use serde::Deserialize;

/// Names of the tests that [`estimator`] makes.
pub const TESTS: [&str; 2] = ["hops", "mtu"];

#[derive(Deserialize)]
struct Named {
    test: String,
}

/// Makes the estimator that `json` asks for: `{"test": "hops", ...}` with the keys of [`hops::Settings`] or
/// [`mtu::Settings`].
///
/// # Errors
/// A line that names key, value and what would be right.
pub fn estimator(json: &str) -> Result<Box<dyn Estimator>, String> {
    let named: Named = settings(json)?;
    Ok(match named.test.as_str() {
        "hops" => Box::new(hops::Hops::new(settings(json)?)?),
        "mtu" => Box::new(mtu::Mtu::new(settings(json)?)?),
        other => return Err(format!("test = \"{other}\": must be one of {}", TESTS.join(", "))),
    })
}

fn settings<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| format!("the test: {error}"))
}
