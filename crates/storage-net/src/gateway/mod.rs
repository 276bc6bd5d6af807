//! A Fibre Channel gateway on real sockets: a forwarder's Ethernet, iFCP's TCP connections to other gateways, and the
//! file that it keeps over a restart.
//!
//! **Invariant: a full queue stops reading, and drops nothing. Frames that are lost all the same are counted by reason:
//! those that a node left standing for E_D_TOV or TCP for IP_TOV, and the kernel's own drops.**

mod address_file;
mod attachment;
mod config;
mod datagram_socket;
mod engine;
mod ip_side;
mod packet_filter;
mod packet_socket;
mod run;
mod segment;
mod socket_option;
mod status;
mod tcp_link;

pub use config::{AttachmentConfig, GatewayConfig, IpConfig, PeerConfig};
pub use run::Gateway;
pub use status::{PeerStatus, PortStatus, SessionStatus, Status};
