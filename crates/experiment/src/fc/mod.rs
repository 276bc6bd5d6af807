//! Fibre Channel gateways over simulated TCP: two gateways at the ends of their connections, and the N_Ports behind
//! them.
//!
//! An N_Port sends over a link with buffer-to-buffer credits (`storage::fc::link`). Its gateway keeps a frame in the
//! port's buffer until TCP takes it, encapsulated as RFC 3643 has it, and then returns the credit. The other gateway
//! reads the connection as far as the receiving port's link takes frames. So nothing is dropped anywhere: a full send
//! queue, a closed window and a slow port stop the sender by its credits.

mod agenda;
mod build;
mod carried;
mod connection;
mod encoder;
pub mod fcp;
mod gateways;
mod group;
mod names;
mod pair;
mod ports;
mod unit;

pub use build::gateways;
pub use gateways::Gateways;
pub use pair::Pair;
