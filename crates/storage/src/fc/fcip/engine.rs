//! The tunnel's end: opens connections, sends frames through them, takes out those that come.

use super::connection::{Connection, State};
use super::flows::{FlowKey, Flows, Place, Spread};
use super::keep_alive::{self, KeepAlive};
use super::output::{CloseReason, ConnectionKey, Counters, Event, Unsent, UnsentReason};
use super::settings::Settings;
use super::special::{check_echo, reply_to, Reply};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use wire::encapsulation::{encapsulated_bytes, Discarded, TimeStamp};
use wire::fc::{frame_control, routing, ClassOfService, Frame, Sof};
use wire::fcip::{Message, SpecialFrame};

const NS_PER_MS: u64 = 1_000_000;

/// One end of a tunnel (RFC 3821: an FCIP link endpoint).
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    /// Time since 1900 at the caller's time 0, ns; None while this end's clock is not synchronised.
    clock_ns: Option<u64>,
    connections: BTreeMap<ConnectionKey, Connection>,
    flows: Flows,
    received: VecDeque<Frame>,
    received_bytes: usize,
    events: VecDeque<Event>,
    /// A frame was given back, and the caller has not been told of room since.
    owes_room: bool,
    /// Number of the peer's last request.
    last_nonce: Option<u64>,
    counters: Counters,
}

impl Tunnel {
    /// An end without connections, whose clock is not synchronised.
    pub fn new(settings: Settings) -> Tunnel {
        let settle_ns = u64::from(settings.transit_ms) * NS_PER_MS;
        Tunnel {
            flows: Flows::new(settings.flows_max, settle_ns),
            settings,
            clock_ns: None,
            connections: BTreeMap::new(),
            received: VecDeque::new(),
            received_bytes: 0,
            events: VecDeque::new(),
            owes_room: false,
            last_nonce: None,
            counters: Counters::default(),
        }
    }

    /// Sets the clock: time since 1900 at `now_ns` = 0 of all other calls, ns; None when it is not synchronised. Frames
    /// go without a time stamp then, and the age of those that come is not tested (RFC 3643, section 4).
    pub fn set_clock(&mut self, since_1900_ns: Option<u64>) {
        self.clock_ns = since_1900_ns;
    }

    /// Opens a connection that this end made. `nonce` is random, from a source that nobody can guess.
    pub fn handle_connected(&mut self, connection: ConnectionKey, nonce: u64, now_ns: u64) {
        if !self.admit(connection, now_ns) {
            return;
        }
        let taken: Vec<usize> = self.connections.values().filter_map(|other| other.usage).collect();
        let usage = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
        let flags = &self.settings.usage;
        let special = SpecialFrame {
            changed: false,
            source: self.settings.own,
            entity: self.settings.entity,
            nonce,
            usage_flags: flags.get(usage).or(flags.last()).copied().unwrap_or(0),
            usage_code: 0,
            destination: self.settings.peer,
            keep_alive_ms: self.settings.keep_alive_ms,
        };
        let mut state = Connection::new(State::WaitsForEcho(special), now_ns, self.settings.special_frame_ms);
        state.usage = Some(usage);
        state.push(Message::Special(special, self.stamp(now_ns)), None, u64::MAX);
        self.connections.insert(connection, state);
    }

    /// Takes a connection that the peer made.
    pub fn handle_accepted(&mut self, connection: ConnectionKey, now_ns: u64) {
        if self.admit(connection, now_ns) {
            let state = Connection::new(State::WaitsForSpecial, now_ns, self.settings.special_frame_ms);
            self.connections.insert(connection, state);
        }
    }

    /// Takes a connection away that the network, or the caller, closed.
    pub fn handle_closed(&mut self, connection: ConnectionKey, now_ns: u64) {
        let Some(lost) = self.connections.remove(&connection) else { return };
        self.give_up(connection, lost, now_ns);
    }

    /// Takes bytes that came through a connection.
    pub fn handle_bytes(&mut self, connection: ConnectionKey, bytes: &[u8], now_ns: u64) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.received_ns = now_ns;
        let mut stream = std::mem::take(&mut state.stream);
        stream.extend_from_slice(bytes);
        loop {
            match Message::decode(&mut stream) {
                Ok(None) => break,
                Ok(Some(Ok(message))) => self.handle_message(connection, message, now_ns),
                Ok(Some(Err(damage))) => self.handle_damage(connection, damage, now_ns),
                Err(error) => {
                    self.close(connection, CloseReason::Malformed(error), now_ns);
                    return;
                }
            }
        }
        if let Some(state) = self.connections.get_mut(&connection) {
            state.stream = stream;
        }
    }

    /// Takes a message that came through a connection.
    pub fn handle_message(&mut self, connection: ConnectionKey, message: Message, now_ns: u64) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.received_ns = now_ns;
        match (&state.state, message) {
            (State::Closing, _) => {}
            (State::Open, Message::Frame(frame, time)) => self.receive(connection, frame, time, now_ns),
            (State::WaitsForEcho(sent), Message::Special(echo, _)) => match check_echo(sent, &echo) {
                Ok(()) => self.open(connection, &echo, None, now_ns),
                Err(reason) => self.close(connection, reason, now_ns),
            },
            (State::WaitsForSpecial, Message::Special(special, _)) => self.check_special(connection, special, now_ns),
            _ => self.close(connection, CloseReason::OutOfPlace, now_ns),
        }
    }

    /// Takes a frame of this end's switch, to be sent.
    ///
    /// # Errors
    /// It comes back with the reason. With [`UnsentReason::NoRoom`] the caller keeps it until [`Event::Room`].
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) -> Result<(), Box<Unsent>> {
        let class_f = frame.sof == Sof::Fabric;
        let key = FlowKey::of(&frame.header);
        let basic = frame.header.r_ctl & 0xf0 == routing::ABORT_SEQUENCE & 0xf0;
        let place = if class_f { Place::Free } else { self.flows.place(key, now_ns) };
        let (connection, begins) = match place {
            Place::On(connection) => (Some(connection), false),
            // An abort, and its answer, end the exchange, so that nothing follows which could be overtaken.
            Place::Broken if basic => (self.choose(key, &frame), false),
            Place::Broken => return Err(Box::new(Unsent { frame, reason: UnsentReason::Broken })),
            Place::Free => (self.choose(key, &frame), !class_f),
        };
        let Some(connection) = connection else {
            return Err(Box::new(Unsent { frame, reason: UnsentReason::NoConnection }));
        };
        let room = self.has_room(connection, encapsulated_bytes(&frame));
        if !room || begins && !self.flows.begin(key, connection, now_ns) {
            self.owes_room = true;
            self.counters.no_room += 1;
            return Err(Box::new(Unsent { frame, reason: UnsentReason::NoRoom }));
        }
        let deadline_ns = now_ns.saturating_add(self.transit_ns(frame.sof));
        let flow = (!class_f && place != Place::Broken).then_some(key);
        let message = Message::Frame(frame, self.stamp(now_ns));
        if let Some(state) = self.connections.get_mut(&connection) {
            state.push(message, flow, deadline_ns);
        }
        if let Some(flow) = flow {
            self.flows.enqueued(flow);
        }
        Ok(())
    }

    /// The next message that goes through a connection.
    pub fn poll_message(&mut self, connection: ConnectionKey, now_ns: u64) -> Option<Message> {
        loop {
            let state = self.connections.get_mut(&connection)?;
            let Some(waiting) = state.pop() else {
                if matches!(state.state, State::Closing) {
                    self.connections.remove(&connection);
                }
                return None;
            };
            let in_time = waiting.deadline_ns >= now_ns;
            if let Some(flow) = waiting.flow {
                self.flows.dequeued(flow, in_time.then_some(now_ns));
            }
            if state.waiting_bytes * 2 <= self.settings.held_bytes_max && self.owes_room {
                self.owes_room = false;
                self.events.push_back(Event::Room);
            }
            if !in_time {
                self.counters.stale_here += 1;
                continue;
            }
            state.sent_ns = now_ns;
            match &waiting.message {
                Message::Frame(frame, _) => match keep_alive::part_of(frame) {
                    Some(KeepAlive::Request) => self.counters.keep_alives += 1,
                    Some(KeepAlive::Answer) => state.answer_waits = false,
                    None => {
                        self.counters.sent += 1;
                        self.end_as_responder(frame);
                    }
                },
                Message::Special(..) => {}
            }
            return Some(waiting.message);
        }
    }

    /// Appends messages that go through a connection until `into` has at least `enough` bytes, or no message waits.
    pub fn poll_bytes(&mut self, connection: ConnectionKey, into: &mut BytesMut, enough: usize, now_ns: u64) {
        while into.len() < enough {
            let Some(message) = self.poll_message(connection, now_ns) else { return };
            message.encode(into);
        }
    }

    /// The next frame for this end's switch.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        let frame = self.received.pop_front()?;
        self.received_bytes -= encapsulated_bytes(&frame);
        Some(frame)
    }

    /// The next change of connections.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Time at which [`Tunnel::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.connections.values().flat_map(|state| [state.keep_alive_due_ns(), state.given_up_ns()]).flatten().min()
    }

    /// Sends keep-alives that are due, and closes connections on which nothing came for too long.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        let due = |at: Option<u64>| at.is_some_and(|at| at <= now_ns);
        let keys: Vec<ConnectionKey> = self.connections.keys().copied().collect();
        for key in keys {
            let time = self.stamp(now_ns);
            let Some(state) = self.connections.get_mut(&key) else { continue };
            if due(state.given_up_ns()) {
                let reason = if state.is_open() { CloseReason::Silent } else { CloseReason::NoSpecialFrame };
                self.close(key, reason, now_ns);
            } else if due(state.keep_alive_due_ns()) {
                state.push_own(keep_alive::frame(KeepAlive::Request), time);
            }
        }
    }

    /// False while received frames wait: the caller leaves bytes to TCP, whose window closes.
    pub fn wants_input(&self) -> bool {
        self.received_bytes < self.settings.received_bytes_max
    }

    /// Connections through which frames go.
    pub fn open_connections(&self) -> impl Iterator<Item = ConnectionKey> + '_ {
        self.connections.iter().filter(|(_, state)| state.is_open()).map(|(key, _)| *key)
    }

    /// Bytes that wait for a connection.
    pub fn waiting_bytes(&self, connection: ConnectionKey) -> usize {
        self.connections.get(&connection).map_or(0, |state| state.waiting_bytes)
    }

    /// Frames by what became of them.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    #[cfg(test)]
    pub(super) fn flows_kept(&self) -> (usize, usize) {
        self.flows.len()
    }

    /// Makes room for a connection's state; false when there are too many.
    fn admit(&mut self, connection: ConnectionKey, now_ns: u64) -> bool {
        self.handle_closed(connection, now_ns);
        if self.connections.len() < self.settings.connections_max {
            return true;
        }
        self.events.push_back(Event::Close { connection, reason: CloseReason::TooMany });
        false
    }

    /// Answers the special frame with which a peer opens a connection.
    fn check_special(&mut self, connection: ConnectionKey, special: SpecialFrame, now_ns: u64) {
        let entity = self.connections.values().filter(|state| state.is_open()).find_map(|state| state.entity);
        let reply = reply_to(&special, &self.settings, self.last_nonce, entity);
        self.last_nonce = Some(special.nonce);
        let time = self.stamp(now_ns);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        match reply {
            Reply::Echo => {
                state.push(Message::Special(special, time), None, u64::MAX);
                self.open(connection, &special, Some(special.entity), now_ns);
            }
            Reply::Correct(corrected, reason) => {
                state.push(Message::Special(corrected, time), None, u64::MAX);
                state.state = State::Closing;
                self.events.push_back(Event::Close { connection, reason });
            }
            Reply::Refuse(reason) => self.close(connection, reason, now_ns),
        }
    }

    fn open(&mut self, connection: ConnectionKey, special: &SpecialFrame, entity: Option<u64>, now_ns: u64) {
        let first = self.open_connections().next().is_none();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.open(special, now_ns);
        state.entity = entity;
        self.events.push_back(Event::Opened { connection, entity });
        if first {
            self.events.push_back(Event::Up);
        }
    }

    /// Takes a frame from an open connection.
    fn receive(&mut self, connection: ConnectionKey, frame: Frame, time: TimeStamp, now_ns: u64) {
        if self.is_stale(&frame, time, now_ns) {
            self.counters.stale += 1;
            return;
        }
        match keep_alive::part_of(&frame) {
            Some(KeepAlive::Request) => {
                let time = self.stamp(now_ns);
                if let Some(state) = self.connections.get_mut(&connection).filter(|state| !state.answer_waits) {
                    state.answer_waits = true;
                    state.push_own(keep_alive::frame(KeepAlive::Answer), time);
                }
            }
            Some(KeepAlive::Answer) => {}
            None => {
                self.counters.received += 1;
                if ends_exchange(&frame) {
                    self.flows.end(FlowKey::of(&frame.header).reversed());
                }
                self.received_bytes += encapsulated_bytes(&frame);
                self.received.push_back(frame);
            }
        }
    }

    /// Notes a frame that came damaged.
    fn handle_damage(&mut self, connection: ConnectionKey, damage: Discarded, now_ns: u64) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.received_ns = now_ns;
        if !state.is_open() {
            self.close(connection, CloseReason::OutOfPlace, now_ns);
            return;
        }
        self.counters.damaged += 1;
        self.counters.last_damage = Some(damage);
    }

    fn is_stale(&self, frame: &Frame, time: TimeStamp, now_ns: u64) -> bool {
        let own = self.stamp(now_ns);
        let tested = own != TimeStamp::NONE && time != TimeStamp::NONE;
        tested && own.difference_ns(time) > self.transit_ns(frame.sof)
    }

    fn close(&mut self, connection: ConnectionKey, reason: CloseReason, now_ns: u64) {
        let Some(lost) = self.connections.remove(&connection) else { return };
        self.events.push_back(Event::Close { connection, reason });
        self.give_up(connection, lost, now_ns);
    }

    /// Moves what waited for a lost connection to others, where nothing of the same exchange is on its way.
    fn give_up(&mut self, connection: ConnectionKey, mut lost: Connection, now_ns: u64) {
        if !lost.is_open() {
            return;
        }
        self.flows.lose(connection, now_ns);
        let down = self.open_connections().next().is_none();
        while let Some(waiting) = lost.pop() {
            let (Some(flow), Message::Frame(frame, _)) = (waiting.flow, &waiting.message) else { continue };
            let other = self.moved(flow, frame, waiting.bytes, now_ns);
            match other.and_then(|other| self.connections.get_mut(&other)) {
                Some(other) => {
                    other.push(waiting.message, waiting.flow, waiting.deadline_ns);
                    self.counters.moved += 1;
                    self.flows.enqueued(flow);
                }
                None => {
                    self.counters.lost += 1;
                    self.flows.break_off(flow, now_ns);
                }
            }
        }
        if down {
            self.events.push_back(Event::Down);
        }
    }

    /// The connection to which a waiting frame moves; None when it cannot.
    fn moved(&mut self, flow: FlowKey, frame: &Frame, bytes: usize, now_ns: u64) -> Option<ConnectionKey> {
        let connection = match self.flows.place(flow, now_ns) {
            Place::On(connection) => connection,
            Place::Broken => return None,
            Place::Free => {
                let connection = self.choose(flow, frame)?;
                self.flows.begin(flow, connection, now_ns).then_some(connection)?
            }
        };
        self.has_room(connection, bytes).then_some(connection)
    }

    /// The connection of a new exchange, or of class F: one that is for the frame's class, where there is one.
    fn choose(&self, key: FlowKey, frame: &Frame) -> Option<ConnectionKey> {
        let class = usage_of(frame.sof);
        let open = || self.connections.iter().filter(|(_, state)| state.is_open());
        let fits = open().any(|(_, state)| state.usage_flags & class != 0);
        let candidates = open().filter(|(_, state)| {
            if fits {
                state.usage_flags & class != 0
            } else {
                state.usage_flags == 0 || open().all(|(_, other)| other.usage_flags != 0)
            }
        });
        let spread = self.settings.spread;
        candidates
            .min_by_key(|(number, state)| match (frame.sof, spread) {
                // All of class F goes one way: switches expect an answer before the next request.
                (Sof::Fabric, _) => (0, 0),
                (_, Spread::Exchange) => (state.waiting_bytes, key.hash(spread, **number)),
                (_, Spread::Pair) => (0, key.hash(spread, **number)),
            })
            .map(|(number, _)| *number)
    }

    /// True when so many bytes more may wait for a connection. One frame always may.
    fn has_room(&self, connection: ConnectionKey, bytes: usize) -> bool {
        let room = |waiting: usize| waiting == 0 || waiting + bytes <= self.settings.held_bytes_max;
        self.connections.get(&connection).is_some_and(|state| room(state.waiting_bytes))
    }

    /// Forgets an exchange that this end's port ended as its responder: its originator begins the next one of that
    /// number only after this frame came.
    fn end_as_responder(&mut self, frame: &Frame) {
        if ends_exchange(frame) && frame.header.has(frame_control::EXCHANGE_RESPONDER) {
            self.flows.end(FlowKey::of(&frame.header));
        }
    }

    fn transit_ns(&self, sof: Sof) -> u64 {
        let ms = if sof == Sof::Fabric { self.settings.transit_class_f_ms } else { self.settings.transit_ms };
        u64::from(ms) * NS_PER_MS
    }

    fn stamp(&self, now_ns: u64) -> TimeStamp {
        self.clock_ns.map_or(TimeStamp::NONE, |base_ns| TimeStamp::from_ns(base_ns.saturating_add(now_ns)))
    }
}

fn ends_exchange(frame: &Frame) -> bool {
    frame.header.has(frame_control::LAST_SEQUENCE) && frame.header.has(frame_control::END_SEQUENCE)
}

/// The usage flag of a frame's class.
fn usage_of(sof: Sof) -> u8 {
    match sof.class() {
        ClassOfService::F => SpecialFrame::CLASS_F,
        ClassOfService::Class2 => SpecialFrame::CLASS_2,
        ClassOfService::Class3 => SpecialFrame::CLASS_3,
        ClassOfService::Class4 => SpecialFrame::CLASS_4,
    }
}
