//! The emulated path as a Python object.

use kernel::{DirectionReport, End, Path};
use lab::spec::RunSpec;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Two TUN devices in two network namespaces with the links of a spec between them.
#[pyclass(module = "elephan._native")]
struct EmulatedPath(Path);

#[pymethods]
impl EmulatedPath {
    /// Makes the device called `device` in both namespaces (files, such as /run/netns/NAME). OSError says what failed.
    #[new]
    fn new(py: Python<'_>, near: &str, far: &str, device: &str) -> PyResult<EmulatedPath> {
        let ends = [End { namespace: near, device }, End { namespace: far, device }];
        py.detach(|| Path::open(ends)).map(EmulatedPath).map_err(|e| PyOSError::new_err(e.to_string()))
    }

    /// Carries packets over the links `forward` and `reverse` (indices into those of `spec_json`). ValueError: the spec is wrong.
    fn start(&mut self, spec_json: &str, forward: usize, reverse: usize, mtu_bytes: usize) -> PyResult<()> {
        let spec: RunSpec =
            serde_json::from_str(spec_json).map_err(|e| PyValueError::new_err(format!("the run's spec: {e}")))?;
        let made = |index: usize| {
            let link =
                spec.links.get(index).ok_or_else(|| PyValueError::new_err(format!("there is no link {index}")))?;
            let config = lab::link_config(link);
            config.check().map_err(|e| PyValueError::new_err(format!("link {}: {e}", link.name)))?;
            Ok::<_, PyErr>((config, lab::link_seed(spec.seed, &link.name)))
        };
        self.0.start([made(forward)?, made(reverse)?], mtu_bytes);
        Ok(())
    }

    /// Whether a direction has ended by itself.
    fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// Ends both directions; what each did, as dicts.
    fn stop(&mut self, py: Python<'_>) -> PyResult<Vec<Py<PyDict>>> {
        let path = &mut self.0;
        py.detach(|| path.stop()).iter().map(|report| as_dict(py, report)).collect()
    }
}

fn as_dict(py: Python<'_>, report: &DirectionReport) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("delivered_packets", report.link.delivered)?;
    dict.set_item("delivered_bytes", report.link.delivered_bytes)?;
    dict.set_item("dropped_by_queue", report.link.dropped_by_queue)?;
    dict.set_item("dropped_by_aqm", report.link.dropped_by_aqm)?;
    dict.set_item("dropped_by_loss", report.link.dropped_by_loss)?;
    dict.set_item("late_count", report.lateness.count())?;
    dict.set_item("late_p50_ns", report.lateness.quantile_bound(500))?;
    dict.set_item("late_p99_ns", report.lateness.quantile_bound(990))?;
    dict.set_item("late_max_ns", report.lateness.max())?;
    dict.set_item("refused_packets", report.refused)?;
    dict.set_item("cpu_ns", report.cpu_ns)?;
    dict.set_item("elapsed_ns", report.elapsed_ns)?;
    dict.set_item("precedence", report.precedence)?;
    dict.set_item("failure", report.failure.as_deref())?;
    Ok(dict.unbind())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EmulatedPath>()
}
