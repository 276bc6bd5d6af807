//! Report the progress of a run to Python, now and then, and ask it for a stop.

use pyo3::prelude::*;
use std::ops::ControlFlow;
#[allow(clippy::disallowed_types, reason = "the times of callbacks to Python are no part of a result")]
use std::time::{Duration, Instant};

/// A Python callable, or none, called at most once per interval with (now, end) in ns.
#[allow(clippy::disallowed_types, reason = "the time of the last call")]
pub(crate) struct Progress {
    callable: Option<Py<PyAny>>,
    interval: Duration,
    last: Instant,
    raised: Option<PyErr>,
}

#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "reads the clock between callbacks")]
impl Progress {
    pub fn new(callable: Option<Py<PyAny>>, interval_s: f64) -> Progress {
        let interval = Duration::try_from_secs_f64(interval_s).unwrap_or(Duration::ZERO);
        Progress { callable, interval, last: Instant::now(), raised: None }
    }

    /// Calls it when its time has come. Whatever it raises is kept for [`Progress::check`].
    pub fn report(&mut self, now_ns: u64, end_ns: u64) -> ControlFlow<()> {
        let Some(callable) = &self.callable else { return ControlFlow::Continue(()) };
        if self.last.elapsed() < self.interval {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        match Python::attach(|py| callable.call1(py, (now_ns, end_ns)).and_then(|answer| answer.is_truthy(py))) {
            Ok(false) => ControlFlow::Continue(()),
            Ok(true) => ControlFlow::Break(()),
            Err(error) => self.stop_with(error),
        }
    }

    /// Handles Ctrl-C if there is no progress callback: on the main thread Python's signal handlers run.
    pub fn hear_signals(&mut self) -> ControlFlow<()> {
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => self.stop_with(error),
        }
    }

    fn stop_with(&mut self, error: PyErr) -> ControlFlow<()> {
        self.raised = Some(error);
        ControlFlow::Break(())
    }

    /// Raises the exception of the callable, if any.
    pub fn check(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}
