//! Configuration of a port.

use crate::ethernet::AttachmentConfig;
use wire::fc::Wwn;

/// Configuration of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FcPortConfig {
    /// The way to the fabric.
    pub attachment: AttachmentConfig,
    /// Name of the port; None: made of the interface's Ethernet address. A socket has none.
    pub port: Option<Wwn>,
    /// Virtual LAN of FCoE and FIP, with its priority, as the tag has it; None = frames without a tag.
    pub vlan: Option<u16>,
}
