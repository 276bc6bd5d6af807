//! The congestion controls that this build carries, and a user's own.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::Path;

/// All built-in algorithms, as dicts with name, summary, source, hooks, code and params.
#[pyfunction]
fn congestion_controls(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let all = congestion::builtin().iter().map(|a| describe(py, a)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, all)
}

/// Compiles and checks the algorithm in the C file `path`; returns its description and its warnings. CompileError
/// carries what is wrong as text and, as `problems`, place by place.
#[pyfunction]
fn compile_cc<'py>(py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyDict>> {
    let (algorithm, warnings) = congestion::compile_and_warn(Path::new(path)).map_err(|e| error::compile(py, &e))?;
    let described = describe(py, &algorithm)?;
    described.set_item("warnings", error::listed(py, &warnings)?)?;
    Ok(described)
}

/// Compiles the text `code` of the C file `path` for BPF; returns the object's bytes, the compiler's name and its
/// warnings. NoClang when there is no compiler for it. `build`: "kernel", "record" or "step", as
/// `congestion::BpfBuild`.
#[pyfunction]
#[pyo3(signature = (path, code, kernel_name=None, build="kernel"))]
fn compile_bpf<'py>(
    py: Python<'py>,
    path: &str,
    code: &str,
    kernel_name: Option<&str>,
    build: &str,
) -> PyResult<(Bound<'py, PyBytes>, String, Bound<'py, PyList>)> {
    let build = match build {
        "kernel" => congestion::BpfBuild::Kernel,
        "record" => congestion::BpfBuild::Record,
        "step" => congestion::BpfBuild::Step,
        other => return Err(error::value(format_args!("build {other:?}: kernel, record or step"))),
    };
    let object = py
        .detach(|| congestion::compile_bpf_as(build, Path::new(path), code, kernel_name))
        .map_err(|e| error::compile(py, &e))?;
    Ok((PyBytes::new(py, &object.bytes), object.clang, error::listed(py, &object.warnings)?))
}

/// The BPF object of the built-in congestion control `name`, made when this module was; None when there was no clang
/// then.
#[pyfunction]
fn builtin_object<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
    congestion::builtin_object(name).map(|bytes| PyBytes::new(py, bytes))
}

/// The clang that made those objects, as it calls itself; None when there was none.
#[pyfunction]
fn builtin_objects_compiler() -> Option<&'static str> {
    congestion::builtin_objects_compiler()
}

fn describe<'py>(py: Python<'py>, algorithm: &congestion::Algorithm) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("name", algorithm.name())?;
    described.set_item("summary", algorithm.summary())?;
    described.set_item("source", algorithm.source())?;
    described.set_item("hooks", algorithm.hooks())?;
    described.set_item("code", algorithm.code())?;
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
    module.add_function(wrap_pyfunction!(congestion_controls, module)?)?;
    module.add_function(wrap_pyfunction!(compile_bpf, module)?)?;
    module.add_function(wrap_pyfunction!(builtin_object, module)?)?;
    module.add_function(wrap_pyfunction!(builtin_objects_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(compile_cc, module)?)
}
