//! The node: one virtual link, from looking for a forwarder to its end.

use super::settings::Settings;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::ethernet::{EthernetHeader, ETHERTYPE_FCOE, ETHERTYPE_FIP};
use wire::fc::els::Command;
use wire::fc::{routing, FcId, Frame, FrameType};
use wire::fcoe;
use wire::fip::{flags, Descriptor, LinkService, Message, Operation, ALL_ENODE_MACS, ALL_FCF_MACS, PORT_KEEP_ALIVE_MS};

const NS_PER_MS: u64 = 1_000_000;
/// Time between solicitations, ns.
const SOLICIT_NS: u64 = 1000 * NS_PER_MS;
/// Time for which forwarders are compared after the first has answered, ns: the best rank wins.
const SELECT_NS: u64 = 100 * NS_PER_MS;
/// Advertisement periods without an advertisement after which a forwarder is gone, in halves (FC-BB-5, 7.8.6.2).
const PATIENCE_HALVES: u64 = 5;

/// A change of the virtual link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A forwarder was chosen: the port may log in.
    Up {
        /// Its Ethernet address.
        forwarder: [u8; 6],
    },
    /// The fabric gave the port this Ethernet address.
    Granted([u8; 6]),
    /// The link has ended, with the port's login. Another forwarder is looked for.
    Down {
        /// Reason, for people.
        reason: &'static str,
    },
    /// The fabric accepted the port's logout.
    LoggedOut,
}

/// Ethernet frames that the node did not take, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// For somebody else, from somebody else, of another type or another VLAN.
    pub not_ours: u64,
    /// Damaged, or not as FIP and FCoE have to be.
    pub malformed: u64,
    /// Frames of the port while there was no link for them.
    pub no_link: u64,
}

/// A forwarder that advertised itself.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    mac: [u8; 6],
    priority: u8,
    /// None: it wants no keep-alives.
    period_ns: Option<u64>,
}

/// A forwarder that was chosen, and the port's login with its fabric.
#[derive(Clone, Copy, Debug)]
struct Link {
    forwarder: Candidate,
    /// Time of its last advertisement, ns.
    seen_ns: u64,
    /// Time of the next keep-alive of the node, ns.
    keep_alive_ns: u64,
    /// The port's address, its Ethernet address, and the time of its next keep-alive.
    port: Option<(FcId, [u8; 6], u64)>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Looking for forwarders.
    Soliciting { next_ns: u64, best: Option<(Candidate, u64)> },
    /// One was chosen.
    Linked(Link),
}

/// A node with one port.
#[derive(Debug)]
pub struct ENode {
    settings: Settings,
    phase: Phase,
    transmit: VecDeque<Bytes>,
    frames: VecDeque<Frame>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl ENode {
    /// A node that looks for forwarders from `now_ns` on.
    pub fn new(settings: Settings, now_ns: u64) -> ENode {
        ENode {
            settings,
            phase: Phase::Soliciting { next_ns: now_ns, best: None },
            transmit: VecDeque::new(),
            frames: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Ethernet frames that were not taken.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes an Ethernet frame that came at `now_ns`.
    pub fn handle_ethernet(&mut self, frame: &Bytes, now_ns: u64) {
        let Ok((header, kind, content)) = EthernetHeader::decode(frame) else {
            self.counters.malformed += 1;
            return;
        };
        let granted = self.port().map(|(_, mac)| mac);
        let ours = [Some(self.settings.mac), granted, Some(ALL_ENODE_MACS)].contains(&Some(header.destination));
        if !ours || vlan_id(header.vlan) != vlan_id(self.settings.vlan) {
            self.counters.not_ours += 1;
            return;
        }
        match kind {
            ETHERTYPE_FIP => match Message::decode(&content) {
                Ok(message) => self.handle_fip(header.source, &message, now_ns),
                Err(_) => self.counters.malformed += 1,
            },
            ETHERTYPE_FCOE => match (self.forwarder(), granted) {
                (Some(forwarder), Some(granted)) if header.source == forwarder && header.destination == granted => {
                    match fcoe::decode(&content) {
                        Ok(frame) => self.frames.push_back(frame),
                        Err(_) => self.counters.malformed += 1,
                    }
                }
                _ => self.counters.not_ours += 1,
            },
            _ => self.counters.not_ours += 1,
        }
    }

    /// Takes a frame of the port: its login and logout go by FIP, all others by FCoE.
    pub fn handle_frame(&mut self, frame: &Frame) {
        let Some(forwarder) = self.forwarder() else {
            self.counters.no_link += 1;
            return;
        };
        let header = frame.header;
        let is_request = header.kind == FrameType::ELS && header.r_ctl == routing::ELS_REQUEST;
        let own = self.port().map(|(_, mac)| mac);
        if is_request && header.d_id == FcId::FABRIC_PORT {
            let payload = frame.payload.to_bytes();
            let service = LinkService { header, payload };
            let wrapped = match Command::of(&service.payload) {
                Ok(Command::FLOGI) => Some((Descriptor::Flogi(service), [0; 6])),
                Ok(Command::LOGO) => own.map(|own| (Descriptor::Logo(service), own)),
                _ => None,
            };
            if let Some((descriptor, mac)) = wrapped {
                let descriptors = vec![descriptor, Descriptor::Mac(mac)];
                let flags = flags::FABRIC_PROVIDED_MACS;
                let message = Message { operation: Operation::LinkServiceRequest, flags, descriptors };
                return self.send_fip(self.settings.mac, forwarder, &message);
            }
        }
        let Some(source) = own else {
            self.counters.no_link += 1;
            return;
        };
        let ethernet = EthernetHeader { destination: forwarder, source, vlan: self.settings.vlan };
        let mut bytes = BytesMut::new();
        fcoe::encode(&ethernet, frame, &mut bytes);
        self.transmit.push_back(bytes.freeze());
    }

    /// Does what is due at `now_ns`: solicitations, keep-alives, the end of a link whose forwarder is silent.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        match &mut self.phase {
            Phase::Soliciting { best: Some((chosen, at_ns)), .. } if now_ns >= *at_ns => {
                let forwarder = *chosen;
                let keep_alive_ns = forwarder.period_ns.map_or(u64::MAX, |period| now_ns + period);
                self.phase = Phase::Linked(Link { forwarder, seen_ns: now_ns, keep_alive_ns, port: None });
                self.events.push_back(Event::Up { forwarder: forwarder.mac });
            }
            Phase::Soliciting { next_ns, .. } if now_ns >= *next_ns => {
                *next_ns = now_ns + SOLICIT_NS;
                self.solicit();
            }
            Phase::Soliciting { .. } => {}
            Phase::Linked(link) if now_ns >= silence_ns(link) => self.end("the forwarder is silent", now_ns),
            Phase::Linked(link) => {
                let is_node_due = now_ns >= link.keep_alive_ns;
                if is_node_due {
                    link.keep_alive_ns = now_ns + link.forwarder.period_ns.unwrap_or(0);
                }
                let mut due = None;
                if let Some((id, mac, next_ns)) = &mut link.port {
                    if now_ns >= *next_ns && link.forwarder.period_ns.is_some() {
                        *next_ns = now_ns + u64::from(PORT_KEEP_ALIVE_MS) * NS_PER_MS;
                        due = Some((*id, *mac));
                    }
                }
                let forwarder = link.forwarder.mac;
                if is_node_due {
                    self.keep_alive(self.settings.mac, forwarder, None);
                }
                if let Some((id, mac)) = due {
                    self.keep_alive(mac, forwarder, Some(id));
                }
            }
        }
    }

    /// Time at which [`ENode::handle_timeout`] has something to do, ns.
    pub fn poll_timeout(&self) -> u64 {
        match &self.phase {
            Phase::Soliciting { next_ns, best } => best.map_or(*next_ns, |(_, at_ns)| at_ns.min(*next_ns)),
            Phase::Linked(link) => {
                let port = link.port.filter(|_| link.forwarder.period_ns.is_some());
                let port_ns = port.map_or(u64::MAX, |(_, _, next_ns)| next_ns);
                silence_ns(link).min(link.keep_alive_ns).min(port_ns)
            }
        }
    }

    /// The next Ethernet frame that leaves.
    pub fn poll_transmit(&mut self) -> Option<Bytes> {
        self.transmit.pop_front()
    }

    /// The next frame for the port.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// The next change of the link.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn forwarder(&self) -> Option<[u8; 6]> {
        match &self.phase {
            Phase::Linked(link) => Some(link.forwarder.mac),
            Phase::Soliciting { .. } => None,
        }
    }

    /// The port's address and its Ethernet address.
    fn port(&self) -> Option<(FcId, [u8; 6])> {
        match &self.phase {
            Phase::Linked(link) => link.port.map(|(id, mac, _)| (id, mac)),
            Phase::Soliciting { .. } => None,
        }
    }

    fn handle_fip(&mut self, source: [u8; 6], message: &Message, now_ns: u64) {
        let is_own = self.forwarder() == Some(source);
        match message.operation {
            Operation::Advertisement => self.handle_advertisement(source, message, now_ns),
            Operation::LinkServiceReply if is_own => self.handle_reply(message, now_ns),
            Operation::ClearVirtualLinks if is_own => {
                let own = self.port();
                let mut ports = message.descriptors.iter().filter_map(|descriptor| match descriptor {
                    Descriptor::Port { id, mac, .. } => Some((*id, *mac)),
                    _ => None,
                });
                // All ports are meant when none is named.
                let first = ports.next();
                if first.is_none() || first == own || ports.any(|port| Some(port) == own) {
                    self.end("the forwarder cleared the virtual link", now_ns);
                }
            }
            _ => self.counters.not_ours += 1,
        }
    }

    fn handle_advertisement(&mut self, source: [u8; 6], message: &Message, now_ns: u64) {
        // An answer to a solicitation is as long as the longest frame: it proves that the Ethernet carries those.
        let wanted = flags::FABRIC_PROVIDED_MACS | flags::FABRIC_PORT | flags::AVAILABLE | flags::SOLICITED;
        let mut found = Candidate { mac: source, priority: u8::MAX, period_ns: None };
        for descriptor in &message.descriptors {
            match descriptor {
                Descriptor::Priority(priority) => found.priority = *priority,
                Descriptor::KeepAlivePeriod { off: false, ms } if *ms > 0 => {
                    found.period_ns = Some(u64::from(*ms) * NS_PER_MS);
                }
                _ => {}
            }
        }
        match &mut self.phase {
            Phase::Linked(link) if link.forwarder.mac == source => link.seen_ns = now_ns,
            Phase::Soliciting { best, .. } if message.flags & wanted == wanted => match best {
                Some((known, _)) if (known.priority, known.mac) <= (found.priority, found.mac) => {}
                Some((known, _)) => *known = found,
                None => *best = Some((found, now_ns + SELECT_NS)),
            },
            _ => {}
        }
    }

    /// The fabric's answer to a login or logout.
    fn handle_reply(&mut self, message: &Message, now_ns: u64) {
        let granted = message.descriptors.iter().find_map(|descriptor| match descriptor {
            Descriptor::Mac(mac) => Some(*mac),
            _ => None,
        });
        for descriptor in &message.descriptors {
            let (service, is_login) = match descriptor {
                Descriptor::Flogi(service) => (service, true),
                Descriptor::Logo(service) => (service, false),
                _ => continue,
            };
            let is_accepted = Command::of(&service.payload) == Ok(Command::LS_ACC);
            if is_login && is_accepted {
                let Some(mac) = granted.filter(|mac| mac[0] & 1 == 0 && *mac != [0; 6]) else {
                    self.counters.malformed += 1;
                    return;
                };
                if let Phase::Linked(link) = &mut self.phase {
                    link.port = Some((service.header.d_id, mac, now_ns + u64::from(PORT_KEEP_ALIVE_MS) * NS_PER_MS));
                }
                self.events.push_back(Event::Granted(mac));
            }
            if !is_login && is_accepted {
                if let Phase::Linked(link) = &mut self.phase {
                    link.port = None;
                }
                self.events.push_back(Event::LoggedOut);
            }
            self.frames.push_back(Frame::class3(service.header, service.payload.clone()));
            return;
        }
        self.counters.malformed += 1;
    }

    fn end(&mut self, reason: &'static str, now_ns: u64) {
        self.phase = Phase::Soliciting { next_ns: now_ns, best: None };
        self.frames.clear();
        self.events.push_back(Event::Down { reason });
    }

    fn solicit(&mut self) {
        let settings = &self.settings;
        let descriptors = vec![
            Descriptor::Mac(settings.mac),
            Descriptor::Name(settings.node),
            Descriptor::MaxFcoeBytes(settings.fcoe_bytes_max),
        ];
        let message = Message { operation: Operation::Solicitation, flags: flags::FABRIC_PROVIDED_MACS, descriptors };
        self.send_fip(self.settings.mac, ALL_FCF_MACS, &message);
    }

    /// Sends a keep-alive: of the node, or of its port.
    fn keep_alive(&mut self, source: [u8; 6], forwarder: [u8; 6], port: Option<FcId>) {
        let mut descriptors = vec![Descriptor::Mac(self.settings.mac)];
        descriptors.extend(port.map(|id| Descriptor::Port { mac: source, id, name: self.settings.port }));
        self.send_fip(source, forwarder, &Message { operation: Operation::KeepAlive, flags: 0, descriptors });
    }

    fn send_fip(&mut self, source: [u8; 6], destination: [u8; 6], message: &Message) {
        let mut bytes = BytesMut::new();
        EthernetHeader { destination, source, vlan: self.settings.vlan }.encode(ETHERTYPE_FIP, &mut bytes);
        message.encode(&mut bytes);
        self.transmit.push_back(bytes.freeze());
    }
}

/// Time at which a forwarder that advertises nothing more is gone.
fn silence_ns(link: &Link) -> u64 {
    let period = link.forwarder.period_ns;
    period.map_or(u64::MAX, |period| link.seen_ns.saturating_add(period * PATIENCE_HALVES / 2))
}

/// Virtual LAN of a tag; 0 stands for none (802.1Q).
fn vlan_id(tag: Option<u16>) -> Option<u16> {
    const VLAN_ID_MASK: u16 = 0x0fff;
    tag.map(|tag| tag & VLAN_ID_MASK).filter(|id| *id != 0)
}
