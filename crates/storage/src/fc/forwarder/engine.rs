//! The forwarder: takes Ethernet frames, speaks FIP with nodes, hands their FC frames to the fabric.

use super::node::{Asked, Node, VirtualPort};
use super::settings::{KeepAliveTooShort, Settings, KEEP_ALIVE_MS_MIN};
use crate::fc::fabric::{Event, Fabric, Output, PortKey};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use wire::ethernet::{EthernetHeader, ETHERNET_HEADER_BYTES, ETHERTYPE_FCOE, ETHERTYPE_FIP};
use wire::fc::els::Command;
use wire::fc::{routing, FcId, Frame, FrameType, FRAME_BYTES_MAX};
use wire::fcoe::{self, fabric_provided_mac, FCOE_HEADER_BYTES, FCOE_TRAILER_BYTES};
use wire::fip::{flags, Descriptor, LinkService, Message, Operation, ALL_ENODE_MACS, ALL_FCF_MACS, PORT_KEEP_ALIVE_MS};

const NS_PER_MS: u64 = 1_000_000;
/// Keep-alive periods without a sign of life after which a login ends, in halves (FC-BB-5, 7.8.6.2: 2.5 periods).
const PATIENCE_HALVES: u64 = 5;
const VLAN_ID_MASK: u16 = 0x0fff;
/// Largest FCoE frame without the Ethernet header, bytes: 2158.
const FCOE_BYTES_MAX: usize = FCOE_HEADER_BYTES + FRAME_BYTES_MAX + FCOE_TRAILER_BYTES;

/// Ethernet frames that the forwarder did not take, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// For somebody else, of another type or another VLAN, or from a group's address.
    pub not_ours: u64,
    /// Damaged, or not as FIP and FCoE have to be.
    pub malformed: u64,
    /// From an Ethernet address that has no login, or not the sender's.
    pub no_login: u64,
    /// Solicitations and logins beyond [`Settings::nodes_max`].
    pub too_many_nodes: u64,
    /// Logins that ended because keep-alives failed to come.
    pub expired: u64,
}

/// A forwarder with its fabric.
#[derive(Debug)]
pub struct Forwarder {
    settings: Settings,
    fabric: Fabric,
    /// Nodes by their own Ethernet address.
    nodes: BTreeMap<[u8; 6], Node>,
    /// Nodes by their links.
    by_port: BTreeMap<PortKey, [u8; 6]>,
    /// Nodes by the Ethernet addresses of their virtual ports.
    by_mac: BTreeMap<[u8; 6], ([u8; 6], FcId)>,
    next_port: u32,
    next_advertisement_ns: u64,
    next_check_ns: u64,
    transmit: VecDeque<Bytes>,
    remote: VecDeque<Frame>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Forwarder {
    /// A forwarder that begins at `now_ns`: it advertises itself at once.
    ///
    /// # Errors
    /// The time between keep-alives is below [`KEEP_ALIVE_MS_MIN`].
    pub fn new(settings: Settings, fabric: Fabric, now_ns: u64) -> Result<Forwarder, KeepAliveTooShort> {
        if settings.keep_alive_ms < KEEP_ALIVE_MS_MIN {
            return Err(KeepAliveTooShort(settings.keep_alive_ms));
        }
        Ok(Forwarder {
            settings,
            fabric,
            nodes: BTreeMap::new(),
            by_port: BTreeMap::new(),
            by_mac: BTreeMap::new(),
            next_port: 0,
            next_advertisement_ns: now_ns,
            next_check_ns: now_ns,
            transmit: VecDeque::new(),
            remote: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        })
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The fabric, to present and withdraw remote ports.
    pub fn fabric_mut(&mut self) -> &mut Fabric {
        &mut self.fabric
    }

    /// Ethernet frames that were not taken.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The own Ethernet address of the node that is logged in with an address, or has a port with it.
    pub fn node_of(&self, mac: [u8; 6]) -> Option<[u8; 6]> {
        match self.by_mac.get(&mac) {
            Some((node, _)) => Some(*node),
            None => self.nodes.contains_key(&mac).then_some(mac),
        }
    }

    /// Takes an Ethernet frame that came at `now_ns`.
    pub fn handle_ethernet(&mut self, frame: &Bytes, now_ns: u64) {
        let Ok((header, kind, content)) = EthernetHeader::decode(frame) else {
            self.counters.malformed += 1;
            return;
        };
        let ours = header.destination == self.settings.mac || header.destination == ALL_FCF_MACS;
        if !ours || !is_station(header.source) {
            self.counters.not_ours += 1;
            return;
        }
        let here = vlan_id(header.vlan) == vlan_id(self.settings.vlan);
        match kind {
            ETHERTYPE_FIP => match Message::decode(&content) {
                // A node asks for the VLAN before it knows it.
                Ok(message) if message.operation == Operation::VlanRequest => self.name_vlan(&header),
                Ok(message) if here => self.handle_fip(header.source, &message, now_ns),
                Ok(_) => self.counters.not_ours += 1,
                Err(_) => self.counters.malformed += 1,
            },
            ETHERTYPE_FCOE if here => match fcoe::decode(&content) {
                Ok(fc) => self.handle_fcoe(header.source, fc, now_ns),
                Err(_) => self.counters.malformed += 1,
            },
            _ => self.counters.not_ours += 1,
        }
        self.drain_fabric(now_ns);
    }

    /// Takes a frame from a port that a gateway presents.
    pub fn handle_remote(&mut self, frame: Frame, now_ns: u64) {
        self.fabric.handle_remote(frame);
        self.drain_fabric(now_ns);
    }

    /// Does what is due at `now_ns`: advertisements, and the end of logins of which nothing was heard.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if now_ns >= self.next_advertisement_ns {
            let advertisement = self.advertisement(flags::AVAILABLE);
            self.send_fip(ALL_ENODE_MACS, self.settings.vlan, &advertisement, 0);
            self.next_advertisement_ns = now_ns + self.period_ns();
        }
        if now_ns >= self.next_check_ns {
            self.end_silent(now_ns);
            self.next_check_ns = now_ns + self.period_ns() / 2;
        }
        self.drain_fabric(now_ns);
    }

    /// Ends the logins of which nothing was heard for too long.
    fn end_silent(&mut self, now_ns: u64) {
        let dead: Vec<[u8; 6]> =
            self.nodes.iter().filter(|(_, node)| self.node_deadline(node) <= now_ns).map(|(mac, _)| *mac).collect();
        for mac in dead {
            self.counters.expired += 1;
            self.clear(mac, None);
        }
        let silent: Vec<([u8; 6], FcId)> = self
            .nodes
            .iter()
            .flat_map(|(mac, node)| node.ports.iter().map(move |(id, port)| (*mac, *id, port.seen_ns)))
            .filter(|(_, _, seen_ns)| port_deadline(*seen_ns) <= now_ns)
            .map(|(mac, id, _)| (mac, id))
            .collect();
        for (mac, id) in silent {
            self.counters.expired += 1;
            self.clear(mac, Some(id));
        }
    }

    /// Time at which [`Forwarder::handle_timeout`] has something to do, ns. Silence is looked for twice a keep-alive
    /// period, so that a frame costs the same with one node and with a thousand.
    pub fn poll_timeout(&self) -> u64 {
        self.next_advertisement_ns.min(self.next_check_ns)
    }

    /// The next Ethernet frame that leaves.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmit.pop_front()
    }

    /// The next frame to a port that a gateway presents.
    pub fn poll_remote(&mut self) -> Option<Frame> {
        self.remote.pop_front()
    }

    /// The next change of logins.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends what the fabric has to say after [`Forwarder::fabric_mut`] was used.
    pub fn flush(&mut self, now_ns: u64) {
        self.drain_fabric(now_ns);
    }

    /// Ends all logins and tells the nodes, so that they log in again elsewhere or here: before the forwarder stops.
    pub fn clear_all(&mut self, now_ns: u64) {
        let nodes: Vec<[u8; 6]> = self.nodes.keys().copied().collect();
        for mac in nodes {
            self.clear(mac, None);
        }
        self.drain_fabric(now_ns);
    }

    /// Answers a request for the VLAN in the one from which it came.
    fn name_vlan(&mut self, request: &EthernetHeader) {
        let vlan = Descriptor::Vlan(vlan_id(self.settings.vlan).unwrap_or(0));
        let descriptors = vec![Descriptor::Mac(self.settings.mac), vlan];
        let answer = Message { operation: Operation::VlanNotification, flags: 0, descriptors };
        self.send_fip(request.source, request.vlan, &answer, 0);
    }

    fn handle_fip(&mut self, source: [u8; 6], message: &Message, now_ns: u64) {
        let own = message.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Mac(mac) => Some(*mac),
            _ => None,
        });
        match message.operation {
            Operation::Solicitation if message.flags & flags::FABRIC_PROVIDED_MACS == 0 => {
                // This forwarder gives addresses; a node that insists on its own finds none here.
                self.counters.malformed += 1;
            }
            Operation::Solicitation => {
                let largest = message.descriptors.iter().find_map(|descriptor| match descriptor {
                    Descriptor::MaxFcoeBytes(bytes) => Some(usize::from(*bytes)),
                    _ => None,
                });
                let Some(largest) = largest.filter(|_| own == Some(source)) else {
                    self.counters.malformed += 1;
                    return;
                };
                // Padded to the node's largest frame, so that the answer tells whether the Ethernet carries it. The
                // descriptor leaves the Ethernet header out (Linux: fcoe_ctlr_fcoe_size).
                let least = ETHERNET_HEADER_BYTES + largest.min(FCOE_BYTES_MAX);
                let advertisement = self.advertisement(flags::AVAILABLE | flags::SOLICITED);
                self.send_fip(source, self.settings.vlan, &advertisement, least);
            }
            Operation::LinkServiceRequest => self.handle_link_service(source, message, now_ns),
            Operation::KeepAlive => self.handle_keep_alive(source, own, message, now_ns),
            // Other forwarders' messages.
            Operation::Advertisement
            | Operation::LinkServiceReply
            | Operation::ClearVirtualLinks
            | Operation::VlanRequest
            | Operation::VlanNotification => self.counters.not_ours += 1,
        }
    }

    /// FLOGI, FDISC and LOGO: the fabric's answer goes back by FIP.
    fn handle_link_service(&mut self, source: [u8; 6], message: &Message, now_ns: u64) {
        let service = message.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Flogi(service) => Some((service, Descriptor::Flogi as fn(LinkService) -> Descriptor)),
            Descriptor::Fdisc(service) => Some((service, Descriptor::Fdisc as fn(LinkService) -> Descriptor)),
            Descriptor::Logo(service) => Some((service, Descriptor::Logo as fn(LinkService) -> Descriptor)),
            _ => None,
        });
        let Some((service, wrap)) = service else {
            self.counters.malformed += 1;
            return;
        };
        // A LOGO may come from the virtual port's address.
        let mac = self.by_mac.get(&source).map_or(source, |(node, _)| *node);
        if !self.is_link_service(mac, service, wrap(service.clone())) {
            self.counters.malformed += 1;
            return;
        }
        if !self.nodes.contains_key(&mac) {
            if self.nodes.len() >= self.settings.nodes_max {
                self.counters.too_many_nodes += 1;
                return;
            }
            let port = PortKey(self.next_port);
            self.next_port = self.next_port.wrapping_add(1);
            self.nodes.insert(mac, Node::new(port, now_ns));
            self.by_port.insert(port, mac);
        }
        let Some(node) = self.nodes.get_mut(&mac) else { return };
        node.seen_ns = now_ns;
        node.asked = Some(Asked { ox_id: service.header.ox_id, wrap });
        let port = node.port;
        self.fabric.handle_frame(port, Frame::class3(service.header, service.payload.clone()));
        self.drain_fabric(now_ns);
        if let Some(node) = self.nodes.get_mut(&mac) {
            node.asked = None;
        }
        // A node whose login was refused, or that logged out, is none.
        if self.nodes.get(&mac).is_some_and(|node| node.ports.is_empty()) {
            self.forget(mac);
        }
    }

    /// True for an FC frame that FIP may carry: the service that its descriptor names, to the fabric, in the name of
    /// its own node. Any other would pass by the check of [`Forwarder::handle_fcoe`].
    fn is_link_service(&self, mac: [u8; 6], service: &LinkService, descriptor: Descriptor) -> bool {
        let header = service.header;
        let command = Command::of(&service.payload).ok();
        let has = |id: FcId| self.nodes.get(&mac).is_some_and(|node| node.ports.contains_key(&id));
        let fits = match descriptor {
            Descriptor::Flogi(_) => command == Some(Command::FLOGI) && header.s_id == FcId::NONE,
            Descriptor::Fdisc(_) => command == Some(Command::FDISC) && header.s_id == FcId::NONE,
            Descriptor::Logo(_) => command == Some(Command::LOGO) && has(header.s_id),
            _ => false,
        };
        fits && header.kind == FrameType::ELS
            && header.r_ctl == routing::ELS_REQUEST
            && header.d_id == FcId::FABRIC_PORT
    }

    /// A node sends its own keep-alives from its address, and those of a virtual port from that port's.
    fn handle_keep_alive(&mut self, source: [u8; 6], own: Option<[u8; 6]>, message: &Message, now_ns: u64) {
        let port = message.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Port { id, mac, name } => Some((*id, *mac, *name)),
            _ => None,
        });
        let mac = own.unwrap_or(source);
        if !is_station(mac) || port.map_or(mac, |(_, mac, _)| mac) != source {
            self.counters.malformed += 1;
            return;
        }
        let Some(node) = self.nodes.get_mut(&mac) else {
            // It logged in to an earlier life of this forwarder: without this it would wait for its time-outs.
            self.counters.no_login += 1;
            let clear = self.clear_message(&[]);
            self.send_fip(mac, self.settings.vlan, &clear, 0);
            return;
        };
        match port {
            None => node.seen_ns = now_ns,
            Some((id, port_mac, name)) => match node.ports.get_mut(&id) {
                Some(port) if port.mac == port_mac => port.seen_ns = now_ns,
                _ => {
                    // The port's login ended, and the node missed it.
                    self.counters.no_login += 1;
                    let gone = VirtualPort { mac: port_mac, name, seen_ns: now_ns };
                    let clear = self.clear_message(&[(id, gone)]);
                    self.send_fip(mac, self.settings.vlan, &clear, 0);
                }
            },
        }
    }

    fn handle_fcoe(&mut self, source: [u8; 6], frame: Frame, now_ns: u64) {
        let Some((mac, id)) = self.by_mac.get(&source).copied() else {
            self.counters.no_login += 1;
            return;
        };
        // LOGO and FLOGI go by FIP; every other frame carries its sender's address.
        if frame.header.s_id != id {
            self.counters.no_login += 1;
            return;
        }
        let Some(node) = self.nodes.get_mut(&mac) else { return };
        if let Some(port) = node.ports.get_mut(&id) {
            port.seen_ns = now_ns;
        }
        self.fabric.handle_frame(node.port, frame);
    }

    /// Takes out all that the fabric has: changes of logins first, since frames go to addresses that they give.
    fn drain_fabric(&mut self, now_ns: u64) {
        loop {
            while let Some(event) = self.fabric.poll_event() {
                self.note(&event, now_ns);
                self.events.push_back(event);
            }
            match self.fabric.poll_output() {
                Some(Output::Remote(frame)) => self.remote.push_back(frame),
                Some(Output::Attached(port, frame)) => self.send_frame(port, &frame),
                None => return,
            }
        }
    }

    fn note(&mut self, event: &Event, now_ns: u64) {
        match *event {
            Event::LoggedIn { port, id, name } => {
                let Some(mac) = self.by_port.get(&port) else { return };
                let own = fabric_provided_mac(self.settings.fc_map, id);
                self.by_mac.insert(own, (*mac, id));
                if let Some(node) = self.nodes.get_mut(mac) {
                    node.ports.insert(id, VirtualPort { mac: own, name, seen_ns: now_ns });
                }
            }
            Event::LoggedOut { port, id, .. } => {
                self.by_mac.remove(&fabric_provided_mac(self.settings.fc_map, id));
                let Some(mac) = self.by_port.get(&port) else { return };
                if let Some(node) = self.nodes.get_mut(mac) {
                    node.ports.remove(&id);
                }
            }
            Event::Registered { .. } => {}
        }
    }

    /// Sends a frame of the fabric to a node: by FIP when it answers what came by FIP.
    fn send_frame(&mut self, port: PortKey, frame: &Frame) {
        let Some(mac) = self.by_port.get(&port).copied() else { return };
        let Some(node) = self.nodes.get_mut(&mac) else { return };
        let header = frame.header;
        let is_answer =
            header.s_id == FcId::FABRIC_PORT && header.kind == FrameType::ELS && header.r_ctl == routing::ELS_REPLY;
        let Some(asked) = node.asked.filter(|asked| is_answer && asked.ox_id == header.ox_id) else {
            let destination = fabric_provided_mac(self.settings.fc_map, header.d_id);
            let ethernet = EthernetHeader { destination, source: self.settings.mac, vlan: self.settings.vlan };
            let mut bytes = BytesMut::new();
            fcoe::encode(&ethernet, frame, &mut bytes);
            self.transmit.push_back(bytes.freeze());
            return;
        };
        node.asked = None;
        let payload = frame.payload.to_bytes();
        let granted = match node.ports.get(&header.d_id) {
            Some(port) if payload.first() == Some(&Command::LS_ACC.0) => port.mac,
            _ => [0; 6],
        };
        let message = Message {
            operation: Operation::LinkServiceReply,
            flags: flags::FABRIC_PROVIDED_MACS,
            descriptors: vec![(asked.wrap)(LinkService { header, payload }), Descriptor::Mac(granted)],
        };
        self.send_fip(mac, self.settings.vlan, &message, 0);
    }

    /// Ends the logins of a node, or one of them, and tells the node.
    fn clear(&mut self, mac: [u8; 6], only: Option<FcId>) {
        let Some(node) = self.nodes.get(&mac) else { return };
        let gone: Vec<(FcId, VirtualPort)> = node
            .ports
            .iter()
            .filter(|(id, _)| only.is_none_or(|only| only == **id))
            .map(|(id, port)| (*id, *port))
            .collect();
        // All of a node's ports are meant when none is named; a list of all might not fit into a frame.
        let message = self.clear_message(if only.is_some() { &gone } else { &[] });
        self.send_fip(mac, self.settings.vlan, &message, 0);
        for (id, _) in gone {
            self.fabric.log_out(id);
            while let Some(event) = self.fabric.poll_event() {
                self.note(&event, 0);
                self.events.push_back(event);
            }
        }
        if self.nodes.get(&mac).is_some_and(|node| node.ports.is_empty()) {
            self.forget(mac);
        }
    }

    fn forget(&mut self, mac: [u8; 6]) {
        if let Some(node) = self.nodes.remove(&mac) {
            self.by_port.remove(&node.port);
        }
    }

    fn clear_message(&self, ports: &[(FcId, VirtualPort)]) -> Message {
        let mut descriptors = vec![Descriptor::Mac(self.settings.mac), Descriptor::Name(self.settings.switch)];
        descriptors.extend(ports.iter().map(|(id, port)| Descriptor::Port { mac: port.mac, id: *id, name: port.name }));
        Message { operation: Operation::ClearVirtualLinks, flags: 0, descriptors }
    }

    fn advertisement(&self, more: u16) -> Message {
        Message {
            operation: Operation::Advertisement,
            flags: flags::FABRIC_PROVIDED_MACS | flags::FABRIC_PORT | more,
            descriptors: vec![
                Descriptor::Priority(self.settings.priority),
                Descriptor::Mac(self.settings.mac),
                Descriptor::Name(self.settings.switch),
                Descriptor::Fabric { id: 0, fc_map: self.settings.fc_map, name: self.settings.fabric },
                Descriptor::KeepAlivePeriod { off: false, ms: self.settings.keep_alive_ms },
            ],
        }
    }

    /// Sends a message in a frame of at least `least` bytes, the tag left out of the count.
    fn send_fip(&mut self, destination: [u8; 6], vlan: Option<u16>, message: &Message, least: usize) {
        let ethernet = EthernetHeader { destination, source: self.settings.mac, vlan };
        let mut bytes = BytesMut::new();
        ethernet.encode(ETHERTYPE_FIP, &mut bytes);
        let tag = bytes.len() - ETHERNET_HEADER_BYTES;
        message.encode(&mut bytes);
        if bytes.len() < least + tag {
            bytes.resize(least + tag, 0);
        }
        self.transmit.push_back(bytes.freeze());
    }

    fn period_ns(&self) -> u64 {
        u64::from(self.settings.keep_alive_ms) * NS_PER_MS
    }

    fn node_deadline(&self, node: &Node) -> u64 {
        node.seen_ns + self.period_ns() * PATIENCE_HALVES / 2
    }
}

fn port_deadline(seen_ns: u64) -> u64 {
    seen_ns + u64::from(PORT_KEEP_ALIVE_MS) * NS_PER_MS * PATIENCE_HALVES / 2
}

/// True for the Ethernet address of one station: no group's, and not zero.
fn is_station(mac: [u8; 6]) -> bool {
    mac[0] & 1 == 0 && mac != [0; 6]
}

/// Virtual LAN of a tag; 0 stands for none (802.1Q).
fn vlan_id(tag: Option<u16>) -> Option<u16> {
    tag.map(|tag| tag & VLAN_ID_MASK).filter(|id| *id != 0)
}
