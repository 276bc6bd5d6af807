//! A Fibre Channel port of a program's own, on an Ethernet interface or a UNIX datagram socket: logs in to a fabric,
//! lists its ports, measures round trips, and puts a load on the way to another such port.
//!
//! The caller's thread does the work inside of each call; between calls nothing is served, and what comes waits in the
//! socket.

mod config;
mod engine;
mod error;
mod load;
mod port;

pub use config::FcPortConfig;
pub use error::FcPortError;
pub use load::{LoadConfig, Received, Sent};
pub use port::{FcPort, PingKind, PortEntry};
