//! The live iSCSI target and initiator as Python objects.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use storage::iscsi::{Credentials, Digest, InitiatorConfig, Secret, Settings, TargetConfig};
use storage_net::{BenchConfig, BenchKind, LunFile, Server, ServerConfig};
use units::Span;

/// Interval between checks for signals, s.
const LOOK_S: f64 = 0.05;

/// A secret as (name, secret).
type Pair = (String, String);

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| error::value(format_args!("{text:?}: ADDRESS:PORT is needed, such as 127.0.0.1:3260")))
}

fn credentials(chap: Option<Pair>, mutual: Option<Pair>) -> Option<Credentials> {
    let secret = |(name, secret)| Secret { name, secret };
    chap.map(|chap| Credentials { initiator: secret(chap), target: mutual.map(secret) })
}

fn digest(name: &str) -> PyResult<Digest> {
    Ok(match name {
        "off" => Digest::Off,
        "allowed" => Digest::Allowed,
        "preferred" => Digest::Preferred,
        "required" => Digest::Required,
        _ => return Err(error::value(format_args!("{name:?}: off, allowed, preferred or required is needed"))),
    })
}

/// Settings from a dict; missing keys have their defaults.
fn settings(from: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::default();
    for (key, value) in from {
        let key: String = key.extract()?;
        match key.as_str() {
            "header_digest" => settings.header_digest = digest(&value.extract::<String>()?)?,
            "data_digest" => settings.data_digest = digest(&value.extract::<String>()?)?,
            "max_connections" => settings.max_connections = value.extract()?,
            "initial_r2t" => settings.initial_r2t = value.extract()?,
            "immediate_data" => settings.immediate_data = value.extract()?,
            "max_recv_bytes" => settings.max_recv_bytes = value.extract()?,
            "max_burst_bytes" => settings.max_burst_bytes = value.extract()?,
            "first_burst_bytes" => settings.first_burst_bytes = value.extract()?,
            "max_outstanding_r2t" => settings.max_outstanding_r2t = value.extract()?,
            _ => return Err(error::value(format_args!("there is no setting {key:?}"))),
        }
    }
    Ok(settings.within_ranges())
}

/// A target that serves files until it is stopped or dropped.
#[pyclass(module = "elephan._native")]
struct IscsiServer(Server);

#[pymethods]
impl IscsiServer {
    /// Opens the files `luns` (path, read only, shared, block bytes) and listens on `portals`. OSError names what
    /// cannot be opened, BlockingIOError a file that is in use.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the keyword arguments of a Python function")]
    #[pyo3(signature = (
        name, luns, portals, chap, mutual, own, max_connections, per_address, window, memory_bytes,
        congestion_control=None
    ))]
    fn new(
        py: Python<'_>,
        name: &str,
        luns: Vec<(String, bool, bool, u32)>,
        portals: Vec<String>,
        chap: Option<Pair>,
        mutual: Option<Pair>,
        own: &Bound<'_, PyDict>,
        max_connections: usize,
        per_address: usize,
        window: u32,
        memory_bytes: u64,
        congestion_control: Option<String>,
    ) -> PyResult<IscsiServer> {
        let mut target = TargetConfig::new(name);
        target.settings = settings(own)?;
        target.chap = credentials(chap, mutual);
        target.window = window;
        target.max_connections_per_address = Some(per_address);
        let luns = luns.into_iter().map(|(path, read_only, shared, block_bytes)| LunFile {
            path: path.into(),
            read_only,
            shared,
            block_bytes,
        });
        let portals = portals.iter().map(|text| address(text)).collect::<PyResult<_>>()?;
        let config =
            ServerConfig { target, luns: luns.collect(), portals, congestion_control, max_connections, memory_bytes };
        py.detach(|| Server::start(config)).map(IscsiServer).map_err(error::start)
    }

    /// Returns the addresses on which it listens.
    fn addresses(&self) -> Vec<String> {
        self.0.addresses().iter().map(ToString::to_string).collect()
    }

    /// Returns the reasons for which connections ended since the last call.
    fn drain_log(&self) -> Vec<String> {
        self.0.drain_log()
    }

    /// Sessions, connections now, connections ever.
    fn counts(&self) -> (usize, usize, u64) {
        self.0.counts()
    }

    /// Asks initiators to log out.
    fn request_logout(&self, seconds: u16) {
        self.0.request_logout(seconds);
    }

    /// Closes everything.
    fn stop(&mut self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

/// The least memory of a target, bytes; FirstBurstLength of its first session with `memory_bytes`; and that of the
/// settings `own`.
#[pyfunction]
fn iscsi_memory(
    max_connections: usize,
    memory_bytes: u64,
    window: u32,
    own: &Bound<'_, PyDict>,
) -> PyResult<(u64, u32, u32)> {
    let wanted = settings(own)?.first_burst_bytes;
    let (least, first_burst) = storage_net::plan_memory(max_connections, memory_bytes, window, wanted);
    Ok((least, first_burst, wanted))
}

/// Does what may take long in a thread of its own, while this one looks for signals: by `wait_for_termination`, which
/// waits so many seconds and returns true if one came, or by what Python's handlers raise.
fn watched<T: Send>(
    py: Python<'_>,
    wait_for_termination: Option<&Py<PyAny>>,
    work: impl FnOnce(&AtomicBool) -> std::io::Result<T> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(&stop));
        while !worker.is_finished() {
            let looked = match wait_for_termination {
                Some(wait_for_termination) => {
                    wait_for_termination.call1(py, (LOOK_S,)).and_then(|said| said.is_truthy(py))
                }
                None => {
                    py.detach(|| std::thread::park_timeout(Duration::from_secs_f64(LOOK_S)));
                    py.check_signals().map(|()| false)
                }
            };
            match looked {
                Ok(false) => {}
                Ok(true) => {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
                Err(raised) => {
                    stop.store(true, Ordering::Relaxed);
                    let _ = py.detach(|| worker.join());
                    return Err(raised);
                }
            }
        }
        Ok(py.detach(|| worker.join()))
    })?;
    match done {
        Ok(done) => done.map_err(error::machine),
        Err(_) => Err(error::machine("the load panicked")),
    }
}

/// An initiator of its own, whoever else uses its name: a second session of the same port would take the place of the
/// first.
fn initiator(name: &str, target: Option<&str>) -> InitiatorConfig {
    let [a, b, c, d, e] = storage_net::entropy();
    // "Random" format (RFC 7143, 11.12.5).
    InitiatorConfig {
        isid: [0x80, a, b, c, d, e],
        entropy: storage_net::entropy(),
        ..InitiatorConfig::new(name, target)
    }
}

/// Puts a load on a unit; returns its result as a dict. OSError names the refusal of the target or the network.
/// `wait_for_termination` waits for signals that are to end it.
#[pyfunction]
#[pyo3(signature = (
    address_text, name, target, lun, chap, mutual, own, connections, read_percent, io_bytes, depth, random, duration_ns,
    seed, congestion_control=None, wait_for_termination=None
))]
#[allow(clippy::too_many_arguments, reason = "the keyword arguments of a Python function")]
fn iscsi_bench(
    py: Python<'_>,
    address_text: &str,
    name: &str,
    target: &str,
    lun: u64,
    chap: Option<Pair>,
    mutual: Option<Pair>,
    own: &Bound<'_, PyDict>,
    connections: usize,
    read_percent: u32,
    io_bytes: u32,
    depth: usize,
    random: bool,
    duration_ns: u64,
    seed: u64,
    congestion_control: Option<String>,
    wait_for_termination: Option<Py<PyAny>>,
) -> PyResult<Py<PyDict>> {
    let mut config = initiator(name, Some(target));
    config.settings = settings(own)?;
    config.chap = credentials(chap, mutual);
    config.connections = connections;
    let config = BenchConfig {
        initiator: config,
        address: address(address_text)?,
        congestion_control,
        lun,
        read_percent,
        io_bytes,
        depth,
        random,
        duration: Span(duration_ns),
        seed,
    };
    let report = watched(py, wait_for_termination.as_ref(), |stop| storage_net::bench(&config, stop))?;
    let dict = PyDict::new(py);
    for (name, kind) in [("reads", &report.reads), ("writes", &report.writes)] {
        dict.set_item(name, as_dict(py, kind)?)?;
    }
    dict.set_item("failed", report.failed)?;
    dict.set_item("first_failure", report.first_failure)?;
    dict.set_item("unfinished", report.unfinished)?;
    dict.set_item("lost", report.lost)?;
    dict.set_item("window_is_limit", report.window.is_limit())?;
    dict.set_item("window_waits", report.window.waited)?;
    dict.set_item("window_width", report.window.width)?;
    dict.set_item("ended", report.ended)?;
    dict.set_item("elapsed_ns", report.elapsed_ns)?;
    dict.set_item("connections", report.connections)?;
    dict.set_item("agreed", report.agreed)?;
    dict.set_item("congestion_control", report.congestion)?;
    dict.set_item("capacity_bytes", report.capacity_bytes)?;
    Ok(dict.unbind())
}

/// Asks a portal for its targets: (name, address) of each. OSError names the refusal of the portal or the network.
#[pyfunction]
fn iscsi_discover(
    py: Python<'_>,
    address_text: &str,
    name: &str,
    chap: Option<Pair>,
) -> PyResult<Vec<(String, String)>> {
    let mut config = initiator(name, None);
    config.chap = credentials(chap, None);
    let config = BenchConfig {
        initiator: config,
        address: address(address_text)?,
        congestion_control: None,
        lun: 0,
        read_percent: 100,
        io_bytes: 0,
        depth: 0,
        random: false,
        duration: Span(0),
        seed: 0,
    };
    watched(py, None, |stop| storage_net::discover(&config, stop))
}

fn as_dict<'py>(py: Python<'py>, kind: &BenchKind) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("done", kind.done)?;
    dict.set_item("bytes", kind.bytes)?;
    dict.set_item("latency_mean_ns", kind.latency.mean())?;
    dict.set_item("latency_p50_ns", kind.latency.quantile(500))?;
    dict.set_item("latency_p99_ns", kind.latency.quantile(990))?;
    dict.set_item("latency_max_ns", kind.latency.max())?;
    Ok(dict)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<IscsiServer>()?;
    module.add_function(wrap_pyfunction!(iscsi_memory, module)?)?;
    module.add_function(wrap_pyfunction!(iscsi_discover, module)?)?;
    module.add_function(wrap_pyfunction!(iscsi_bench, module)?)
}
