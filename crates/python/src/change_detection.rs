//! Changes in the measurements of a path, and their likely cause: JSON in and out.

use crate::error;
use change_detection::{cause, Config, Detector};
use pyo3::prelude::*;

/// Follows one quantity of one path.
#[pyclass(module = "elephan._native")]
struct ChangeDetector(Detector);

#[pymethods]
impl ChangeDetector {
    /// ValueError names the setting that is wrong, or what is wrong with the state.
    #[new]
    #[pyo3(signature = (config_json, state_json=None))]
    fn new(config_json: &str, state_json: Option<&str>) -> PyResult<Self> {
        let config: Config = serde_json::from_str(config_json).map_err(error::json("the detector"))?;
        let config = config.check().map_err(error::value)?;
        match state_json {
            None => Ok(Self(Detector::new(config))),
            Some(state) => Detector::resume(config, state).map(Self).map_err(error::value),
        }
    }

    fn handle_sample(&mut self, at_s: f64, value: Option<f64>) -> PyResult<Option<String>> {
        let change = self.0.handle_sample(at_s, value);
        change.map(|change| serde_json::to_string(&change).map_err(error::json("a change"))).transpose()
    }

    fn benchmark(&self, at_s: f64) -> Option<(f64, f64, f64)> {
        self.0.benchmark(at_s)
    }

    fn state(&self) -> PyResult<String> {
        self.0.state().map_err(error::value)
    }
}

/// Returns the likely cause of changes at one time (`cause::Evidence`) as JSON. ValueError says what is wrong.
#[pyfunction]
fn likely_cause(evidence_json: &str) -> PyResult<String> {
    let evidence: cause::Evidence = serde_json::from_str(evidence_json).map_err(error::json("the evidence"))?;
    serde_json::to_string(&cause::likely_cause(&evidence)).map_err(error::json("a cause"))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ChangeDetector>()?;
    module.add_function(wrap_pyfunction!(likely_cause, module)?)
}
