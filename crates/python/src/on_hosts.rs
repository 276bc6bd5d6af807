//! The result of a run between two hosts, from what its sending agent has sent.

use crate::error;
use crate::simulate::{convert_record, RunResult};
use experiment::FlowSeries;
use kernel::OutcomeRecord;
use pyo3::prelude::*;

/// Makes what `simulate` returns of an agent's `outcome` (JSON) and the objects of its events `series` (JSON each, in
/// their order; `id` and `event` left out). ValueError: they are none.
#[pyfunction]
fn hosts_result(py: Python<'_>, outcome_json: &str, series_json: Vec<String>) -> PyResult<RunResult> {
    let record: OutcomeRecord = serde_json::from_str(outcome_json).map_err(error::json("an agent's outcome"))?;
    let mut series = FlowSeries::default();
    for piece in &series_json {
        if !series.append(serde_json::from_str(piece).map_err(error::json("an agent's series"))?) {
            return Err(error::value("an agent's series: its columns are not equally long"));
        }
    }
    convert_record(py, record, series)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(hosts_result, module)?)
}
