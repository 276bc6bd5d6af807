//! A Fibre Channel gateway on real sockets: a forwarder's Ethernet, iFCP's TCP connections to other gateways, and the
//! file that it keeps over a restart; a name server (iSNS) that lists the others.
//!
//! **Invariant: a full queue stops reading, and drops nothing. Frames that are lost all the same are counted by reason:
//! those that a node left standing for E_D_TOV or TCP for IP_TOV, and the kernel's own drops.**

mod acceptor;
mod address_file;
mod config;
mod engine;
mod half_open;
mod ip_side;
mod isns_side;
mod learnt;
mod pause;
mod run;
mod segment;
mod status;
mod tcp_link;
mod tls;

pub use config::{GatewayConfig, IpConfig, IsnsConfig, PeerConfig, TlsConfig};
pub use run::Gateway;
pub use status::{IsnsStatus, PeerStatus, PortStatus, SessionStatus, Status};
