//! State of a peer and its ports.

use super::output::{ConnectionKey, PeerKey, RemotePort};
use std::collections::{BTreeMap, BTreeSet};
use wire::fc::{FcId, Wwn};

/// A port of a peer.
#[derive(Clone, Debug)]
pub(super) struct Presented {
    pub port: RemotePort,
    /// Its address in this region.
    pub id: Option<FcId>,
    /// The fabric does not present it, since the peer has said it has no such port.
    pub is_away: bool,
    /// Number of times in a row that the peer has said so.
    pub misses: u32,
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
    /// It has sent a valid message since it last was without connections.
    pub is_heard: bool,
    /// Times in a row that it ended its last connection soon and without a valid message, or sent bytes that are no
    /// iFCP.
    pub refusals: u32,
    /// One of those times was such bytes.
    pub is_broken: bool,
}

/// Reason for which a list of ports was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidPorts {
    /// There is no such peer.
    #[error("peer {} is unknown: add it first", .0.0)]
    UnknownPeer(PeerKey),
    /// Another peer has the port.
    #[error("port {0} is in the list of peer {peer} too: a port is behind one gateway", peer = .1.0)]
    AtAnotherPeer(Wwn, PeerKey),
    /// The list has the port twice.
    #[error("port {0} is in the list twice")]
    Twice(Wwn),
    /// Transparent mode needs the port's address.
    #[error("port {0} needs its address, as addresses are transparent")]
    NoAddress(Wwn),
}
