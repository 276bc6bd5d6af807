//! An iFCP gateway (RFC 4172): device traffic of a fabric's ports to ports behind other gateways, one TCP connection
//! for each pair.
//!
//! Four kinds of methods ([`Gateway`]):
//! - commands: [`Gateway::add_peer`], [`Gateway::set_ports`], [`Gateway::remove_peer`], [`Gateway::set_clock`],
//!   [`Gateway::stop`];
//! - inputs of the fabric: [`Gateway::handle_fabric_event`], [`Gateway::handle_frame`] (a frame of
//!   [`super::fabric::Output::Remote`]), [`Gateway::handle_presented`]; of the network: [`Gateway::handle_connected`],
//!   [`Gateway::handle_accepted`], [`Gateway::handle_closed`], [`Gateway::handle_message`] or
//!   [`Gateway::handle_bytes`]; of the clock: [`Gateway::handle_timeout`];
//! - outputs to the fabric: [`Gateway::poll_fabric`], or [`Gateway::serve_fabric`] for all of them, and
//!   [`Gateway::poll_flow`]; to the network: [`Gateway::poll_connect`], [`Gateway::poll_ready`] (connections with
//!   something to send), [`Gateway::poll_message`] or [`Gateway::poll_bytes`] (while the connection has room),
//!   [`Gateway::poll_close`]; and [`Gateway::poll_timeout`], [`Gateway::poll_event`];
//! - getters.
//!
//! After every input and command the caller polls all outputs until none has more. A frame that waits for a slow
//! connection stays in the gateway: the caller stops the port that sends too much ([`Flow`]).
//!
//! **Invariant: a frame goes out at most once, in its session's order, on the connection of the session it came in for,
//! or never.**

mod bind;
mod connection;
mod counters;
mod event;
mod inbound;
mod liveness;
mod outbound;
mod output;
mod peer;
mod reachability;
mod services;
mod session;
mod settings;
mod termination;
mod timers;
mod translation;

pub use counters::Counters;
pub use event::{EndReason, Event, Refusal};
pub use output::{Closing, ConnectionKey, FabricOutput, Flow, Pair, PeerKey, RemotePort};
pub use peer::InvalidPorts;
pub use services::{has_special_accept, is_special};
pub use session::{SessionCounters, SessionView};
pub use settings::{Clock, InvalidSettings, Settings};

use super::fabric::{self, Fabric};
use super::sequence::{Collector, CollectorBounds};
use bytes::BytesMut;
use connection::{Connection, Phase};
use peer::Peer;
use session::{Session, SessionKey};
use std::collections::{BTreeMap, VecDeque};
use timers::{Timer, Timers};
use wire::encapsulation::{encapsulated_bytes, TimeStamp};
use wire::fc::{FcId, Frame, Wwn};
use wire::ifcp::Message;

/// Link services of several frames that are put together to be changed: of one port, and of all.
const SERVICES: CollectorBounds = CollectorBounds { sequences_of_one: 4, sequences: 256, bytes: 8192 };

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    settings: Settings,
    clock: Clock,
    /// Names of the attached ports.
    local: BTreeMap<FcId, Wwn>,
    /// Their addresses.
    local_ids: BTreeMap<Wwn, FcId>,
    /// Names of the remote ports that are presented, by their addresses here.
    remote: BTreeMap<FcId, Wwn>,
    /// Peers by the names of their ports.
    owners: BTreeMap<Wwn, PeerKey>,
    peers: BTreeMap<PeerKey, Peer>,
    sessions: BTreeMap<SessionKey, Session>,
    by_pair: BTreeMap<Pair, SessionKey>,
    connections: BTreeMap<ConnectionKey, Connection>,
    collector: Collector,
    timers: Timers,
    to_fabric: VecDeque<FabricOutput>,
    flows: VecDeque<Flow>,
    /// Full sessions by local port.
    full: BTreeMap<FcId, u32>,
    connects: VecDeque<(ConnectionKey, PeerKey)>,
    ready: VecDeque<ConnectionKey>,
    closes: VecDeque<(ConnectionKey, Closing)>,
    events: VecDeque<Event>,
    counters: Counters,
    next_session: u64,
    next_connection: u64,
    next_handle: u16,
    next_exchange: u16,
    /// No session may begin.
    is_stopped: bool,
}

impl Gateway {
    /// A gateway without peers.
    ///
    /// # Errors
    /// A setting is none that a gateway can have.
    pub fn new(settings: Settings) -> Result<Gateway, InvalidSettings> {
        settings.validate()?;
        Ok(Gateway {
            clock: settings.clock,
            settings,
            local: BTreeMap::new(),
            local_ids: BTreeMap::new(),
            remote: BTreeMap::new(),
            owners: BTreeMap::new(),
            peers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_pair: BTreeMap::new(),
            connections: BTreeMap::new(),
            collector: Collector::new(SERVICES),
            timers: Timers::default(),
            to_fabric: VecDeque::new(),
            flows: VecDeque::new(),
            full: BTreeMap::new(),
            connects: VecDeque::new(),
            ready: VecDeque::new(),
            closes: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            next_session: 0,
            next_connection: 0,
            next_handle: 0,
            next_exchange: 0,
            is_stopped: false,
        })
    }

    /// Takes a change of the fabric's logins: it says which ports are attached.
    pub fn handle_fabric_event(&mut self, event: &fabric::Event, now_ns: u64) {
        match *event {
            fabric::Event::LoggedIn { id, name, .. } => {
                self.detach(name, now_ns);
                self.local.insert(id, name);
                self.local_ids.insert(name, id);
            }
            fabric::Event::LoggedOut { name, .. } => self.detach(name, now_ns),
            fabric::Event::Registered { .. } => {}
        }
    }

    fn detach(&mut self, name: Wwn, now_ns: u64) {
        let Some(id) = self.local_ids.remove(&name) else { return };
        self.local.remove(&id);
        self.end_sessions(EndReason::LocalPortGone, now_ns, |session| session.pair.local == name);
    }

    /// Sets the time base. Without one all sessions end (RFC 4172, 8.2.1).
    pub fn set_clock(&mut self, clock: Clock, now_ns: u64) {
        self.clock = clock;
        if clock == Clock::Unsynchronized {
            self.end_sessions(EndReason::Unsynchronized, now_ns, |_| true);
        }
    }

    /// Ends all sessions by UNBIND, and lets none begin. The gateway can go when [`Gateway::is_unbinding`] is false.
    pub fn stop(&mut self, now_ns: u64) {
        self.is_stopped = true;
        self.end_sessions(EndReason::Stopped, now_ns, |_| true);
    }

    /// True while a peer has not answered an UNBIND.
    pub fn is_unbinding(&self) -> bool {
        self.connections.values().any(|own| own.phase == Phase::Unbinding || !own.control.is_empty())
    }

    /// Takes bytes of a connection: all whole messages in front of `stream`, and leaves the rest there.
    pub fn handle_bytes(&mut self, connection: ConnectionKey, stream: &mut BytesMut, now_ns: u64) {
        while self.connections.contains_key(&connection) {
            match Message::decode(stream) {
                Ok(Some(Ok(message))) => {
                    self.note_heard(connection);
                    self.handle_message(connection, message, now_ns);
                }
                Ok(Some(Err(discarded))) => self.refuse(connection, Refusal::Malformed(discarded.reason)),
                Ok(None) => return,
                Err(error) => {
                    // The stream is out of step (RFC 4172, table 5): UNBIND could not be read any more either.
                    self.refuse(connection, Refusal::NoMessage(error));
                    self.drop_connection(connection, EndReason::BrokenStream(error), now_ns);
                }
            }
        }
        stream.clear();
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        while let Some(timer) = self.timers.expired(now_ns) {
            match timer {
                Timer::Setup(connection) => self.setup_failed(connection, now_ns),
                Timer::Awaited(session) => self.end_session(session, EndReason::NoAnswer, now_ns),
                Timer::Test(session) => self.send_test(session, now_ns),
                Timer::Silence(session) => self.check_silence(session, now_ns),
                Timer::Proof(connection) => self.note_standing(connection),
                Timer::Reconnect(peer) => self.reconnect(peer, now_ns),
                Timer::Return(port) => self.return_port(port),
            }
        }
    }

    /// Time of the next [`Gateway::handle_timeout`], ns.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.timers.next()
    }

    /// The next step for the fabric.
    pub fn poll_fabric(&mut self) -> Option<FabricOutput> {
        self.to_fabric.pop_front()
    }

    /// Applies all steps for the fabric, and takes the addresses that it gives.
    pub fn serve_fabric(&mut self, fabric: &mut Fabric, now_ns: u64) {
        while let Some(output) = self.poll_fabric() {
            if let Some((name, id)) = output.apply(fabric) {
                self.handle_presented(name, id, now_ns);
            }
        }
    }

    /// The next local port that is to stop sending, or may send again.
    pub fn poll_flow(&mut self) -> Option<Flow> {
        self.flows.pop_front()
    }

    /// The next connection to be made, to a peer. [`Gateway::handle_connected`] or [`Gateway::handle_closed`] follows.
    pub fn poll_connect(&mut self) -> Option<(ConnectionKey, PeerKey)> {
        while let Some((connection, peer)) = self.connects.pop_front() {
            if self.connections.contains_key(&connection) {
                return Some((connection, peer));
            }
        }
        None
    }

    /// The next connection that has messages since it last had none.
    pub fn poll_ready(&mut self) -> Option<ConnectionKey> {
        while let Some(connection) = self.ready.pop_front() {
            if self.connections.contains_key(&connection) {
                return Some(connection);
            }
        }
        None
    }

    /// The next message for a connection that has room: session control first, then frames in their order. A frame
    /// that has waited longer than IP_TOV is left out, as the peer would (RFC 4172, 8.2.1).
    pub fn poll_message(&mut self, connection: ConnectionKey, now_ns: u64) -> Option<Message> {
        let now = self.stamp(now_ns);
        let own = self.connections.get_mut(&connection)?;
        let mut next = own.control.pop_front();
        if next.is_none() && own.phase == Phase::Open {
            while let Some(device) = own.pop_frame() {
                if device.time.difference_ns(now) <= self.settings.ip_tov_ns {
                    next = Some(Message::Device(device));
                    break;
                }
                self.counters.expired += 1;
            }
        }
        own.is_announced = next.is_some();
        let session = own.session;
        if let (Some(Message::Device(device)), Some(session)) = (&next, session) {
            self.counters.sent_frames += 1;
            if let Some(session) = self.sessions.get_mut(&session) {
                session.counters.sent_frames += 1;
                session.counters.sent_bytes += encapsulated_bytes(&device.frame) as u64;
            }
        }
        if let Some(session) = session {
            self.check_flow(session);
        }
        if next.is_none() {
            self.trim(connection);
        }
        next
    }

    /// Appends messages for a connection to `into` until it has at least `most` bytes, or there are no more.
    pub fn poll_bytes(&mut self, connection: ConnectionKey, into: &mut BytesMut, most: usize, now_ns: u64) {
        while into.len() < most {
            let Some(message) = self.poll_message(connection, now_ns) else { return };
            message.encode(into);
        }
    }

    /// The next connection to end: the gateway has forgotten it.
    pub fn poll_close(&mut self) -> Option<(ConnectionKey, Closing)> {
        self.closes.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Messages and frames by what became of them.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// True while a local port is to send no more.
    pub fn is_full(&self, id: FcId) -> bool {
        self.full.contains_key(&id)
    }

    /// True while a peer can be reached.
    pub fn is_up(&self, peer: PeerKey) -> bool {
        self.peers.get(&peer).is_some_and(|peer| peer.up)
    }

    /// All sessions, in the order in which they began.
    pub fn sessions(&self) -> impl Iterator<Item = SessionView> + '_ {
        self.sessions.values().map(|session| {
            let connection = session.connection.and_then(|key| self.connections.get(&key));
            SessionView {
                pair: session.pair,
                peer: session.peer,
                local_id: session.local_id,
                remote_id: session.remote_id,
                connection: session.connection,
                open: connection.is_some_and(|connection| connection.phase == Phase::Open),
                queued_bytes: connection.map_or(0, |connection| connection.frame_bytes),
                counters: session.counters,
            }
        })
    }

    /// Number of connections, those without a session included.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The time stamp of a time; [`TimeStamp::NONE`] without a time base.
    fn stamp(&self, now_ns: u64) -> TimeStamp {
        match self.clock {
            Clock::Unsynchronized => TimeStamp::NONE,
            // 0 would mean that there is no time.
            Clock::Synchronized { epoch_ns } => TimeStamp(TimeStamp::from_ns(epoch_ns.wrapping_add(now_ns)).0.max(1)),
        }
    }

    fn event(&mut self, event: Event) {
        if self.events.len() < self.settings.events_max {
            self.events.push_back(event);
        } else {
            self.counters.events_lost += 1;
        }
    }

    /// Notes that a message of a connection was refused.
    fn refuse(&mut self, connection: ConnectionKey, refusal: Refusal) {
        let Some(peer) = self.connections.get(&connection).map(|connection| connection.peer) else { return };
        if matches!(refusal, Refusal::Stale { .. } | Refusal::NoTimeStamp) {
            self.counters.stale += 1;
        } else {
            self.counters.refused += 1;
        }
        self.event(Event::Refused(peer, refusal));
    }

    /// Delivers a frame to a local port.
    fn deliver(&mut self, frame: Frame) {
        self.to_fabric.push_back(FabricOutput::Frame(frame));
    }

    /// Tells the caller that a connection has something to send.
    fn announce(&mut self, connection: ConnectionKey) {
        if let Some(own) = self.connections.get_mut(&connection) {
            if !own.is_announced {
                own.is_announced = true;
                self.ready.push_back(connection);
            }
        }
    }

    fn session_open(&self, session: &Session) -> bool {
        let connection = session.connection.and_then(|key| self.connections.get(&key));
        connection.is_some_and(|connection| connection.phase == Phase::Open)
    }
}
