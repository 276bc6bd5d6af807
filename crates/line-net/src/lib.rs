//! Line tests on real Ethernet interfaces: raw frames in and out, around the cores of `line-test`.
//!
//! A [`LinePort`] has one interface. It sends one stream at a time, and counts and answers streams of others. Frames
//! pass by rings that the kernel shares (packet(7)), or by AF_XDP where the interface's driver takes that.
//!
//! **Invariant: whatever ends the process, nothing stays at the interface: programs, addresses and rings go with their
//! descriptors.**

mod af_xdp;
mod boot;
mod clock;
mod counters;
mod error;
mod ethtool;
mod frame;
mod interface;
mod map;
mod method;
mod packet_mmap;
mod packet_socket;
mod port;
mod socket;
mod way;

pub use error::LineError;
pub use method::Method;
pub use port::{LinePort, LinePortConfig, PortInfo};
