//! An Ethernet interface for line tests as a Python object. Streams and what came of them are JSON.

use crate::error;
use crate::interruptible;
use line_net::{LineError, LinePort as Port, LinePortConfig, Method};
use line_test::{mac_text, parse_mac, Mac, Report, StreamSpec};
use pyo3::prelude::*;
use serde::Serialize;
use units::Span;

/// A port. `wait_for_termination` waits so many seconds for a signal and returns true if one came; each call that takes
/// time then raises `Stopped`. OSError gives the reason where a call cannot do what it was asked for.
#[pyclass(module = "elephan._native")]
struct LinePort {
    port: Port,
    wait_for_termination: Py<PyAny>,
}

/// A receiver that answered.
#[derive(Serialize)]
struct Found {
    address: String,
    interface: String,
    method: String,
    mtu_bytes: u32,
    is_busy: bool,
}

/// A stream that came.
#[derive(Serialize)]
struct Stream {
    from: String,
    stream: u32,
    received: Report,
    is_over: bool,
}

#[pymethods]
impl LinePort {
    /// Opens an interface, with a method, an address and a tag of its own, or without.
    #[new]
    #[pyo3(signature = (interface, method, address, vlan, wait_for_termination))]
    fn new(
        interface: String,
        method: Option<&str>,
        address: Option<&str>,
        vlan: Option<u16>,
        wait_for_termination: Py<PyAny>,
    ) -> PyResult<LinePort> {
        let unknown = |name: &str| {
            let names: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
            error::value(format_args!("method {name}: {} would be right", names.join(" or ")))
        };
        let method = method.map(|name| Method::of(name).ok_or_else(|| unknown(name))).transpose()?;
        let config = LinePortConfig { interface, method, address: address.map(mac).transpose()?, vlan };
        Ok(LinePort { port: Port::open(config).map_err(error::machine)?, wait_for_termination })
    }

    /// The port's interface, address, method with its reason, MTU and rate.
    fn info(&self) -> PyResult<String> {
        text(&self.port.info().map_err(error::machine)?)
    }

    /// The receivers that answer within a time, or the one with an address.
    fn find(&mut self, py: Python<'_>, address: Option<&str>, within_ns: u64) -> PyResult<String> {
        let to = address.map(mac).transpose()?;
        let found = self.call(py, |port, stop| port.find(to, Span(within_ns), stop))?;
        let rows = found.into_iter().map(|(address, description)| Found {
            address: mac_text(address),
            interface: description.interface,
            method: description.method,
            mtu_bytes: description.mtu_bytes,
            is_busy: description.is_busy,
        });
        text(&rows.collect::<Vec<_>>())
    }

    /// Answers others, and counts their streams, for a time.
    fn serve(&mut self, py: Python<'_>, span_ns: u64) -> PyResult<()> {
        self.call(py, |port, stop| port.serve(Span(span_ns), stop))
    }

    /// The streams that came.
    fn streams(&self) -> PyResult<String> {
        let rows = self.port.streams().into_iter().map(|(from, stream, received, is_over)| Stream {
            from: mac_text(from),
            stream,
            received,
            is_over,
        });
        text(&rows.collect::<Vec<_>>())
    }

    /// Begins to send a stream. ValueError for one that cannot be.
    fn start(&mut self, spec: &str) -> PyResult<()> {
        let spec = StreamSpec::from_json(spec).map_err(error::value)?;
        self.port.start(spec).map_err(error::line)
    }

    /// Sends the stream for a time at most; true when it is over.
    fn run(&mut self, py: Python<'_>, span_ns: u64) -> PyResult<bool> {
        self.call(py, |port, stop| port.run(Span(span_ns), stop))
    }

    /// Sends no more of the stream; `run` then asks for what came.
    fn end(&mut self) {
        self.port.end("told to stop");
    }

    /// Returns what happened since the last call, a line each.
    fn take_log(&mut self) -> Vec<String> {
        self.port.take_log()
    }

    /// Rows of the stream's series since the last call.
    fn take_series(&mut self) -> PyResult<String> {
        text(&self.port.take_rows())
    }

    /// The result of the stream so far. ValueError before the first one.
    fn result(&self) -> PyResult<String> {
        text(&self.port.outcome().ok_or_else(|| error::value("no stream was begun"))?)
    }
}

impl LinePort {
    /// Does what may take long, and looks for signals now and then.
    fn call<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Port, &mut dyn FnMut() -> bool) -> Result<T, LineError> + Send,
    ) -> PyResult<T> {
        let LinePort { port, wait_for_termination } = self;
        interruptible::call(py, wait_for_termination, |stop| work(port, stop), error::line)
    }
}

fn mac(text: &str) -> PyResult<Mac> {
    parse_mac(text)
        .ok_or_else(|| error::value(format_args!("{text}: no Ethernet address; 02:00:00:00:00:01 would be one")))
}

fn text(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(error::machine)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<LinePort>()
}
