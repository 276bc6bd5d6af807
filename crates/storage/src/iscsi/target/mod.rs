//! The target: connections, sessions of one or more of them, and the device behind.
//!
//! Four kinds of methods ([`Target`]):
//! - commands: [`Target::open`], [`Target::close`], [`Target::request_logout`];
//! - inputs: [`Target::handle_pdu`], [`Target::handle_damaged`], [`Target::handle_closed`], [`Target::handle_work`],
//!   [`Target::handle_timeout`];
//! - outputs: [`Target::poll_pdu`] (when the connection has room), [`Target::poll_work`] (operations for the medium),
//!   [`Target::poll_ready`] (connections that may have something new to send), [`Target::poll_close`],
//!   [`Target::poll_timeout`];
//! - getters.
//!
//! Data-In is cut into PDUs when they are polled, so that what waits for a slow peer is the data once, and no copies.

mod command;
mod config;
mod connection;
mod connection_id;
mod connection_set;
mod control;
mod data;
mod login;
mod login_state;
mod memory;
mod memory_use;
mod output;
mod session;
mod session_use;
mod work;

pub use config::TargetConfig;
pub use connection_id::ConnectionId;
pub use memory::MemoryConfig;
pub use work::Work;

use super::chap::ENTROPY_BYTES;
use crate::scsi::{Device, Outcome, TaskSets};
use connection::{Connection, Phase};
use connection_set::ConnectionSet;
use memory::MemoryBudget;
use session::Session;
use std::collections::{BTreeMap, VecDeque};
use units::Time;
use wire::iscsi::{AsyncMessage, Framing, Header, Pdu};
use work::WorkOrigin;

/// Progress of a login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginProgress {
    /// Nothing came.
    Silent,
    /// A PDU came.
    Begun,
}

/// A target.
#[derive(Debug)]
pub struct Target {
    config: TargetConfig,
    device: Device,
    connections: BTreeMap<ConnectionId, Connection>,
    sessions: BTreeMap<u16, Session>,
    work_origins: BTreeMap<u64, WorkOrigin>,
    work: VecDeque<Work>,
    order: TaskSets<(u16, u32)>,
    /// Session, tag and serial number of commands that no longer wait for others.
    beginning: VecDeque<((u16, u32), u64)>,
    ready: ConnectionSet,
    memory: MemoryBudget,
    /// Connections whose waiting commands may find room.
    readmit: ConnectionSet,
    /// Connections with a reason to be closed.
    closing: usize,
    /// The latest time of a call.
    now: Time,
    next_connection: ConnectionId,
    /// Numbers operations, tasks and transfer tags.
    next_serial: u64,
    next_tsih: u16,
}

impl Target {
    /// A target without connections.
    pub fn new(config: TargetConfig, device: Device) -> Target {
        Target {
            memory: MemoryBudget::new(config.memory),
            readmit: ConnectionSet::default(),
            closing: 0,
            now: Time(0),
            config,
            device,
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            work_origins: BTreeMap::new(),
            work: VecDeque::new(),
            order: TaskSets::default(),
            beginning: VecDeque::new(),
            ready: ConnectionSet::default(),
            next_connection: 1,
            next_serial: 1,
            next_tsih: 1,
        }
    }

    /// The units behind.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Sessions of full feature phase.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Connections, in whatever phase.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// A transport connection was made to `portal` (`address:port`). `entropy` is for CHAP and has to be unpredictable.
    pub fn open(&mut self, now: Time, portal: &str, entropy: [u8; ENTROPY_BYTES]) -> ConnectionId {
        let id = self.next_connection;
        self.next_connection += 1;
        self.now = now;
        self.memory.opened();
        self.connections.insert(id, Connection::new(now, portal, entropy));
        id
    }

    /// Notes the address from which a connection comes, for `TargetConfig::max_connections_per_address`.
    pub fn set_peer(&mut self, id: ConnectionId, peer: core::net::IpAddr) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.peer = Some(peer);
        }
    }

    /// Ends a connection at once, for a reason that the caller has.
    pub fn close(&mut self, id: ConnectionId, why: &str) {
        self.abort_connection(id, why.to_owned());
    }

    /// Returns the progress of a connection's login; None if it is done, or the connection gone or to be closed.
    pub fn login_progress(&self, id: ConnectionId) -> Option<LoginProgress> {
        let connection = self.connections.get(&id).filter(|connection| connection.closing.is_none())?;
        match connection.phase {
            Phase::Full { .. } => None,
            Phase::Login(_) if connection.last_heard == connection.opened => Some(LoginProgress::Silent),
            Phase::Login(_) => Some(LoginProgress::Begun),
        }
    }

    /// Returns the framing of a connection's next PDU; ask before each.
    pub fn framing(&self, id: ConnectionId) -> Framing {
        self.connections.get(&id).map_or(Framing::LOGIN, |connection| connection.framing_in)
    }

    /// Returns whether a connection takes more PDUs: not while many answers wait for it, so that who does not read is
    /// not listened to.
    pub fn takes_input(&self, id: ConnectionId) -> bool {
        let most = 2 * self.config.window as usize + 16;
        self.connections
            .get(&id)
            .is_some_and(|connection| connection.closing.is_none() && connection.ready.len() < most)
    }

    /// Returns whether a connection is to be closed, once what is queued has gone.
    pub fn is_closing(&self, id: ConnectionId) -> bool {
        match self.connections.get(&id) {
            Some(connection) => connection.closing.is_some(),
            None => true,
        }
    }

    /// A PDU came.
    pub fn handle_pdu(&mut self, now: Time, id: ConnectionId, pdu: Pdu) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.closing.is_some() {
            return;
        }
        connection.last_heard = now;
        connection.ping_sent = None;
        self.ready.insert(id);
        self.note_incoming(id, 0);
        match self.tsih_of(id) {
            None => self.login(id, pdu),
            Some(tsih) => self.full_feature(id, tsih, pdu),
        }
        self.settle();
    }

    /// A PDU came whose data digest does not match. At recovery level 0 a Data-Out ends its command (RFC 7143, 7.9),
    /// anything else the connection.
    pub fn handle_damaged(&mut self, now: Time, id: ConnectionId, pdu: &Pdu) {
        self.now = now;
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.last_heard = now;
        self.ready.insert(id);
        self.note_incoming(id, 0);
        self.reject(id, wire::iscsi::reject::DATA_DIGEST, &pdu.header);
        match (&pdu.header, self.tsih_of(id)) {
            (Header::DataOut(header), Some(tsih)) => self.damaged_data(id, tsih, header, pdu.data.len() as u32),
            _ => self.fail(id, format!("{}: the data digest does not match", pdu.header.name())),
        }
        self.settle();
    }

    /// The transport connection is gone; its commands with it.
    pub fn handle_closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.ready.remove(id);
        self.closing -= usize::from(connection.closing.is_some());
        self.memory.closed(connection.claimed);
        match connection.phase {
            Phase::Full { tsih } => {
                if let Some(session) = self.sessions.get_mut(&tsih) {
                    session.unsolicited = session.unsolicited.saturating_sub(connection.unsolicited_answers());
                }
                self.leave_session(tsih, id);
            }
            Phase::Login(login) => self.memory.unreserve(login.reserved()),
        }
        self.settle();
    }

    /// An operation came to its end.
    pub fn handle_work(&mut self, id: u64, outcome: Outcome) {
        let Some(origin) = self.work_origins.remove(&id) else { return };
        let reply = self.device.finish(origin.lun, origin.then, outcome);
        self.note_work_done(&origin);
        self.finish(origin.tsih, origin.itt, origin.serial, reply);
        self.settle();
    }

    /// Logins that take too long and peers that are silent.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.cut_stalled(now);
        for (id, action) in self.connections.iter().map(|(id, c)| (*id, c.due(now, &self.config))).collect::<Vec<_>>() {
            match action {
                connection::Due::Nothing => {}
                connection::Due::Ping => self.ping(now, id),
                connection::Due::Close(why) => self.fail(id, why.to_owned()),
            }
        }
    }

    /// Time at which [`Target::handle_timeout`] is to be called; earlier does no harm.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.connections.values().filter_map(|connection| connection.deadline(&self.config)).min()
    }

    /// The next operation for the medium.
    pub fn poll_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// A connection that may have something new to send or is to be closed.
    pub fn poll_ready(&mut self) -> Option<ConnectionId> {
        self.ready.pop_first()
    }

    /// Returns whether [`Target::poll_close`] may have a reason for any connection.
    #[inline]
    pub fn has_closing(&self) -> bool {
        self.closing > 0
    }

    /// Reason to close a connection once [`Target::poll_pdu`] has nothing left for it; None: it stays open.
    pub fn poll_close(&self, id: ConnectionId) -> Option<&str> {
        let connection = self.connections.get(&id)?;
        let reason = connection.closing.as_deref()?;
        (connection.is_aborted || connection.ready.is_empty()).then_some(reason)
    }

    /// Returns whether a connection is to be closed at once, without what was polled and waits for the socket.
    pub fn is_aborted(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_some_and(|connection| connection.is_aborted)
    }

    /// Asks every initiator to log out within `seconds`, for a target that is about to end.
    pub fn request_logout(&mut self, seconds: u16) {
        let full = |connection: &Connection| matches!(connection.phase, Phase::Full { .. });
        let ids: Vec<_> = self.connections.iter().filter(|(_, c)| full(c)).map(|(id, _)| *id).collect();
        for id in ids {
            let message = AsyncMessage { lun: 0, event: 1, parameter3: seconds, ..AsyncMessage::default() };
            self.send(id, Pdu::new(message));
        }
    }

    fn tsih_of(&self, id: ConnectionId) -> Option<u16> {
        match self.connections.get(&id)?.phase {
            Phase::Full { tsih } => Some(tsih),
            Phase::Login(_) => None,
        }
    }

    fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    /// Queues a PDU; its numbers are filled in when it is polled.
    fn send(&mut self, id: ConnectionId, pdu: Pdu) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ready.push_back(pdu);
            self.ready.insert(id);
        }
    }

    /// Ends a connection at once: nothing goes any more.
    fn abort_connection(&mut self, id: ConnectionId, why: String) {
        self.fail(id, why);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_aborted = true;
        }
    }

    /// Ends a connection: what is queued still goes.
    fn fail(&mut self, id: ConnectionId, why: String) {
        if let Some(connection) = self.connections.get_mut(&id) {
            self.closing += usize::from(connection.closing.is_none());
            connection.closing.get_or_insert(why);
            connection.sending.clear();
            self.ready.insert(id);
        }
    }
}
