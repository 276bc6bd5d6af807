//! The port: takes frames, sorts them, keeps the time of requests.

use super::output::{Counters, Event, PeerInfo, Upward};
use super::peer::Peers;
use super::requests::{Pending, Purpose, Requests};
use super::settings::Settings;
use crate::fc::sequence::{frames_of, Collected, Collector, CollectorBounds};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::fc::els::{self, ExchangeName, Request};
use wire::fc::name_server::{Query, QueryScope};
use wire::fc::{
    frame_control, routing, ClassOfService, Eof, FcId, Frame, FrameHeader, FrameType, Login, Sof, UNASSIGNED,
};

pub(super) const NS_PER_MS: u64 = 1_000_000;
/// Sequences of several frames that others may have under way: lists of the name server are the longest.
const SEQUENCES: CollectorBounds = CollectorBounds { sequences_of_one: 4, sequences: 256, bytes: 64 * 1024 };
/// P_RJT: the action is not to be tried again, and the port does not support the class (FC-FS-2, table 56).
const CLASS_NOT_SUPPORTED: u32 = 2 << 24 | 0x15 << 16;

/// Progress of the port's own login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The link is down, or the port is logged out.
    Offline,
    /// A step is under way.
    LoggingIn,
    /// The login failed; another begins at this time, ns.
    Waiting(u64),
    /// All is done.
    Online,
}

/// An N_Port.
#[derive(Debug)]
pub struct NPort {
    pub(super) settings: Settings,
    pub(super) phase: Phase,
    pub(super) id: FcId,
    /// R_A_TOV and E_D_TOV of the fabric, ms.
    pub(super) r_a_tov_ms: u32,
    pub(super) e_d_tov_ms: u32,
    /// Longest payload that the fabric takes, bytes.
    pub(super) fabric_bytes: u16,
    pub(super) requests: Requests,
    pub(super) peers: Peers,
    pub(super) collector: Collector,
    pub(super) output: VecDeque<Frame>,
    pub(super) upward: VecDeque<Upward>,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
    /// Number of the caller's last ping or question.
    last_number: u32,
}

impl NPort {
    /// A port without a link.
    pub fn new(settings: Settings) -> NPort {
        NPort {
            phase: Phase::Offline,
            id: FcId::NONE,
            r_a_tov_ms: settings.r_a_tov_ms,
            e_d_tov_ms: settings.e_d_tov_ms,
            fabric_bytes: settings.receive_bytes,
            requests: Requests::new(),
            peers: Peers::default(),
            collector: Collector::new(SEQUENCES),
            output: VecDeque::new(),
            upward: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            last_number: 0,
            settings,
        }
    }

    /// Settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Address; [`FcId::NONE`] before the fabric gave one.
    pub fn id(&self) -> FcId {
        self.id
    }

    /// True when the port is logged in, registered, and hears of changes.
    pub fn is_online(&self) -> bool {
        self.phase == Phase::Online
    }

    /// R_A_TOV, ns: after so long a frame that has not come will not come.
    pub fn r_a_tov_ns(&self) -> u64 {
        u64::from(self.r_a_tov_ms) * NS_PER_MS
    }

    /// E_D_TOV, ns: after so long a missing answer is an error.
    pub fn e_d_tov_ns(&self) -> u64 {
        u64::from(self.e_d_tov_ms) * NS_PER_MS
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Ports whose login is complete, in order of addresses.
    pub fn peers(&self) -> impl Iterator<Item = &PeerInfo> {
        self.peers.iter().filter(|peer| peer.is_logged_in()).map(|peer| &peer.info)
    }

    /// Requests under way, and ports known: what the port keeps.
    pub fn kept(&self) -> (usize, usize) {
        (self.requests.len() + self.collector.open(), self.peers.len())
    }

    /// Takes a frame that came at `now_ns`.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) {
        let header = frame.header;
        if !frame.eof.is_valid() {
            self.counters.malformed += 1;
            return;
        }
        match frame.sof.class() {
            ClassOfService::Class3 => {}
            ClassOfService::F => {
                self.counters.other_class += 1;
                return;
            }
            ClassOfService::Class2 | ClassOfService::Class4 => {
                self.counters.other_class += 1;
                // A reject is not rejected, or two ports would go on for ever.
                if header.r_ctl != routing::PORT_REJECT && header.r_ctl != routing::FABRIC_REJECT {
                    self.output.push_back(class_refused(&frame));
                }
                return;
            }
        }
        if self.phase == Phase::Offline || (header.d_id != self.id && self.id != FcId::NONE) {
            self.counters.foreign += 1;
            return;
        }
        match header.r_ctl {
            routing::ELS_REQUEST | routing::ELS_REPLY | routing::SOLICITED_CONTROL if header.kind != FrameType::FCP => {
                match self.collector.add(&frame) {
                    Collected::Incomplete => {}
                    Collected::Broken => self.counters.malformed += 1,
                    Collected::Whole(header, payload) => self.handle_whole(&header, &payload, now_ns),
                }
            }
            _ => self.hand_up(frame, now_ns),
        }
    }

    /// Does what is due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        for pending in self.requests.take_due(now_ns) {
            if pending.attempts > 0 {
                self.counters.retries += 1;
                self.send_pending(Pending { attempts: pending.attempts - 1, ..pending }, now_ns);
            } else {
                self.failed(pending.purpose, "no answer", now_ns);
            }
        }
        if matches!(self.phase, Phase::Waiting(at_ns) if at_ns <= now_ns) {
            self.begin_login(now_ns);
        }
        self.retry_peers(now_ns);
    }

    /// Time at which [`NPort::handle_timeout`] has something to do, ns.
    pub fn poll_timeout(&self) -> Option<u64> {
        let waiting = match self.phase {
            Phase::Waiting(at_ns) => Some(at_ns),
            _ => None,
        };
        [self.requests.next_ns(), self.peers.next_ns(), waiting].into_iter().flatten().min()
    }

    /// The next frame that leaves.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        self.output.pop_front()
    }

    /// The next change of logins.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next content for FC-4.
    pub fn poll_upward(&mut self) -> Option<Upward> {
        self.upward.pop_front()
    }

    /// Sends a frame of FC-4.
    pub fn send(&mut self, frame: Frame) {
        self.output.push_back(frame);
    }

    /// Answers a REC or RRQ of another port with the payload of an accept or a reject.
    pub fn answer(&mut self, request: &FrameHeader, payload: &Bytes) {
        let header = reply_header(request, self.id, routing::ELS_REPLY);
        self.send_sequence(header, payload);
    }

    /// Asks a port for the state of an exchange (REC). The answer is an [`Upward::ExchangeStatus`] with `key`.
    pub fn read_exchange(&mut self, to: FcId, exchange: ExchangeName, key: u64, now_ns: u64) {
        let payload = Request::ReadExchangeConcise(exchange).to_bytes();
        self.ask(to, FrameType::ELS, payload, Purpose::ReadExchange(key), 0, now_ns);
    }

    /// Gives back the numbers of an aborted exchange (RRQ). The answer is an [`Upward::Reinstated`] with `key`.
    pub fn reinstate(&mut self, to: FcId, exchange: ExchangeName, key: u64, now_ns: u64) {
        let payload = Request::ReinstateRecoveryQualifier(exchange).to_bytes();
        self.ask(to, FrameType::ELS, payload, Purpose::Reinstate(key), 1, now_ns);
    }

    /// Asks the name server for all ports of a type; the answer is an [`Event::Ports`].
    pub fn ask_ports(&mut self, kind: FrameType, now_ns: u64) {
        let query = Query::PortsOfType { kind: kind.0, scope: QueryScope::default() };
        self.query(&query, Purpose::ListPorts, now_ns);
    }

    /// Asks the name server, once; returns the number of the question, which the [`Event::DirectoryAnswer`] has.
    pub fn ask_directory(&mut self, query: &Query, now_ns: u64) -> u32 {
        let number = self.next_number();
        self.ask(FcId::DIRECTORY_SERVER, FrameType::CT, query.to_bytes(), Purpose::Ask(number), 0, now_ns);
        number
    }

    /// Sends a port `bytes` to send back (ECHO); returns the number of the ping. A port answers without a login, but a
    /// gateway carries nothing between ports without one.
    pub fn ping(&mut self, to: FcId, bytes: &[u8], now_ns: u64) -> u32 {
        self.send_ping(to, &Request::Echo(Bytes::copy_from_slice(bytes)), now_ns)
    }

    /// Asks a logged-in port for its address and names (ADISC); returns the number of the ping.
    pub fn ping_address(&mut self, to: FcId, now_ns: u64) -> u32 {
        self.send_ping(to, &Request::DiscoverAddress(self.own_address()), now_ns)
    }

    fn send_ping(&mut self, to: FcId, request: &Request, now_ns: u64) -> u32 {
        let number = self.next_number();
        self.ask(to, FrameType::ELS, request.to_bytes(), Purpose::Ping(to, number), 0, now_ns);
        number
    }

    fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    pub(super) fn query(&mut self, query: &Query, purpose: Purpose, now_ns: u64) {
        let attempts = self.settings.attempts.saturating_sub(1);
        self.ask(FcId::DIRECTORY_SERVER, FrameType::CT, query.to_bytes(), purpose, attempts, now_ns);
    }

    pub(super) fn request(&mut self, to: FcId, request: &Request, purpose: Purpose, now_ns: u64) {
        let attempts = self.settings.attempts.saturating_sub(1);
        self.ask(to, FrameType::ELS, request.to_bytes(), purpose, attempts, now_ns);
    }

    fn ask(&mut self, to: FcId, kind: FrameType, payload: Bytes, purpose: Purpose, attempts: u32, now_ns: u64) {
        let pending = Pending { to, kind, payload, purpose, sent_ns: now_ns, deadline_ns: 0, attempts };
        self.send_pending(pending, now_ns);
    }

    fn send_pending(&mut self, pending: Pending, now_ns: u64) {
        let (to, kind, payload, purpose) = (pending.to, pending.kind, pending.payload.clone(), pending.purpose);
        let deadline_ns = now_ns + self.e_d_tov_ns().max(NS_PER_MS);
        let Some(ox_id) = self.requests.add(Pending { sent_ns: now_ns, deadline_ns, ..pending }) else {
            return self.failed(purpose, "all exchange numbers are in use", now_ns);
        };
        let r_ctl = if kind == FrameType::CT { routing::UNSOLICITED_CONTROL } else { routing::ELS_REQUEST };
        let header = FrameHeader {
            r_ctl,
            d_id: to,
            s_id: if purpose == Purpose::FabricLogin { FcId::NONE } else { self.id },
            kind,
            f_ctl: frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
            ox_id,
            rx_id: UNASSIGNED,
            ..FrameHeader::default()
        };
        self.send_sequence(header, &payload);
    }

    /// Longest payload on the way to a port, bytes.
    pub fn payload_bytes_to(&self, id: FcId) -> usize {
        let peer = self.peers.get(id).filter(|peer| peer.is_logged_in());
        let most = peer.map_or(self.fabric_bytes, |peer| peer.info.receive_bytes.min(self.fabric_bytes));
        usize::from(most.max(256))
    }

    pub(super) fn send_sequence(&mut self, header: FrameHeader, payload: &Bytes) {
        let most = self.payload_bytes_to(header.d_id);
        self.output.extend(frames_of(header, payload, most));
    }

    /// Takes a whole link service, or a whole answer of the name server.
    fn handle_whole(&mut self, header: &FrameHeader, payload: &Bytes, now_ns: u64) {
        if header.r_ctl == routing::ELS_REQUEST && header.kind == FrameType::ELS {
            // Before the login there is nobody to answer.
            if self.id == FcId::NONE {
                self.counters.foreign += 1;
                return;
            }
            return match Request::parse(payload) {
                Ok(request) => self.serve(header, &request, payload, now_ns),
                Err(_) => {
                    self.counters.malformed += 1;
                    let (reason, explanation) = (els::Reject::PROTOCOL_ERROR, els::Reject::NO_EXPLANATION);
                    self.answer(header, &els::Reject { reason, explanation }.to_bytes());
                }
            };
        }
        let is_answer = header.has(frame_control::EXCHANGE_RESPONDER)
            && match header.r_ctl {
                routing::ELS_REPLY => header.kind == FrameType::ELS,
                _ => header.kind == FrameType::CT,
            };
        let pending = self.requests.get(header.ox_id, header.s_id).filter(|pending| pending.kind == header.kind);
        if !is_answer || pending.is_none() {
            self.counters.unsolicited += 1;
            return;
        }
        let Some(pending) = self.requests.remove(header.ox_id) else { return };
        self.answered(header, &pending, payload, now_ns);
    }

    /// Leaves a frame to FC-4, of a logged-in port only.
    fn hand_up(&mut self, frame: Frame, now_ns: u64) {
        let from = frame.header.s_id;
        if self.peers.get(from).is_some_and(super::peer::Peer::is_logged_in) {
            self.upward.push_back(Upward::Frame(frame));
            return;
        }
        self.counters.no_login += 1;
        // The sender thinks it is logged in: this side began anew. One LOGO at a time tells it (FC-LS, 6.4.2).
        let tells = !from.is_well_known() && from != FcId::NONE && self.id != FcId::NONE;
        if tells && frame.header.kind == FrameType::FCP && !self.requests.has(Purpose::Logout(from)) {
            self.log_out_of(from, now_ns);
        }
    }

    /// Parameters of this port's logins and of its accepts.
    pub(super) fn parameters(&self, command: els::Command) -> Login {
        Login {
            command: command.0,
            buffer_credits: self.settings.buffer_credits,
            receive_bytes: self.settings.receive_bytes,
            fabric_port: false,
            further_addresses: matches!(command, els::Command::FLOGI | els::Command::FDISC),
            r_a_tov_ms: None,
            e_d_tov_ms: self.e_d_tov_ms,
            port: self.settings.port,
            node: self.settings.node,
            class3: true,
            sequential_delivery: false,
        }
    }
}

/// The header of an answer: the exchange's responder, its last sequence.
pub(super) fn reply_header(request: &FrameHeader, own: FcId, r_ctl: u8) -> FrameHeader {
    FrameHeader {
        r_ctl,
        d_id: request.s_id,
        s_id: own,
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
        r_ctl: routing::PORT_REJECT,
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
