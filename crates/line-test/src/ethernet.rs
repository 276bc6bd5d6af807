//! Numbers of Ethernet that frames of line tests have.

/// An Ethernet address.
pub type Mac = [u8; 6];
/// Type of all frames: the first of those for local experiments (IEEE 802, 9.2.4).
pub const ETHERTYPE: u16 = 0x88b5;
/// Bytes before a frame's stamp: two addresses and a type. A tag is not counted.
pub const HEADER_BYTES: usize = wire::ethernet::ETHERNET_HEADER_BYTES;
/// A VLAN tag, bytes (IEEE 802.1Q, 9.5).
pub const VLAN_TAG_BYTES: usize = 4;
/// Frame check sequence, bytes (IEEE 802.3, 3.2.9).
pub const FCS_BYTES: usize = 4;
/// Preamble, start of frame and the shortest gap, bytes (IEEE 802.3, 3.1.1 and 4A.4.2).
pub const LINE_OVERHEAD_BYTES: u64 = 20;
