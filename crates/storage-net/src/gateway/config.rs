//! Configuration of a gateway.

use crate::ethernet::AttachmentConfig;
use std::net::SocketAddr;
use std::path::PathBuf;
use storage::fc::ifcp::RemotePort;
use storage::fc::isns::Source;
use units::Span;
use wire::fc::Wwn;
use wire::fcoe::DEFAULT_FC_MAP;
use wire::fip::DEFAULT_KEEP_ALIVE_MS;
use wire::ifcp::AddressMode;

/// Configuration of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The ways to nodes: one interface, or sockets.
    pub attachments: Vec<AttachmentConfig>,
    /// Name of the fabric.
    pub fabric: Wwn,
    /// Domain of the addresses, 1 to 239.
    pub domain: u8,
    /// Virtual LAN of FCoE and FIP, with its priority, as the tag has it; None = frames without a tag.
    pub vlan: Option<u16>,
    /// Rank among forwarders; the lowest number is preferred.
    pub priority: u8,
    /// Upper half of the Ethernet addresses that ports get, 24 bits.
    pub fc_map: u32,
    /// PAUSE frames ask the other end of the interface's link to wait while the gateway takes nothing from it.
    pub sends_pause: bool,
    /// Time between advertisements and between a node's keep-alives, ms.
    pub keep_alive_ms: u32,
    /// Longest wait for exchanges under way when the gateway stops.
    pub drain: Span,
    /// File of the addresses that ports have had.
    pub addresses: PathBuf,
    /// The way to other gateways; None: the fabric is this one's alone.
    pub ip: Option<IpConfig>,
}

impl GatewayConfig {
    /// The configuration of a fabric with a name and a domain; everything else as usual.
    pub fn new(attachments: Vec<AttachmentConfig>, fabric: Wwn, domain: u8, addresses: PathBuf) -> GatewayConfig {
        GatewayConfig {
            attachments,
            fabric,
            domain,
            vlan: None,
            priority: 128,
            fc_map: DEFAULT_FC_MAP,
            sends_pause: true,
            keep_alive_ms: DEFAULT_KEEP_ALIVE_MS,
            drain: Span::from_secs(10),
            addresses,
            ip: None,
        }
    }
}

/// Another gateway.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// Its name, for people.
    pub name: String,
    /// Address on which it listens. Its own connections come from the same IP address.
    pub address: SocketAddr,
    /// Ports behind it.
    pub ports: Vec<RemotePort>,
}

/// Configuration of a gateway's way to others.
#[derive(Clone, Debug)]
pub struct IpConfig {
    /// Address to listen on, and the one from which connections go out.
    pub listen: SocketAddr,
    /// Congestion control of the connections, by the kernel's name; None: the namespace's default.
    pub congestion_control: Option<String>,
    /// Treatment of the addresses of ports.
    pub mode: AddressMode,
    /// Certificates; None: connections are neither encrypted nor authenticated but by IP addresses.
    pub tls: Option<TlsConfig>,
    /// The other gateways.
    pub peers: Vec<PeerConfig>,
    /// A server that lists others; None: there are no others.
    pub isns: Option<IsnsConfig>,
}

/// Configuration of the way to a name server (iSNS, RFC 4171).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IsnsConfig {
    /// Address of the server.
    pub server: SocketAddr,
    /// Name under which the gateway registers (EID), which no other has.
    pub entity: String,
    /// Source of its requests.
    pub source: Source,
    /// TCP port at which the server connects to send notifications; None: any that is free.
    pub scn_port: Option<u16>,
    /// Time between two queries without a notification, of whole milliseconds.
    pub refresh: Span,
    /// Time without a request after which the server forgets this gateway, of whole seconds, and time without an answer
    /// after which this gateway forgets what the server listed.
    pub registration: Span,
}

/// Files of TLS, PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsConfig {
    /// This gateway's certificate, for its IP address, with those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificate of the authority that signs those of all gateways.
    pub authority: PathBuf,
}
