//! Text to integer quantities, for the scenario's edge.

use crate::error;
use pyo3::prelude::*;
use storage::fc::link::{PortSpeed, Settings};

/// "25ms" -> 25_000_000 (ns). ValueError says what would be right.
#[pyfunction]
fn parse_span(text: &str) -> PyResult<u64> {
    units::parse_span(text).map(|v| v.0).map_err(error::value)
}

/// "1Gbit/s" -> 1_000_000_000 (bit/s). ValueError says what would be right.
#[pyfunction]
fn parse_rate(text: &str) -> PyResult<u64> {
    units::parse_rate(text).map(|v| v.0).map_err(error::value)
}

/// "8MB" -> 8_000_000, "8MiB" -> 8_388_608 (bytes). ValueError says what would be right.
#[pyfunction]
fn parse_size(text: &str) -> PyResult<u64> {
    units::parse_size(text).map(|v| v.0).map_err(error::value)
}

/// Names of Fibre Channel's port speeds, each with its rate without the line's code, bit/s.
#[pyfunction]
fn fc_port_speeds() -> Vec<(&'static str, u64)> {
    PortSpeed::ALL.into_iter().map(|speed| (speed.name(), speed.data_rate().0)).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Propagation along a Fibre Channel link.
    module.add("FC_NS_PER_KM", Settings::NS_PER_KM)?;
    module.add_function(wrap_pyfunction!(fc_port_speeds, module)?)?;
    module.add_function(wrap_pyfunction!(parse_span, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)
}
