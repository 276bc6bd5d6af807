//! Ethernet headers (IEEE 802.3), with at most one VLAN tag (802.1Q).

use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Type of FCoE frames.
pub const ETHERTYPE_FCOE: u16 = 0x8906;
/// Type of FIP frames.
pub const ETHERTYPE_FIP: u16 = 0x8914;
const ETHERTYPE_VLAN: u16 = 0x8100;
/// Bytes of a header without a tag.
pub const ETHERNET_HEADER_BYTES: usize = 14;
const VLAN_TAG_BYTES: usize = 4;

/// A header without its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EthernetHeader {
    /// Receiver.
    pub destination: [u8; 6],
    /// Sender.
    pub source: [u8; 6],
    /// Virtual LAN with the priority in its upper 3 bits, as the tag has it; None = no tag.
    pub vlan: Option<u16>,
}

impl EthernetHeader {
    /// Appends the header with a type.
    pub fn encode(&self, ethertype: u16, into: &mut BytesMut) {
        into.put_slice(&self.destination);
        into.put_slice(&self.source);
        if let Some(tag) = self.vlan {
            into.put_u16(ETHERTYPE_VLAN);
            into.put_u16(tag);
        }
        into.put_u16(ethertype);
    }

    /// Reads a frame: header, type, and what follows.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn decode(frame: &Bytes) -> Result<(EthernetHeader, u16, Bytes), WireError> {
        require(frame, ETHERNET_HEADER_BYTES, "Ethernet header")?;
        let half = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        let mut header = EthernetHeader { destination: [0; 6], source: [0; 6], vlan: None };
        header.destination.copy_from_slice(&frame[..6]);
        header.source.copy_from_slice(&frame[6..12]);
        if half(12) != ETHERTYPE_VLAN {
            return Ok((header, half(12), frame.slice(ETHERNET_HEADER_BYTES..)));
        }
        require(frame, ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES, "Ethernet header")?;
        header.vlan = Some(half(14));
        Ok((header, half(16), frame.slice(ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES..)))
    }
}
