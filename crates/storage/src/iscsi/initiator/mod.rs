//! The initiator: one session of one or more connections, and the commands on it.
//!
//! Four kinds of methods ([`Initiator`]):
//! - commands: [`Initiator::submit`], [`Initiator::manage`], [`Initiator::logout`];
//! - inputs: [`Initiator::handle_connected`], [`Initiator::handle_pdu`], [`Initiator::handle_closed`],
//!   [`Initiator::handle_timeout`];
//! - outputs: [`Initiator::poll_connect`] (transport connections to make), [`Initiator::poll_pdu`] (when a connection
//!   has room), [`Initiator::poll_close`], [`Initiator::poll_event`], [`Initiator::poll_timeout`];
//! - getters.
//!
//! Connections are numbered from 0; the first logs in alone, the others join its session. When one is lost, recovery
//! level 0 has one way: all of them are closed, the session is started anew after the time that was agreed on, and
//! every command without a status is sent again from its beginning, in the order in which it was submitted.

mod command;
mod config;
mod connection;
mod login;
mod login_state;
mod output;
mod task;
mod transfer;
mod window;
mod window_use;

pub use super::outbound::Outbound;
pub use command::{Command, Completion, Data};
pub use config::{Allegiance, InitiatorConfig};
pub use window_use::WindowUse;

use super::settings::{Negotiated, Negotiation};
use connection::{ConnectionState, Phase, QueuedPdu};
use std::collections::{BTreeMap, VecDeque};
use task::Task;
use units::{Span, Time};
use wire::iscsi::{Framing, LogoutRequest, NopOut, Payload, Pdu, TaskRequest, TextRequest, NO_TAG};

/// Something that the caller hears of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The first connection is in full feature phase.
    Up(Negotiated),
    /// A further connection has joined.
    Joined(usize),
    /// The session was lost, and why; it is started anew.
    Lost(String),
    /// The session is over: attempts are used up, or the target refused for good. Every command has failed.
    Failed(String),
    /// A command has its status.
    Done(u64, Completion),
    /// A task management function was answered.
    Managed(u32, u8),
    /// Names and addresses of a discovery session.
    Targets(Vec<(String, String)>),
    /// Logged out.
    LoggedOut,
}

/// State of the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SessionState {
    /// The first connection logs in.
    Starting,
    Up,
    /// Lost: starts at that time.
    Waiting(Time),
    LoggingOut,
    Over,
}

/// An initiator.
#[derive(Debug)]
pub struct Initiator {
    config: InitiatorConfig,
    state: SessionState,
    connections: Vec<ConnectionState>,
    negotiated: Negotiated,
    tsih: u16,
    cmd_sn: u32,
    max_cmd_sn: u32,
    /// Commands that wait for the window, by number.
    queue: VecDeque<u64>,
    /// Boxed, so that the tree moves no more than their addresses.
    tasks: BTreeMap<u64, Box<Task>>,
    /// Commands by tag.
    tags: BTreeMap<u32, u64>,
    next_id: u64,
    next_tag: u32,
    next_link: usize,
    failures: u32,
    connect: VecDeque<usize>,
    events: VecDeque<Event>,
    text: Vec<u8>,
    window_use: WindowUse,
}

impl Initiator {
    /// An initiator that wants its first connection.
    pub fn new(config: InitiatorConfig) -> Initiator {
        let discovery = config.target.is_none();
        let negotiated = Negotiation::new(config.settings, discovery).negotiated();
        let count = if discovery { 1 } else { config.connections.clamp(1, 65_535) };
        let mut initiator = Initiator {
            state: SessionState::Starting,
            connections: (0..count).map(|_| ConnectionState::default()).collect(),
            negotiated,
            config,
            tsih: 0,
            cmd_sn: 1,
            max_cmd_sn: 0,
            queue: VecDeque::new(),
            tasks: BTreeMap::new(),
            tags: BTreeMap::new(),
            next_id: 1,
            next_tag: 1,
            next_link: 0,
            failures: 0,
            connect: VecDeque::new(),
            events: VecDeque::new(),
            text: Vec::new(),
            window_use: WindowUse::default(),
        };
        initiator.want(0);
        initiator
    }

    fn want(&mut self, index: usize) {
        self.connections[index] = ConnectionState { phase: Phase::Wanted, ..ConnectionState::default() };
        self.connect.push_back(index);
    }

    /// A command; its number. It is sent when the target's window has room.
    pub fn submit(&mut self, command: Command) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.tasks.insert(id, Box::new(Task::new(command)));
        self.queue.push_back(id);
        self.issue();
        self.note_window_use();
        id
    }

    /// A task management function on a unit, or on a command of it; the tag of its answer. None: the session is not up.
    pub fn manage(&mut self, function: u8, lun: u64, command: Option<u64>) -> Option<u32> {
        let task = command.and_then(|id| self.tasks.get(&id)).filter(|task| task.sent);
        let (index, referenced_tag, ref_cmd_sn) = match task {
            Some(task) => (task.link, task.tag, task.cmd_sn),
            None => (self.connections.iter().position(|link| link.is_up())?, NO_TAG, 0),
        };
        let itt = self.tag();
        let cmd_sn = self.cmd_sn;
        let request = TaskRequest {
            immediate: true,
            function,
            lun,
            itt,
            referenced_tag,
            ref_cmd_sn,
            cmd_sn,
            ..Default::default()
        };
        self.connections[index].out.push_back(QueuedPdu::Pdu(Pdu::new(request)));
        Some(itt)
    }

    /// Ends the session when what is under way needs not be waited for.
    pub fn logout(&mut self) {
        let Some(index) = self.connections.iter().position(ConnectionState::is_up) else {
            self.state = SessionState::Over;
            return;
        };
        let itt = self.tag();
        let request = LogoutRequest { immediate: true, itt, cmd_sn: self.cmd_sn, ..LogoutRequest::default() };
        self.connections[index].out.push_back(QueuedPdu::Pdu(Pdu::new(request)));
        self.state = SessionState::LoggingOut;
    }

    /// A connection to make.
    pub fn poll_connect(&mut self) -> Option<usize> {
        self.connect.pop_front()
    }

    /// Something that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Reason for which a connection is to be closed; [`Initiator::handle_closed`] then says that it was.
    pub fn poll_close(&self, index: usize) -> Option<&str> {
        match &self.connections[index].phase {
            Phase::Closing(why) => Some(why),
            _ => None,
        }
    }

    /// Returns the framing of a connection's next PDU; ask before each.
    pub fn framing(&self, index: usize) -> Framing {
        self.connections[index].framing_in
    }

    /// Parameters negotiated on the first connection.
    pub fn negotiated(&self) -> &Negotiated {
        &self.negotiated
    }

    /// The number of the command under way whose task tag is `tag`.
    pub fn command_of(&self, tag: u32) -> Option<u64> {
        self.tags.get(&tag).copied()
    }

    /// Returns whether PDUs of a connection are queued.
    #[inline]
    pub fn has_output(&self, index: usize) -> bool {
        !self.connections[index].out.is_empty()
    }

    /// Commands without a status.
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether the session is over for good.
    pub fn is_over(&self) -> bool {
        self.state == SessionState::Over
    }

    /// A connection was made.
    pub fn handle_connected(&mut self, now: Time, index: usize) {
        if self.connections[index].phase == Phase::Wanted {
            self.begin_login(now, index);
        }
    }

    /// A connection is gone, or could not be made.
    pub fn handle_closed(&mut self, now: Time, index: usize, why: &str) {
        let was = std::mem::replace(&mut self.connections[index].phase, Phase::Down);
        match (was, self.state) {
            (Phase::Down, _) | (_, SessionState::Waiting(_) | SessionState::Over) => {}
            (_, SessionState::LoggingOut) => {
                self.state = SessionState::Over;
                self.events.push_back(Event::LoggedOut);
            }
            (Phase::Closing(own), _) => self.lose(now, own),
            _ => self.lose(now, why.to_owned()),
        }
    }

    /// The session is lost: everything is closed, and begins anew unless that was tried often enough.
    fn lose(&mut self, now: Time, why: String) {
        self.close_all(&why);
        if self.state == SessionState::LoggingOut {
            // Nobody wants it anew.
            self.state = SessionState::Over;
            self.events.push_back(Event::LoggedOut);
            return;
        }
        self.failures += 1;
        self.tags.clear();
        self.queue = self.tasks.keys().copied().collect();
        self.tasks.values_mut().for_each(|task| task.restart());
        if self.failures >= self.config.attempts {
            return self.give_up(why);
        }
        self.tsih = 0;
        self.state = SessionState::Waiting(now + Span::from_secs(u64::from(self.negotiated.time_to_wait_s)));
        self.events.push_back(Event::Lost(why));
    }

    /// Has every connection closed. One that is not made yet will not be: nobody would say that it was closed.
    fn close_all(&mut self, why: &str) {
        self.connect.clear();
        for link in &mut self.connections {
            link.out.clear();
            let is_made = !matches!(link.phase, Phase::Down | Phase::Wanted);
            link.phase = if is_made { Phase::Closing(why.to_owned()) } else { Phase::Down };
        }
    }

    /// Ends the session for good.
    fn give_up(&mut self, why: String) {
        self.state = SessionState::Over;
        self.tasks.clear();
        self.queue.clear();
        self.events.push_back(Event::Failed(why));
    }

    /// Starts anew, pings, finds connections silent.
    pub fn handle_timeout(&mut self, now: Time) {
        if let SessionState::Waiting(at) = self.state {
            // A connection still to be closed would be taken for the new one.
            if now >= at && self.connections.iter().all(|link| link.phase == Phase::Down) {
                self.state = SessionState::Starting;
                self.want(0);
            }
            return;
        }
        for index in 0..self.connections.len() {
            let due = self.connections[index].deadline(&self.config).is_some_and(|deadline| now >= deadline);
            if !due {
                continue;
            }
            if self.connections[index].is_up() && self.connections[index].ping_sent.is_none() {
                let itt = self.tag();
                let ping = NopOut { immediate: true, itt, ttt: NO_TAG, cmd_sn: self.cmd_sn, ..NopOut::default() };
                self.connections[index].out.push_back(QueuedPdu::Pdu(Pdu::new(ping)));
                self.connections[index].ping_sent = Some(now);
            } else {
                let what =
                    if self.connections[index].is_up() { "no answer to a ping" } else { "the login took too long" };
                self.lose(now, what.to_owned());
                return;
            }
        }
    }

    /// Time at which [`Initiator::handle_timeout`] is to be called; earlier does no harm.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            SessionState::Waiting(at) => Some(at),
            SessionState::Over => None,
            _ => self.connections.iter().filter_map(|link| link.deadline(&self.config)).min(),
        }
    }

    fn tag(&mut self) -> u32 {
        loop {
            let tag = self.next_tag;
            self.next_tag = self.next_tag.wrapping_add(1);
            if tag != NO_TAG && !self.tags.contains_key(&tag) {
                return tag;
            }
        }
    }

    /// Asks a discovery session for its targets.
    fn ask_for_targets(&mut self, index: usize) {
        let mut text = wire::iscsi::Text::default();
        text.push("SendTargets", "All");
        self.send_text(index, NO_TAG, text.emit());
    }

    fn send_text(&mut self, index: usize, ttt: u32, data: Payload) {
        let itt = self.tag();
        let request = TextRequest { immediate: true, last: true, itt, ttt, cmd_sn: self.cmd_sn, ..Default::default() };
        self.connections[index].out.push_back(QueuedPdu::Pdu(Pdu::with(request, data)));
    }
}
