//! Settings of a connection, and quinn's configuration from them.

use crate::control::{Control, Shown};
use quinn::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Largest packet that is tried, bytes on the line: a jumbo frame's.
const LARGEST_MTU: u16 = 9_000;
/// Bytes of the headers of UDP with IPv4 and with IPv6.
const HEADERS_V4: u16 = 28;
const HEADERS_V6: u16 = 48;
/// Largest UDP payload taken.
pub(crate) const LARGEST_PAYLOAD: u16 = LARGEST_MTU - HEADERS_V4;

/// Settings of the connections of one end.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Congestion control of the direction in which this end sends.
    pub control: Control,
    /// Bytes that may be sent before the other end has read them, and kept until they are acknowledged; at most 2^62.
    pub window_bytes: u64,
    /// The end that listens: the same for a peer of whom nothing is known, until [`crate::QuicHandle::trust`]. Absent:
    /// as `window_bytes`.
    pub stranger_window_bytes: Option<u64>,
    /// Time without a packet after which the path is dead.
    pub silence: Duration,
    /// Socket buffers asked for, bytes; the system may give less (net.core.rmem_max).
    pub socket_buffer_bytes: usize,
    /// Address of its own from which it connects; absent: as the route says.
    pub local: Option<IpAddr>,
}

impl Settings {
    /// 64 MiB of window, 30 s of silence, 4 MiB of socket buffers.
    pub fn new(control: Control) -> Settings {
        Settings {
            control,
            window_bytes: 64 << 20,
            stranger_window_bytes: None,
            silence: Duration::from_secs(30),
            socket_buffer_bytes: 4 << 20,
            local: None,
        }
    }

    /// Flow control window.
    pub(crate) fn window(&self) -> VarInt {
        VarInt::from_u64(self.window_bytes).unwrap_or(VarInt::MAX)
    }

    /// quinn's configuration of one connection to `peer`, whose first hop takes `route_mtu` bytes.
    pub(crate) fn transport(&self, peer: IpAddr, route_mtu: Option<u16>) -> (TransportConfig, Arc<Shown>) {
        let (control, shown) = self.control.fresh();
        let window = self.window();
        let headers = if peer.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(route_mtu.unwrap_or(1_500).clamp(1_280, LARGEST_MTU) - headers);
        let mut config = TransportConfig::default();
        config
            .congestion_controller_factory(Arc::new(control))
            .stream_receive_window(window)
            .receive_window(window)
            .send_window(self.window_bytes)
            .max_concurrent_bidi_streams(1u8.into())
            .max_concurrent_uni_streams(0u8.into())
            .datagram_receive_buffer_size(None)
            .send_fairness(false)
            .allow_spin(false)
            .mtu_discovery_config(Some(discovery))
            // Three of them are lost before the path counts as dead.
            .keep_alive_interval(Some(self.silence / 4))
            .max_idle_timeout(IdleTimeout::try_from(self.silence).ok());
        (config, shown)
    }
}
