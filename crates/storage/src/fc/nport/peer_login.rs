//! Logins with other ports: discovery, PLOGI, PRLI, state changes.

use super::engine::NPort;
use super::output::{Event, PeerInfo};
use super::peer::{Peer, Progress};
use super::requests::Purpose;
use bytes::Bytes;
use wire::fc::els::{AffectedPorts, Command, DiscoverAddress, ProcessLogin, Request, Scope};
use wire::fc::name_server::{Query, QueryScope};
use wire::fc::{FcId, FrameType, Login, Wwn};

/// Changed ports that the name server is asked for one by one; more are looked up in one list.
const NAMES_ASKED_MAX: usize = 32;
/// Attempts of a login with a port, E_D_TOV apart and more, before it waits for a state change.
const LOGINS_MAX: u32 = 8;

impl NPort {
    /// Logs in with a port. An initiator does so by itself with all that the name server lists.
    pub fn log_in_to(&mut self, id: FcId, now_ns: u64) {
        if id == self.id || id.is_well_known() || self.id == FcId::NONE {
            return;
        }
        let has_room = self.peers.len() < self.settings.peers_max;
        match self.peers.get_mut(id) {
            Some(peer) => {
                peer.wanted = true;
                if matches!(peer.progress, Progress::Waiting(_)) {
                    self.send_login(id, now_ns);
                }
            }
            None if has_room => {
                let info =
                    PeerInfo { id, port: Wwn(0), node: Wwn(0), receive_bytes: 256, initiator: false, target: false };
                self.peers.insert(Peer { info, progress: Progress::LoggingIn, wanted: true, failures: 0 });
                self.send_login(id, now_ns);
            }
            None => {
                let reason = "as many ports are logged in as may be";
                self.events.push_back(Event::PeerRefused { id, reason });
            }
        }
    }

    /// Ends the login with a port, and tells it.
    pub fn end_login_with(&mut self, id: FcId, now_ns: u64) {
        if self.peers.get(id).is_some_and(Peer::is_logged_in) {
            self.log_out_of(id, now_ns);
        }
        self.drop_peer(id, "ended here");
    }

    /// Ends the login with a port whose exchanges cannot be recovered, and logs in again: the port ends all that it had
    /// of this one.
    pub fn renew_login_with(&mut self, id: FcId, now_ns: u64) {
        if self.peers.get(id).is_some() {
            self.drop_peer(id, "an exchange could not be recovered");
            self.log_in_to(id, now_ns);
        }
    }

    fn send_login(&mut self, id: FcId, now_ns: u64) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.progress = Progress::LoggingIn;
        }
        let login = Request::Login(self.parameters(Command::PLOGI));
        self.request(id, &login, Purpose::Login(id), now_ns);
    }

    /// Asks for all ports of the own type, as far as an initiator looks for targets.
    pub(super) fn discover(&mut self, now_ns: u64) {
        if self.settings.role.initiator && !self.requests.has(Purpose::Discover) {
            let query = Query::PortsOfType { kind: self.settings.kind.0, scope: QueryScope::default() };
            self.query(&query, Purpose::Discover, now_ns);
        }
    }

    pub(super) fn discover_ids(&mut self, now_ns: u64) {
        let query = Query::IdsOfType { kind: self.settings.kind.0, scope: QueryScope::default() };
        self.query(&query, Purpose::DiscoverIds, now_ns);
    }

    /// The name server's list: logs in to new ports, and looks at those that it left out.
    pub(super) fn discovered(&mut self, ports: &[(FcId, Wwn)], now_ns: u64) {
        let missing: Vec<FcId> = self
            .peers
            .iter()
            .map(|peer| peer.info.id)
            .filter(|id| ports.iter().all(|(listed, _)| listed != id))
            .collect();
        for id in missing {
            // A port may be logged in that registered nothing: the port itself says whether it is there.
            self.verify(id, now_ns);
        }
        for (id, port) in ports {
            if *id == self.id {
                continue;
            }
            match self.peers.get(*id) {
                Some(peer) if peer.is_logged_in() => {
                    if *port != Wwn(0) && peer.info.port != *port {
                        self.drop_peer(*id, "its address has another name now");
                        self.log_in_to(*id, now_ns);
                    }
                }
                _ => self.log_in_to(*id, now_ns),
            }
        }
    }

    /// Takes a state change.
    pub(super) fn state_changed(&mut self, pages: &[AffectedPorts], now_ns: u64) {
        let single = pages.len() <= NAMES_ASKED_MAX && pages.iter().all(|page| page.scope == Scope::Port);
        for page in pages {
            let affected: Vec<FcId> = match page.scope {
                Scope::Port if self.settings.role.initiator && single => vec![page.id],
                Scope::Port => self.peers.get(page.id).map(|peer| peer.info.id).into_iter().collect(),
                Scope::Area => self.peers_where(|id| id.value() >> 8 == page.id.value() >> 8),
                Scope::Domain => self.peers_where(|id| id.domain() == page.id.domain()),
                Scope::Fabric => self.peers_where(|_| true),
            };
            for id in affected {
                if id != self.id && !id.is_well_known() && !self.requests.has(Purpose::NameOf(id)) {
                    self.query(&Query::PortNameOf(id), Purpose::NameOf(id), now_ns);
                }
            }
        }
        if !single {
            self.discover(now_ns);
        }
    }

    fn peers_where(&self, which: impl Fn(FcId) -> bool) -> Vec<FcId> {
        self.peers.iter().map(|peer| peer.info.id).filter(|id| which(*id)).collect()
    }

    /// The name server knows a port that changed, by this name.
    pub(super) fn named(&mut self, id: FcId, port: Option<Wwn>, now_ns: u64) {
        match self.peers.get(id) {
            Some(peer) if peer.is_logged_in() && port.is_some_and(|port| port != peer.info.port) => {
                self.drop_peer(id, "its address has another name now");
                if self.settings.role.initiator {
                    self.log_in_to(id, now_ns);
                }
            }
            Some(peer) if peer.is_logged_in() => self.verify(id, now_ns),
            _ if self.settings.role.initiator => self.log_in_to(id, now_ns),
            _ => {}
        }
    }

    /// Asks a port whether it is the one that is logged in (ADISC).
    fn verify(&mut self, id: FcId, now_ns: u64) {
        if self.peers.get(id).is_some_and(Peer::is_logged_in) && !self.requests.has(Purpose::Verify(id)) {
            let discover = Request::DiscoverAddress(self.own_address());
            self.request(id, &discover, Purpose::Verify(id), now_ns);
        }
    }

    pub(super) fn own_address(&self) -> DiscoverAddress {
        DiscoverAddress { hard: FcId::NONE, port: self.settings.port, node: self.settings.node, id: self.id }
    }

    pub(super) fn verified(&mut self, id: FcId, payload: &Bytes, now_ns: u64) {
        let Some(peer) = self.peers.get(id) else { return };
        let same = DiscoverAddress::parse(payload)
            .is_ok_and(|found| found.port == peer.info.port && found.node == peer.info.node && found.id == id);
        if !same {
            let wanted = peer.wanted;
            self.drop_peer(id, "another port has its address");
            if wanted {
                self.log_in_to(id, now_ns);
            }
        }
    }

    pub(super) fn login_accepted(&mut self, id: FcId, payload: &Bytes, now_ns: u64) {
        let Ok(login) = Login::parse(payload) else {
            self.counters.malformed += 1;
            return self.refused_by(id, "the accept of the login is malformed", now_ns);
        };
        if login.fabric_port || login.port == self.settings.port {
            return self.refused_by(
                id,
                "the accept of the login is that of the fabric, or has this port's name",
                now_ns,
            );
        }
        if let Some(other) = self.peers.other_of(login.port, id) {
            self.drop_peer(other, "its name has another address now");
        }
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.info =
            PeerInfo { id, port: login.port, node: login.node, receive_bytes: login.receive_bytes, ..peer.info };
        peer.progress = Progress::LoggedIn;
        if !self.has_process() {
            return self.up(id, now_ns);
        }
        let login = Request::ProcessLogin(self.process(0));
        self.request(id, &login, Purpose::ProcessLogin(id), now_ns);
    }

    /// This port's side of a process login.
    pub(super) fn process(&self, response: u8) -> ProcessLogin {
        let role = self.settings.role;
        ProcessLogin {
            kind: FrameType::FCP.0,
            establish: true,
            response,
            parameters: ProcessLogin::NO_READ_TRANSFER_READY
                | if role.initiator { ProcessLogin::INITIATOR } else { 0 }
                | if role.target { ProcessLogin::TARGET } else { 0 },
        }
    }

    pub(super) fn process_login_accepted(&mut self, id: FcId, payload: &Bytes, now_ns: u64) {
        match ProcessLogin::parse(payload) {
            Ok(login) if login.response == ProcessLogin::EXECUTED => self.process_up(id, login.parameters, now_ns),
            _ => self.refused_by(id, "the process login was not done", now_ns),
        }
    }

    /// Both processes are logged in.
    pub(super) fn process_up(&mut self, id: FcId, parameters: u32, now_ns: u64) {
        if let Some(peer) = self.peers.get_mut(id).filter(|peer| peer.is_logged_in()) {
            peer.info.initiator = parameters & ProcessLogin::INITIATOR != 0;
            peer.info.target = parameters & ProcessLogin::TARGET != 0;
            self.up(id, now_ns);
        }
    }

    /// True for a port of SCSI: its logins need one of the process as well.
    pub(super) fn has_process(&self) -> bool {
        self.settings.kind == FrameType::FCP && (self.settings.role.initiator || self.settings.role.target)
    }

    pub(super) fn up(&mut self, id: FcId, now_ns: u64) {
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.failures = 0;
        let again = peer.progress == Progress::Up;
        peer.progress = Progress::Up;
        self.events.push_back(Event::PeerUp(peer.info));
        if peer.wanted && !again {
            self.request(id, &Request::ReadTimeouts, Purpose::ReadTimeouts(id), now_ns);
        }
    }

    /// A login failed: it is tried again some times, later and later.
    pub(super) fn refused_by(&mut self, id: FcId, reason: &'static str, now_ns: u64) {
        let e_d_tov_ns = self.e_d_tov_ns();
        let Some(peer) = self.peers.get_mut(id) else { return };
        self.requests.forget(|pending| matches!(pending.purpose, Purpose::ProcessLogin(of) if of == id));
        peer.failures += 1;
        let (failures, was_up) = (peer.failures, peer.progress == Progress::Up);
        if failures < LOGINS_MAX {
            peer.progress = Progress::Waiting(now_ns + (e_d_tov_ns << failures.min(6)));
            let port = peer.info.port;
            if was_up {
                self.events.push_back(Event::PeerDown { id, port, reason });
            }
        } else {
            self.peers.remove(id);
        }
        self.events.push_back(Event::PeerRefused { id, reason });
    }

    /// Forgets a port and its requests.
    pub(super) fn drop_peer(&mut self, id: FcId, reason: &'static str) {
        self.requests.forget(|pending| pending.to == id && !matches!(pending.purpose, Purpose::Logout(_)));
        self.collector.forget(id);
        if let Some(peer) = self.peers.remove(id) {
            if peer.progress == Progress::Up {
                self.events.push_back(Event::PeerDown { id, port: peer.info.port, reason });
            }
        }
    }

    /// Begins the logins anew whose time has come.
    pub(super) fn retry_peers(&mut self, now_ns: u64) {
        let due: Vec<FcId> = self
            .peers
            .iter()
            .filter(|peer| matches!(peer.progress, Progress::Waiting(at_ns) if at_ns <= now_ns))
            .map(|peer| peer.info.id)
            .collect();
        for id in due {
            self.send_login(id, now_ns);
        }
    }
}
