//! Text to integer quantities, for the scenario's edge.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// "25ms" -> 25_000_000 (ns). ValueError says what would be right.
#[pyfunction]
fn parse_span(text: &str) -> PyResult<u64> {
    units::parse_span(text).map(|v| v.0).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// "1Gbit/s" -> 1_000_000_000 (bit/s). ValueError says what would be right.
#[pyfunction]
fn parse_rate(text: &str) -> PyResult<u64> {
    units::parse_rate(text).map(|v| v.0).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// "8MB" -> 8_000_000, "8MiB" -> 8_388_608 (bytes). ValueError says what would be right.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    units::parse_size(text).map(|v| v.0).map_err(|e| PyValueError::new_err(e.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_span, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)
}
