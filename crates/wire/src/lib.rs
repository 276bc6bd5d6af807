//! Bytes on real wires: views and builders of packets, and capture files.
//!
//! Scope: IP and TCP headers as plain values that parse from and emit to bytes ([`Ipv4Header`], [`Ipv6Header`],
//! [`TcpHeader`]), a conversation that turns a simulated segment's unbounded numbers into them ([`Conversation`]),
//! pcapng files that Wireshark reads ([`pcapng`]), iSCSI PDUs ([`iscsi`]), and Fibre Channel ([`fc`]) with what carries
//! it: Ethernet ([`fcoe`], [`fip`], [`pause`]) and TCP ([`encapsulation`], [`ifcp`], [`fcip`]), and the name service of
//! gateways ([`isns`]). Out of scope: fragments, extension headers, files (any `std::io::Write` will do).
//!
//! **Invariant: what is emitted parses back to the same value, and its checksums are right.**

#![forbid(unsafe_code)]

mod checksum;
mod conversation;
pub mod encapsulation;
mod error;
pub mod ethernet;
pub mod fc;
pub mod fcip;
pub mod fcoe;
pub mod fip;
pub mod ifcp;
mod ipv4;
mod ipv6;
pub mod iscsi;
pub mod isns;
pub mod pause;
pub mod pcapng;
mod tcp;

pub use conversation::{Conversation, Headers, SegmentFields, MAX_HEADER_BYTES};
pub use error::WireError;
pub use ipv4::{Ecn, Ipv4Header, IPV4_HEADER_BYTES, PROTOCOL_TCP};
pub use ipv6::{Ipv6Header, IPV6_HEADER_BYTES};
pub use tcp::{tcp_flags, SackRange, TcpHeader, MAX_SACK_RANGES, MAX_TCP_HEADER_BYTES};
