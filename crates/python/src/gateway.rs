//! The live Fibre Channel gateway as a Python object.

use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::net::SocketAddr;
use std::path::PathBuf;
use storage::fc::fabric::{Entry, Location};
use storage::fc::ifcp::RemotePort;
use storage::fc::isns::Source;
use storage_net::gateway::{Gateway, GatewayConfig, IpConfig, IsnsConfig, PeerConfig, Status, TlsConfig};
use storage_net::AttachmentConfig;
use units::Span;
use wire::fc::name_server::TypeMap;
use wire::fc::{FcId, FrameType, Wwn};
use wire::ifcp::AddressMode;

/// A port behind a peer: its address there, its name, its node's name, FC-4 features of SCSI.
type Port = (Option<u32>, u64, u64, u8);
/// A peer: name, ADDRESS:PORT, ports.
type Peer = (String, String, Vec<Port>);
/// Files of TLS: certificate, key, authority.
type Files = (PathBuf, PathBuf, PathBuf);
/// The way to a name server: ADDRESS:PORT, name of the gateway, iSCSI name of its control node or none where its ports
/// speak, port for notifications, time between queries and registration period in ns.
type Isns = (String, String, Option<String>, Option<u16>, u64, u64);
/// The way to peers: ADDRESS:PORT, congestion control by the kernel's name, whether addresses are transparent, files of
/// TLS, peers, name server.
type Ip = (String, Option<String>, bool, Option<Files>, Vec<Peer>, Option<Isns>);
/// State of the way to a name server: its ADDRESS:PORT, the gateway's name, whether it is registered, attached ports,
/// ports of others, ns since the last answer, failures.
type IsnsState = (String, String, bool, usize, usize, Option<u64>, u64);
/// A session: peer, local port, remote port, whether it is open, bytes that wait, frames and bytes sent and received.
type Session = (String, String, String, bool, usize, u64, u64, u64, u64);

/// A gateway that runs until it is stopped or dropped.
#[pyclass(module = "elephan._native")]
struct FcGateway(Gateway);

#[pymethods]
impl FcGateway {
    /// Opens an interface, or sockets (local path, remote path), and the file of addresses, and serves a fabric.
    /// OSError names what cannot be opened.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the keyword arguments of a Python function")]
    #[pyo3(signature = (
        fabric, domain, addresses, interface, sockets, vlan, sends_pause, priority, fc_map, keep_alive_ms, drain_ns,
        ip=None
    ))]
    fn new(
        py: Python<'_>,
        fabric: u64,
        domain: u8,
        addresses: PathBuf,
        interface: Option<String>,
        sockets: Vec<(PathBuf, PathBuf)>,
        vlan: Option<u16>,
        sends_pause: bool,
        priority: u8,
        fc_map: u32,
        keep_alive_ms: u32,
        drain_ns: u64,
        ip: Option<Ip>,
    ) -> PyResult<FcGateway> {
        let mut attachments: Vec<AttachmentConfig> = interface.into_iter().map(AttachmentConfig::Interface).collect();
        attachments.extend(sockets.into_iter().map(|(local, remote)| AttachmentConfig::Socket { local, remote }));
        let config = GatewayConfig {
            vlan,
            sends_pause,
            priority,
            fc_map,
            keep_alive_ms,
            drain: Span(drain_ns),
            ip: ip.map(ip_config).transpose()?,
            ..GatewayConfig::new(attachments, Wwn(fabric), domain, addresses)
        };
        py.detach(|| Gateway::start(config)).map(FcGateway).map_err(error::start)
    }

    /// Returns what happened since the last call, a line each.
    fn drain_log(&self) -> Vec<String> {
        self.0.drain_log()
    }

    /// False when the gateway has ended.
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

    /// The address on which it listens for other gateways.
    fn address(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.0.status()).address.map(|address| address.to_string())
    }

    /// The other gateways: name, whether it can be reached, whether it is there because the name server lists it.
    fn peers(&self, py: Python<'_>) -> Vec<(String, bool, bool)> {
        let peers = py.detach(|| self.0.status()).peers.into_iter();
        peers.map(|peer| (peer.name, peer.is_up, peer.is_learnt)).collect()
    }

    /// The way to the name server; None without one.
    fn isns(&self, py: Python<'_>) -> Option<IsnsState> {
        py.detach(|| self.0.status()).isns.map(|isns| {
            let ports = (isns.local_ports, isns.remote_ports);
            let server = isns.server.to_string();
            (server, isns.entity, isns.is_registered, ports.0, ports.1, isns.age_ns, isns.failures)
        })
    }

    /// The sessions with ports behind others, in the order in which they began.
    fn sessions(&self, py: Python<'_>) -> Vec<Session> {
        let sessions = py.detach(|| self.0.status()).sessions.into_iter();
        sessions
            .map(|session| {
                let (view, counters) = (session.view, session.view.counters);
                let (local, remote) = (view.pair.local.to_string(), view.pair.remote.to_string());
                let received = (counters.received_frames, counters.received_bytes);
                let sent = (counters.sent_frames, counters.sent_bytes);
                (session.peer, local, remote, view.open, view.queued_bytes, sent.0, sent.1, received.0, received.1)
            })
            .collect()
    }

    /// Exchanges between ports that are under way.
    fn exchanges(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.status()).exchanges
    }

    /// Begins to stop: exchanges under way may end. `is_running` is false when it is done.
    fn begin_stop(&self) {
        self.0.begin_stop();
    }

    /// Stops, and waits until that is done.
    fn stop(&mut self, py: Python<'_>) {
        py.detach(|| self.0.stop());
    }
}

fn address(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| error::value(format_args!("{text:?}: ADDRESS:PORT is needed")))
}

fn isns_config((server, entity, node, scn_port, refresh_ns, registration_ns): Isns) -> PyResult<IsnsConfig> {
    Ok(IsnsConfig {
        server: address(&server)?,
        entity,
        source: node.map_or(Source::Ports, Source::ControlNode),
        scn_port,
        refresh: Span(refresh_ns),
        registration: Span(registration_ns),
    })
}

fn ip_config((listen, congestion_control, transparent, tls, peers, isns): Ip) -> PyResult<IpConfig> {
    let port = |(id, port, node, features): Port| {
        let mut entry = Entry::new(Location::Remote, Wwn(port), Wwn(node));
        entry.types = TypeMap::of(FrameType::FCP.0);
        entry.features.insert(FrameType::FCP.0, features);
        RemotePort { id: id.map(FcId::new), entry }
    };
    let peers = peers.into_iter().map(|(name, at, ports)| {
        Ok(PeerConfig { name, address: address(&at)?, ports: ports.into_iter().map(port).collect() })
    });
    Ok(IpConfig {
        listen: address(&listen)?,
        congestion_control,
        mode: if transparent { AddressMode::Transparent } else { AddressMode::Translation },
        tls: tls.map(|(certificate, key, authority)| TlsConfig { certificate, key, authority }),
        peers: peers.collect::<PyResult<_>>()?,
        isns: isns.map(isns_config).transpose()?,
    })
}

fn counters<'py>(py: Python<'py>, status: &Status) -> PyResult<Bound<'py, PyDict>> {
    let by_name = PyDict::new(py);
    let (forwarder, fabric, ifcp) = (status.forwarder, status.fabric, status.ifcp);
    for (name, value) in [
        ("received_frames", status.received_frames),
        ("received_bytes", status.received_bytes),
        ("sent_frames", status.sent_frames),
        ("sent_bytes", status.sent_bytes),
        ("kernel_drops", status.kernel_drops),
        ("held_too_long_frames", status.held_too_long),
        ("unreachable_frames", status.unreachable),
        ("other_link_frames", status.other_link_frames),
        ("pauses", status.pauses),
        ("paused_ns", status.paused_ns),
        ("pause_frames", status.pause_frames),
        ("forwarded_frames", fabric.forwarded),
        ("not_ours_frames", forwarder.not_ours),
        ("malformed_frames", forwarder.malformed + fabric.malformed),
        ("no_login_frames", forwarder.no_login),
        ("foreign_source_frames", fabric.foreign_source),
        ("unknown_destination_frames", fabric.unknown_destination),
        ("other_class_frames", fabric.other_class),
        ("switch_frames", fabric.switch_traffic),
        ("refused_exchange_frames", fabric.refused_exchanges),
        ("refused_nodes", forwarder.too_many_nodes),
        ("expired_logins", forwarder.expired),
        ("ifcp_sent_frames", ifcp.sent_frames),
        ("ifcp_received_frames", ifcp.received_frames),
        ("ifcp_no_session_frames", ifcp.no_session),
        ("ifcp_local_malformed_frames", ifcp.local_malformed),
        ("ifcp_queue_full_frames", ifcp.queue_full),
        ("ifcp_expired_frames", ifcp.expired),
        ("ifcp_stale_frames", ifcp.stale),
        ("ifcp_refused_messages", ifcp.refused),
        ("ifcp_sessions_opened", ifcp.sessions_opened),
        ("ifcp_sessions_ended", ifcp.sessions_ended),
    ] {
        by_name.set_item(name, value)?;
    }
    Ok(by_name)
}

/// A world wide name as a number; ValueError says what one is.
#[pyfunction]
fn parse_wwn(text: &str) -> PyResult<u64> {
    text.parse::<Wwn>().map(|name| name.0).map_err(error::value)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<FcGateway>()?;
    module.add_function(wrap_pyfunction!(parse_wwn, module)?)
}
