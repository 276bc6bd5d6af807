//! Ports with which an N_Port is logged in, or wants to be.

use super::output::PeerInfo;
use std::collections::BTreeMap;
use wire::fc::{FcId, Wwn};

/// Progress of a login with a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    /// PLOGI is under way.
    LoggingIn,
    /// The port is logged in, the process is not.
    LoggedIn,
    /// The process too: FC-4 may use it.
    Up,
    /// No login; another attempt at this time, ns.
    Waiting(u64),
}

/// A port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub info: PeerInfo,
    pub progress: Progress,
    /// This side began, and begins anew when the login ends.
    pub wanted: bool,
    /// Logins that failed one after the other.
    pub failures: u32,
}

impl Peer {
    pub fn is_logged_in(&self) -> bool {
        matches!(self.progress, Progress::LoggedIn | Progress::Up)
    }
}

/// All ports, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    all: BTreeMap<FcId, Peer>,
}

impl Peers {
    pub fn get(&self, id: FcId) -> Option<&Peer> {
        self.all.get(&id)
    }

    pub fn get_mut(&mut self, id: FcId) -> Option<&mut Peer> {
        self.all.get_mut(&id)
    }

    pub fn insert(&mut self, peer: Peer) {
        self.all.insert(peer.info.id, peer);
    }

    pub fn remove(&mut self, id: FcId) -> Option<Peer> {
        self.all.remove(&id)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.all.values()
    }

    /// Another address of a port's name.
    pub fn other_of(&self, port: Wwn, id: FcId) -> Option<FcId> {
        self.all.values().find(|peer| peer.info.port == port && peer.info.id != id).map(|peer| peer.info.id)
    }

    /// Time at which a login is tried again.
    pub fn next_ns(&self) -> Option<u64> {
        let waiting = |peer: &Peer| match peer.progress {
            Progress::Waiting(at_ns) => Some(at_ns),
            _ => None,
        };
        self.all.values().filter_map(waiting).min()
    }
}
