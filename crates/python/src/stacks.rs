//! The congestion controls that this build carries, and a user's own.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::Path;

create_exception!(_native, CompileError, PyValueError, "A user's own algorithm does not compile or does not load.");

/// All built-in algorithms, as dicts with name, summary, source and params.
#[pyfunction]
fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = congestion::builtin().iter().map(|a| describe(py, a)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, all)
}

/// Compiles and checks the algorithm in the C file `path`; returns its description. CompileError carries the compiler's words.
#[pyfunction]
fn compile_stack<'py>(py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
    let algorithm = congestion::compile(Path::new(path)).map_err(|e| CompileError::new_err(e.to_string()))?;
    describe(py, &algorithm)
}

fn describe<'py>(py: Python<'py>, algorithm: &congestion::Algorithm) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("name", algorithm.name())?;
    described.set_item("summary", algorithm.summary())?;
    described.set_item("source", algorithm.source())?;
    let mut params = vec![];
    for param in algorithm.params() {
        let entry = PyDict::new(py);
        entry.set_item("name", &*param.name)?;
        entry.set_item("unit", &*param.unit)?;
        entry.set_item("default", param.default)?;
        entry.set_item("min", param.min)?;
        entry.set_item("max", param.max)?;
        entry.set_item("scale", param.scale)?;
        entry.set_item("doc", &*param.doc)?;
        params.push(entry);
    }
    described.set_item("params", params)?;
    Ok(described)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CompileError", module.py().get_type::<CompileError>())?;
    module.add_function(wrap_pyfunction!(stacks, module)?)?;
    module.add_function(wrap_pyfunction!(compile_stack, module)?)
}
