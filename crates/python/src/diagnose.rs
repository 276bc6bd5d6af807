//! Watching TCP flows that are there, and the diagnosis of what limits each.

use crate::error;
use crate::interruptible;
use kernel::{FlowSelection, FlowWatch};
use pyo3::prelude::*;
use serde_json::json;
use std::net::IpAddr;
use units::Span;

/// Watches the connections of the selection, of the namespace whose file is `namespace` (None: this process'), for
/// `time_ns`, with a look every `interval_ns` or as seldom as keeps them below 5 % of a processor. Returns JSON:
/// {"flows": [form of diagnosis::Flow], "looks", "cost_ns"}. ValueError: `peer` is no address. OSError: the kernel's.
#[pyfunction]
#[pyo3(signature = (time_ns, interval_ns, wait_for_termination, *, port=None, peer=None, pid=None, namespace=None))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
fn watch_flows(
    py: Python<'_>,
    time_ns: u64,
    interval_ns: u64,
    wait_for_termination: Py<PyAny>,
    port: Option<u16>,
    peer: Option<&str>,
    pid: Option<u32>,
    namespace: Option<&str>,
) -> PyResult<String> {
    let peer = peer.map(str::parse::<IpAddr>).transpose().map_err(error::value)?;
    let selection = FlowSelection { port, peer, pid };
    let watched = |stop: &mut dyn FnMut() -> bool| {
        let mut watch = FlowWatch::open(namespace, selection)?;
        watch.watch(Span(time_ns), Span(interval_ns), stop)?;
        let (looks, cost_ns) = watch.cost();
        Ok(json!({"flows": watch.into_flows(), "looks": looks, "cost_ns": cost_ns}).to_string())
    };
    interruptible::call(py, &wait_for_termination, watched, |error: std::io::Error| error.into())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(watch_flows, module)?)
}
