//! The fabric: takes frames, answers those to its services, passes the others on.

use super::addresses::Assignments;
use super::directory::{Directory, Entry, Location};
use super::exchanges::Exchanges;
use super::login::Logins;
use super::output::{Counters, Event, Output, PortKey};
use super::settings::Settings;
use crate::fc::sequence::{frames_of, Collected, Collector, CollectorBounds};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::fc::ct::CtHeader;
use wire::fc::els::{self, AffectedPorts, Command, Reject, Request, Scope};
use wire::fc::name_server::Query;
use wire::fc::{
    frame_control, routing, BasicReject, ClassOfService, Eof, FcId, Frame, FrameHeader, FrameType, Login, Sof, Wwn,
    BASIC_LOGICAL_ERROR, INVALID_OX_RX_ID, UNASSIGNED,
};

/// Requests of several frames that ports may have under way to the services. They have one frame, but for long names.
const REQUESTS: CollectorBounds = CollectorBounds { sequences_of_one: 4, sequences: 256, bytes: 4096 };
/// F_RJT: the action is not to be tried again, and the fabric does not support the class (FC-FS-2, table 56).
const CLASS_NOT_SUPPORTED: u32 = 2 << 24 | 0x15 << 16;
/// Pages that fit into one RSCN of the least payload that every port takes, 256 bytes.
const PAGES_MAX: usize = (256 - 4) / 4;

/// A fabric of one switch.
#[derive(Debug)]
pub struct Fabric {
    settings: Settings,
    assignments: Assignments,
    logins: Logins,
    directory: Directory,
    collector: Collector,
    exchanges: Exchanges,
    /// Changes of which listeners have no notification yet.
    changes: BTreeMap<FcId, BTreeSet<FcId>>,
    output: VecDeque<Output>,
    events: VecDeque<Event>,
    counters: Counters,
    next_exchange: u16,
}

impl Fabric {
    /// A fabric without ports. `assignments` are those of an earlier life, or none; addresses of another domain are
    /// left out.
    pub fn new(settings: Settings, assignments: Assignments) -> Fabric {
        Fabric {
            assignments: assignments.of_domain(&settings),
            settings,
            logins: Logins::default(),
            directory: Directory::default(),
            collector: Collector::new(REQUESTS),
            exchanges: Exchanges::default(),
            changes: BTreeMap::new(),
            output: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            next_exchange: 0,
        }
    }

    /// Takes a frame that came through an attached port.
    pub fn handle_frame(&mut self, port: PortKey, frame: Frame) {
        let header = frame.header;
        if !frame.eof.is_valid() {
            self.counters.malformed += 1;
            return;
        }
        match frame.sof.class() {
            ClassOfService::Class3 => {}
            ClassOfService::F => {
                self.counters.switch_traffic += 1;
                return;
            }
            ClassOfService::Class2 | ClassOfService::Class4 => {
                self.counters.other_class += 1;
                self.output.push_back(Output::Attached(port, class_refused(&frame)));
                return;
            }
        }
        let known = self.logins.holder(header.s_id).is_some_and(|holder| holder.port == port);
        // A port without an address may log in, and nothing else.
        let logs_in = header.s_id == FcId::NONE && header.d_id == FcId::FABRIC_PORT;
        if !known && !logs_in {
            self.counters.foreign_source += 1;
            if is_els_request(&header) && header.d_id.is_well_known() {
                // It had an address before the fabric began anew: this tells it to log in.
                let reject = Reject { reason: Reject::UNABLE, explanation: Reject::LOGIN_REQUIRED };
                let reply = answer(&header, header.s_id, routing::ELS_REPLY);
                self.send_through(port, reply, &reject.to_bytes());
            }
            return;
        }
        if header.d_id.is_well_known() {
            self.serve(port, &frame);
        } else {
            self.forward(frame);
        }
    }

    /// Takes a frame from a port that a gateway presents: its sender is one that [`Fabric::present`] named.
    pub fn handle_remote(&mut self, frame: Frame) {
        let known = self.directory.get(frame.header.s_id).is_some_and(|entry| entry.location == Location::Remote);
        if !known {
            self.counters.foreign_source += 1;
            return;
        }
        self.forward(frame);
    }

    /// Presents a remote port as one of this fabric's, and returns the address that it has here; None when the domain
    /// is full, or the name is that of an attached port.
    pub fn present(&mut self, entry: Entry) -> Option<FcId> {
        let id = self.address_of(entry.port)?;
        if self.logins.holder(id).is_some() {
            return None;
        }
        let entry = Entry { location: Location::Remote, ..entry };
        if self.directory.get(id) != Some(&entry) {
            self.directory.insert(id, entry);
            self.queue_notification(id);
        }
        Some(id)
    }

    /// Presents a remote port at the address that it has in its own fabric, of another domain than this one's. Returns
    /// false, and presents nothing, when the address cannot be a port's there or is another's, or when the name is that
    /// of an attached port.
    pub fn present_at(&mut self, id: FcId, entry: Entry) -> bool {
        let foreign = (1..=239).contains(&id.domain()) && !self.settings.has(id);
        let attached = self.logins.has_name(entry.port);
        if !foreign || attached || self.directory.get(id).is_some_and(|old| old.port != entry.port) {
            return false;
        }
        let entry = Entry { location: Location::Remote, ..entry };
        if self.directory.get(id) != Some(&entry) {
            self.directory.insert(id, entry);
            self.queue_notification(id);
        }
        true
    }

    /// Takes a remote port away: the others hear that it is gone.
    pub fn withdraw(&mut self, id: FcId) {
        if self.directory.get(id).is_some_and(|entry| entry.location == Location::Remote) {
            self.directory.remove(id);
            self.exchanges.forget(id);
            self.queue_notification(id);
        }
    }

    /// Lets ports begin no exchange with each other from now on, but logouts: link services are rejected as "busy",
    /// other frames dropped. Those under way go on.
    pub fn drain(&mut self) {
        self.exchanges.drain();
    }

    /// Number of exchanges between ports that are under way, as far as the frames that pass tell: one whose last frame
    /// was lost counts until a port of it is gone.
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// Ends all logins of a link that is gone.
    pub fn detach(&mut self, port: PortKey) {
        for id in self.logins.ids_of(port) {
            self.log_out(id);
        }
    }

    /// Ends the login of one address.
    pub fn log_out(&mut self, id: FcId) {
        let Some(holder) = self.logins.remove(id) else { return };
        self.directory.remove(id);
        self.collector.forget(id);
        self.exchanges.forget(id);
        self.changes.remove(&id);
        self.events.push_back(Event::LoggedOut { port: holder.port, id, name: holder.name });
        self.queue_notification(id);
    }

    /// The next frame that leaves the fabric.
    pub fn poll_output(&mut self) -> Option<Output> {
        if self.output.is_empty() {
            self.send_changes();
        }
        self.output.pop_front()
    }

    /// The next change of logins.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Frames by what became of them.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The addresses that ports have had, to be kept over a restart.
    pub fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    /// The name server's entries, in order of addresses.
    pub fn entries(&self) -> impl Iterator<Item = (FcId, &Entry)> {
        self.directory.iter()
    }

    /// Number of addresses that are logged in.
    pub fn logins(&self) -> usize {
        self.logins.len()
    }

    fn forward(&mut self, frame: Frame) {
        if is_logout(&frame) {
            // It ends all exchanges of the two, and nobody waits for its own end.
            self.exchanges.forget_pair(frame.header.s_id, frame.header.d_id);
        } else if !self.exchanges.note(&frame) {
            return self.refuse_exchange(&frame.header);
        }
        self.pass_on(frame);
    }

    /// Rejects a link service that would begin an exchange, in its receiver's name. There is no reject of other frames
    /// in class 3: their sender finds its login ended soon.
    fn refuse_exchange(&mut self, header: &FrameHeader) {
        self.counters.refused_exchanges += 1;
        if is_els_request(header) {
            let reject = Reject { reason: Reject::LOGICAL_BUSY, explanation: Reject::NO_EXPLANATION };
            self.pass_on(Frame::class3(answer(header, header.s_id, routing::ELS_REPLY), reject.to_bytes()));
        }
    }

    fn pass_on(&mut self, frame: Frame) {
        let to = frame.header.d_id;
        let output = match (self.logins.holder(to), self.directory.get(to)) {
            (Some(holder), _) => Output::Attached(holder.port, frame),
            (None, Some(_)) => Output::Remote(frame),
            (None, None) => {
                self.counters.unknown_destination += 1;
                return;
            }
        };
        self.counters.forwarded += 1;
        self.output.push_back(output);
    }

    /// Answers a frame to a service of the fabric.
    fn serve(&mut self, port: PortKey, frame: &Frame) {
        if frame.header.r_ctl == routing::ABORT_SEQUENCE {
            self.abort(port, &frame.header);
            return;
        }
        let (header, payload) = match self.collector.add(frame) {
            Collected::Incomplete => return,
            Collected::Broken => {
                self.counters.malformed += 1;
                return;
            }
            Collected::Whole(header, payload) => (header, payload),
        };
        if is_els_request(&header) {
            let (to, reply) = match Request::parse(&payload) {
                Ok(request) => self.link_service(port, &header, &request),
                Err(_) => {
                    self.counters.malformed += 1;
                    let reject = Reject { reason: Reject::PROTOCOL_ERROR, explanation: Reject::NO_EXPLANATION };
                    (header.s_id, reject.to_bytes())
                }
            };
            self.send_through(port, answer(&header, to, routing::ELS_REPLY), &reply);
        } else if header.kind == FrameType::CT && header.r_ctl == routing::UNSOLICITED_CONTROL {
            let reply = self.query(&header, &payload);
            self.send_through(port, answer(&header, header.s_id, routing::SOLICITED_CONTROL), &reply);
        }
        // Anything else is an answer to what the fabric sent, such as the accept of an RSCN.
    }

    /// Forgets the sequence that an ABTS names, whose frame may be a later one of it. There is nothing else to abort:
    /// the fabric's exchanges end with their answer.
    fn abort(&mut self, port: PortKey, header: &FrameHeader) {
        self.collector.abort(header.s_id, header.ox_id);
        let reject = BasicReject { reason: BASIC_LOGICAL_ERROR, explanation: INVALID_OX_RX_ID, vendor: 0 };
        let mut reply = answer(header, header.s_id, routing::BASIC_REJECT);
        reply.kind = FrameType::BASIC;
        self.send_through(port, reply, &Bytes::copy_from_slice(&reject.to_bytes()));
    }

    /// Answers a link service: the address to answer to, and the payload.
    fn link_service(&mut self, port: PortKey, header: &FrameHeader, request: &Request) -> (FcId, Bytes) {
        let to = header.s_id;
        let accepted = els::accept();
        let reply = match (header.d_id, request) {
            (FcId::FABRIC_PORT, Request::Login(login)) => return self.fabric_login(port, header, login),
            (FcId::FABRIC_PORT, Request::Logout(_)) => {
                self.log_out(to);
                accepted
            }
            (FcId::FABRIC_PORT, Request::ReadTimeouts) => {
                els::accept_timeouts(self.settings.r_a_tov_ms, self.settings.e_d_tov_ms)
            }
            (FcId::FABRIC_CONTROLLER, Request::Register(registration)) => {
                self.logins.register(to, *registration);
                accepted
            }
            (FcId::DIRECTORY_SERVER, Request::Login(login)) if login.command == Command::PLOGI.0 => {
                let own = self.parameters(login.command, false);
                Bytes::copy_from_slice(&els::accept_login(&own))
            }
            (FcId::DIRECTORY_SERVER, Request::Logout(_)) => accepted,
            (_, Request::Echo(bytes)) => els::accept_echo(bytes),
            _ => Reject { reason: Reject::NOT_SUPPORTED, explanation: Reject::REQUEST_NOT_SUPPORTED }.to_bytes(),
        };
        (to, reply)
    }

    /// FLOGI gives a link its first address, FDISC a further one.
    fn fabric_login(&mut self, port: PortKey, header: &FrameHeader, login: &Login) -> (FcId, Bytes) {
        let refused = |reason, explanation| (header.s_id, Reject { reason, explanation }.to_bytes());
        let further = match Command(login.command) {
            Command::FLOGI => false,
            Command::FDISC => true,
            _ => return refused(Reject::NOT_SUPPORTED, Reject::REQUEST_NOT_SUPPORTED),
        };
        let held = self.logins.ids_of(port);
        if further && held.is_empty() {
            return refused(Reject::UNABLE, Reject::LOGIN_REQUIRED);
        }
        if further && held.len() >= self.settings.addresses_per_port {
            return refused(Reject::UNABLE, Reject::INSUFFICIENT_RESOURCES);
        }
        let Some(id) = self.address_of(login.port) else {
            return refused(Reject::UNABLE, Reject::INSUFFICIENT_RESOURCES);
        };
        if self.directory.iter().any(|(_, entry)| entry.location == Location::Remote && entry.port == login.port) {
            // The name is that of a port behind a gateway: one of the two is wrong, and the one that is here waits.
            return refused(Reject::UNABLE, Reject::INVALID_PORT_NAME);
        }
        if self.logins.holder(id).is_some_and(|holder| holder.port != port) {
            // A name is at one link only, and nobody ends another's login: the link that has it must be gone first.
            return refused(Reject::UNABLE, Reject::INVALID_PORT_NAME);
        }
        if further {
            self.log_out(id);
        } else {
            // A new FLOGI ends all that the link had (FC-LS, 6.2.2.3).
            self.detach(port);
        }
        self.logins.add(port, id, login.port, login.receive_bytes);
        self.directory.insert(id, Entry::new(Location::Attached(port), login.port, login.node));
        self.events.push_back(Event::LoggedIn { port, id, name: login.port });
        let own = self.parameters(login.command, true);
        (id, Bytes::copy_from_slice(&els::accept_login(&own)))
    }

    /// The address of a name; None when all of the domain are in use.
    fn address_of(&mut self, name: Wwn) -> Option<FcId> {
        let directory = &self.directory;
        self.assignments.of(name, &self.settings, |id| directory.get(id).is_some())
    }

    fn parameters(&self, command: u8, fabric_port: bool) -> Login {
        Login {
            command,
            buffer_credits: self.settings.buffer_credits,
            receive_bytes: self.settings.receive_bytes,
            fabric_port,
            further_addresses: fabric_port,
            r_a_tov_ms: fabric_port.then_some(self.settings.r_a_tov_ms),
            e_d_tov_ms: self.settings.e_d_tov_ms,
            port: self.settings.port,
            node: self.settings.fabric,
            class3: true,
            sequential_delivery: fabric_port,
        }
    }

    /// Answers a request of the common transport.
    fn query(&mut self, header: &FrameHeader, payload: &Bytes) -> Bytes {
        let Ok((ct, content)) = CtHeader::parse(payload) else {
            self.counters.malformed += 1;
            return CtHeader::name_server(0).reject(CtHeader::INVALID_COMMAND, CtHeader::NO_EXPLANATION);
        };
        let served = header.d_id == FcId::DIRECTORY_SERVER
            && ct.service == CtHeader::DIRECTORY
            && ct.subtype == CtHeader::NAME_SERVER;
        if !served {
            return ct.reject(CtHeader::NOT_SUPPORTED, CtHeader::NO_EXPLANATION);
        }
        let Ok(query) = Query::parse(&ct, &content) else {
            self.counters.malformed += 1;
            return ct.reject(CtHeader::INVALID_COMMAND, CtHeader::NO_EXPLANATION);
        };
        let answer = self.directory.answer(header.s_id, &ct, &query);
        if let Some(id) = answer.changed {
            self.events.push_back(Event::Registered { id });
            // Others ask for ports by type: only a change of types or features makes them look again.
            if matches!(query, Query::RegisterTypes(..) | Query::RegisterFeatures { .. }) {
                self.queue_notification(id);
            }
        }
        answer.payload
    }

    /// Notes for all listeners but the port itself that a port changed.
    fn queue_notification(&mut self, changed: FcId) {
        let listeners: Vec<FcId> = self.logins.listeners().filter(|id| *id != changed).collect();
        for listener in listeners {
            self.changes.entry(listener).or_default().insert(changed);
        }
    }

    /// Makes RSCNs of what was noted.
    fn send_changes(&mut self) {
        while let Some((listener, changed)) = self.changes.pop_first() {
            let Some(port) = self.logins.holder(listener).map(|holder| holder.port) else { continue };
            let page = |id: &FcId| AffectedPorts { event: 0, scope: Scope::Port, id: *id };
            let pages: Vec<AffectedPorts> = changed.iter().map(page).collect();
            for some in pages.chunks(PAGES_MAX) {
                self.next_exchange = (self.next_exchange + 1) % UNASSIGNED;
                let header = FrameHeader {
                    r_ctl: routing::ELS_REQUEST,
                    kind: FrameType::ELS,
                    d_id: listener,
                    s_id: FcId::FABRIC_CONTROLLER,
                    f_ctl: frame_control::FIRST_SEQUENCE
                        | frame_control::END_SEQUENCE
                        | frame_control::SEQUENCE_INITIATIVE,
                    ox_id: self.next_exchange,
                    ..FrameHeader::default()
                };
                self.send_through(port, header, &Request::StateChange(some.to_vec()).to_bytes());
            }
        }
    }

    fn send_through(&mut self, port: PortKey, header: FrameHeader, payload: &Bytes) {
        let most = self.logins.receive_bytes(port).unwrap_or(256).min(self.settings.receive_bytes);
        for frame in frames_of(header, payload, usize::from(most)) {
            self.output.push_back(Output::Attached(port, frame));
        }
    }
}

fn is_els_request(header: &FrameHeader) -> bool {
    header.kind == FrameType::ELS && header.r_ctl == routing::ELS_REQUEST
}

fn is_logout(frame: &Frame) -> bool {
    is_els_request(&frame.header) && Command::of(&frame.payload.to_bytes()) == Ok(Command::LOGO)
}

/// The header of an answer: the exchange's responder, its last sequence.
fn answer(request: &FrameHeader, to: FcId, r_ctl: u8) -> FrameHeader {
    FrameHeader {
        r_ctl,
        d_id: to,
        s_id: request.d_id,
        kind: request.kind,
        f_ctl: frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
        seq_id: request.seq_id,
        ox_id: request.ox_id,
        // The exchange ends with the answer, so that one number serves for all.
        rx_id: 0,
        ..FrameHeader::default()
    }
}

/// The reject of a frame of another class than 3.
fn class_refused(frame: &Frame) -> Frame {
    let header = FrameHeader {
        r_ctl: routing::FABRIC_REJECT,
        d_id: frame.header.s_id,
        s_id: frame.header.d_id,
        f_ctl: (frame.header.f_ctl & frame_control::EXCHANGE_RESPONDER) ^ frame_control::EXCHANGE_RESPONDER
            | frame_control::SEQUENCE_RECIPIENT
            | frame_control::END_SEQUENCE,
        seq_id: frame.header.seq_id,
        seq_cnt: frame.header.seq_cnt,
        ox_id: frame.header.ox_id,
        rx_id: frame.header.rx_id,
        parameter: CLASS_NOT_SUPPORTED,
        ..FrameHeader::default()
    };
    Frame { sof: Sof::Normal2, header, payload: Bytes::new().into(), eof: Eof::Terminate }
}
