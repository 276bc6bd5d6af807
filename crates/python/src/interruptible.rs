//! Calls that may take long, and that a signal ends.

use pyo3::prelude::*;

/// Does `work` without the GIL. The function that it gets asks `wait_for_termination` whether a signal came, and says
/// true where asking fails, too: that error is then the call's.
pub(crate) fn call<T: Send, E: Send>(
    py: Python<'_>,
    wait_for_termination: &Py<PyAny>,
    work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, E> + Send,
    error: impl FnOnce(E) -> PyErr,
) -> PyResult<T> {
    let mut failed = None;
    let done = py.detach(|| {
        work(&mut || {
            Python::attach(|py| match wait_for_termination.call1(py, (0,)).and_then(|said| said.is_truthy(py)) {
                Ok(said) => said,
                Err(raised) => {
                    failed = Some(raised);
                    true
                }
            })
        })
    });
    failed.map_or_else(|| done.map_err(error), Err)
}
