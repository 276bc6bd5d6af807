//! Watching TCP flows that are there, and the diagnosis of what limits each.

use crate::error;
use crate::interruptible;
use diagnosis::{Diagnosis, Flow};
use kernel::{FlowSelection, FlowWatch};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
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

/// Diagnoses what `watch_flows` returned. Returns JSON, a list of diagnosis::Diagnosis with `local`, `remote`,
/// `congestion_control` and `ended`, those of most bytes first. ValueError: it is no such text.
#[pyfunction]
fn diagnose_flows(py: Python<'_>, watched_json: &str) -> PyResult<String> {
    #[derive(Deserialize)]
    struct Watched {
        flows: Vec<Flow>,
    }
    #[derive(Serialize)]
    struct Diagnosed<'a> {
        local: &'a str,
        remote: &'a str,
        congestion_control: &'a str,
        ended: bool,
        #[serde(flatten)]
        diagnosis: Diagnosis,
    }
    let Watched { flows } = serde_json::from_str(watched_json).map_err(error::json("what was watched"))?;
    let found = py.detach(|| diagnosis::diagnose_all(&flows));
    let named = found.into_iter().map(|(place, diagnosis)| {
        let Flow { local, remote, congestion_control, ended, .. } = &flows[place];
        Diagnosed { local, remote, congestion_control, ended: *ended, diagnosis }
    });
    serde_json::to_string(&named.collect::<Vec<_>>()).map_err(error::json("a diagnosis"))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(diagnose_flows, module)?)?;
    module.add_function(wrap_pyfunction!(watch_flows, module)?)
}
