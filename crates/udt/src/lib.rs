//! The two ends of a UDT connection, without I/O: packets and the time go in by `handle_*`, packets and deadlines come
//! out by `poll_*`. Payload is counted, not carried.
//!
//! UDT sends at a rate that it lowers at losses and raises in steps that depend on the spare capacity of the path;
//! pairs of packets estimate that. The receiver acknowledges by a timer and reports losses at once. Two versions are
//! here by name ([`Version`]): UDT4 as in libudt 4.11, and the UDT of 2003.
//!
//! One end of a connection may send data, the other one, or both.
//!
//! **Invariant: an endpoint's behaviour is a function of its configuration and of the calls on it, with their times.**
//!
//! After every call that takes the time, send what [`Endpoint::poll_train`] has, then call [`Endpoint::handle_timeout`]
//! at [`Endpoint::poll_timeout`]. The sources of libudt and draft-gg-udt-01 and -03 are the reference of behaviour; no
//! line is taken from them.

mod arrivals;
mod config;
mod endpoint;
mod loss_list;
mod period;
mod rate_control;
mod receive;
mod segment;
mod send;
mod udt2003;
mod udt4;

pub use config::{Config, Version, HEADER_BYTES, PROBE_INTERVAL, SYN};
pub use endpoint::Endpoint;
pub use loss_list::LossList;
pub use segment::{Ack, Data, Handshake, HandshakeStep, Nak, Segment, MAX_RANGES};
