//! Settings of an endpoint.

use units::{Size, Span};

/// Interval of rate control and acknowledgment (SYN of draft-gg-udt-03, 5; the drafts and libraries have no other).
pub const SYN: Span = Span::from_millis(10);
/// Bytes of the headers of a packet: IPv4, UDP, UDT.
pub const HEADER_BYTES: u32 = 20 + 8 + 16;
/// Every so many packets a pair is sent without a pause, which probes the bottleneck (draft-gg-udt-03, 6.1).
pub const PROBE_INTERVAL: u64 = 16;

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// UDT as released in 2003: a smoothed flow window, periodic loss reports.
    Udt2003,
    /// UDT4, as in libudt 4.11 (draft-gg-udt-03 but for what that library does in its own way).
    Udt4,
}

/// Settings of an endpoint; both ends have the same.
#[derive(Clone, Debug)]
pub struct Config {
    /// Version.
    pub version: Version,
    /// Largest IP packet, bytes (UDT_MSS); above [`HEADER_BYTES`], at most 65,535.
    pub mtu: u32,
    /// Packets that the receiver has room for, and the largest flow window (the lesser of UDT_FC and the packets of
    /// UDT_RCVBUF).
    pub window_packets: u32,
    /// Bytes written and not acknowledged (UDT_SNDBUF); None: no limit.
    pub send_buffer: Option<Size>,
    /// Seed of the random choice of loss reports that lower the rate.
    pub seed: u64,
}

impl Config {
    /// Payload of a full packet, bytes.
    pub fn payload(&self) -> u32 {
        self.mtu - HEADER_BYTES
    }
}
