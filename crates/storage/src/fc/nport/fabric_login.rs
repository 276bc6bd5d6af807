//! The port's own login: FLOGI or FDISC, directory server, registrations, state changes, in Linux's order.

use super::engine::{NPort, Phase};
use super::output::{Event, StatusAnswer, Upward};
use super::requests::{Pending, Purpose};
use bytes::Bytes;
use wire::fc::ct::CtHeader;
use wire::fc::els::{ChangeRegistration, Command, DiscoverAddress, ExchangeStatus, Logout, Reject, Request};
use wire::fc::name_server::{parse_list_of_ids, parse_list_of_ports, Query, TypeMap};
use wire::fc::{FcId, FrameHeader, FrameType, Login, Wwn};

/// Features of an FC-4 type that RFF_ID registers (FC-GS-2, 5.2.3.12).
const FEATURE_TARGET: u8 = 1;
const FEATURE_INITIATOR: u8 = 2;
/// Registrations, each after the other.
const REGISTRATIONS: usize = 5;

impl NPort {
    /// The link is up: logs in to the fabric.
    pub fn log_in(&mut self, now_ns: u64) {
        if self.phase == Phase::Offline {
            self.begin_login(now_ns);
        }
    }

    /// The link is down, or the fabric cleared it: all logins have ended.
    pub fn handle_link_down(&mut self, reason: &'static str) {
        if self.phase != Phase::Offline {
            self.end_login(reason);
        }
        self.phase = Phase::Offline;
    }

    /// Logs out of all ports, the directory server and the fabric. The frames leave by [`NPort::poll_frame`]; their
    /// answers are not waited for.
    pub fn log_out(&mut self, now_ns: u64) {
        if self.id != FcId::NONE {
            let ids: Vec<FcId> =
                self.peers.iter().filter(|peer| peer.is_logged_in()).map(|peer| peer.info.id).collect();
            for id in ids.into_iter().chain([FcId::DIRECTORY_SERVER, FcId::FABRIC_PORT]) {
                self.log_out_of(id, now_ns);
            }
        }
        self.handle_link_down("logged out");
    }

    /// Sends LOGO.
    pub(super) fn log_out_of(&mut self, id: FcId, now_ns: u64) {
        let logout = Request::Logout(Logout { id: self.id, port: self.settings.port });
        self.request(id, &logout, Purpose::Logout(id), now_ns);
    }

    pub(super) fn begin_login(&mut self, now_ns: u64) {
        self.end_login("the login begins anew");
        self.phase = Phase::LoggingIn;
        self.counters.fabric_logins += 1;
        let command = if self.settings.further { Command::FDISC } else { Command::FLOGI };
        let login = Request::Login(self.parameters(command));
        self.request(FcId::FABRIC_PORT, &login, Purpose::FabricLogin, now_ns);
    }

    /// Ends what there is of a login, and says so if there was one.
    fn end_login(&mut self, reason: &'static str) {
        let was = self.id != FcId::NONE;
        self.requests.forget(|_| true);
        let ids: Vec<FcId> = self.peers.iter().map(|peer| peer.info.id).collect();
        for id in ids {
            self.drop_peer(id, reason);
        }
        self.collector.forget(self.id);
        self.id = FcId::NONE;
        (self.r_a_tov_ms, self.e_d_tov_ms) = (self.settings.r_a_tov_ms, self.settings.e_d_tov_ms);
        if was {
            self.events.push_back(Event::Offline { reason });
        }
    }

    /// A request found no answer, or a reject.
    pub(super) fn failed(&mut self, purpose: Purpose, reason: &'static str, now_ns: u64) {
        match purpose {
            // Every step of the own login is needed: without it the port would not be found or not hear of others.
            Purpose::FabricLogin | Purpose::DirectoryLogin | Purpose::Register(_) | Purpose::ListenToChanges => {
                self.end_login(reason);
                self.phase = Phase::Waiting(now_ns + self.e_d_tov_ns());
            }
            Purpose::Discover | Purpose::DiscoverIds | Purpose::Logout(_) | Purpose::ReadTimeouts(_) => {}
            Purpose::ListPorts => self.events.push_back(Event::Ports(Vec::new())),
            Purpose::NameOf(id) => self.drop_peer(id, "the name server does not know it any more"),
            Purpose::Login(id) | Purpose::ProcessLogin(id) => self.refused_by(id, reason, now_ns),
            Purpose::Verify(id) => self.drop_peer(id, reason),
            Purpose::Ping(id, number) => self.events.push_back(Event::NoPong { id, number, is_rejected: false }),
            Purpose::Ask(number) => self.events.push_back(Event::DirectoryAnswer { number, content: None }),
            Purpose::ReadExchange(key) => self.upward.push_back(Upward::ExchangeStatus(key, StatusAnswer::None)),
            Purpose::Reinstate(key) => self.upward.push_back(Upward::Reinstated(key)),
        }
    }

    /// Takes the whole answer to a request.
    pub(super) fn answered(&mut self, header: &FrameHeader, pending: &Pending, payload: &Bytes, now_ns: u64) {
        let purpose = pending.purpose;
        if pending.kind == FrameType::CT {
            return match CtHeader::parse(payload) {
                Ok((ct, content)) => self.name_server_answered(purpose, &ct, &content, now_ns),
                Err(_) => {
                    self.counters.malformed += 1;
                    self.failed(purpose, "the name server's answer is malformed", now_ns);
                }
            };
        }
        match Command::of(payload) {
            Ok(Command::LS_ACC) => self.accepted(header, pending, payload, now_ns),
            Ok(Command::LS_RJT) => {
                let reject = Reject::parse(payload).unwrap_or(Reject { reason: 0, explanation: 0 });
                self.rejected(purpose, reject, now_ns);
            }
            _ => {
                self.counters.malformed += 1;
                self.failed(purpose, "the answer is neither accept nor reject", now_ns);
            }
        }
    }

    fn rejected(&mut self, purpose: Purpose, reject: Reject, now_ns: u64) {
        let served_by_fabric = matches!(purpose, Purpose::DirectoryLogin | Purpose::ListenToChanges);
        if served_by_fabric && reject.explanation == Reject::LOGIN_REQUIRED {
            // The fabric forgot this port: it began anew.
            return self.begin_login(now_ns);
        }
        if let Purpose::ReadExchange(key) = purpose {
            return self.upward.push_back(Upward::ExchangeStatus(key, StatusAnswer::Rejected));
        }
        if let Purpose::Ping(id, number) = purpose {
            return self.events.push_back(Event::NoPong { id, number, is_rejected: true });
        }
        self.failed(purpose, "rejected", now_ns);
    }

    fn accepted(&mut self, header: &FrameHeader, pending: &Pending, payload: &Bytes, now_ns: u64) {
        let purpose = pending.purpose;
        match purpose {
            Purpose::FabricLogin => match Login::parse(payload) {
                Ok(login) if login.fabric_port && !header.d_id.is_well_known() && header.d_id != FcId::NONE => {
                    self.id = header.d_id;
                    self.fabric_bytes = login.receive_bytes;
                    self.r_a_tov_ms = login.r_a_tov_ms.filter(|ms| *ms > 0).unwrap_or(self.r_a_tov_ms);
                    self.e_d_tov_ms = if login.e_d_tov_ms > 0 { login.e_d_tov_ms } else { self.e_d_tov_ms };
                    let login = Request::Login(self.parameters(Command::PLOGI));
                    self.request(FcId::DIRECTORY_SERVER, &login, Purpose::DirectoryLogin, now_ns);
                }
                _ => {
                    self.counters.malformed += 1;
                    self.failed(purpose, "the fabric's accept is none of a fabric", now_ns);
                }
            },
            Purpose::DirectoryLogin => self.register(0, now_ns),
            Purpose::ListenToChanges => {
                self.phase = Phase::Online;
                self.events.push_back(Event::Online { id: self.id });
                self.discover(now_ns);
            }
            Purpose::Login(id) => self.login_accepted(id, payload, now_ns),
            Purpose::ProcessLogin(id) => self.process_login_accepted(id, payload, now_ns),
            Purpose::Verify(id) => self.verified(id, payload, now_ns),
            Purpose::Ping(id, number) => {
                let rtt_ns = now_ns.saturating_sub(pending.sent_ns);
                // ECHO gives back what it got, ADISC the port's own address.
                let same = match Command::of(&pending.payload) {
                    Ok(Command::ADISC) => DiscoverAddress::parse(payload).is_ok_and(|found| found.id == id),
                    _ => payload.get(4..) == pending.payload.get(4..),
                };
                self.events.push_back(if same {
                    Event::Pong { id, number, rtt_ns }
                } else {
                    Event::NoPong { id, number, is_rejected: false }
                });
            }
            Purpose::ReadExchange(key) => {
                let answer = ExchangeStatus::parse(payload).map_or(StatusAnswer::None, StatusAnswer::Status);
                self.upward.push_back(Upward::ExchangeStatus(key, answer));
            }
            Purpose::Reinstate(key) => self.upward.push_back(Upward::Reinstated(key)),
            // The times of a port are asked for as Linux does; this port goes by the fabric's.
            Purpose::ReadTimeouts(_) | Purpose::Logout(_) => {}
            // Not asked by a link service.
            Purpose::Register(_)
            | Purpose::Discover
            | Purpose::DiscoverIds
            | Purpose::ListPorts
            | Purpose::Ask(_)
            | Purpose::NameOf(_) => {}
        }
    }

    /// Sends a registration, or registers for state changes after the last.
    fn register(&mut self, number: usize, now_ns: u64) {
        let (id, own) = (self.id, &self.settings);
        let features = u8::from(own.role.target) * FEATURE_TARGET + u8::from(own.role.initiator) * FEATURE_INITIATOR;
        let text = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let query = match number {
            0 => Query::RegisterNodeName(id, own.node),
            1 => Query::RegisterSymbolicNodeName(own.node, text(&own.node_symbol)),
            2 => Query::RegisterSymbolicPortName(id, text(&own.port_symbol)),
            3 => Query::RegisterTypes(id, TypeMap::of(own.kind.0)),
            4 => Query::RegisterFeatures { id, features, kind: own.kind.0 },
            _ => {
                let listen = Request::Register(ChangeRegistration::Full);
                return self.request(FcId::FABRIC_CONTROLLER, &listen, Purpose::ListenToChanges, now_ns);
            }
        };
        self.query(&query, Purpose::Register(number.min(REGISTRATIONS)), now_ns);
    }

    fn name_server_answered(&mut self, purpose: Purpose, ct: &CtHeader, content: &Bytes, now_ns: u64) {
        let accepted = ct.code == CtHeader::ACCEPT;
        // A type that nobody registered is an empty list, not an error.
        let nobody = ct.code == CtHeader::REJECT && ct.reason == CtHeader::UNABLE;
        let unnamed = |ids: Vec<FcId>| ids.into_iter().map(|id| (id, Wwn(0))).collect::<Vec<_>>();
        match purpose {
            Purpose::Register(number) if accepted => self.register(number + 1, now_ns),
            Purpose::Discover if accepted => match parse_list_of_ports(content) {
                Ok(ports) => self.discovered(&ports, now_ns),
                Err(_) => self.counters.malformed += 1,
            },
            Purpose::Discover if nobody => self.discovered(&[], now_ns),
            // A fabric without GPN_FT may have GID_FT, which is older.
            Purpose::Discover => self.discover_ids(now_ns),
            Purpose::DiscoverIds if accepted => match parse_list_of_ids(content) {
                Ok(ids) => self.discovered(&unnamed(ids), now_ns),
                Err(_) => self.counters.malformed += 1,
            },
            Purpose::DiscoverIds if nobody => self.discovered(&[], now_ns),
            Purpose::ListPorts => {
                let ports = if accepted { parse_list_of_ports(content).unwrap_or_default() } else { Vec::new() };
                self.events.push_back(Event::Ports(ports));
            }
            Purpose::Ask(number) => {
                let content = accepted.then(|| content.clone());
                self.events.push_back(Event::DirectoryAnswer { number, content });
            }
            Purpose::NameOf(id) if accepted => {
                let name = content.get(..8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
                self.named(id, name.map(|bytes| Wwn(u64::from_be_bytes(bytes))), now_ns);
            }
            _ => self.failed(purpose, "the name server rejected it", now_ns),
        }
    }
}
