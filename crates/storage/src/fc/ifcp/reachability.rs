//! Peers: their ports, and whether they can be reached.
//!
//! A peer is up while a TCP connection with it is. Its ports are presented to the fabric meanwhile, so that hosts hear
//! of a peer that is gone, and of its return. A port that the peer says it does not have is withdrawn for a while.
//! Otherwise hosts would spend their attempts to log in on a port that is not attached yet: Linux makes four within
//! 6 s, and begins again only when its fabric says that the port went and came back.
//!
//! A peer that does not know this gateway takes a connection and closes it; somebody else's server sends bytes that are
//! no iFCP. It counts as down then, is tried again after a time that doubles, and is up again when it sends a valid
//! message or leaves a connection open for longer than that time, or when it makes one itself.

use super::connection::{Connection, Phase};
use super::event::{EndReason, Event};
use super::output::{Closing, ConnectionKey, FabricOutput, PeerKey, RemotePort};
use super::peer::{InvalidPorts, Peer, Presented};
use super::timers::Timer;
use super::Gateway;
use std::collections::BTreeMap;
use wire::fc::{FcId, Wwn};
use wire::ifcp::AddressMode;

/// Doublings of the time for which a port stays withdrawn, and of that between attempts at a peer that refuses.
const MISSES_MAX: u32 = 5;

impl Gateway {
    /// Adds a peer, and begins to reach it. One that is there already is left as it is.
    pub fn add_peer(&mut self, peer: PeerKey, now_ns: u64) {
        if self.peers.contains_key(&peer) {
            return;
        }
        self.peers.insert(peer, Peer::default());
        self.reconnect(peer, now_ns);
    }

    /// Removes a peer with its ports, sessions and connections.
    pub fn remove_peer(&mut self, peer: PeerKey, now_ns: u64) {
        let Some(removed) = self.peers.remove(&peer) else { return };
        for connection in removed.connections {
            self.drop_connection(connection, EndReason::PeerRemoved, now_ns);
        }
        for (name, presented) in removed.ports {
            self.timers.clear(Timer::Return(name));
            self.owners.remove(&name);
            self.withdraw(presented.id, presented.is_away);
        }
        self.timers.clear(Timer::Reconnect(peer));
    }

    /// Sets the list of a peer's ports. Sessions of ports that are not in it any more, or that have another address at
    /// their gateway, end; ports that are new in it are presented.
    ///
    /// # Errors
    /// The list is left as it was: a port is another peer's or has no address where it needs one.
    pub fn set_ports(&mut self, peer: PeerKey, ports: Vec<RemotePort>, now_ns: u64) -> Result<(), InvalidPorts> {
        let known = self.peers.get(&peer).ok_or(InvalidPorts::UnknownPeer(peer))?;
        let mut list = BTreeMap::new();
        for port in ports {
            let name = port.entry.port;
            match self.owners.get(&name) {
                Some(owner) if *owner != peer => return Err(InvalidPorts::AtAnotherPeer(name, *owner)),
                _ => {}
            }
            if self.settings.mode == AddressMode::Transparent && port.id.is_none() {
                return Err(InvalidPorts::NoAddress(name));
            }
            if list.insert(name, port).is_some() {
                return Err(InvalidPorts::Twice(name));
            }
        }
        let up = known.up;
        let gone: Vec<(Wwn, Option<FcId>, bool)> = known
            .ports
            .iter()
            .filter(|(name, old)| list.get(*name).is_none_or(|new| new.id != old.port.id))
            .map(|(name, old)| (*name, old.id, old.is_away))
            .collect();
        for (name, id, is_away) in gone {
            self.end_sessions(EndReason::RemotePortGone, now_ns, |session| session.pair.remote == name);
            self.withdraw(id, is_away);
            self.timers.clear(Timer::Return(name));
            self.owners.remove(&name);
            if let Some(known) = self.peers.get_mut(&peer) {
                known.ports.remove(&name);
            }
        }
        for (name, port) in list {
            self.owners.insert(name, peer);
            let Some(known) = self.peers.get_mut(&peer) else { continue };
            let new = Presented { port: port.clone(), id: None, is_away: false, misses: 0 };
            let old = known.ports.insert(name, new);
            if let (Some(old), Some(new)) = (&old, known.ports.get_mut(&name)) {
                (new.id, new.is_away, new.misses) = (old.id, old.is_away, old.misses);
            }
            if up && old.is_none_or(|old| old.port != port && !old.is_away) {
                self.to_fabric.push_back(FabricOutput::Present { at: self.place(&port), entry: port.entry });
            }
        }
        Ok(())
    }

    /// Address that the fabric must give a port.
    fn place(&self, port: &RemotePort) -> Option<FcId> {
        port.id.filter(|_| self.settings.mode == AddressMode::Transparent)
    }

    /// Takes the address that the fabric gave a port; None when it could not present the port.
    pub fn handle_presented(&mut self, name: Wwn, id: Option<FcId>, now_ns: u64) {
        let Some(peer) = self.owners.get(&name).copied() else { return };
        let Some(port) = self.peers.get_mut(&peer).and_then(|peer| peer.ports.get_mut(&name)) else { return };
        let old = std::mem::replace(&mut port.id, id);
        if old != id {
            if let Some(old) = old {
                // A port that is away keeps no address in the fabric: another may have it now.
                if self.remote.get(&old) == Some(&name) {
                    self.remote.remove(&old);
                }
                self.end_sessions(EndReason::RemotePortGone, now_ns, |session| session.pair.remote == name);
            }
        }
        match id {
            Some(id) => {
                self.remote.insert(id, name);
            }
            None => {
                // Its name may be logged in here for now: it moved.
                self.put_away(name, now_ns);
                self.event(Event::NotPresented(peer, name));
            }
        }
    }

    /// Withdraws a port that its peer does not have, for a time that doubles. It stays while another local port has a
    /// session with it or begins one: the peer may have refused the one that is not in its own list.
    pub(super) fn miss_port(&mut self, name: Wwn, now_ns: u64) {
        if self.by_pair.keys().any(|pair| pair.remote == name) {
            return;
        }
        let owner = self.owners.get(&name).and_then(|peer| self.peers.get_mut(peer));
        let Some(port) = owner.and_then(|peer| peer.ports.get_mut(&name)) else { return };
        let Some(id) = port.id.filter(|_| !port.is_away) else { return };
        let away_ns = self.settings.reconnect_ns << port.misses;
        port.is_away = true;
        port.misses = (port.misses + 1).min(MISSES_MAX);
        // The address stays the port's own: a session that it begins itself needs it at once.
        self.to_fabric.push_back(FabricOutput::Withdraw(id));
        self.timers.set(Timer::Return(name), now_ns + away_ns);
    }

    /// Notes that the fabric does not present a port, and tries again after the longest absence.
    fn put_away(&mut self, name: Wwn, now_ns: u64) {
        let owner = self.owners.get(&name).and_then(|peer| self.peers.get_mut(peer));
        let Some(port) = owner.and_then(|peer| peer.ports.get_mut(&name)) else { return };
        port.is_away = true;
        self.timers.set(Timer::Return(name), now_ns + (self.settings.reconnect_ns << MISSES_MAX));
    }

    /// Presents a port again that is away.
    pub(super) fn return_port(&mut self, name: Wwn) {
        self.timers.clear(Timer::Return(name));
        let Some(peer) = self.owners.get(&name).and_then(|peer| self.peers.get_mut(peer)) else { return };
        let Some(port) = peer.ports.get_mut(&name).filter(|port| port.is_away) else { return };
        port.is_away = false;
        let port = port.port.clone();
        self.to_fabric.push_back(FabricOutput::Present { at: self.place(&port), entry: port.entry });
    }

    /// Takes a port's address back, and has the fabric withdraw the port unless it is away already.
    fn withdraw(&mut self, id: Option<FcId>, is_away: bool) {
        let Some(id) = id else { return };
        self.remote.remove(&id);
        if !is_away {
            self.to_fabric.push_back(FabricOutput::Withdraw(id));
        }
    }

    /// Takes note that a connection of [`Gateway::poll_connect`] is up.
    pub fn handle_connected(&mut self, connection: ConnectionKey, now_ns: u64) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if own.phase != Phase::Connecting {
            return;
        }
        own.phase = Phase::Unbound;
        let (peer, session) = (own.peer, own.session);
        self.timers.clear(Timer::Setup(connection));
        self.begin(connection, peer, now_ns);
        match session {
            Some(session) => self.send_bind(session, connection, now_ns),
            None => self.trim(connection),
        }
    }

    /// Takes a connection that a peer made; None when there is no such peer, or no room: the caller closes it.
    pub fn handle_accepted(&mut self, peer: PeerKey, now_ns: u64) -> Option<ConnectionKey> {
        let connection = self.add_connection(peer, false)?;
        if let Some(own) = self.peers.get_mut(&peer).filter(|own| !own.is_broken) {
            // A peer that connects knows this gateway.
            own.refusals = 0;
        }
        self.begin(connection, peer, now_ns);
        Some(connection)
    }

    /// Takes note that a peer ended a connection of [`Gateway::poll_connect`] before it could be used, in the handshake
    /// of TLS for one.
    pub fn handle_refused(&mut self, connection: ConnectionKey, now_ns: u64) {
        if let Some(own) = self.connections.get_mut(&connection) {
            (own.phase, own.since_ns) = (Phase::Unbound, Some(now_ns));
        }
        self.handle_closed(connection, now_ns);
    }

    /// TCP is up: the peer is, unless it refused before.
    fn begin(&mut self, connection: ConnectionKey, peer: PeerKey, now_ns: u64) {
        if let Some(own) = self.connections.get_mut(&connection) {
            own.since_ns = Some(now_ns);
        }
        match self.peers.get(&peer).map_or(0, |own| own.refusals) {
            0 => self.set_up(peer),
            refusals => {
                let proof_ns = self.settings.reconnect_ns << refusals.min(MISSES_MAX);
                self.timers.set(Timer::Proof(connection), now_ns + proof_ns);
            }
        }
    }

    /// Takes note that a peer that refused before has left a connection open.
    pub(super) fn note_standing(&mut self, connection: ConnectionKey) {
        if let Some(peer) = self.connections.get(&connection).map(|own| own.peer) {
            self.set_up(peer);
        }
    }

    /// Takes note that a valid message came.
    pub(super) fn note_heard(&mut self, connection: ConnectionKey) {
        let Some(peer) = self.connections.get(&connection).map(|own| own.peer) else { return };
        let Some(own) = self.peers.get_mut(&peer).filter(|own| !own.is_heard) else { return };
        (own.is_heard, own.is_broken, own.refusals) = (true, false, 0);
        for connection in &own.connections {
            self.timers.clear(Timer::Proof(*connection));
        }
        self.set_up(peer);
    }

    /// Takes note that a connection is gone, or could not be made.
    pub fn handle_closed(&mut self, connection: ConnectionKey, now_ns: u64) {
        let Some(own) = self.connections.get(&connection) else { return };
        let reason = if own.is_up() { EndReason::ConnectionLost } else { EndReason::ConnectFailed };
        self.remove_connection(connection, reason, now_ns);
    }

    /// A connection to a peer, new or accepted; None when there is no room.
    pub(super) fn add_connection(&mut self, peer: PeerKey, outgoing: bool) -> Option<ConnectionKey> {
        let own = self.peers.get_mut(&peer)?;
        if own.connections.len() >= self.settings.connections_per_peer {
            return None;
        }
        self.next_connection += 1;
        let connection = ConnectionKey(self.next_connection);
        own.connections.insert(connection);
        self.connections.insert(connection, Connection::new(peer, outgoing));
        Some(connection)
    }

    /// True for a connection that was accepted and that no session uses: any program at the peer's address can make it.
    pub fn is_half_open(&self, connection: ConnectionKey) -> bool {
        let own = self.connections.get(&connection);
        own.is_some_and(|own| !own.outgoing && own.phase == Phase::Unbound && own.session.is_none())
    }

    /// The peer of a connection that is there.
    pub fn peer_of(&self, connection: ConnectionKey) -> Option<PeerKey> {
        self.connections.get(&connection).map(|own| own.peer)
    }

    /// Begins to connect to a peer; None when there is no room.
    pub(super) fn connect(&mut self, peer: PeerKey, now_ns: u64) -> Option<ConnectionKey> {
        let connection = self.add_connection(peer, true)?;
        self.connects.push_back((connection, peer));
        self.timers.set(Timer::Setup(connection), now_ns + self.settings.setup_timeout_ns);
        Some(connection)
    }

    /// Ends a connection from this side, and its session.
    pub(super) fn drop_connection(&mut self, connection: ConnectionKey, reason: EndReason, now_ns: u64) {
        if self.connections.contains_key(&connection) {
            self.closes.push_back((connection, Closing::Reset));
            self.remove_connection(connection, reason, now_ns);
        }
    }

    /// Forgets a connection, and ends its session.
    pub(super) fn remove_connection(&mut self, connection: ConnectionKey, reason: EndReason, now_ns: u64) {
        let Some(own) = self.connections.remove(&connection) else { return };
        self.timers.clear(Timer::Setup(connection));
        self.timers.clear(Timer::Proof(connection));
        self.counters.expired += own.frames.len() as u64;
        if let Some(peer) = self.peers.get_mut(&own.peer) {
            peer.connections.remove(&connection);
            let is_broken = matches!(reason, EndReason::BrokenStream(_));
            let soon_ns = self.settings.reconnect_ns << MISSES_MAX;
            let is_soon = own.since_ns.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) < soon_ns);
            let is_refusal = is_broken || is_soon && !peer.is_heard && peer.connections.is_empty();
            // An attempt that failed is the one that `check_reachable` would make.
            peer.probed |= is_refusal || !own.is_up();
            if is_refusal {
                peer.refusals = (peer.refusals + 1).min(1 + MISSES_MAX);
                peer.is_broken |= is_broken;
                if peer.refusals == 1 && reason == EndReason::ConnectionLost {
                    self.event(Event::PeerRefuses(own.peer));
                }
            }
        }
        if let Some(session) = own.session {
            self.end_session(session, reason, now_ns);
        }
        self.check_reachable(own.peer, now_ns);
    }

    /// Keeps the unbound connections that this side made to so many as are wanted.
    pub(super) fn trim(&mut self, connection: ConnectionKey) {
        let Some(own) = self.connections.get(&connection) else { return };
        if !own.outgoing || own.phase != Phase::Unbound || own.session.is_some() || !own.control.is_empty() {
            return;
        }
        let peer = own.peer;
        let unbound = self.unbound_to(peer).count();
        if unbound <= self.settings.unbound_max {
            return;
        }
        self.connections.remove(&connection);
        self.timers.clear(Timer::Proof(connection));
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.connections.remove(&connection);
        }
        self.closes.push_back((connection, Closing::Close));
    }

    /// Connections to a peer that this side made and that no session uses, oldest first.
    pub(super) fn unbound_to(&self, peer: PeerKey) -> impl Iterator<Item = ConnectionKey> + '_ {
        let keys = self.peers.get(&peer).into_iter().flat_map(|peer| peer.connections.iter().copied());
        keys.filter(|key| {
            self.connections
                .get(key)
                .is_some_and(|own| own.outgoing && own.phase == Phase::Unbound && own.session.is_none())
        })
    }

    /// Drops the connections with a peer that no session uses, accepted ones too. No test of liveness covers them: they
    /// are as dead as one that was found dead, and would keep the peer's ports presented.
    pub(super) fn drop_unbound(&mut self, peer: PeerKey, reason: EndReason, now_ns: u64) {
        let keys: Vec<ConnectionKey> =
            self.peers.get(&peer).map(|own| own.connections.iter().copied().collect()).unwrap_or_default();
        for connection in keys {
            let idle = self.connections.get(&connection);
            if idle.is_some_and(|own| own.phase == Phase::Unbound && own.session.is_none()) {
                self.drop_connection(connection, reason, now_ns);
            }
        }
    }

    fn is_connected(&self, peer: PeerKey) -> bool {
        let keys = self.peers.get(&peer).into_iter().flat_map(|peer| peer.connections.iter());
        keys.filter_map(|key| self.connections.get(key)).any(Connection::is_up)
    }

    fn set_up(&mut self, peer: PeerKey) {
        self.timers.clear(Timer::Reconnect(peer));
        let Some(own) = self.peers.get_mut(&peer) else { return };
        own.probed = false;
        if std::mem::replace(&mut own.up, true) {
            return;
        }
        let ports: Vec<RemotePort> = own.ports.values().map(|port| port.port.clone()).collect();
        self.event(Event::PeerUp(peer));
        for port in ports {
            self.to_fabric.push_back(FabricOutput::Present { at: self.place(&port), entry: port.entry });
        }
    }

    /// Finds out whether a peer is still there after a connection to it ended: a peer that was up gets one more
    /// attempt, and its ports go when that fails.
    fn check_reachable(&mut self, peer: PeerKey, now_ns: u64) {
        if self.is_connected(peer) {
            return;
        }
        let Some(own) = self.peers.get_mut(&peer) else { return };
        if !own.connections.is_empty() {
            // An attempt is under way.
            return;
        }
        own.is_heard = false;
        if own.up && self.probe(peer, now_ns) {
            return;
        }
        self.set_down(peer, now_ns);
    }

    fn probe(&mut self, peer: PeerKey, now_ns: u64) -> bool {
        let probed = self.peers.get_mut(&peer).is_some_and(|own| std::mem::replace(&mut own.probed, true));
        !probed && self.connect(peer, now_ns).is_some()
    }

    fn set_down(&mut self, peer: PeerKey, now_ns: u64) {
        let Some(own) = self.peers.get_mut(&peer) else { return };
        let wait_ns = self.settings.reconnect_ns << own.refusals.saturating_sub(1);
        self.timers.set(Timer::Reconnect(peer), now_ns + wait_ns);
        own.probed = false;
        if !own.up {
            return;
        }
        own.up = false;
        let mut gone = Vec::new();
        for port in own.ports.values_mut() {
            gone.push((port.id.take(), port.is_away));
            (port.is_away, port.misses) = (false, 0);
        }
        for (id, is_away) in gone {
            self.withdraw(id, is_away);
        }
        self.event(Event::PeerDown(peer));
    }

    /// Tries to reach a peer without connections.
    pub(super) fn reconnect(&mut self, peer: PeerKey, now_ns: u64) {
        let idle = self.peers.get(&peer).is_some_and(|own| own.connections.is_empty());
        if idle && self.connect(peer, now_ns).is_none() {
            self.timers.set(Timer::Reconnect(peer), now_ns + self.settings.reconnect_ns);
        }
    }
}
