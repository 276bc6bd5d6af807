//! Calls of a BPF build, made again natively.

use crate::error;
use congestion::parity::{replay, synthetic, Comparison, HOOKS, HOOK_CALL_BYTES};
use congestion::Algorithm;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeMap;
use std::path::Path;

/// Makes every call of a recording natively, under the congestion control `name` (or a .c file) with the parameters
/// `values`, and returns the differences as a dict. ValueError: no such congestion control or parameter.
#[pyfunction]
fn replay_calls<'py>(
    py: Python<'py>,
    name: &str,
    values: BTreeMap<String, i64>,
    recording: &[u8],
) -> PyResult<Bound<'py, PyDict>> {
    let algorithm = find(name)?;
    let found = py.detach(|| replay(&algorithm, &values, recording)).map_err(error::value)?;
    as_dict(py, &found)
}

/// `count` calls that reach the ends of every range, as the first halves of a recording. ValueError as above.
#[pyfunction]
fn synthetic_calls<'py>(
    py: Python<'py>,
    name: &str,
    values: BTreeMap<String, i64>,
    seed: u64,
    count: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let algorithm = find(name)?;
    let calls = py.detach(|| synthetic(&algorithm, &values, seed, count));
    Ok(PyBytes::new(py, &calls.map_err(error::value)?))
}

fn find(name: &str) -> PyResult<Algorithm> {
    if name.ends_with(".c") {
        return congestion::compile(Path::new(name)).map_err(error::value);
    }
    congestion::find(name).ok_or_else(|| error::value(format_args!("no congestion control {name:?}")))
}

fn as_dict<'py>(py: Python<'py>, found: &Comparison) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("steps", found.steps)?;
    let by_hook = PyDict::new(py);
    for (hook, count) in HOOKS.iter().zip(found.by_hook) {
        by_hook.set_item(hook, count)?;
    }
    dict.set_item("by_hook", by_hook)?;
    dict.set_item("connections", found.connections)?;
    dict.set_item("unpaired", found.unpaired)?;
    dict.set_item("breaks", found.breaks)?;
    dict.set_item("ticked", found.ticked)?;
    dict.set_item("differing", found.differing)?;
    let mut differences = vec![];
    for one in &found.differences {
        let entry = PyDict::new(py);
        entry.set_item("step", one.step)?;
        entry.set_item("connection", one.connection)?;
        entry.set_item("hook", one.hook)?;
        entry.set_item("field", &*one.field)?;
        entry.set_item("bpf", one.bpf)?;
        entry.set_item("native", one.native)?;
        differences.push(entry);
    }
    dict.set_item("differences", differences)?;
    let reductions: Vec<_> = found.reductions.iter().map(|r| (r.connection, r.cwnd, r.ssthresh)).collect();
    dict.set_item("reductions", reductions)?;
    dict.set_item("cwnd_range", found.cwnd_range)?;
    Ok(dict)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("HOOKS", HOOKS)?;
    module.add("HOOK_CALL_BYTES", HOOK_CALL_BYTES)?;
    module.add_function(wrap_pyfunction!(replay_calls, module)?)?;
    module.add_function(wrap_pyfunction!(synthetic_calls, module)?)
}
