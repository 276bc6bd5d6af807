//! A path test in the simulator, from JSON to JSON.

use crate::error;
use crate::progress::Progress;
use experiment::PathTestSpec;
use pyo3::prelude::*;
use spec::RunSpec;

/// Runs the path test `test_json` (keys of `path_test::settings::Settings`) beside the traffic of the run `spec_json`,
/// at the place `at_json` (keys of `experiment::PathTestSpec`), and returns {"outcome": ..., "truth": ...} as JSON.
/// `progress` as of `simulate`. ValueError: one of the three is wrong, or the run ends before the test.
#[pyfunction]
#[pyo3(signature = (spec_json, test_json, at_json="{}", progress=None, progress_interval_s=0.1))]
fn simulate_path_test(
    py: Python<'_>,
    spec_json: &str,
    test_json: &str,
    at_json: &str,
    progress: Option<Py<PyAny>>,
    progress_interval_s: f64,
) -> PyResult<String> {
    let spec: RunSpec = serde_json::from_str(spec_json).map_err(error::json("the run's spec"))?;
    let at: PathTestSpec = serde_json::from_str(at_json).map_err(error::json("the place of the test"))?;
    let mut progress = Progress::new(progress, progress_interval_s);
    let judged = py.detach(|| {
        let estimator = path_test::registry::estimator(test_json).map_err(Wrong::Test)?;
        let progress = &mut |at: experiment::Progress| progress.report(at.now.0, at.end.0);
        experiment::path_test(&spec, &at, estimator, progress).map_err(Wrong::Run)
    });
    progress.check()?;
    let judged = judged.map_err(|wrong| match wrong {
        Wrong::Test(text) => error::value(text),
        Wrong::Run(wrong) => error::run(wrong),
    })?;
    serde_json::to_string(&judged).map_err(error::value)
}

enum Wrong {
    Test(String),
    Run(experiment::RunError),
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(simulate_path_test, module)?)
}
