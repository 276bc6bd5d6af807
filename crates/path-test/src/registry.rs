//! Estimators by name.

use crate::estimate::Estimator;
use serde::Deserialize;

/// A test that cannot be made: one line that names what is wrong and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownTest(pub String);

/// Names of the estimators that [`estimator`] knows.
pub const ESTIMATORS: &[&str] = &[];

#[derive(Deserialize)]
struct Named {
    test: String,
}

/// Makes the estimator of a test: JSON with `test`, its name, and the keys of that test.
///
/// # Errors
/// There is no test of that name, or its keys are wrong.
pub fn estimator(test_json: &str) -> Result<Box<dyn Estimator + Send>, UnknownTest> {
    let named: Named =
        serde_json::from_str(test_json).map_err(|error| UnknownTest(format!("test: {error}; a name is needed")))?;
    let known = if ESTIMATORS.is_empty() { "none yet".into() } else { ESTIMATORS.join(", ") };
    Err(UnknownTest(format!("test \"{}\": there is no such estimator, but {known}", named.test)))
}
