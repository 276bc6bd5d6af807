//! Answers to the link services of others.

use super::engine::{reply_header, NPort};
use super::output::{PeerInfo, Upward};
use super::peer::{Peer, Progress};
use super::requests::Purpose;
use bytes::Bytes;
use wire::fc::els::{self, Command, ExchangeName, ProcessLogin, Reject, Request};
use wire::fc::{
    frame_control, routing, BasicReject, FcId, Frame, FrameHeader, FrameType, Login, BASIC_LOGICAL_ERROR,
    INVALID_OX_RX_ID,
};

const LOGIN_REQUIRED: Reject = Reject { reason: Reject::UNABLE, explanation: Reject::LOGIN_REQUIRED };
const NOT_SUPPORTED: Reject = Reject { reason: Reject::NOT_SUPPORTED, explanation: Reject::REQUEST_NOT_SUPPORTED };

impl NPort {
    /// Answers a request.
    pub(super) fn serve(&mut self, header: &FrameHeader, request: &Request, payload: &Bytes, now_ns: u64) {
        let from = header.s_id;
        let logged_in = self.peers.get(from).is_some_and(Peer::is_logged_in);
        let command = Command::of(payload).unwrap_or(Command::LS_RJT);
        let reply = match request {
            Request::Login(login) if command == Command::PLOGI => self.login_asked(from, login, now_ns),
            Request::Login(_) if command == Command::PDISC && logged_in => {
                Bytes::copy_from_slice(&els::accept_login(&self.parameters(Command::PLOGI)))
            }
            Request::Echo(bytes) => els::accept_echo(bytes),
            Request::ReadTimeouts => els::accept_timeouts(self.r_a_tov_ms, self.e_d_tov_ms),
            Request::StateChange(pages) if from == FcId::FABRIC_CONTROLLER => {
                self.answer(header, &els::accept());
                return self.state_changed(pages, now_ns);
            }
            Request::Logout(_) => {
                self.answer(header, &els::accept());
                return self.logged_out_by(from, now_ns);
            }
            // Of what follows, each needs a login.
            _ if !logged_in => LOGIN_REQUIRED.to_bytes(),
            Request::ProcessLogin(login) => return self.process_login_asked(header, login, now_ns),
            Request::ProcessLogout(login) => {
                self.answer(
                    header,
                    &ProcessLogin { response: ProcessLogin::EXECUTED, ..*login }.to_bytes(Command::LS_ACC),
                );
                return self.logged_out_by(from, now_ns);
            }
            Request::DiscoverAddress(_) => self.own_address().to_bytes(Command::LS_ACC),
            Request::ReadExchangeConcise(name) => {
                let name = of_sender(name, from);
                return self.upward.push_back(Upward::ReadExchange(*header, name));
            }
            Request::ReinstateRecoveryQualifier(name) => {
                let name = of_sender(name, from);
                return self.upward.push_back(Upward::Reinstate(*header, name));
            }
            _ => NOT_SUPPORTED.to_bytes(),
        };
        self.answer(header, &reply);
    }

    /// Answers an abort of an exchange that nobody has (BA_RJT); other frames are counted.
    pub fn refuse_abort(&mut self, frame: &Frame) {
        if frame.header.r_ctl != routing::ABORT_SEQUENCE {
            self.counters.unsolicited += 1;
            return;
        }
        let reject = BasicReject { reason: BASIC_LOGICAL_ERROR, explanation: INVALID_OX_RX_ID, vendor: 0 };
        let responder = (frame.header.f_ctl & frame_control::EXCHANGE_RESPONDER) ^ frame_control::EXCHANGE_RESPONDER;
        let header = FrameHeader {
            f_ctl: responder | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
            rx_id: frame.header.rx_id,
            ..reply_header(&frame.header, self.id, routing::BASIC_REJECT)
        };
        self.send_sequence(header, &Bytes::copy_from_slice(&reject.to_bytes()));
    }

    /// PLOGI of another port.
    fn login_asked(&mut self, from: FcId, login: &Login, now_ns: u64) -> Bytes {
        let refused = |reason, explanation| Reject { reason, explanation }.to_bytes();
        if from.is_well_known() || from == FcId::NONE || login.port == self.settings.port {
            return refused(Reject::LOGICAL_ERROR, Reject::INVALID_PORT_ID);
        }
        if !login.class3 {
            return refused(Reject::UNABLE, Reject::NO_EXPLANATION);
        }
        let known = self.peers.get(from).copied();
        // Two logins cross: that of the greater name holds (FC-LS, 6.2.2.4).
        if self.requests.has(Purpose::Login(from)) {
            if self.settings.port > login.port {
                return refused(Reject::LOGICAL_ERROR, IN_PROGRESS);
            }
            self.requests.forget(|pending| pending.purpose == Purpose::Login(from));
        }
        if known.is_none() && self.peers.len() >= self.settings.peers_max {
            return refused(Reject::UNABLE, Reject::INSUFFICIENT_RESOURCES);
        }
        if let Some(other) = self.peers.other_of(login.port, from) {
            self.drop_peer(other, "its name has another address now");
        }
        // A new login ends the one before, with its exchanges.
        self.drop_peer(from, "it logged in anew");
        let info = PeerInfo {
            id: from,
            port: login.port,
            node: login.node,
            receive_bytes: login.receive_bytes,
            initiator: false,
            target: false,
        };
        let wanted = known.is_some_and(|peer| peer.wanted);
        self.peers.insert(Peer { info, progress: Progress::LoggedIn, wanted, failures: 0 });
        if !self.has_process() {
            self.up(from, now_ns);
        }
        Bytes::copy_from_slice(&els::accept_login(&self.parameters(Command::PLOGI)))
    }

    fn process_login_asked(&mut self, header: &FrameHeader, login: &ProcessLogin, now_ns: u64) {
        let supported = login.kind == FrameType::FCP.0 && self.settings.kind == FrameType::FCP;
        if !supported {
            return self.answer(header, &NOT_SUPPORTED.to_bytes());
        }
        let accept = self.process(ProcessLogin::EXECUTED);
        self.answer(header, &accept.to_bytes(Command::LS_ACC));
        // Its login is as good as the answer to the own one, which is not waited for any more.
        let from = header.s_id;
        self.requests.forget(|pending| pending.purpose == Purpose::ProcessLogin(from));
        self.process_up(from, login.parameters, now_ns);
    }

    /// A port, or the fabric, ended the login.
    fn logged_out_by(&mut self, from: FcId, now_ns: u64) {
        if matches!(from, FcId::FABRIC_PORT | FcId::FABRIC_CONTROLLER | FcId::DIRECTORY_SERVER) {
            return self.begin_login(now_ns);
        }
        let Some(peer) = self.peers.get(from).copied() else { return };
        self.drop_peer(from, "it logged out");
        if peer.wanted && self.settings.role.initiator {
            // It may be about to begin anew.
            let progress = Progress::Waiting(now_ns + self.e_d_tov_ns());
            self.peers.insert(Peer { progress, failures: peer.failures + 1, ..peer });
        }
    }
}

/// Explanation of a reject: the command is in progress already (FC-LS, table 19).
const IN_PROGRESS: u8 = 0x19;

/// The exchange's originator is the sender: it may ask for its own exchanges alone.
fn of_sender(name: &ExchangeName, from: FcId) -> ExchangeName {
    ExchangeName { originator: from, ..*name }
}
