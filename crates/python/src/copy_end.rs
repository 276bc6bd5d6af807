//! One end of a copy in this process, and what is drawn for a copy.

use crate::error;
use ::copy::{EndSpec, Event, Steering};
use copy_net::{draw_keys, forget, removals, run_end, scan, verify};
use copy_net::{Control, CopyError, RemovalsSpec, ScanSpec, VerifySpec};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::PoisonError;

/// See elephan/_native.pyi.
#[pyclass(module = "elephan._native", frozen)]
struct CopyEnd {
    spec: EndSpec,
    control: Control,
}

#[pymethods]
impl CopyEnd {
    #[new]
    fn new(spec_json: &str) -> PyResult<CopyEnd> {
        let spec = serde_json::from_str(spec_json).map_err(error::json("an end of a copy"))?;
        Ok(CopyEnd { spec, control: Control::default() })
    }

    /// Runs to its end without the GIL.
    fn run(&self, py: Python<'_>, on_event: Py<PyAny>) -> PyResult<String> {
        let mut failed = None;
        let done = py.detach(|| {
            run_end(&self.spec, &self.control, &mut |event: Event| {
                let told = Python::attach(|py| on_event.call1(py, (json!(event).to_string(),)).map(|_| ()));
                if let Err(raised) = told {
                    failed.get_or_insert(raised);
                    self.control.stop.store(true, Ordering::Relaxed);
                }
            })
        });
        if let Some(raised) = failed {
            return Err(raised);
        }
        done.map(|report| json!(report).to_string()).map_err(|fault| error::copy(py, &fault))
    }

    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }

    fn steer(&self, change_json: &str) -> PyResult<()> {
        let change: Steering = serde_json::from_str(change_json).map_err(error::json("a change of a copy"))?;
        let mut waiting = self.control.steering.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting =
            Steering { streams: change.streams.or(waiting.streams), rate_bps: change.rate_bps.or(waiting.rate_bps) };
        Ok(())
    }
}

/// See elephan/_native.pyi.
#[pyfunction]
fn copy_keys(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let keys = draw_keys().map_err(|fault| error::copy(py, &fault))?;
    let dict = PyDict::new(py);
    dict.set_item("token", keys.token)?;
    dict.set_item("certificate", keys.certificate)?;
    dict.set_item("key", keys.key)?;
    Ok(dict)
}

/// A side of a finished copy, checked again. See elephan/_native.pyi.
#[pyclass(module = "elephan._native", frozen)]
struct CopyVerification {
    spec: VerifySpec,
    control: Control,
}

#[pymethods]
impl CopyVerification {
    #[new]
    fn new(spec_json: &str) -> PyResult<CopyVerification> {
        let spec = serde_json::from_str(spec_json).map_err(error::json("a side of a copy"))?;
        Ok(CopyVerification { spec, control: Control::default() })
    }

    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let done: Result<_, CopyError> = py.detach(|| verify(&self.spec, &self.control.stop));
        done.map(|found| json!(found).to_string()).map_err(|fault| error::copy(py, &fault))
    }

    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }
}

/// See elephan/_native.pyi.
#[pyfunction]
#[pyo3(signature = (copy, destination))]
fn copy_forget(py: Python<'_>, copy: &str, destination: Option<&str>) -> PyResult<u64> {
    py.detach(|| forget(copy, destination)).map_err(|fault| error::copy(py, &fault))
}

/// See elephan/_native.pyi.
#[pyfunction]
fn copy_scan(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: ScanSpec = serde_json::from_str(spec_json).map_err(error::json("sources of a copy"))?;
    let done: Result<_, CopyError> = py.detach(|| scan(&spec, &AtomicBool::new(false)));
    done.map(|found| json!(found).to_string()).map_err(|fault| error::copy(py, &fault))
}

/// See elephan/_native.pyi.
#[pyfunction]
fn copy_removals(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: RemovalsSpec = serde_json::from_str(spec_json).map_err(error::json("removals of a copy"))?;
    let done: Result<_, CopyError> = py.detach(|| removals(&spec, &AtomicBool::new(false)));
    done.map(|found| json!(found).to_string()).map_err(|fault| error::copy(py, &fault))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CopyEnd>()?;
    module.add_class::<CopyVerification>()?;
    module.add_function(wrap_pyfunction!(copy_forget, module)?)?;
    module.add_function(wrap_pyfunction!(copy_scan, module)?)?;
    module.add_function(wrap_pyfunction!(copy_removals, module)?)?;
    module.add_function(wrap_pyfunction!(copy_keys, module)?)
}
