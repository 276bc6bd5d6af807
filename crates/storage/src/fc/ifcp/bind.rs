//! CBIND: the beginning of sessions (RFC 4172, 5.2.2 and 6.1).

use super::connection::Phase;
use super::event::{EndReason, Event, Refusal};
use super::output::{ConnectionKey, Pair, PeerKey};
use super::session::{Session, SessionKey};
use super::settings::Clock;
use super::termination::rejected;
use super::timers::Timer;
use super::Gateway;
use wire::encapsulation::TimeStamp;
use wire::fc::els::Reject;
use wire::fc::{FcId, Frame, Wwn};
use wire::ifcp::{Bind, BindStatus, Message, SessionMessage, VERSION};

impl Gateway {
    /// Takes a message of a connection.
    pub fn handle_message(&mut self, connection: ConnectionKey, message: Message, now_ns: u64) {
        let Some(own) = self.connections.get(&connection) else { return };
        if own.phase == Phase::Connecting {
            return;
        }
        match message {
            Message::Device(device) => self.handle_device(connection, device, now_ns),
            Message::Session(SessionMessage::Unbind { user, handle }, _) => {
                self.handle_unbind(connection, user, handle, now_ns);
            }
            Message::Session(SessionMessage::UnbindResponse { handle, status, .. }, _) => {
                self.handle_unbound(connection, handle, status, now_ns);
            }
            // All else that was under way when the session ended (RFC 4172, 5.2.3).
            Message::Session(..) if matches!(own.phase, Phase::Unbinding | Phase::Released) => {}
            Message::Session(SessionMessage::Bind(bind), _) => self.handle_bind(connection, &bind, now_ns),
            Message::Session(SessionMessage::BindResponse { bind, status, handle }, _) => {
                self.handle_bound(connection, &bind, status, handle, now_ns);
            }
            Message::Session(SessionMessage::LivenessTest { interval_s, count, source, destination }, _) => {
                let names = Pair { local: source, remote: destination };
                self.handle_test(connection, interval_s, count, names, now_ns);
            }
        }
    }

    /// Begins a session for a login, or lets the login wait for the one that has begun.
    pub(super) fn establish(&mut self, pair: Pair, login: Frame, now_ns: u64) {
        if let Some(session) = self.by_pair.get(&pair).and_then(|key| self.sessions.get_mut(key)) {
            session.wait(login, now_ns);
            return;
        }
        let refused = |explanation| Reject { reason: Reject::UNABLE, explanation };
        if self.clock == Clock::Unsynchronized {
            self.deliver(rejected(&login, refused(Reject::NO_EXPLANATION)));
            return;
        }
        let Some(peer) = self.owners.get(&pair.remote).copied() else { return };
        let pooled = self.unbound_to(peer).next();
        let room = !self.is_stopped && self.sessions.len() < self.settings.sessions_max;
        let connection = pooled.filter(|_| room).or_else(|| if room { self.connect(peer, now_ns) } else { None });
        let Some(connection) = connection else {
            self.deliver(rejected(&login, refused(Reject::INSUFFICIENT_RESOURCES)));
            return;
        };
        let (local_id, remote_id) = (login.header.s_id, login.header.d_id);
        let key = self.add_session(pair, peer, local_id, remote_id);
        if let Some(session) = self.sessions.get_mut(&key) {
            session.wait(login, now_ns);
            session.connection = Some(connection);
        }
        if let Some(own) = self.connections.get_mut(&connection) {
            own.session = Some(key);
        }
        if pooled.is_some() {
            self.send_bind(key, connection, now_ns);
        }
    }

    fn add_session(&mut self, pair: Pair, peer: PeerKey, local_id: FcId, remote_id: FcId) -> SessionKey {
        self.next_session += 1;
        let key = SessionKey(self.next_session);
        // The number need not be unique: it tells a response from one to an earlier request on the connection.
        let user = self.next_session as u32;
        self.sessions.insert(key, Session::new(pair, peer, local_id, remote_id, user));
        self.by_pair.insert(pair, key);
        key
    }

    /// Sends CBIND for a session over a connection that is up.
    pub(super) fn send_bind(&mut self, key: SessionKey, connection: ConnectionKey, now_ns: u64) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.bound_here = true;
        let bind = Bind {
            liveness_s: self.settings.liveness_s,
            mode: self.settings.mode,
            version: VERSION,
            user: session.user,
            source: session.pair.local,
            destination: session.pair.remote,
        };
        if let Some(own) = self.connections.get_mut(&connection) {
            own.phase = Phase::Binding;
            own.session = Some(key);
        }
        self.timers.set(Timer::Setup(connection), now_ns + self.settings.setup_timeout_ns);
        self.send_control(connection, SessionMessage::Bind(bind), TimeStamp::NONE, now_ns);
    }

    /// Takes a CBIND.
    fn handle_bind(&mut self, connection: ConnectionKey, bind: &Bind, now_ns: u64) {
        let pair = Pair { local: bind.destination, remote: bind.source };
        // A port that binds is there, whatever its gateway said before.
        let peer = self.connections.get(&connection).map(|own| own.peer);
        if self.owners.get(&bind.source).copied() == peer {
            self.return_port(bind.source);
        }
        let status = match self.check(connection, bind) {
            Ok(()) => BindStatus::Success,
            Err((status, refusal)) => {
                self.refuse(connection, refusal);
                status
            }
        };
        let handle = if status == BindStatus::Success { self.take_handle() } else { 0 };
        let response =
            Bind { liveness_s: self.settings.liveness_s, mode: self.settings.mode, version: VERSION, ..*bind };
        let response = SessionMessage::BindResponse { bind: response, status, handle };
        if status != BindStatus::Success {
            return self.send_control(connection, response, TimeStamp::NONE, now_ns);
        }
        let key = match self.by_pair.get(&pair).copied() {
            Some(key) if !self.is_open(key) => {
                self.yield_attempt(key, now_ns);
                key
            }
            other => {
                if let Some(old) = other {
                    // The peer has lost the session: it would not bind the pair again.
                    self.end_session(old, EndReason::Replaced, now_ns);
                }
                let Some(peer) = self.connections.get(&connection).map(|own| own.peer) else { return };
                let (Some(local_id), Some(remote_id)) = (self.local_ids.get(&pair.local), self.remote_id(pair.remote))
                else {
                    return;
                };
                self.add_session(pair, peer, *local_id, remote_id)
            }
        };
        if let Some(session) = self.sessions.get_mut(&key) {
            session.connection = Some(connection);
            session.bound_here = false;
        }
        self.send_control(connection, response, TimeStamp::NONE, now_ns);
        self.open(key, connection, handle, bind.liveness_s, now_ns);
    }

    /// Takes a session of which CBIND was not answered yet off its connection, since the peer's CBIND goes first.
    fn yield_attempt(&mut self, key: SessionKey, now_ns: u64) {
        self.timers.clear(Timer::Awaited(key));
        let Some(connection) = self.sessions.get_mut(&key).and_then(|session| session.connection.take()) else {
            return;
        };
        let Some(own) = self.connections.get_mut(&connection) else { return };
        own.session = None;
        if own.phase == Phase::Binding {
            own.phase = Phase::Yielded;
            self.timers.set(Timer::Setup(connection), now_ns + self.settings.setup_timeout_ns);
        }
    }

    /// Checks a CBIND (RFC 4172, 5.2.2.3 and 6.1).
    fn check(&self, connection: ConnectionKey, bind: &Bind) -> Result<(), (BindStatus, Refusal)> {
        let refused = |status| Err((status, Refusal::Bind(status)));
        let Some(own) = self.connections.get(&connection) else { return refused(BindStatus::Unspecified) };
        if own.phase != Phase::Unbound || own.session.is_some() {
            return refused(BindStatus::Unspecified);
        }
        if bind.version != VERSION {
            return refused(BindStatus::IncorrectVersion);
        }
        if bind.mode != self.settings.mode {
            return refused(BindStatus::IncompatibleMode);
        }
        if self.clock == Clock::Unsynchronized {
            return refused(BindStatus::NotSynchronized);
        }
        if self.owners.get(&bind.source) != Some(&own.peer) {
            return Err((BindStatus::NoSuchDevice, Refusal::ForeignPort(bind.source)));
        }
        if !self.local_ids.contains_key(&bind.destination) {
            return Err((BindStatus::NoSuchDevice, Refusal::NoSuchPort(bind.destination)));
        }
        if self.remote_id(bind.source).is_none() {
            return refused(BindStatus::LackOfResources);
        }
        let pair = Pair { local: bind.destination, remote: bind.source };
        match self.by_pair.get(&pair) {
            Some(key) if self.is_binding(*key) && bind.source < bind.destination => refused(BindStatus::SessionExists),
            Some(_) => Ok(()),
            None if self.is_stopped || self.sessions.len() >= self.settings.sessions_max => {
                refused(BindStatus::LackOfResources)
            }
            None => Ok(()),
        }
    }

    /// Takes the response to a CBIND.
    fn handle_bound(&mut self, connection: ConnectionKey, bind: &Bind, status: BindStatus, handle: u16, now_ns: u64) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if own.phase == Phase::Yielded && status != BindStatus::Success {
            own.phase = Phase::Unbound;
            self.timers.clear(Timer::Setup(connection));
            return self.trim(connection);
        }
        let session = own.session.filter(|_| own.phase == Phase::Binding);
        let Some((key, session)) = session.and_then(|key| self.sessions.get(&key).map(|session| (key, session))) else {
            self.refuse(connection, Refusal::Unexpected);
            return self.drop_connection(connection, EndReason::ProtocolError, now_ns);
        };
        let pair = session.pair;
        let wrong = [(bind.source, pair.local), (bind.destination, pair.remote)].into_iter().find(|(a, b)| a != b);
        let refusal = match wrong {
            Some((found, expected)) => Some(Refusal::WrongName { found, expected }),
            None if bind.user != session.user => Some(Refusal::Unexpected),
            None => None,
        };
        if let Some(refusal) = refusal {
            self.refuse(connection, refusal);
            return self.drop_connection(connection, EndReason::ProtocolError, now_ns);
        }
        self.timers.clear(Timer::Setup(connection));
        match status {
            BindStatus::Success if bind.mode != self.settings.mode => {
                self.refuse(connection, Refusal::WrongMode);
                self.drop_connection(connection, EndReason::WrongMode, now_ns);
            }
            BindStatus::Success => self.open(key, connection, handle, bind.liveness_s, now_ns),
            BindStatus::SessionExists => {
                // The peer's own CBIND is on its way, on another connection.
                if let Some(own) = self.connections.get_mut(&connection) {
                    own.session = None;
                    own.phase = Phase::Unbound;
                }
                if let Some(session) = self.sessions.get_mut(&key) {
                    session.connection = None;
                }
                self.timers.set(Timer::Awaited(key), now_ns + self.settings.setup_timeout_ns);
                self.trim(connection);
            }
            refused => {
                self.end_session(key, EndReason::Refused(refused), now_ns);
                if refused == BindStatus::NoSuchDevice {
                    self.miss_port(pair.remote, now_ns);
                }
            }
        }
    }

    /// Opens a session: the logins that waited go out.
    fn open(&mut self, key: SessionKey, connection: ConnectionKey, handle: u16, asked_s: u16, now_ns: u64) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let (peer, pair) = (session.peer, session.pair);
        let waiting = std::mem::take(&mut session.waiting);
        if let Some(own) = self.connections.get_mut(&connection) {
            own.phase = Phase::Open;
            own.session = Some(key);
            own.handle = handle;
        }
        self.counters.sessions_opened += 1;
        if let Some(port) = self.peers.get_mut(&peer).and_then(|peer| peer.ports.get_mut(&pair.remote)) {
            port.misses = 0;
        }
        self.event(Event::SessionOpened(peer, pair));
        self.begin_tests(key, asked_s, now_ns);
        for login in waiting {
            self.send(key, login.frame, login.came_ns);
        }
    }

    /// Ends an attempt that was not answered in time.
    pub(super) fn setup_failed(&mut self, connection: ConnectionKey, now_ns: u64) {
        let Some(own) = self.connections.get(&connection) else { return };
        let peer = own.peer;
        let reason = if own.is_up() { EndReason::NoAnswer } else { EndReason::ConnectFailed };
        self.drop_connection(connection, reason, now_ns);
        if reason == EndReason::NoAnswer {
            self.drop_unbound(peer, reason, now_ns);
        }
    }

    /// A name for a connection, never 0.
    fn take_handle(&mut self) -> u16 {
        self.next_handle = self.next_handle.checked_add(1).unwrap_or(1);
        self.next_handle
    }

    /// The address of a presented port.
    pub(super) fn remote_id(&self, name: Wwn) -> Option<FcId> {
        let owner = self.owners.get(&name).and_then(|peer| self.peers.get(peer))?;
        owner.ports.get(&name)?.id
    }

    fn is_open(&self, key: SessionKey) -> bool {
        self.sessions.get(&key).is_some_and(|session| self.session_open(session))
    }

    fn is_binding(&self, key: SessionKey) -> bool {
        let connection = self.sessions.get(&key).and_then(|session| session.connection);
        connection.and_then(|key| self.connections.get(&key)).is_some_and(|own| own.phase == Phase::Binding)
    }
}
