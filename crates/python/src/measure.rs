//! Path tests as Python objects: STAMP sessions, tests by name, a reflector.

use crate::error;
use crate::interruptible;
use path_net::{run_test, ReflectorServer, SessionOptions, Sessions};
use path_test::reflector::ReflectorConfig;
use path_test::session::Sample;
use path_test::stamp::{Key, TimeFormat};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{json, Value};
use std::net::SocketAddr;

fn time_format(name: &str) -> PyResult<TimeFormat> {
    path_net::time_format(name).map_err(error::path)
}

fn as_dict<'py>(py: Python<'py>, session: usize, sample: &Sample) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("session", session)?;
    row.set_item("sequence", sample.sequence)?;
    row.set_item("sent_unix_ns", sample.sent_unix_ns)?;
    row.set_item("rtt_ns", sample.rtt_ns)?;
    row.set_item("forward_ns", sample.forward_ns)?;
    row.set_item("reverse_ns", sample.reverse_ns)?;
    row.set_item("one_way_error_ns", sample.one_way_error_ns)?;
    row.set_item("forward_ttl", sample.forward_ttl)?;
    row.set_item("ttl", sample.ttl)?;
    row.set_item("jitter_ns", sample.jitter_ns)?;
    row.set_item("duplicates", sample.duplicates)?;
    row.set_item("is_reordered", sample.is_reordered)?;
    row.set_item("reorder_extent", sample.reorder_extent)?;
    row.set_item("is_forward_reordered", sample.is_forward_reordered)?;
    row.set_item("clock_stepped", sample.clock_stepped)?;
    row.set_item("late_ns", sample.late_ns)?;
    row.set_item("residence_ns", sample.residence_ns)?;
    Ok(row)
}

/// Sessions to many reflectors in one thread. See elephan/_native.pyi.
#[pyclass(module = "elephan._native")]
struct PathSessions(Option<Sessions>);

impl PathSessions {
    fn open(&self) -> PyResult<&Sessions> {
        self.0.as_ref().ok_or_else(|| error::value("the sessions are closed"))
    }
}

#[pymethods]
impl PathSessions {
    #[new]
    fn new() -> PathSessions {
        PathSessions(Some(Sessions::default()))
    }

    #[pyo3(signature = (towards, *, key, interval_ns, packet_bytes=0, timeout_ns=2_000_000_000, count=None,
        traffic_class=0, time_format="ntp", delay_ns=0))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn add(
        &mut self,
        py: Python<'_>,
        towards: String,
        key: Option<Vec<u8>>,
        interval_ns: u64,
        packet_bytes: u32,
        timeout_ns: u64,
        count: Option<u64>,
        traffic_class: u8,
        time_format: &str,
        delay_ns: u64,
    ) -> PyResult<usize> {
        let format = self::time_format(time_format)?;
        let options =
            SessionOptions { towards, key, interval_ns, packet_bytes, timeout_ns, count, traffic_class, format };
        let sessions = self.0.as_mut().ok_or_else(|| error::value("the sessions are closed"))?;
        // A name may take long to be looked up.
        py.detach(|| sessions.add(&options, delay_ns)).map_err(error::path)
    }

    fn remove(&mut self, session: usize) {
        if let Some(sessions) = &mut self.0 {
            sessions.remove(session);
        }
    }

    fn poll<'py>(&mut self, py: Python<'py>, timeout_s: f64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let sessions = self.0.as_mut().ok_or_else(|| error::value("the sessions are closed"))?;
        let timeout_ns = (timeout_s.max(0.0) * 1e9) as u64;
        let samples = py.detach(|| sessions.poll(timeout_ns)).map_err(error::path)?;
        samples.iter().map(|(session, sample)| as_dict(py, *session, sample)).collect()
    }

    fn is_done(&self) -> PyResult<bool> {
        Ok(self.open()?.is_done())
    }

    fn state(&self, session: usize) -> PyResult<String> {
        let sessions = self.open()?;
        let Some(towards) = sessions.towards(session) else {
            return Err(error::value(format_args!("session {session}: there is none of this number")));
        };
        let (packets, bytes) = sessions.sent(session);
        let state = json!({
            "towards": towards.to_string(),
            "packets": packets,
            "bytes": bytes,
            "fault": sessions.fault(session),
            "clock": sessions.clock(session),
            "unused": sessions.unused(session),
            "lost_forward": sessions.lost_forward(session),
        });
        Ok(state.to_string())
    }

    fn close(&mut self) {
        self.0 = None;
    }
}

/// One session. See elephan/_native.pyi.
#[pyclass(module = "elephan._native")]
struct PathSession {
    sessions: PathSessions,
    number: usize,
}

#[pymethods]
impl PathSession {
    fn poll<'py>(&mut self, py: Python<'py>, timeout_s: f64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.sessions.poll(py, timeout_s)
    }

    fn is_done(&self) -> PyResult<bool> {
        self.sessions.is_done()
    }

    fn state(&self) -> PyResult<String> {
        self.sessions.state(self.number)
    }

    fn close(&mut self) {
        self.sessions.close();
    }
}

#[pyfunction]
#[pyo3(signature = (towards, *, key, interval_ns, packet_bytes=0, timeout_ns=2_000_000_000, count=None,
    traffic_class=0, time_format="ntp"))]
#[allow(clippy::too_many_arguments, reason = "keywords of Python")]
fn path_session(
    py: Python<'_>,
    towards: String,
    key: Option<Vec<u8>>,
    interval_ns: u64,
    packet_bytes: u32,
    timeout_ns: u64,
    count: Option<u64>,
    traffic_class: u8,
    time_format: &str,
) -> PyResult<PathSession> {
    let mut sessions = PathSessions::new();
    let number =
        sessions.add(py, towards, key, interval_ns, packet_bytes, timeout_ns, count, traffic_class, time_format, 0)?;
    Ok(PathSession { sessions, number })
}

#[pyfunction]
#[pyo3(name = "path_test", signature = (test_json, wait_for_termination, progress=None))]
fn run_path_test(
    py: Python<'_>,
    test_json: &str,
    wait_for_termination: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let mut failed = None;
    let mut tell = |row: Value| {
        let Some(progress) = &progress else { return };
        let told = Python::attach(|py| progress.call1(py, (row.to_string(),)).map(|_| ()));
        if let Err(raised) = told {
            failed.get_or_insert(raised);
        }
    };
    let work = |stop: &mut dyn FnMut() -> bool| run_test(test_json, stop, &mut tell);
    let outcome = interruptible::call(py, &wait_for_termination, work, error::path)?;
    failed.map_or_else(|| Ok(outcome.to_string()), Err)
}

/// Names of the tests that `path_test` knows.
#[pyfunction]
fn path_test_names() -> Vec<&'static str> {
    path_net::test_names()
}

/// A reflector. See elephan/_native.pyi.
#[pyclass(module = "elephan._native")]
struct PathReflector(ReflectorServer);

#[pymethods]
impl PathReflector {
    #[new]
    #[pyo3(signature = (addresses, *, key=None, is_stateful=true, short_replies=false))]
    fn new(
        addresses: Vec<String>,
        key: Option<Vec<u8>>,
        is_stateful: bool,
        short_replies: bool,
    ) -> PyResult<PathReflector> {
        let wrong =
            |text: &String| error::value(format_args!("{text}: an address with a port, as 0.0.0.0:862, is right"));
        let addresses: Vec<SocketAddr> =
            addresses.iter().map(|text| text.parse().map_err(|_| wrong(text))).collect::<PyResult<_>>()?;
        let config = ReflectorConfig { key: key.as_deref().map(Key::new), is_stateful, short_replies };
        Ok(PathReflector(ReflectorServer::open(&addresses, config).map_err(error::path)?))
    }

    fn addresses(&self) -> Vec<String> {
        self.0.local().iter().map(ToString::to_string).collect()
    }

    fn serve(&mut self, py: Python<'_>, wait_for_termination: Py<PyAny>) -> PyResult<()> {
        let server = &mut self.0;
        interruptible::call(py, &wait_for_termination, |stop| server.serve(stop), error::path)
    }

    fn counts(&self) -> String {
        json!(self.0.counts()).to_string()
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PathSessions>()?;
    module.add_class::<PathSession>()?;
    module.add_class::<PathReflector>()?;
    module.add_function(wrap_pyfunction!(path_session, module)?)?;
    module.add_function(wrap_pyfunction!(run_path_test, module)?)?;
    module.add_function(wrap_pyfunction!(path_test_names, module)?)
}
