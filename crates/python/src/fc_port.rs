//! A Fibre Channel port of a program's own as a Python object.

use crate::error;
use crate::interruptible;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use storage::fc::generator::{LoadResult, Size, RESULT_PER_MILLE};
use storage_net::fc_port::{FcPort as Port, FcPortConfig, FcPortError, LoadConfig, PingKind};
use storage_net::AttachmentConfig;
use units::{Rate, Span};
use wire::fc::{FcId, Wwn};

/// Time for the fabric's accept of a logout.
const LOG_OUT: Span = Span::from_secs(1);

/// A port. `wait_for_termination` waits so many seconds for a signal and returns true if one came; each call then
/// raises `Stopped`. OSError gives the reason where a call cannot do what it was asked for.
#[pyclass(module = "elephan._native")]
struct FcPort {
    port: Port,
    wait_for_termination: Py<PyAny>,
}

#[pymethods]
impl FcPort {
    /// Opens an interface, or a socket (local path, remote path), for a port with a name.
    #[new]
    #[pyo3(signature = (interface, socket, vlan, name, wait_for_termination))]
    fn new(
        interface: Option<String>,
        socket: Option<(PathBuf, PathBuf)>,
        vlan: Option<u16>,
        name: Option<u64>,
        wait_for_termination: Py<PyAny>,
    ) -> PyResult<FcPort> {
        let attachment = match (interface, socket) {
            (Some(name), None) => AttachmentConfig::Interface(name),
            (None, Some((local, remote))) => AttachmentConfig::Socket { local, remote },
            _ => return Err(error::value("an interface or a socket is needed")),
        };
        let port = Port::open(FcPortConfig { attachment, port: name.map(Wwn), vlan }).map_err(error::fc_port)?;
        Ok(FcPort { port, wait_for_termination })
    }

    /// The port's name.
    fn name(&self) -> String {
        self.port.name().to_string()
    }

    /// The port's address.
    fn id(&self) -> String {
        self.port.id().to_string()
    }

    /// Returns what happened since the last call, a line each.
    fn take_log(&mut self) -> Vec<String> {
        self.port.take_log()
    }

    /// Logs in to the fabric within a time; returns the address.
    fn log_in(&mut self, py: Python<'_>, within_ns: u64) -> PyResult<String> {
        self.call(py, |port, stop| port.log_in(Span(within_ns), stop)).map(|id| id.to_string())
    }

    /// The ports that the name server shows: address, port's name, node's name, parts in SCSI.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python gets")]
    fn ports(
        &mut self,
        py: Python<'_>,
        within_ns: u64,
    ) -> PyResult<Vec<(String, Option<String>, Option<String>, Vec<&'static str>)>> {
        let ports = self.call(py, |port, stop| port.ports(Span(within_ns), stop))?;
        let text = |name: Option<Wwn>| name.map(|name| name.to_string());
        Ok(ports.into_iter().map(|one| (one.id.to_string(), text(one.port), text(one.node), one.roles)).collect())
    }

    /// The address of the port with a name; None: the name server knows none.
    fn find(&mut self, py: Python<'_>, name: u64, within_ns: u64) -> PyResult<Option<u32>> {
        let found = self.call(py, |port, stop| port.find(Wwn(name), Span(within_ns), stop))?;
        Ok(found.map(FcId::value))
    }

    /// Logs in to another port; returns its name.
    fn log_in_to(&mut self, py: Python<'_>, id: u32, within_ns: u64) -> PyResult<String> {
        let peer = self.call(py, |port, stop| port.log_in_to(FcId::new(id), Span(within_ns), stop))?;
        Ok(peer.port.to_string())
    }

    /// Sends ECHO of so many bytes, or ADISC (None), to a port that is logged in; returns the time to the answer in ns
    /// and whether it is a reject. None: no answer.
    fn ping(&mut self, py: Python<'_>, id: u32, echo_bytes: Option<usize>) -> PyResult<Option<(u64, bool)>> {
        let kind = echo_bytes.map_or(PingKind::Address, PingKind::Echo);
        self.call(py, |port, stop| port.ping(FcId::new(id), kind, stop))
    }

    /// Begins to send frames of sizes (bytes, weight) at a share of a rate, for a time, to a port that is logged in.
    /// ValueError for what makes no load.
    fn start_load(
        &mut self,
        id: u32,
        rate: u64,
        share_per_mille: u32,
        sizes: Vec<(u16, u32)>,
        duration_ns: u64,
        number: u32,
    ) -> PyResult<()> {
        let sizes = sizes.into_iter().map(|(payload_bytes, weight)| Size { payload_bytes, weight }).collect();
        let duration = Span(duration_ns);
        let config = LoadConfig { rate: Rate(rate), share_per_mille, sizes, duration, number };
        self.port.start_load(FcId::new(id), config).map_err(error::fc_port)
    }

    /// Ends the load that is sent; the receiver is still asked for its result.
    fn end_load(&mut self) {
        self.port.end_load();
    }

    /// Serves others, and sends the load, for a time or until the load is done.
    fn serve(&mut self, py: Python<'_>, span_ns: u64) -> PyResult<()> {
        self.call(py, |port, stop| port.serve(Span(span_ns), stop))
    }

    /// The load that is sent, or was: frames, bytes, times, whether it is done, the receiver's result. None: none.
    fn sent<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(sent) = self.port.sent() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("frames", sent.frames)?;
        dict.set_item("payload_bytes", sent.payload_bytes)?;
        dict.set_item("span_ns", sent.span_ns)?;
        dict.set_item("left_out_ns", sent.left_out_ns)?;
        dict.set_item("is_done", sent.is_done)?;
        dict.set_item("result", sent.result.map(|result| result_dict(py, &result)).transpose()?)?;
        Ok(Some(dict))
    }

    /// The loads that came: sender's address, load's number, frames that the sender says it sent, result.
    #[allow(clippy::type_complexity, reason = "a tuple is what Python gets")]
    fn received<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, u32, Option<u64>, Bound<'py, PyDict>)>> {
        let loads = self.port.received().into_iter();
        loads.map(|one| Ok((one.from.to_string(), one.load, one.sent, result_dict(py, &one.result)?))).collect()
    }

    /// Logs out of the fabric. Returns whether it accepted.
    fn log_out(&mut self, py: Python<'_>) -> bool {
        py.detach(|| self.port.log_out(LOG_OUT))
    }
}

impl FcPort {
    /// Does what may take long, and looks for signals now and then.
    fn call<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Port, &mut dyn FnMut() -> bool) -> Result<T, FcPortError> + Send,
    ) -> PyResult<T> {
        let FcPort { port, wait_for_termination } = self;
        interruptible::call(py, wait_for_termination, |stop| work(port, stop), error::fc_port)
    }
}

fn result_dict<'py>(py: Python<'py>, result: &LoadResult) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let report = &result.report;
    for (name, value) in [
        ("frames", report.received),
        ("payload_bytes", report.payload_bytes),
        ("lost", report.lost),
        ("duplicates", report.duplicates),
        ("out_of_order", report.out_of_order),
        ("too_late", report.too_late),
        ("from_the_future", report.from_the_future),
        ("span_ns", report.span_ns),
    ] {
        dict.set_item(name, value)?;
    }
    if report.received > 0 {
        dict.set_item("latency_mean_ns", result.latency_mean_ns)?;
        let names = ["latency_p50_ns", "latency_p90_ns", "latency_p99_ns", "latency_p999_ns", "latency_max_ns"];
        for (name, value) in names.into_iter().zip(result.latency_ns) {
            dict.set_item(name, value)?;
        }
    }
    Ok(dict)
}

const _: () = assert!(RESULT_PER_MILLE.len() == 5);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FcPort>()
}
