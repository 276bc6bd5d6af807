//! A gateway's side of iSNS without I/O (RFC 4171): registers its N_Ports with a server, answers the server's
//! inquiries, and knows the N_Ports of other gateways.
//!
//! A caller connects when [`Client::poll_event`] says so, tells of connections and hands in their bytes, takes out what
//! leaves ([`Client::poll_transmit`]), and comes back at [`Client::poll_timeout`]. The server may connect back, for
//! inquiries and notifications, at the port that the settings name.
//!
//! **Invariant: what others send can delay knowledge of remote ports, and nothing else; what is kept is bounded.**

mod client;
mod ports;
mod settings;
#[cfg(test)]
mod tests;

pub use client::{Client, CloseReason, Connection, Event};
pub use ports::{LocalPort, RemotePort};
pub use settings::{Settings, Source};
