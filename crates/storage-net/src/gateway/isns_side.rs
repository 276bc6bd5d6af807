//! The way to a name server (iSNS): its connection, and those that it makes to send notifications.

use super::acceptor::Acceptor;
use super::config::IsnsConfig;
use super::learnt::isns_address;
use super::status::IsnsStatus;
use super::tcp_link::TcpLink;
use crate::clock;
use crate::log::Log;
use admission::{Limits, Pending};
use rustix::event::PollFlags;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use storage::fc::fabric::{Entry, Fabric, Location};
use storage::fc::isns::{Client, Connection, Event, LocalPort, RemotePort, Settings};
use units::{Span, Time};
use wire::fc::{FcId, FrameType, Wwn};
use wire::isns::{port_role, Function, Status};

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Longest time for a connection to the server to be made, ns.
const CONNECT_NS: u64 = 10 * NS_PER_S;
/// Connections for notifications, and the time of one that shows no whole message: any program at the server's address
/// can make them, so that a further one displaces another.
const NOTIFYING: Limits = Limits { total: 16, per_address: 16, time: Span::from_secs(10) };
/// Reads of one connection in a round, so that frames do not wait long.
const READS_MAX: usize = 4;

/// Part of a gateway that speaks to a name server.
pub(super) struct IsnsSide {
    client: Client,
    server: SocketAddr,
    entity: String,
    /// Name of the F_Port that the gateway's ports are attached to.
    fabric_port: Wwn,
    /// Time without an answer after which learnt ports count no more, ns.
    registration_ns: u64,
    /// Takes the server's connections.
    listener: Acceptor,
    links: BTreeMap<Connection, TcpLink>,
    /// Time at which an attempt to connect has failed, ns.
    connect_end_ns: Option<u64>,
    next_inbound: u32,
    /// Connections for notifications, by number.
    inbound: Pending<u32>,
    /// Earliest time of the next query that a gateway that is not known causes, ns.
    next_ask_ns: u64,
    /// A descriptor has something.
    is_ready: bool,
    local: BTreeMap<Wwn, LocalPort>,
    /// The list of remote ports, or its worth, changed since it was last taken.
    has_news: bool,
    was_stale: bool,
    /// The state of the server in the last line of the log on it: true while it answers.
    reported: Option<bool>,
    /// Time of the last answer that was noted.
    listed_ns: Option<u64>,
    failures: u64,
    log: Log,
}

impl IsnsSide {
    /// Listens for the server's notifications, and begins to reach the server. `portal`: the address at which other
    /// gateways connect.
    ///
    /// # Errors
    /// The port for notifications cannot be had.
    pub fn open(config: IsnsConfig, portal: SocketAddr, fabric_port: Wwn) -> io::Result<IsnsSide> {
        let at = SocketAddr::new(portal.ip(), config.scn_port.unwrap_or(0));
        let listener = TcpListener::bind(at)
            .and_then(Acceptor::new)
            .map_err(|error| io::Error::new(error.kind(), format!("{at}, for iSNS' notifications: {error}")))?;
        let registration_ns = config.registration.0;
        let settings = Settings {
            source: config.source,
            change_port: listener.address()?.port(),
            refresh_ms: config.refresh.0 / NS_PER_MS,
            registration_s: u32::try_from(registration_ns / NS_PER_S).unwrap_or(u32::MAX),
            inbound_max: NOTIFYING.total,
            ..Settings::new(&config.entity, isns_address(portal.ip()), portal.port())
        };
        Ok(IsnsSide {
            client: Client::new(settings),
            server: config.server,
            entity: config.entity,
            fabric_port,
            registration_ns,
            listener,
            links: BTreeMap::new(),
            connect_end_ns: None,
            next_inbound: 0,
            inbound: Pending::new(NOTIFYING, u64::from_ne_bytes(clock::entropy())),
            next_ask_ns: 0,
            is_ready: false,
            local: BTreeMap::new(),
            has_news: false,
            was_stale: false,
            reported: None,
            listed_ns: None,
            failures: 0,
            log: Log::default(),
        })
    }

    /// Descriptors with what to wait for.
    pub fn waits_for(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        // One that takes no answers is not read.
        let links = self.links.values().map(|link| link.waits_for(!link.has_output()));
        std::iter::once((self.listener.as_fd(), PollFlags::IN)).chain(links)
    }

    /// Notes that a descriptor of [`IsnsSide::waits_for`] has something.
    pub fn note_ready(&mut self) {
        self.is_ready = true;
    }

    /// Time at which [`IsnsSide::round`] has something to do, ns.
    pub fn poll_timeout(&self) -> u64 {
        let client = self.client.poll_timeout().unwrap_or(u64::MAX);
        let inbound = self.inbound.poll_timeout().map_or(u64::MAX, |time| time.0);
        client.min(self.connect_end_ns.unwrap_or(u64::MAX)).min(inbound)
    }

    /// Registers the attached ports of a fabric, and takes away those that are not attached any more.
    pub fn set_local(&mut self, fabric: &Fabric, now_ns: u64) {
        let local = local_ports(fabric, self.fabric_port);
        let gone: Vec<Wwn> = self.local.keys().filter(|name| !local.contains_key(name)).copied().collect();
        for name in gone {
            self.client.deregister(name, now_ns);
        }
        for (name, port) in &local {
            if self.local.get(name) != Some(port) && !self.client.register(port.clone(), now_ns) {
                self.log.connection(clock::now(), format!("{}: port {name} is one too many for iSNS", self.title()));
            }
        }
        self.local = local;
    }

    /// Does all that can be done now.
    pub fn round(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.is_ready) {
            self.accept(now_ns);
            for connection in self.links.keys().copied().collect::<Vec<_>>() {
                if let Err(error) = self.serve(connection, now_ns) {
                    self.lose(connection, &error.to_string(), now_ns);
                }
            }
        }
        if self.connect_end_ns.is_some_and(|end_ns| end_ns <= now_ns) {
            self.lose(Connection::Server, "no answer to the attempt to connect", now_ns);
        }
        for late in self.inbound.expire(Time(now_ns)) {
            if self.client.is_idle(Connection::Inbound(late)) {
                // A server may keep its connection for the next notification.
                self.inbound.admit(Time(now_ns), late, self.server.ip(), |_| ());
            } else {
                self.lose(Connection::Inbound(late), "", now_ns);
            }
        }
        if self.client.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns) {
            self.client.handle_timeout(now_ns);
        }
        self.pump(now_ns);
        if self.client.listed_ns() != self.listed_ns {
            self.listed_ns = self.client.listed_ns();
            self.note_answer();
        }
        let is_stale = self.is_stale(now_ns);
        if is_stale != self.was_stale {
            self.was_stale = is_stale;
            self.has_news = true;
        }
    }

    /// Asks the server soon, at most once a second: a gateway connected that it has not listed yet.
    pub fn ask(&mut self, now_ns: u64) {
        if now_ns >= self.next_ask_ns {
            self.next_ask_ns = now_ns + NS_PER_S;
            self.client.ask(now_ns);
        }
    }

    /// True once after the list of remote ports, or its worth, changed.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// True while the server's last answer is older than the registration period: what it listed counts no more.
    pub fn is_stale(&self, now_ns: u64) -> bool {
        self.client.listed_ns().is_some_and(|at_ns| now_ns.saturating_sub(at_ns) > self.registration_ns)
    }

    /// Ports that the server listed.
    pub fn remote_ports(&self) -> impl Iterator<Item = &RemotePort> {
        self.client.remote_ports()
    }

    /// Reports ports and gateways that cannot be used.
    pub fn note_refused(&mut self, lines: impl Iterator<Item = String>) {
        for line in lines {
            let line = format!("{}: {line}", self.title());
            self.log.connection(clock::now(), line);
        }
    }

    /// Takes the gateway away from the server.
    pub fn stop(&mut self, now_ns: u64) {
        self.client.stop(now_ns);
        self.pump(now_ns);
    }

    /// True when the server has no more of the gateway, or cannot be asked.
    pub fn is_stopped(&self) -> bool {
        self.client.is_stopped()
    }

    /// The state now.
    pub fn status(&self, now_ns: u64) -> IsnsStatus {
        IsnsStatus {
            server: self.server,
            entity: self.entity.clone(),
            is_registered: self.client.is_registered(),
            local_ports: self.local.len(),
            remote_ports: self.client.remote_ports().count(),
            age_ns: self.client.listed_ns().map(|at_ns| now_ns.saturating_sub(at_ns)),
            failures: self.failures,
        }
    }

    /// Lines for the operator since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        self.log.drain(clock::now(), false)
    }

    fn title(&self) -> String {
        format!("iSNS server {}", self.server)
    }

    /// Takes out what the client has.
    fn pump(&mut self, now_ns: u64) {
        loop {
            while let Some(event) = self.client.poll_event() {
                self.handle_event(event, now_ns);
            }
            while let Some((connection, bytes)) = self.client.poll_transmit() {
                if let Some(link) = self.links.get_mut(&connection) {
                    link.output.extend_from_slice(&bytes);
                }
            }
            let write = |(key, link): (&Connection, &mut TcpLink)| {
                let result = if link.is_up && link.has_output() { link.write() } else { Ok(true) };
                result.err().map(|error| (*key, error))
            };
            let lost: Vec<(Connection, io::Error)> = self.links.iter_mut().filter_map(write).collect();
            if lost.is_empty() {
                return;
            }
            for (connection, error) in lost {
                self.lose(connection, &error.to_string(), now_ns);
            }
        }
    }

    fn handle_event(&mut self, event: Event, now_ns: u64) {
        match event {
            Event::Connect => match TcpLink::open(self.server, None, None, None) {
                Ok(link) => {
                    self.links.insert(Connection::Server, link);
                    self.connect_end_ns = Some(now_ns + CONNECT_NS);
                }
                Err(error) => self.lose(Connection::Server, &error.to_string(), now_ns),
            },
            Event::Close(connection, reason) => {
                self.drop_link(connection);
                if connection == Connection::Server {
                    self.note_trouble(&reason.to_string());
                }
            }
            // A server that takes no single port away gets a new registration.
            Event::Refused(function, _) if function == Function::DEREGISTER.response() => {}
            Event::Refused(function, status) => self.note_trouble(&refusal(function, status)),
            Event::Appeared(_) | Event::Disappeared(_) => self.has_news = true,
            Event::TooManyPorts => {
                let line = format!("{}: it lists more ports than a gateway takes; some are left out", self.title());
                self.log.connection(clock::now(), line);
            }
            Event::Registered => {}
        }
    }

    /// Takes the server's connections.
    fn accept(&mut self, now_ns: u64) {
        loop {
            let (stream, from) = match self.listener.accept() {
                Ok(Some(accepted)) => accepted,
                Ok(None) => break,
                Err(error) => {
                    self.log.connection(clock::now(), format!("a notification's connection was not taken: {error}"));
                    break;
                }
            };
            if from.ip() != self.server.ip() {
                let line = format!("{from}: refused at the port for notifications: it is not the iSNS server");
                self.log.connection(clock::now(), line);
                continue;
            }
            match TcpLink::accepted(stream, None) {
                Ok(link) => {
                    self.next_inbound = self.next_inbound.wrapping_add(1);
                    // Those that show nothing, or a part of a message, are displaced first.
                    let client = &self.client;
                    let is_idle = |number: &u32| client.is_idle(Connection::Inbound(*number));
                    let displaced = self.inbound.admit(Time(now_ns), self.next_inbound, from.ip(), is_idle);
                    if let Some(displaced) = displaced {
                        self.lose(Connection::Inbound(displaced), "", now_ns);
                    }
                    self.links.insert(Connection::Inbound(self.next_inbound), link);
                    self.client.handle_accepted(self.next_inbound);
                }
                Err(error) => self.log.connection(clock::now(), format!("{from}: {error}")),
            }
        }
    }

    /// Goes on with a connection, and reads from it.
    fn serve(&mut self, connection: Connection, now_ns: u64) -> io::Result<()> {
        let Some(link) = self.links.get_mut(&connection) else { return Ok(()) };
        if !link.is_up {
            if link.finish_connect()? {
                self.connect_end_ns = None;
                self.client.handle_connected(now_ns);
            }
            return Ok(());
        }
        for _ in 0..READS_MAX {
            let Some(link) = self.links.get_mut(&connection).filter(|link| !link.has_output()) else { break };
            if !link.read()? {
                break;
            }
            let bytes = link.input.split();
            let was_idle = self.client.is_idle(connection);
            self.client.handle_bytes(connection, &bytes, now_ns);
            if let Connection::Inbound(number) = connection {
                if was_idle && !self.client.is_idle(connection) && self.inbound.remove(&number) {
                    // A further message has begun, and has its own time.
                    self.inbound.admit(Time(now_ns), number, self.server.ip(), |_| ());
                }
            }
            self.pump(now_ns);
        }
        Ok(())
    }

    fn lose(&mut self, connection: Connection, reason: &str, now_ns: u64) {
        self.drop_link(connection);
        self.client.handle_closed(connection, now_ns);
        if connection == Connection::Server {
            self.note_trouble(reason);
        }
    }

    fn drop_link(&mut self, connection: Connection) {
        self.links.remove(&connection);
        match connection {
            Connection::Server => self.connect_end_ns = None,
            Connection::Inbound(number) => {
                self.inbound.remove(&number);
            }
        }
    }

    /// Logs trouble with the server: its beginning alone.
    fn note_trouble(&mut self, reason: &str) {
        self.failures += 1;
        if self.reported.replace(false) != Some(false) {
            self.log.unlimited(format!("{}: {reason}; it is tried again, and known ports stay", self.title()));
        }
    }

    /// Logs that the server answers, after trouble or for the first time.
    fn note_answer(&mut self) {
        if self.reported.replace(true) != Some(true) {
            let ports = self.client.remote_ports().count();
            self.log.unlimited(format!("{}: registered as {}; ports of others: {ports}", self.title(), self.entity));
        }
    }
}

/// The attached ports of a fabric.
fn local_ports(fabric: &Fabric, fabric_port: Wwn) -> BTreeMap<Wwn, LocalPort> {
    let attached = fabric.entries().filter(|(_, entry)| entry.location != Location::Remote);
    attached.map(|(id, entry)| (entry.port, local_port(id, entry, fabric_port))).collect()
}

fn local_port(id: FcId, entry: &Entry, fabric_port: Wwn) -> LocalPort {
    let features = entry.features.get(&FrameType::FCP.0).copied().unwrap_or_default();
    LocalPort {
        name: entry.port,
        id,
        node: entry.node,
        fabric_port,
        types: entry.types,
        // The bits of FC-GS' features are those of iSNS' roles.
        role: u32::from(features) & (port_role::TARGET | port_role::INITIATOR),
        symbolic: String::from_utf8_lossy(&entry.symbolic_port).trim_end_matches('\0').to_owned(),
    }
}

fn refusal(function: Function, status: Status) -> String {
    let request = match function.response() {
        function if function == Function::REGISTER.response() => "the registration",
        function if function == Function::REGISTER_CHANGES.response() => "to send notifications",
        function if function == Function::QUERY.response() => "a query",
        _ => "a request",
    };
    format!("it refused {request}: {status}")
}
