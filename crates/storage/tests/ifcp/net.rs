//! Sites with a fabric and a gateway each, and lines between them that keep the order of one connection and no other.

use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};
use storage::fc::fabric::{Assignments, Entry, Fabric, Location, Output, PortKey, Settings as FabricSettings};
use storage::fc::ifcp::{
    Clock, Closing, ConnectionKey, Event, FabricOutput, Flow, Gateway, Pair, PeerKey, RemotePort, Settings,
};
use wire::fc::els::{self, ChangeRegistration, Command, Logout, Request};
use wire::fc::name_server::TypeMap;
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Login, Wwn};
use wire::ifcp::AddressMode;

pub const S: u64 = 1_000_000_000;
/// 2026, as a time base.
pub const EPOCH_NS: u64 = 3_976_214_400 * S;

/// Service parameters of a host, of which `host` makes the names.
pub fn login(command: Command, host: u64) -> Login {
    Login {
        command: command.0,
        buffer_credits: 8,
        receive_bytes: 2048,
        fabric_port: false,
        further_addresses: command != Command::PLOGI,
        r_a_tov_ms: None,
        e_d_tov_ms: 2000,
        port: Wwn(0x2000_0000_0000_0000 | host),
        node: Wwn(0x1000_0000_0000_0000 | host),
        class3: true,
        sequential_delivery: false,
    }
}

/// The name of a host's port, from its number.
pub fn name(host: u64) -> Wwn {
    login(Command::PLOGI, host).port
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// A region.
pub struct Site {
    pub fabric: Fabric,
    pub gateway: Gateway,
    /// Frames that hosts got, in order, RSCNs left out.
    pub got: Vec<(PortKey, Frame)>,
    /// Addresses that RSCNs named.
    pub state_changes: Vec<FcId>,
    pub events: Vec<Event>,
    /// Ports that were to stop or resume.
    pub flows: Vec<Flow>,
    writable: BTreeSet<ConnectionKey>,
    /// Connections whose TCP has no room.
    pub stuck: bool,
    /// Bytes of connections whose other end is the test.
    pub raw: BTreeMap<ConnectionKey, BytesMut>,
}

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    under_way: BytesMut,
    /// Bytes that came, with a message that is not whole.
    came: BytesMut,
}

struct Line {
    ends: [(usize, ConnectionKey); 2],
    directions: [Direction; 2],
}

/// Sites and what joins them. The peer of number n is the site n.
pub struct Net {
    pub sites: Vec<Site>,
    lines: BTreeMap<u64, Line>,
    /// Line and end of each connection.
    places: BTreeMap<(usize, ConnectionKey), (u64, usize)>,
    next_line: u64,
    pub now_ns: u64,
    pub random: Random,
    /// Pairs of sites without a path: bytes wait, connections fail.
    pub down: BTreeSet<(usize, usize)>,
    /// Bytes of all lines are lost as the path is down: they only wait otherwise.
    pub silent: bool,
    /// Connections that a site took and closed at once.
    pub refused: usize,
}

pub fn settings(mode: AddressMode) -> Settings {
    Settings::new(mode, Clock::Synchronized { epoch_ns: EPOCH_NS })
}

impl Net {
    /// Sites with settings of their own; each fabric has the domain 1, or its own in transparent mode.
    pub fn new(settings: Vec<Settings>) -> Net {
        let mut sites = Vec::new();
        for (number, settings) in settings.into_iter().enumerate() {
            let domain = if settings.mode == AddressMode::Transparent { number as u8 + 1 } else { 1 };
            let fabric = FabricSettings::new(Wwn(0x1000_0000_0000_00f0 + number as u64), domain).unwrap();
            sites.push(Site {
                fabric: Fabric::new(fabric, Assignments::default()),
                gateway: Gateway::new(settings).unwrap(),
                got: Vec::new(),
                state_changes: Vec::new(),
                events: Vec::new(),
                flows: Vec::new(),
                writable: BTreeSet::new(),
                stuck: false,
                raw: BTreeMap::new(),
            });
        }
        Net {
            sites,
            lines: BTreeMap::new(),
            places: BTreeMap::new(),
            next_line: 0,
            now_ns: S,
            random: Random(1),
            down: BTreeSet::new(),
            silent: false,
            refused: 0,
        }
    }

    /// Takes all ports of a peer off a site's list.
    pub fn forget_ports_of(&mut self, site: usize, peer: u32) {
        self.sites[site].gateway.set_ports(PeerKey(peer), Vec::new(), self.now_ns).unwrap();
        self.run();
    }

    /// Takes a host off its site.
    pub fn detach(&mut self, site: usize, host: u64) {
        self.sites[site].fabric.detach(PortKey(host as u32));
        self.drain(site);
    }

    /// Logs a host in at a site.
    pub fn attach(&mut self, site: usize, host: u64) -> FcId {
        let port = PortKey(host as u32);
        let flogi = Request::Login(login(Command::FLOGI, host)).to_bytes();
        self.send(site, port, FcId::NONE, FcId::FABRIC_PORT, flogi);
        let reply = self.take(site, port);
        assert_eq!(reply.payload.to_bytes()[0], Command::LS_ACC.0);
        let id = reply.header.d_id;
        let scr = Request::Register(ChangeRegistration::Full).to_bytes();
        self.send(site, port, id, FcId::FABRIC_CONTROLLER, scr);
        self.take(site, port);
        id
    }

    /// Tells every site of the ports of every other, and lets them connect.
    pub fn join(&mut self, hosts: &[(usize, u64, FcId)]) {
        for site in 0..self.sites.len() {
            for peer in (0..self.sites.len()).filter(|peer| *peer != site) {
                let key = PeerKey(peer as u32);
                self.sites[site].gateway.add_peer(key, self.now_ns);
                let ports = hosts.iter().filter(|(at, ..)| *at == peer);
                let ports = ports.map(|(_, host, id)| remote_port(*host, *id)).collect();
                self.sites[site].gateway.set_ports(key, ports, self.now_ns).unwrap();
            }
        }
        self.run();
    }

    /// Sends a link service of one frame from a host.
    pub fn send(&mut self, site: usize, port: PortKey, s_id: FcId, d_id: FcId, payload: Bytes) {
        self.send_frame(site, port, els_request(s_id, d_id, 0x17, payload));
    }

    pub fn send_frame(&mut self, site: usize, port: PortKey, frame: Frame) {
        self.sites[site].fabric.handle_frame(port, frame);
        self.drain(site);
    }

    /// The oldest frame that a host got.
    pub fn take(&mut self, site: usize, port: PortKey) -> Frame {
        let got = &mut self.sites[site].got;
        let place = got.iter().position(|(to, _)| *to == port).expect("a frame for the host");
        got.remove(place).1
    }

    /// The address that a site gives a host of another.
    pub fn alias(&self, site: usize, host: u64) -> FcId {
        let mut entries = self.sites[site].fabric.entries();
        entries.find(|(_, entry)| entry.port == name(host)).map(|(id, _)| id).expect("a presented port")
    }

    /// Logs a host in at a host of another site; the other accepts.
    pub fn log_in(&mut self, (site, from, s_id): (usize, u64, FcId), (other, to, d_id): (usize, u64, FcId)) {
        let alias = self.alias(site, to);
        let plogi = Request::Login(login(Command::PLOGI, from)).to_bytes();
        self.send(site, PortKey(from as u32), s_id, alias, plogi.clone());
        self.run();
        let request = self.take(other, PortKey(to as u32));
        assert_eq!(request.payload.to_bytes(), plogi);
        assert_eq!((request.header.d_id, request.header.s_id), (d_id, self.alias(other, from)));
        let accept = Bytes::copy_from_slice(&els::accept_login(&login(Command::PLOGI, to)));
        self.answer(other, PortKey(to as u32), &request, accept.clone());
        self.run();
        let reply = self.take(site, PortKey(from as u32));
        assert_eq!((reply.payload.to_bytes(), reply.header.s_id, reply.header.d_id), (accept, alias, s_id));
    }

    /// Logs a host out of a host of another site; the other accepts.
    pub fn log_out(&mut self, (site, from, s_id): (usize, u64, FcId), (other, to, d_id): (usize, u64, FcId)) {
        let alias = self.alias(site, to);
        let logout = Request::Logout(Logout { id: s_id, port: name(from) });
        self.send(site, PortKey(from as u32), s_id, alias, logout.to_bytes());
        self.run();
        let request = self.take(other, PortKey(to as u32));
        let expected = Request::Logout(Logout { id: self.alias(other, from), port: name(from) });
        assert_eq!((request.header.d_id, request.payload.to_bytes()), (d_id, expected.to_bytes()));
        self.answer(other, PortKey(to as u32), &request, els::accept());
        self.run();
        assert_eq!(self.take(site, PortKey(from as u32)).payload.to_bytes(), els::accept());
    }

    /// Answers a link service from a host.
    pub fn answer(&mut self, site: usize, port: PortKey, request: &Frame, payload: Bytes) {
        self.send_frame(site, port, els_answer(request, payload));
    }

    /// Sessions of a site that are open.
    pub fn open(&self, site: usize) -> Vec<Pair> {
        self.sites[site].gateway.sessions().filter(|session| session.open).map(|session| session.pair).collect()
    }

    /// Events of a site as lines.
    pub fn lines_of(&mut self, site: usize) -> Vec<String> {
        std::mem::take(&mut self.sites[site].events).iter().map(ToString::to_string).collect()
    }

    /// Lets everything happen that needs no time.
    pub fn run(&mut self) {
        for _ in 0..1_000_000 {
            let sites = 0..self.sites.len();
            let active = sites.filter(|site| self.drain(*site)).count() > 0;
            if !active && !self.carry(usize::MAX) {
                return;
            }
        }
        panic!("the sites never come to rest");
    }

    /// Lets `ns` go by, with all deadlines.
    pub fn wait(&mut self, ns: u64) {
        let end = self.now_ns + ns;
        loop {
            self.run();
            let next = self.sites.iter().filter_map(|site| site.gateway.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now_ns = self.now_ns.max(next);
            for site in &mut self.sites {
                site.gateway.handle_timeout(self.now_ns);
            }
        }
        self.now_ns = end;
        self.run();
    }

    /// Lets one piece of bytes come, on a line that chance picks. Returns whether there was one.
    pub fn carry(&mut self, most: usize) -> bool {
        let mut full: Vec<(u64, usize)> = Vec::new();
        for (number, line) in &self.lines {
            let (a, b) = (line.ends[0].0, line.ends[1].0);
            if self.down.contains(&(a, b)) || self.down.contains(&(b, a)) {
                continue;
            }
            full.extend((0..2).filter(|side| !line.directions[*side].under_way.is_empty()).map(|side| (*number, side)));
        }
        if full.is_empty() {
            return false;
        }
        let (number, side) = full[self.random.below(full.len())];
        let line = self.lines.get_mut(&number).expect("a line");
        let direction = &mut line.directions[side];
        let bytes = direction.under_way.len().min(most).min(1 + self.random.below(20_000));
        let piece = direction.under_way.split_to(bytes);
        direction.came.extend_from_slice(&piece);
        let mut came = std::mem::take(&mut direction.came);
        let (site, connection) = line.ends[1 - side];
        self.sites[site].gateway.handle_bytes(connection, &mut came, self.now_ns);
        if let Some(line) = self.lines.get_mut(&number) {
            line.directions[side].came = came;
        }
        self.drain(site);
        true
    }

    /// Takes out everything that a site has to give. Returns whether there was anything.
    pub fn drain(&mut self, site: usize) -> bool {
        let mut active = false;
        while self.drain_fabric(site) || self.drain_network(site) {
            active = true;
        }
        active
    }

    fn drain_fabric(&mut self, site: usize) -> bool {
        let now_ns = self.now_ns;
        let mut active = false;
        loop {
            let own = &mut self.sites[site];
            let mut idle = true;
            while let Some(event) = own.fabric.poll_event() {
                own.gateway.handle_fabric_event(&event, now_ns);
                idle = false;
            }
            while let Some(output) = own.gateway.poll_fabric() {
                idle = false;
                if let FabricOutput::Frame(frame) = &output {
                    assert!(frame.content_bytes() <= wire::fc::FRAME_BYTES_MAX);
                }
                if let Some((name, id)) = output.apply(&mut own.fabric) {
                    own.gateway.handle_presented(name, id, now_ns);
                }
            }
            while let Some(output) = own.fabric.poll_output() {
                idle = false;
                match output {
                    Output::Remote(frame) => own.gateway.handle_frame(frame, now_ns),
                    Output::Attached(port, frame) => match state_change(&frame) {
                        Some(ids) => own.state_changes.extend(ids),
                        None => own.got.push((port, frame)),
                    },
                }
            }
            if idle {
                return active;
            }
            active = true;
        }
    }

    fn drain_network(&mut self, site: usize) -> bool {
        let now_ns = self.now_ns;
        let mut active = false;
        while let Some(event) = self.sites[site].gateway.poll_event() {
            self.sites[site].events.push(event);
        }
        while let Some(flow) = self.sites[site].gateway.poll_flow() {
            self.sites[site].flows.push(flow);
        }
        while let Some((connection, PeerKey(peer))) = self.sites[site].gateway.poll_connect() {
            active = true;
            self.connect(site, connection, peer as usize);
        }
        while let Some(connection) = self.sites[site].gateway.poll_ready() {
            self.sites[site].writable.insert(connection);
        }
        let writable = if self.sites[site].stuck { BTreeSet::new() } else { self.sites[site].writable.clone() };
        for connection in writable {
            let mut bytes = BytesMut::new();
            self.sites[site].gateway.poll_bytes(connection, &mut bytes, usize::MAX, now_ns);
            self.sites[site].writable.remove(&connection);
            if let Some((number, end)) = self.places.get(&(site, connection)) {
                let line = self.lines.get_mut(number).expect("a line");
                line.directions[*end].under_way.extend_from_slice(&bytes);
                active |= !bytes.is_empty();
            } else {
                self.sites[site].raw.entry(connection).or_default().extend_from_slice(&bytes);
            }
        }
        while let Some((connection, closing)) = self.sites[site].gateway.poll_close() {
            active = true;
            self.close(site, connection, closing);
        }
        active
    }

    fn connect(&mut self, site: usize, connection: ConnectionKey, peer: usize) {
        if self.down.contains(&(site, peer)) || self.down.contains(&(peer, site)) {
            if !self.silent {
                self.sites[site].gateway.handle_closed(connection, self.now_ns);
            }
            return;
        }
        let accepted = self.sites[peer].gateway.handle_accepted(PeerKey(site as u32), self.now_ns);
        let Some(accepted) = accepted else {
            // A listener takes a connection before it knows from whom.
            self.refused += 1;
            self.sites[site].gateway.handle_connected(connection, self.now_ns);
            self.sites[site].gateway.handle_closed(connection, self.now_ns);
            return;
        };
        self.next_line += 1;
        let ends = [(site, connection), (peer, accepted)];
        for (number, end) in ends.iter().enumerate() {
            self.places.insert(*end, (self.next_line, number));
        }
        self.lines.insert(self.next_line, Line { ends, directions: Default::default() });
        self.sites[site].gateway.handle_connected(connection, self.now_ns);
    }

    /// Ends a line from one side. A close lets what is under way come; a reset throws it away.
    fn close(&mut self, site: usize, connection: ConnectionKey, closing: Closing) {
        let Some((number, end)) = self.places.remove(&(site, connection)) else { return };
        let Some(mut line) = self.lines.remove(&number) else { return };
        let (other, key) = line.ends[1 - end];
        self.places.remove(&(other, key));
        if closing == Closing::Close {
            let mut came = std::mem::take(&mut line.directions[end].came);
            came.extend_from_slice(&line.directions[end].under_way);
            self.sites[other].gateway.handle_bytes(key, &mut came, self.now_ns);
        }
        let reachable = !self.down.contains(&(site, other)) && !self.down.contains(&(other, site));
        if reachable {
            self.sites[other].gateway.handle_closed(key, self.now_ns);
        }
    }

    /// Resets one line that chance picks, with what is under way.
    pub fn cut(&mut self) {
        let numbers: Vec<u64> = self.lines.keys().copied().collect();
        if numbers.is_empty() {
            return;
        }
        let number = numbers[self.random.below(numbers.len())];
        self.reset(number);
    }

    fn reset(&mut self, number: u64) {
        let line = self.lines.remove(&number).expect("a line");
        for (site, connection) in line.ends {
            self.places.remove(&(site, connection));
            self.sites[site].gateway.handle_closed(connection, self.now_ns);
        }
    }

    /// Resets all lines between two sites.
    pub fn cut_between(&mut self, a: usize, b: usize) {
        let joins = |line: &Line| line.ends.iter().all(|(site, _)| [a, b].contains(site));
        let numbers: Vec<u64> = self.lines.iter().filter(|(_, line)| joins(line)).map(|(number, _)| *number).collect();
        for number in numbers {
            self.reset(number);
        }
    }

    /// Forgets lines that no gateway has any more.
    pub fn forget_lines(&mut self) {
        self.lines.clear();
        self.places.clear();
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }
}

/// A port as another gateway's list has it: of SCSI.
pub fn remote_port(host: u64, id: FcId) -> RemotePort {
    let own = login(Command::PLOGI, host);
    let mut entry = Entry::new(Location::Remote, own.port, own.node);
    entry.types = TypeMap::of(FrameType::FCP.0);
    RemotePort { id: Some(id), entry }
}

pub fn els_request(s_id: FcId, d_id: FcId, ox_id: u16, payload: Bytes) -> Frame {
    let f_ctl = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let header = FrameHeader {
        r_ctl: routing::ELS_REQUEST,
        d_id,
        s_id,
        kind: FrameType::ELS,
        f_ctl,
        ox_id,
        ..FrameHeader::default()
    };
    Frame::class3(header, payload)
}

pub fn els_answer(request: &Frame, payload: Bytes) -> Frame {
    let header = FrameHeader {
        r_ctl: routing::ELS_REPLY,
        d_id: request.header.s_id,
        s_id: request.header.d_id,
        f_ctl: frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
        rx_id: 0x99,
        ..request.header
    };
    Frame::class3(header, payload)
}

fn state_change(frame: &Frame) -> Option<Vec<FcId>> {
    if frame.header.kind != FrameType::ELS || frame.header.r_ctl != routing::ELS_REQUEST {
        return None;
    }
    match Request::parse(&frame.payload.to_bytes()) {
        Ok(Request::StateChange(pages)) => Some(pages.iter().map(|page| page.id).collect()),
        _ => None,
    }
}

/// A frame of data of a host: a whole sequence.
pub fn data(s_id: FcId, d_id: FcId, ox_id: u16, seq_cnt: u16, payload: &[u8]) -> Frame {
    let header = FrameHeader {
        r_ctl: routing::SOLICITED_DATA,
        d_id,
        s_id,
        kind: FrameType::FCP,
        f_ctl: frame_control::END_SEQUENCE,
        ox_id,
        seq_cnt,
        ..FrameHeader::default()
    };
    Frame::class3(header, Bytes::copy_from_slice(payload))
}

/// Two sites with one host each: 1 at site 0, 2 at site 1.
pub fn two_sites(first: Settings, second: Settings) -> (Net, [(usize, u64, FcId); 2]) {
    let mut net = Net::new(vec![first, second]);
    let hosts = [(0, 1, net.attach(0, 1)), (1, 2, net.attach(1, 2))];
    net.join(&hosts);
    (net, hosts)
}
