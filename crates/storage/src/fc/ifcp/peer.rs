//! State of a peer and its ports.

use super::output::{ConnectionKey, RemotePort};
use std::collections::{BTreeMap, BTreeSet};
use wire::fc::{FcId, Wwn};

/// A port of a peer.
#[derive(Clone, Debug)]
pub(super) struct Presented {
    pub port: RemotePort,
    /// Its address in this region, while the fabric presents it.
    pub id: Option<FcId>,
}

/// A peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    pub ports: BTreeMap<Wwn, Presented>,
    pub connections: BTreeSet<ConnectionKey>,
    /// It can be reached, so that its ports are presented.
    pub up: bool,
    /// An attempt to connect failed since it was last connected.
    pub probed: bool,
}
