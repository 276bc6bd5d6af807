//! A Fibre Channel gateway on real sockets: a forwarder's Ethernet, and what it keeps over a restart.
//!
//! **Invariant: a frame is never dropped for want of room here. While a queue towards the SAN is full, nothing is read
//! from it; the kernel's own drops are counted.**

mod address_file;
mod attachment;
mod config;
mod datagram_socket;
mod engine;
mod packet_filter;
mod packet_socket;
mod run;
mod segment;
mod status;

pub use config::{AttachmentConfig, GatewayConfig};
pub use run::Gateway;
pub use status::{PortStatus, Status};
