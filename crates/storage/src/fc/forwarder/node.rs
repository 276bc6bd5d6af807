//! Nodes on the Ethernet and the virtual ports that they have.

use crate::fc::fabric::PortKey;
use std::collections::BTreeMap;
use wire::fc::{FcId, Wwn};
use wire::fip::{Descriptor, LinkService};

/// A virtual port: an address that a node has in the fabric.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualPort {
    /// Ethernet address.
    pub mac: [u8; 6],
    /// Name.
    pub name: Wwn,
    /// Time of its last keep-alive or frame, ns.
    pub seen_ns: u64,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Its link to the fabric.
    pub port: PortKey,
    /// Time of its last keep-alive, ns.
    pub seen_ns: u64,
    /// Its virtual ports.
    pub ports: BTreeMap<FcId, VirtualPort>,
    /// Link service that came by FIP and that the fabric is answering.
    pub asked: Option<Asked>,
}

/// A link service that came by FIP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Its exchange.
    pub ox_id: u16,
    /// The descriptor that carries it, and that the answer has.
    pub wrap: fn(LinkService) -> Descriptor,
}

impl Node {
    pub fn new(port: PortKey, now_ns: u64) -> Node {
        Node { port, seen_ns: now_ns, ports: BTreeMap::new(), asked: None }
    }
}
