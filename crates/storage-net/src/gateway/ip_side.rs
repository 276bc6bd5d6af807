//! The way to other gateways: iFCP over TCP connections, one for each pair of ports.

use super::acceptor::Acceptor;
use super::config::{IpConfig, PeerConfig};
use super::half_open::{HalfOpen, HANDSHAKES};
use super::learnt::LearntGateway;
use super::status::PeerStatus;
use super::tcp_link::{TcpLink, WRITE_BYTES};
use super::tls::Tls;
use crate::clock;
use crate::log::Log;
use crate::socket::set_congestion;
use admission::Pending;
use rustix::event::PollFlags;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{bind, listen, socket_with, AddressFamily, SocketFlags, SocketType};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use storage::fc::fabric::{Event as FabricEvent, Fabric};
use storage::fc::ifcp::{Clock, Closing, ConnectionKey, Event, Flow, Gateway, PeerKey, Settings};
use storage::fc::ifcp::{Counters, RemotePort, SessionView};
use units::Time;
use wire::fc::Wwn;
use wire::fc::{FcId, Frame};
use wire::ifcp::AddressMode;

/// Reads of one connection in a round, so that none waits long for another.
const READS_MAX: usize = 8;
/// Time between two looks at the clock of the day: NTP moves it against the running one.
const CLOCK_NS: u64 = 1_000_000_000;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Another gateway.
struct Peer {
    /// Its name, address and, where it is in the configuration, its ports there.
    config: PeerConfig,
    /// It is there because the name server lists it.
    is_learnt: bool,
    /// Its ports now.
    ports: BTreeSet<Wwn>,
}

/// Part of a gateway that speaks to others.
pub(super) struct IpSide {
    gateway: Gateway,
    listener: Acceptor,
    own: IpAddr,
    congestion_control: Option<String>,
    tls: Option<Tls>,
    /// Connections that were accepted and whose peer has not shown yet who it is, by number.
    handshakes: BTreeMap<u64, (TcpLink, PeerKey)>,
    next_handshake: u64,
    pending: Pending<u64>,
    /// Connections that were accepted and that no session uses yet.
    half_open: HalfOpen,
    mode: AddressMode,
    peers: BTreeMap<PeerKey, Peer>,
    next_peer: u32,
    links: BTreeMap<ConnectionKey, TcpLink>,
    /// Links with something to read or write.
    active: BTreeSet<ConnectionKey>,
    accepts: bool,
    /// Somebody connected whose address is no peer's.
    has_stranger: bool,
    /// Local ports that are to send no more.
    full: BTreeSet<FcId>,
    next_clock_ns: u64,
    log: Log,
}

impl IpSide {
    /// Listens, and begins to reach the peers.
    ///
    /// # Errors
    /// The address cannot be had, the congestion control is not there, or the list of peers contradicts itself.
    pub fn open(config: IpConfig, now_ns: u64) -> io::Result<IpSide> {
        let invalid = |text: String| io::Error::new(ErrorKind::InvalidInput, text);
        let listener = listener(config.listen, config.congestion_control.as_deref())
            .and_then(Acceptor::new)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", config.listen)))?;
        let tls = config.tls.as_ref().map(Tls::open).transpose()?;
        let mut gateway =
            Gateway::new(Settings::new(config.mode, time_base())).map_err(|error| invalid(error.to_string()))?;
        let mut peers = BTreeMap::new();
        for (number, peer) in config.peers.into_iter().enumerate() {
            let key = PeerKey(number as u32);
            gateway.add_peer(key, now_ns);
            gateway
                .set_ports(key, peer.ports.clone(), now_ns)
                .map_err(|error| invalid(format!("{}: {error}", peer.name)))?;
            let ports = names_of(&peer.ports);
            peers.insert(key, Peer { config: peer, is_learnt: false, ports });
        }
        let mut side = IpSide {
            gateway,
            own: config.listen.ip(),
            congestion_control: config.congestion_control,
            tls,
            handshakes: BTreeMap::new(),
            next_handshake: 0,
            pending: Pending::new(HANDSHAKES, u64::from_ne_bytes(clock::entropy())),
            half_open: HalfOpen::new(u64::from_ne_bytes(clock::entropy())),
            listener,
            mode: config.mode,
            next_peer: peers.len() as u32,
            peers,
            links: BTreeMap::new(),
            active: BTreeSet::new(),
            accepts: false,
            has_stranger: false,
            full: BTreeSet::new(),
            next_clock_ns: now_ns,
            log: Log::default(),
        };
        if !clock::is_synchronized() {
            side.log.unlimited(
                "the clock of this machine is not synchronised (NTP): frames between clocks that differ by more than \
                 5 s are refused"
                    .to_owned(),
            );
        }
        Ok(side)
    }

    /// The address that is listened on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Local ports that are to send no more.
    pub fn full(&self) -> &BTreeSet<FcId> {
        &self.full
    }

    /// Descriptors with what to wait for; `reads`: frames of peers are taken now. The listener, and connections whose
    /// handshake goes on, have no key.
    pub fn waits_for(&self, reads: bool) -> impl Iterator<Item = (Option<ConnectionKey>, BorrowedFd<'_>, PollFlags)> {
        let links = self.links.iter().map(move |(key, link)| {
            let (fd, events) = link.waits_for(reads);
            (Some(*key), fd, events)
        });
        let handshakes = self.handshakes.values().map(|(link, _)| {
            let (fd, events) = link.waits_for(true);
            (None, fd, events)
        });
        std::iter::once((None, self.listener.as_fd(), PollFlags::IN)).chain(handshakes).chain(links)
    }

    /// Notes that a descriptor of [`IpSide::waits_for`] has something.
    pub fn note_ready(&mut self, key: Option<ConnectionKey>) {
        match key {
            None => self.accepts = true,
            Some(key) => {
                self.active.insert(key);
            }
        }
    }

    /// Time at which [`IpSide::round`] has something to do, ns.
    pub fn poll_timeout(&self) -> u64 {
        let handshakes = self.pending.poll_timeout().map(|time| time.0);
        let half_open = self.half_open.poll_timeout();
        [self.gateway.poll_timeout(), handshakes, half_open].into_iter().flatten().fold(self.next_clock_ns, u64::min)
    }

    /// Takes a change of the fabric's logins.
    pub fn handle_fabric_event(&mut self, event: &FabricEvent, now_ns: u64) {
        self.gateway.handle_fabric_event(event, now_ns);
    }

    /// Takes a frame for a port behind a peer.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) {
        self.gateway.handle_frame(frame, now_ns);
    }

    /// Does what the gateway has for the fabric; returns the ports that it presented, with their addresses.
    pub fn serve_fabric(&mut self, fabric: &mut Fabric, now_ns: u64) -> Vec<(Wwn, FcId)> {
        let mut presented = Vec::new();
        while let Some(step) = self.gateway.poll_fabric() {
            if let Some((name, id)) = step.apply(fabric) {
                presented.extend(id.map(|id| (name, id)));
                self.gateway.handle_presented(name, id, now_ns);
            }
        }
        presented
    }

    /// Does all that can be done now. `reads`: frames of peers are taken. Returns whether more may be waiting.
    pub fn round(&mut self, reads: bool, now_ns: u64) -> bool {
        if now_ns >= self.next_clock_ns {
            self.next_clock_ns = now_ns + CLOCK_NS;
            self.gateway.set_clock(time_base(), now_ns);
        }
        self.gateway.handle_timeout(now_ns);
        if std::mem::take(&mut self.accepts) {
            self.accept(now_ns);
            self.shake_hands(now_ns);
        }
        for number in self.pending.expire(Time(now_ns)) {
            if let Some((_, peer)) = self.handshakes.remove(&number) {
                let line = format!("{}: refused: no TLS handshake in time", self.name_of(peer));
                self.log.connection(clock::now(), line);
            }
        }
        let late = self.half_open.expire(now_ns, |key| self.gateway.is_half_open(key));
        for key in late {
            self.close_half_open(key, now_ns);
        }
        let mut more = false;
        for key in std::mem::take(&mut self.active) {
            match self.serve_link(key, reads, now_ns) {
                Ok(is_more) => {
                    if is_more || self.links.get(&key).is_some_and(TcpLink::has_input) {
                        self.active.insert(key);
                        more = true;
                    }
                }
                Err(error) => self.lose(key, &error, now_ns),
            }
        }
        self.pump(now_ns);
        more && reads
    }

    /// Takes out what the gateway has for the network.
    pub fn pump(&mut self, now_ns: u64) {
        while let Some((key, peer)) = self.gateway.poll_connect() {
            self.connect(key, peer, now_ns);
        }
        while let Some(key) = self.gateway.poll_ready() {
            if let Err(error) = self.send(key, now_ns) {
                self.lose(key, &error, now_ns);
            }
        }
        while let Some((key, closing)) = self.gateway.poll_close() {
            self.active.remove(&key);
            let link = self.links.remove(&key);
            if let (Some(link), Closing::Reset) = (link, closing) {
                link.reset();
            }
        }
        while let Some(Flow { id, full }) = self.gateway.poll_flow() {
            if full {
                self.full.insert(id);
            } else {
                self.full.remove(&id);
            }
        }
        while let Some(event) = self.gateway.poll_event() {
            let line = self.named(&event);
            match event {
                // A peer, or a port, can cause these at will.
                Event::Refused(..) | Event::LocalRefused(..) => self.log.connection(clock::now(), line),
                _ => self.log.unlimited(line),
            }
        }
    }

    /// Ends all sessions by UNBIND.
    pub fn stop(&mut self, now_ns: u64) {
        self.gateway.stop(now_ns);
        self.pump(now_ns);
    }

    /// True when peers have answered all UNBINDs.
    pub fn is_unbound(&self) -> bool {
        !self.gateway.is_unbinding()
    }

    /// True while nothing waits for a connection.
    pub fn is_idle(&self) -> bool {
        let waits = |link: &TcpLink| link.is_up && link.has_output();
        self.gateway.sessions().all(|view| view.queued_bytes == 0) && !self.links.values().any(waits)
    }

    /// Lines for the operator since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        self.log.drain(clock::now(), false)
    }

    /// The gateway's counters.
    pub fn counters(&self) -> Counters {
        self.gateway.counters()
    }

    /// The sessions with the names of their peers.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, SessionView)> {
        self.gateway.sessions().map(|view| (self.name_of(view.peer), view))
    }

    /// The peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerStatus> + '_ {
        self.peers.iter().map(|(key, peer)| PeerStatus {
            name: peer.config.name.clone(),
            is_up: self.gateway.is_up(*key),
            is_learnt: peer.is_learnt,
        })
    }

    /// True once after somebody connected whose address is no peer's.
    pub fn take_stranger(&mut self) -> bool {
        std::mem::take(&mut self.has_stranger)
    }

    /// Treatment of the addresses of ports.
    pub fn mode(&self) -> AddressMode {
        self.mode
    }

    /// True while there is a session with a port behind a gateway that has an address.
    pub fn has_session_with(&self, address: IpAddr) -> bool {
        let is_there = |key: PeerKey| self.peers.get(&key).is_some_and(|peer| peer.config.address.ip() == address);
        self.gateway.sessions().any(|view| is_there(view.peer))
    }

    /// Takes the gateways that a name server lists, in place of those that it listed before. Ports of a peer of the
    /// configuration join those that it has there. Returns a line for each gateway that cannot be a peer, with the
    /// reason.
    pub fn set_learnt(&mut self, gateways: Vec<LearntGateway>, now_ns: u64) -> BTreeSet<String> {
        let is_listed =
            |peer: &Peer| gateways.iter().any(|one| one.name == peer.config.name && one.address == peer.config.address);
        let is_gone = |peer: &Peer| peer.is_learnt && !is_listed(peer);
        let gone: Vec<PeerKey> = self.peers.iter().filter(|(_, peer)| is_gone(peer)).map(|(key, _)| *key).collect();
        for key in gone {
            self.gateway.remove_peer(key, now_ns);
            // Its last events need its name.
            self.pump(now_ns);
            self.peers.remove(&key);
        }
        let configured = self.peers.iter().filter(|(_, peer)| !peer.is_learnt);
        let mut lists: BTreeMap<PeerKey, Vec<RemotePort>> =
            configured.map(|(key, peer)| (*key, peer.config.ports.clone())).collect();
        let taken: BTreeSet<Wwn> = lists.values().flat_map(|ports| names_of(ports)).collect();
        let mut refused = BTreeSet::new();
        for LearntGateway { name, address, ports } in gateways {
            match self.peer_for(&name, address, now_ns) {
                Ok(key) => {
                    let ports = ports.into_iter().filter(|port| !taken.contains(&port.entry.port));
                    lists.entry(key).or_default().extend(ports);
                }
                Err(reason) => {
                    refused.insert(format!("{name}: refused: {reason}"));
                }
            }
        }
        // A port that moves from one gateway to another leaves the first before it joins the second.
        for (key, ports) in &lists {
            let Some(peer) = self.peers.get(key) else { continue };
            let staying = ports.iter().filter(|port| peer.ports.contains(&port.entry.port)).cloned().collect();
            self.set_ports(*key, staying, now_ns);
        }
        for (key, ports) in lists {
            self.set_ports(key, ports, now_ns);
        }
        refused
    }

    /// The peer for a gateway that the name server lists, new if need be; an error says why it cannot be one. Who
    /// connects is known by the IP address alone, so that no two peers may have the same.
    fn peer_for(&mut self, name: &str, address: SocketAddr, now_ns: u64) -> Result<PeerKey, String> {
        let ip = address.ip();
        let is_other_family = ip.is_ipv4() != self.own.is_ipv4();
        if ip == self.own || is_other_family || ip.is_unspecified() || ip.is_multicast() {
            return Err(format!("{ip} is no address of another gateway"));
        }
        if let Some((key, known)) = self.peers.iter().find(|(_, peer)| peer.config.address.ip() == ip) {
            if known.is_learnt && known.config.name != name {
                return Err(format!("{ip} is the address of {}", known.config.name));
            }
            return Ok(*key);
        }
        if self.peers.values().any(|peer| peer.config.name == name) {
            return Err("another peer has its name".to_owned());
        }
        let key = PeerKey(self.next_peer);
        self.next_peer += 1;
        self.gateway.add_peer(key, now_ns);
        let config = PeerConfig { name: name.to_owned(), address, ports: Vec::new() };
        self.peers.insert(key, Peer { config, is_learnt: true, ports: BTreeSet::new() });
        Ok(key)
    }

    fn set_ports(&mut self, key: PeerKey, ports: Vec<RemotePort>, now_ns: u64) {
        let Some(peer) = self.peers.get_mut(&key) else { return };
        let names = names_of(&ports);
        match self.gateway.set_ports(key, ports, now_ns) {
            Ok(()) => peer.ports = names,
            Err(error) => self.log.connection(clock::now(), format!("{}: {error}", peer.config.name)),
        }
    }

    fn name_of(&self, key: PeerKey) -> &str {
        self.peers.get(&key).map_or("a peer that is gone", |peer| &peer.config.name)
    }

    /// An event in words, with the peer's name in place of its number.
    fn named(&self, event: &Event) -> String {
        let text = event.to_string();
        for (PeerKey(number), peer) in &self.peers {
            if let Some(rest) = text.strip_prefix(&format!("peer {number}: ")) {
                return format!("{}: {rest}", peer.config.name);
            }
        }
        text
    }

    fn connect(&mut self, key: ConnectionKey, peer: PeerKey, now_ns: u64) {
        let Some(Peer { config, .. }) = self.peers.get(&peer) else { return };
        // So that the peer knows who it is; a wildcard address is none.
        let from = Some(self.own).filter(|own| !own.is_unspecified());
        let tls = self.tls.as_ref().map(|tls| tls.client(config.address.ip())).transpose();
        match tls.and_then(|tls| TcpLink::open(config.address, from, self.congestion_control.as_deref(), tls)) {
            Ok(link) => {
                self.links.insert(key, link);
            }
            Err(error) => {
                self.log.connection(clock::now(), format!("{}: {error}", config.name));
                self.gateway.handle_closed(key, now_ns);
            }
        }
    }

    fn accept(&mut self, now_ns: u64) {
        loop {
            let (stream, from) = match self.listener.accept() {
                Ok(Some(accepted)) => accepted,
                Ok(None) => break,
                Err(error) => {
                    self.log.connection(clock::now(), format!("a connection was not taken: {error}"));
                    break;
                }
            };
            let known = self.peers.iter().find(|(_, peer)| peer.config.address.ip() == from.ip()).map(|(key, _)| *key);
            let Some(peer) = known else {
                self.has_stranger = true;
                self.log.connection(clock::now(), format!("{from}: refused: the address is no peer's"));
                continue;
            };
            let tls = self.tls.as_ref().map(|tls| tls.server(from.ip())).transpose();
            match tls.and_then(|tls| TcpLink::accepted(stream, tls)) {
                Ok(link) if link.is_up => self.take(link, peer, now_ns),
                Ok(link) => {
                    self.next_handshake += 1;
                    self.handshakes.insert(self.next_handshake, (link, peer));
                    if let Some(displaced) = self.pending.admit(Time(now_ns), self.next_handshake, from.ip(), |_| ()) {
                        self.handshakes.remove(&displaced);
                        self.log.connection(clock::now(), format!("{from}: too many handshakes: another was closed"));
                    }
                }
                Err(error) => self.log.connection(clock::now(), format!("{from}: {error}")),
            }
        }
    }

    /// Goes on with the handshakes of accepted connections.
    fn shake_hands(&mut self, now_ns: u64) {
        for (number, (mut link, peer)) in std::mem::take(&mut self.handshakes) {
            match link.finish_connect() {
                Ok(true) => {
                    self.pending.remove(&number);
                    self.take(link, peer, now_ns);
                }
                Ok(false) => {
                    self.handshakes.insert(number, (link, peer));
                }
                Err(error) => {
                    self.pending.remove(&number);
                    let line = format!("{}: refused: {error}", self.name_of(peer));
                    self.log.connection(clock::now(), line);
                }
            }
        }
    }

    /// Takes a connection of a peer.
    fn take(&mut self, link: TcpLink, peer: PeerKey, now_ns: u64) {
        if let Some(key) = self.gateway.handle_accepted(peer, now_ns) {
            self.links.insert(key, link);
            self.active.insert(key);
            let address = self.peers.get(&peer).map_or(self.own, |peer| peer.config.address.ip());
            if let Some(displaced) = self.half_open.admit(now_ns, key, address, |key| self.gateway.is_half_open(key)) {
                self.close_half_open(displaced, now_ns);
            }
        }
    }

    fn close_half_open(&mut self, key: ConnectionKey, now_ns: u64) {
        let name = self.gateway.peer_of(key).map_or("a peer", |peer| self.name_of(peer));
        let line = format!("{name}: closed: a connection without a session, of too many");
        self.log.connection(clock::now(), line);
        self.active.remove(&key);
        self.links.remove(&key);
        self.gateway.handle_closed(key, now_ns);
    }

    /// Reads and writes a link. Returns whether there may be more to read.
    fn serve_link(&mut self, key: ConnectionKey, reads: bool, now_ns: u64) -> io::Result<bool> {
        let Some(link) = self.links.get_mut(&key) else { return Ok(false) };
        if !link.is_up {
            if link.finish_connect()? {
                self.gateway.handle_connected(key, now_ns);
                // TLS may have read beyond its handshake, and no descriptor tells of that.
                self.active.insert(key);
                return Ok(true);
            }
            return Ok(false);
        }
        let mut more = reads;
        for _ in 0..READS_MAX {
            let Some(link) = self.links.get_mut(&key).filter(|_| more) else { break };
            more = link.read()?;
            if more {
                self.gateway.handle_bytes(key, &mut link.input, now_ns);
            }
        }
        self.send(key, now_ns)?;
        Ok(more)
    }

    /// Writes what the gateway has for a link, as far as TCP takes it.
    fn send(&mut self, key: ConnectionKey, now_ns: u64) -> io::Result<()> {
        let Some(link) = self.links.get_mut(&key).filter(|link| link.is_up) else { return Ok(()) };
        while link.write()? {
            self.gateway.poll_bytes(key, &mut link.output, WRITE_BYTES, now_ns);
            if link.output.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn lose(&mut self, key: ConnectionKey, error: &io::Error, now_ns: u64) {
        let link = self.links.remove(&key);
        if link.is_some() && error.kind() != ErrorKind::ConnectionRefused {
            let name = self.gateway.peer_of(key).map_or("a peer", |peer| self.name_of(peer));
            let line = format!("{name}: a connection ended: {error}");
            self.log.connection(clock::now(), line);
        }
        if link.is_some_and(|link| link.is_refused()) {
            self.gateway.handle_refused(key, now_ns);
        } else {
            self.gateway.handle_closed(key, now_ns);
        }
    }
}

fn names_of(ports: &[RemotePort]) -> BTreeSet<Wwn> {
    ports.iter().map(|port| port.entry.port).collect()
}

/// The gateway's time base: the clock of the day at the running clock's zero.
fn time_base() -> Clock {
    Clock::Synchronized { epoch_ns: clock::since_1900().wrapping_sub(clock::now().0) }
}

/// Listens on an address. Connections that are taken have its congestion control.
fn listener(address: SocketAddr, congestion_control: Option<&str>) -> io::Result<TcpListener> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    set_congestion(&socket, congestion_control)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}
