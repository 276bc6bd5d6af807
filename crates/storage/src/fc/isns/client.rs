//! The client: what it registers, asks and answers.

use super::ports::{parse_portals, parse_ports, LocalPort, RemotePort, WANTED_OF_PORTALS, WANTED_OF_PORTS};
use super::settings::{Settings, Source};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::fc::Wwn;
use wire::isns::{
    flags, port_role, scn_bitmap, Assembler, Attribute, Function, IpAddress, Message, Status, Tag, PROTOCOL_IFCP,
};
use wire::WireError;

const NS_PER_MS: u64 = 1_000_000;
/// Answers that wait for one connection from the server; beyond, it is closed.
const ANSWERS_MAX: usize = 64;
/// Ports that are registered together with the gateway. All at once: otherwise others see them go and come when it
/// registers anew. With the longest symbolic names that is less than a PDU.
const PORTS_WITH_GATEWAY: usize = 128;

/// A TCP connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Connection {
    /// To the server.
    Server,
    /// From the server: the caller's number for it.
    Inbound(u32),
}

/// A change that the caller acts on or reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The caller connects to the server, and says [`Client::handle_connected`] or, when it cannot,
    /// [`Client::handle_closed`].
    Connect,
    /// The caller closes a connection; no [`Client::handle_closed`] has to follow.
    Close(Connection, CloseReason),
    /// The server has this gateway and all of its ports.
    Registered,
    /// The server refused a request.
    Refused(Function, Status),
    /// A remote port is there from now on, or it changed.
    Appeared(RemotePort),
    /// A remote port is gone.
    Disappeared(Wwn),
    /// There are more remote ports than the settings allow; those with the largest names are left out.
    TooManyPorts,
}

/// Reason to close a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CloseReason {
    /// The bytes are none of iSNS.
    #[error("the bytes are no iSNS: {0}")]
    Malformed(WireError),
    /// No response came in time.
    #[error("no response came in time")]
    NoResponse,
    /// A response to no request came.
    #[error("a response to no request came, or the server does not know this gateway")]
    Unexpected,
    /// Too many connections, or too many messages that the peer takes no answers of.
    #[error("too many connections, or too many messages whose sender takes no answers")]
    TooMany,
}

/// A request that has to be made, in the order in which they are made. The source of the last three is a port, or, for
/// None, the control node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Job {
    /// Takes the gateway away with all of its ports.
    DeregisterGateway,
    /// Registers the gateway with its first ports.
    RegisterGateway,
    /// Takes a port away.
    Deregister(Wwn),
    /// Registers a further port.
    Register(Wwn),
    /// Asks for notifications.
    RegisterChanges(Option<Wwn>),
    /// Asks for the ports that the source may see.
    Query(Option<Wwn>),
    /// Asks for the portals of gateways.
    QueryPortals(Option<Wwn>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    /// There is none; time to make one.
    Down {
        retry_ns: u64,
    },
    /// The caller makes it.
    Connecting,
    Up,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    job: Job,
    transaction: u16,
    deadline_ns: u64,
}

/// Client of one server.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    link: Link,
    local: BTreeMap<Wwn, LocalPort>,
    remote: BTreeMap<Wwn, RemotePort>,
    /// Ports that the queries of this round found.
    found: BTreeMap<Wwn, RemotePort>,
    /// First portal of each gateway, by its name, of the last round.
    found_portals: BTreeMap<String, (IpAddress, u16)>,
    /// A query of this round failed: absence proves nothing.
    failed: bool,
    /// Ports of this round were left out: absence of those with larger names than the last proves nothing.
    truncated: bool,
    jobs: BTreeSet<Job>,
    request: Option<Request>,
    next_transaction: u16,
    /// Time of the next round of queries.
    query_ns: Option<u64>,
    /// The server has not confirmed all that was registered.
    owes_registered: bool,
    /// It confirmed that once on this connection.
    is_registered: bool,
    /// Time before the next lost connection is made again, ms.
    retry_ms: u64,
    /// Time of the last complete answer about remote ports.
    listed_ns: Option<u64>,
    /// The gateway is taken away, and registers nothing any more.
    is_stopped: bool,
    streams: BTreeMap<Connection, Assembler>,
    /// Connections through which a whole message has come.
    shown: BTreeSet<Connection>,
    transmit: VecDeque<(Connection, Bytes)>,
    events: VecDeque<Event>,
}

impl Client {
    /// A client without ports. A control node connects at once; ports that speak for themselves
    /// ([`Source::Ports`]) connect when there is the first.
    pub fn new(settings: Settings) -> Client {
        Client {
            retry_ms: settings.retry_ms,
            settings,
            link: Link::Down { retry_ns: 0 },
            local: BTreeMap::new(),
            remote: BTreeMap::new(),
            found: BTreeMap::new(),
            found_portals: BTreeMap::new(),
            failed: false,
            truncated: false,
            jobs: BTreeSet::new(),
            request: None,
            next_transaction: 0,
            query_ns: None,
            owes_registered: false,
            is_registered: false,
            listed_ns: None,
            is_stopped: false,
            streams: BTreeMap::new(),
            shown: BTreeSet::new(),
            transmit: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Registers a port, or what changed of it; false when there are too many.
    pub fn register(&mut self, port: LocalPort, now_ns: u64) -> bool {
        let known = self.local.contains_key(&port.name);
        if !known && self.local.len() >= self.settings.local_ports_max {
            return false;
        }
        let name = port.name;
        self.jobs.remove(&Job::Deregister(name));
        let could_speak = self.can_speak();
        self.local.insert(name, port);
        if self.link == Link::Up && self.can_speak() {
            if !could_speak {
                self.begin(now_ns);
            } else {
                self.owes_registered = true;
                self.jobs.insert(Job::Register(name));
                if self.settings.source == Source::Ports {
                    self.jobs.insert(Job::RegisterChanges(Some(name)));
                }
                self.query_ns = Some(now_ns);
            }
        }
        self.advance(now_ns);
        true
    }

    /// Takes a port away.
    pub fn deregister(&mut self, name: Wwn, now_ns: u64) {
        if self.local.remove(&name).is_none() {
            return;
        }
        self.jobs.remove(&Job::Register(name));
        for of_port in [Job::RegisterChanges, Job::Query, Job::QueryPortals] {
            self.jobs.remove(&of_port(Some(name)));
        }
        if self.link == Link::Up && !self.is_stopped {
            self.jobs.insert(Job::Deregister(name));
        }
        self.advance(now_ns);
    }

    /// Asks for remote ports soon: something points to a change.
    pub fn ask(&mut self, now_ns: u64) {
        let soon_ns = now_ns.saturating_add(self.settings.gather_ms * NS_PER_MS);
        self.query_ns = self.query_ns.map(|query_ns| query_ns.min(soon_ns));
    }

    /// Takes the gateway away from the server, with all of its ports. [`Client::is_stopped`] tells when that is done.
    pub fn stop(&mut self, now_ns: u64) {
        self.is_stopped = true;
        self.owes_registered = false;
        self.jobs.clear();
        if self.link == Link::Up {
            self.jobs.insert(Job::DeregisterGateway);
        }
        self.advance(now_ns);
    }

    /// True when a client that was stopped has nothing to ask any more.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped && (self.link != Link::Up || self.jobs.is_empty() && self.request.is_none())
    }

    /// Begins to speak through a connection that the caller made to the server.
    pub fn handle_connected(&mut self, now_ns: u64) {
        self.link = Link::Up;
        self.streams.insert(Connection::Server, Assembler::default());
        self.begin(now_ns);
        self.advance(now_ns);
    }

    /// Takes a connection that came to the port for notifications.
    pub fn handle_accepted(&mut self, number: u32) {
        let inbound = self.streams.keys().filter(|connection| **connection != Connection::Server).count();
        let connection = Connection::Inbound(number);
        if inbound >= self.settings.inbound_max {
            self.events.push_back(Event::Close(connection, CloseReason::TooMany));
            return;
        }
        self.streams.insert(connection, Assembler::default());
    }

    /// True for a connection through which whole messages have come, and nothing of a further one.
    pub fn is_idle(&self, connection: Connection) -> bool {
        self.shown.contains(&connection) && self.streams.get(&connection).is_some_and(|stream| !stream.is_partial())
    }

    /// Notes that a connection is gone, or could not be made. Remote ports stay until a server says that they are gone.
    pub fn handle_closed(&mut self, connection: Connection, now_ns: u64) {
        self.streams.remove(&connection);
        self.shown.remove(&connection);
        self.transmit.retain(|(other, _)| *other != connection);
        if connection == Connection::Server {
            self.link = Link::Down { retry_ns: now_ns.saturating_add(self.retry_ms * NS_PER_MS) };
            self.retry_ms = self.retry_ms.saturating_mul(2).min(self.settings.retry_max_ms).max(self.settings.retry_ms);
            self.request = None;
            self.is_registered = false;
            self.jobs.clear();
            self.found.clear();
            self.query_ns = None;
        }
    }

    /// Takes bytes that came through a connection.
    pub fn handle_bytes(&mut self, connection: Connection, bytes: &[u8], now_ns: u64) {
        let Some(stream) = self.streams.get_mut(&connection) else { return };
        stream.push(bytes);
        while let Some(stream) = self.streams.get_mut(&connection) {
            match stream.next_message() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    self.shown.insert(connection);
                    self.handle_message(connection, &message, now_ns);
                }
                Err(error) => self.close(connection, CloseReason::Malformed(error), now_ns),
            }
        }
        self.advance(now_ns);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        match self.link {
            Link::Down { retry_ns } if retry_ns <= now_ns && self.can_speak() => {
                self.link = Link::Connecting;
                self.events.push_back(Event::Connect);
            }
            _ => {}
        }
        if self.request.is_some_and(|request| request.deadline_ns <= now_ns) {
            self.close(Connection::Server, CloseReason::NoResponse, now_ns);
        }
        self.advance(now_ns);
    }

    /// Time at which [`Client::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.link {
            Link::Down { retry_ns } => self.can_speak().then_some(retry_ns),
            Link::Connecting => None,
            Link::Up => self.request.map(|request| request.deadline_ns).or(self.query_ns.filter(|_| self.can_speak())),
        }
    }

    /// The next bytes that go through a connection.
    pub fn poll_transmit(&mut self) -> Option<(Connection, Bytes)> {
        self.transmit.pop_front()
    }

    /// The next change.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Ports behind other gateways, by name.
    pub fn remote_ports(&self) -> impl Iterator<Item = &RemotePort> {
        self.remote.values()
    }

    /// Time of the last complete answer about remote ports, ns; None before the first.
    pub fn listed_ns(&self) -> Option<u64> {
        self.listed_ns
    }

    /// True while there is a connection to the server on which it took the gateway and its ports.
    pub fn is_registered(&self) -> bool {
        self.is_registered
    }

    #[cfg(test)]
    pub(super) fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// True while there is a source of requests.
    fn can_speak(&self) -> bool {
        let is_node = matches!(self.settings.source, Source::ControlNode(_));
        !self.is_stopped && (is_node || !self.local.is_empty())
    }

    /// Registers everything anew.
    fn begin(&mut self, now_ns: u64) {
        self.jobs.clear();
        self.found.clear();
        self.query_ns = None;
        if !self.can_speak() {
            return;
        }
        self.owes_registered = true;
        self.jobs.insert(Job::RegisterGateway);
        for name in self.local.keys().skip(PORTS_WITH_GATEWAY) {
            self.jobs.insert(Job::Register(*name));
        }
        for source in self.sources() {
            self.jobs.insert(Job::RegisterChanges(source));
        }
        self.begin_round(now_ns);
    }

    /// Those who ask: all ports, of which each may see others by the server's discovery domains, or the control node.
    fn sources(&self) -> Vec<Option<Wwn>> {
        match self.settings.source {
            Source::Ports => self.local.keys().copied().map(Some).collect(),
            Source::ControlNode(_) => vec![None],
        }
    }

    /// Begins a round of queries.
    fn begin_round(&mut self, now_ns: u64) {
        self.found.clear();
        self.found_portals.clear();
        (self.failed, self.truncated) = (false, false);
        let sources = self.sources();
        self.jobs.extend(sources.first().map(|source| Job::QueryPortals(*source)));
        self.jobs.extend(sources.into_iter().map(Job::Query));
        self.query_ns = Some(now_ns.saturating_add(self.settings.refresh_ms * NS_PER_MS));
    }

    /// True while a request of the round of queries is to be made.
    fn round_is_open(&self) -> bool {
        self.jobs.last().is_some_and(|job| *job >= Job::Query(None))
    }

    /// Makes the next request, when none is under way.
    fn advance(&mut self, now_ns: u64) {
        if self.link != Link::Up || self.request.is_some() {
            return;
        }
        let round_due = self.query_ns.is_some_and(|query_ns| query_ns <= now_ns);
        if round_due && !self.round_is_open() && self.can_speak() {
            self.begin_round(now_ns);
        }
        if self.owes_registered && self.jobs.first().is_none_or(|job| *job >= Job::RegisterChanges(None)) {
            self.owes_registered = false;
            self.is_registered = true;
            self.events.push_back(Event::Registered);
        }
        while let Some(job) = self.jobs.pop_first() {
            let Some(message) = self.message_of(job) else { continue };
            let deadline_ns = now_ns.saturating_add(self.settings.response_ms * NS_PER_MS);
            self.request = Some(Request { job, transaction: message.transaction, deadline_ns });
            self.send(Connection::Server, &message, now_ns);
            return;
        }
    }

    /// The request of a job; None when there is nothing to ask any more.
    fn message_of(&mut self, job: Job) -> Option<Message> {
        let source_of = |port: Option<Wwn>| match (&self.settings.source, port) {
            (_, Some(name)) => Some(Attribute::wwn(Tag::PORT_NAME, name)),
            (Source::ControlNode(name), None) => Some(Attribute::text(Tag::ISCSI_NAME, name)),
            (Source::Ports, None) => self.local.keys().next().map(|name| Attribute::wwn(Tag::PORT_NAME, *name)),
        };
        let with_node = self.settings.source == Source::Ports;
        let last = |job| match job {
            // The last port of all speaks for itself as it goes.
            Job::Deregister(name) => Some(Attribute::wwn(Tag::PORT_NAME, name)),
            _ => None,
        };
        let source = source_of(None).or_else(|| last(job))?;
        let entity = Attribute::text(Tag::ENTITY, &self.settings.entity);
        self.next_transaction = self.next_transaction.wrapping_add(1);
        let transaction = self.next_transaction;
        let request =
            |function, source, keys, operating| Message::request(function, transaction, source, keys, operating);
        Some(match job {
            Job::DeregisterGateway => request(Function::DEREGISTER, source, vec![], vec![entity]),
            Job::RegisterGateway => {
                let mut operating = self.gateway();
                for port in self.local.values().take(PORTS_WITH_GATEWAY) {
                    operating.extend(port.attributes(with_node));
                }
                let mut message = request(Function::REGISTER, source, vec![entity], operating);
                message.flags |= flags::REPLACE;
                message
            }
            Job::Register(name) => {
                let mut operating = vec![entity.clone()];
                operating.extend(self.local.get(&name)?.attributes(with_node));
                request(Function::REGISTER, source, vec![entity], operating)
            }
            Job::Deregister(name) => {
                let port = Attribute::wwn(Tag::PORT_NAME, name);
                request(Function::DEREGISTER, source, vec![], vec![port])
            }
            Job::RegisterChanges(_) if self.settings.change_port == 0 => return None,
            Job::RegisterChanges(port) => {
                let source = source_of(port)?;
                let changes = scn_bitmap::ADDED | scn_bitmap::REMOVED | scn_bitmap::UPDATED;
                let wanted = match port {
                    Some(_) => Attribute::word(Tag::CHANGES, changes),
                    None => Attribute::word(Tag::ISCSI_CHANGES, changes | scn_bitmap::MANAGEMENT),
                };
                request(Function::REGISTER_CHANGES, source.clone(), vec![source], vec![wanted])
            }
            Job::Query(port) => {
                let wanted = WANTED_OF_PORTS.map(Attribute::wanted).to_vec();
                request(Function::QUERY, source_of(port)?, vec![Attribute::wanted(Tag::PORT_NAME)], wanted)
            }
            Job::QueryPortals(port) => {
                let keys = [Tag::PORTAL_ADDRESS, Tag::PORTAL_PORT].map(Attribute::wanted).to_vec();
                let wanted = WANTED_OF_PORTALS.map(Attribute::wanted).to_vec();
                request(Function::QUERY, source_of(port)?, keys, wanted)
            }
        })
    }

    /// Attributes of the gateway and of its portal.
    fn gateway(&self) -> Vec<Attribute> {
        let settings = &self.settings;
        let mut attributes = vec![
            Attribute::text(Tag::ENTITY, &settings.entity),
            Attribute::word(Tag::ENTITY_PROTOCOL, PROTOCOL_IFCP),
            Attribute::word(Tag::REGISTRATION_PERIOD, settings.registration_s),
            Attribute::address(Tag::PORTAL_ADDRESS, settings.address),
            Attribute::word(Tag::PORTAL_PORT, u32::from(settings.port)),
        ];
        if settings.change_port != 0 {
            let port = u32::from(settings.change_port);
            if settings.status_inquiry_s != 0 {
                attributes.push(Attribute::word(Tag::STATUS_INQUIRY_INTERVAL, settings.status_inquiry_s));
                attributes.push(Attribute::word(Tag::STATUS_INQUIRY_PORT, port));
            }
            attributes.push(Attribute::word(Tag::CHANGE_PORT, port));
        }
        if let Source::ControlNode(name) = &settings.source {
            attributes.push(Attribute::text(Tag::ISCSI_NAME, name));
            attributes.push(Attribute::word(Tag::ISCSI_NODE_TYPE, port_role::CONTROL));
        }
        attributes
    }

    fn handle_message(&mut self, connection: Connection, message: &Message, now_ns: u64) {
        match message.function {
            Function::HEARTBEAT => {}
            Function::CHANGE => {
                let destination = message.attributes.first().cloned().into_iter().collect();
                self.send(connection, &message.response(flags::CLIENT, Status::SUCCESS, destination), now_ns);
                self.ask(now_ns);
            }
            Function::STATUS_INQUIRY => {
                let ours = |attribute: &Attribute| {
                    attribute.tag == Tag::ENTITY && attribute.as_text() == Some(&self.settings.entity)
                };
                let known = message.attributes.iter().any(ours);
                let status = if known { Status::SUCCESS } else { Status::NO_SUCH_ENTRY };
                self.send(connection, &message.response(flags::CLIENT, status, message.attributes.clone()), now_ns);
            }
            function if function.is_response() && connection == Connection::Server => {
                self.handle_response(message, now_ns);
            }
            function if function.is_response() => self.close(connection, CloseReason::Unexpected, now_ns),
            _ => {
                let response = message.response(flags::CLIENT, Status::NOT_SUPPORTED, Vec::new());
                self.send(connection, &response, now_ns);
            }
        }
    }

    fn handle_response(&mut self, message: &Message, now_ns: u64) {
        let Some(request) = self.request.filter(|request| request.transaction == message.transaction) else {
            self.close(Connection::Server, CloseReason::Unexpected, now_ns);
            return;
        };
        self.request = None;
        let status = message.status.unwrap_or(Status::FORMAT_ERROR);
        let done = status == Status::SUCCESS;
        if !done {
            self.events.push_back(Event::Refused(message.function, status));
        }
        match request.job {
            Job::Query(_) | Job::QueryPortals(_) => {
                self.failed |= !done;
                if done && matches!(request.job, Job::Query(_)) {
                    self.find(message);
                } else if done {
                    self.found_portals = parse_portals(message.operating());
                }
                if !self.round_is_open() && !self.is_stopped {
                    self.end_round(now_ns);
                }
            }
            Job::RegisterGateway | Job::Register(_) if !done => self.owes_registered = false,
            // open-isns takes no single port away: the gateway is registered anew with those that it has.
            Job::Deregister(_) if !done && !self.is_stopped => self.begin(now_ns),
            _ => {}
        }
        // A server that began anew, or forgot this gateway, does not know the source.
        let forgotten = status == Status::SOURCE_UNKNOWN || status == Status::SOURCE_UNAUTHORIZED;
        let refused = !done && matches!(request.job, Job::RegisterGateway);
        if refused || forgotten {
            // The connection is made again after a while, and all is registered anew.
            self.jobs.clear();
            self.close(Connection::Server, CloseReason::Unexpected, now_ns);
        }
    }

    /// Notes the ports of a response.
    fn find(&mut self, message: &Message) {
        for port in parse_ports(message.operating()) {
            if port.entity == self.settings.entity || self.local.contains_key(&port.name) {
                continue;
            }
            self.found.insert(port.name, port);
            if self.found.len() > self.settings.remote_ports_max {
                self.found.pop_last();
                if !self.truncated {
                    self.events.push_back(Event::TooManyPorts);
                }
                self.truncated = true;
            }
        }
    }

    /// Compares what was found with what was known.
    fn end_round(&mut self, now_ns: u64) {
        if !self.failed {
            self.listed_ns = Some(now_ns);
            self.retry_ms = self.settings.retry_ms;
        }
        let mut found = std::mem::take(&mut self.found);
        for port in found.values_mut() {
            port.portal = port.portal.or_else(|| self.found_portals.get(&port.entity).copied());
        }
        let last = found.last_key_value().map(|(name, _)| *name).filter(|_| self.truncated);
        let gone = |name: &Wwn| !self.failed && !found.contains_key(name) && last.is_none_or(|last| *name <= last);
        let gone: Vec<Wwn> = self.remote.keys().filter(|name| gone(name)).copied().collect();
        for name in gone {
            self.remote.remove(&name);
            self.events.push_back(Event::Disappeared(name));
        }
        for (name, port) in found {
            let known = self.remote.get(&name);
            if known != Some(&port) && (known.is_some() || self.remote.len() < self.settings.remote_ports_max) {
                self.remote.insert(name, port.clone());
                self.events.push_back(Event::Appeared(port));
            }
        }
    }

    fn send(&mut self, connection: Connection, message: &Message, now_ns: u64) {
        let waiting = self.transmit.iter().filter(|(other, _)| *other == connection).count();
        if waiting >= ANSWERS_MAX {
            self.close(connection, CloseReason::TooMany, now_ns);
            return;
        }
        let mut bytes = BytesMut::new();
        message.encode(&mut bytes);
        self.transmit.push_back((connection, bytes.freeze()));
    }

    fn close(&mut self, connection: Connection, reason: CloseReason, now_ns: u64) {
        self.events.push_back(Event::Close(connection, reason));
        self.handle_closed(connection, now_ns);
    }
}
