//! The live Fibre Channel gateway as a Python object.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use storage_net::gateway::{AttachmentConfig, Gateway, GatewayConfig, Status};
use wire::fc::Wwn;

/// A gateway that runs until it is stopped or dropped.
#[pyclass(module = "elephan._native")]
struct FcGateway(Gateway);

#[pymethods]
impl FcGateway {
    /// Opens an interface, or sockets (local path, remote path), and the file of addresses, and serves a fabric.
    /// OSError names what cannot be opened.
    #[new]
    #[allow(clippy::too_many_arguments)]
    #[pyo3(signature = (fabric, domain, addresses, interface, sockets, vlan, priority, fc_map, keep_alive_ms))]
    fn new(
        py: Python<'_>,
        fabric: u64,
        domain: u8,
        addresses: PathBuf,
        interface: Option<String>,
        sockets: Vec<(PathBuf, PathBuf)>,
        vlan: Option<u16>,
        priority: u8,
        fc_map: u32,
        keep_alive_ms: u32,
    ) -> PyResult<FcGateway> {
        let mut attachments: Vec<AttachmentConfig> = interface.into_iter().map(AttachmentConfig::Interface).collect();
        attachments.extend(sockets.into_iter().map(|(local, remote)| AttachmentConfig::Socket { local, remote }));
        let config = GatewayConfig {
            vlan,
            priority,
            fc_map,
            keep_alive_ms,
            ..GatewayConfig::new(attachments, Wwn(fabric), domain, addresses)
        };
        py.detach(|| Gateway::start(config)).map(FcGateway).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    /// Returns what happened since the last call, a line each.
    fn drain_log(&self) -> Vec<String> {
        self.0.drain_log()
    }

    /// False when the gateway ended on its own.
    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// Counters by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, &py.detach(|| self.0.status()))
    }

    /// The ports in order of addresses: address, port's name, node's name, whether it is behind another gateway,
    /// whether it speaks SCSI.
    fn ports(&self, py: Python<'_>) -> Vec<(String, String, String, bool, bool)> {
        let ports = py.detach(|| self.0.status()).ports;
        ports
            .into_iter()
            .map(|one| (one.id.to_string(), one.port.to_string(), one.node.to_string(), one.is_remote, one.has_scsi))
            .collect()
    }

    /// Ends all logins, and closes everything.
    fn stop(&mut self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

fn counters<'py>(py: Python<'py>, status: &Status) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    let (forwarder, fabric) = (status.forwarder, status.fabric);
    for (name, value) in [
        ("received_frames", status.received_frames),
        ("received_bytes", status.received_bytes),
        ("sent_frames", status.sent_frames),
        ("sent_bytes", status.sent_bytes),
        ("kernel_drops", status.kernel_drops),
        ("held_too_long_frames", status.held_too_long),
        ("unreachable_frames", status.unreachable),
        ("pauses", status.pauses),
        ("paused_ns", status.paused_ns),
        ("forwarded_frames", fabric.forwarded),
        ("not_ours_frames", forwarder.not_ours),
        ("malformed_frames", forwarder.malformed + fabric.malformed),
        ("no_login_frames", forwarder.no_login),
        ("foreign_source_frames", fabric.foreign_source),
        ("unknown_destination_frames", fabric.unknown_destination),
        ("other_class_frames", fabric.other_class),
        ("switch_frames", fabric.switch_traffic),
        ("refused_nodes", forwarder.too_many_nodes),
        ("expired_logins", forwarder.expired),
    ] {
        by_name.set_item(name, value)?;
    }
    Ok(by_name)
}

/// A world wide name as a number; ValueError says what one is.
#[pyfunction]
fn parse_wwn(text: &str) -> PyResult<u64> {
    text.parse::<Wwn>().map(|name| name.0).map_err(|error| PyValueError::new_err(error.to_string()))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FcGateway>()?;
    module.add_function(wrap_pyfunction!(parse_wwn, module)?)
}
