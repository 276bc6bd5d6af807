//! Settings of a node.

use wire::fc::Wwn;

/// Settings of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Its own Ethernet address.
    pub mac: [u8; 6],
    /// Name of the node.
    pub node: Wwn,
    /// Name of its port.
    pub port: Wwn,
    /// Virtual LAN of FCoE and FIP, with its priority, as the tag has it; None = frames without a tag.
    pub vlan: Option<u16>,
    /// Largest FC frame with FCoE's header and trailer that its Ethernet carries, bytes.
    pub fcoe_bytes_max: u16,
}
