//! Versions of backups on this machine.

use crate::error;
use copy_net::{Control, VersionsRequest};
use pyo3::prelude::*;
use std::sync::atomic::Ordering;

/// A question about versions of backups on this machine, or a change of them. See elephan/_native.pyi.
#[pyclass(module = "elephan._native", frozen)]
struct BackupVersions {
    request: VersionsRequest,
    control: Control,
}

#[pymethods]
impl BackupVersions {
    #[new]
    fn new(request_json: &str) -> PyResult<BackupVersions> {
        let request = serde_json::from_str(request_json).map_err(error::json("a request for versions"))?;
        Ok(BackupVersions { request, control: Control::default() })
    }

    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let done = py.detach(|| self.request.execute(&self.control.stop));
        done.map(|answer| answer.to_string()).map_err(|fault| error::copy(py, &fault))
    }

    fn stop(&self) {
        self.control.stop.store(true, Ordering::Relaxed);
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<BackupVersions>()
}
