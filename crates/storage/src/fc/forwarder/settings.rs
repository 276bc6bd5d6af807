//! Settings of a forwarder.

use wire::fc::Wwn;
use wire::fcoe::DEFAULT_FC_MAP;
use wire::fip::DEFAULT_KEEP_ALIVE_MS;

/// Least time between keep-alives, ms: Linux takes a shorter one for 8 s (FCOE_CTLR_MIN_FKA).
pub const KEEP_ALIVE_MS_MIN: u32 = 500;

/// A time between keep-alives that nodes would not keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("keep-alives every {0} ms: at least {KEEP_ALIVE_MS_MIN} ms would be right")]
pub struct KeepAliveTooShort(pub u32);

/// Settings of a forwarder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Ethernet address of the interface.
    pub mac: [u8; 6],
    /// Virtual LAN of FCoE and FIP, with its priority, as the tag has it; None = frames without a tag.
    pub vlan: Option<u16>,
    /// Rank among forwarders; the lowest number is preferred.
    pub priority: u8,
    /// Name of the switch.
    pub switch: Wwn,
    /// Name of the fabric.
    pub fabric: Wwn,
    /// Upper half of the Ethernet addresses that ports get, 24 bits.
    pub fc_map: u32,
    /// Time between advertisements and between a node's keep-alives, ms.
    pub keep_alive_ms: u32,
    /// Nodes at once at most.
    pub nodes_max: usize,
}

impl Settings {
    /// Settings of a forwarder with an Ethernet address, for a fabric; everything else as usual.
    pub fn new(mac: [u8; 6], fabric: Wwn) -> Settings {
        Settings {
            mac,
            vlan: None,
            priority: 128,
            switch: Wwn::of_mac(0x1000, mac),
            fabric,
            fc_map: DEFAULT_FC_MAP,
            keep_alive_ms: DEFAULT_KEEP_ALIVE_MS,
            nodes_max: 1024,
        }
    }
}
