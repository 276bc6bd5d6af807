//! Estimators by name.

use crate::estimate::Estimator;
use crate::{hops, mtu};
use serde::de::DeserializeOwned;
use serde::Deserialize;

/// A test that cannot be made: one line that names what is wrong and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownTest(pub String);

/// Names of the estimators that [`estimator`] knows.
pub const ESTIMATORS: &[&str] = &["hops", "mtu"];

#[derive(Deserialize)]
struct Named {
    test: String,
}

/// Makes the estimator of a test: JSON with `test`, its name, and the keys of that test: [`hops::Settings`] or
/// [`mtu::Settings`].
///
/// # Errors
/// There is no test of that name, or its keys are wrong.
pub fn estimator(test_json: &str) -> Result<Box<dyn Estimator + Send>, UnknownTest> {
    let named: Named =
        serde_json::from_str(test_json).map_err(|error| UnknownTest(format!("test: {error}; a name is needed")))?;
    Ok(match named.test.as_str() {
        "hops" => Box::new(hops::Hops::new(settings(test_json)?).map_err(UnknownTest)?),
        "mtu" => Box::new(mtu::Mtu::new(settings(test_json)?).map_err(UnknownTest)?),
        other => {
            let known = ESTIMATORS.join(", ");
            return Err(UnknownTest(format!("test \"{other}\": there is no such estimator, but {known}")));
        }
    })
}

fn settings<T: DeserializeOwned>(json: &str) -> Result<T, UnknownTest> {
    serde_json::from_str(json).map_err(|error| UnknownTest(format!("test: {error}")))
}
