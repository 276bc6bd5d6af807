//! The end of sessions (RFC 4172, 5.2.3) and what a local port hears of it.

use super::connection::Phase;
use super::event::{EndReason, Event};
use super::output::{Closing, ConnectionKey, PeerKey};
use super::session::{Session, SessionKey};
use super::timers::Timer;
use super::Gateway;
use wire::encapsulation::TimeStamp;
use wire::fc::els::{Logout, Reject, Request};
use wire::fc::{frame_control, routing, Frame, FrameHeader, FrameType};
use wire::ifcp::{BindStatus, Message, SessionMessage};

/// Numbers of the exchanges in which the gateway logs ports out in the name of remote ports: the upper end, which ports
/// use last.
const OWN_EXCHANGES: std::ops::Range<u16> = 0xff00..0xffff;
/// Session messages that wait for a connection at once. A peer that keeps the protocol causes three.
const CONTROL_MAX: usize = 64;
/// UNBIND status: done.
const UNBOUND: u16 = 0;
/// UNBIND status: the receiver knows no such connection.
const INVALID_HANDLE: u16 = 18;

impl Gateway {
    /// Ends all sessions that match.
    pub(super) fn end_sessions(&mut self, reason: EndReason, now_ns: u64, matches: impl Fn(&Session) -> bool) {
        let found: Vec<SessionKey> =
            self.sessions.iter().filter(|(_, session)| matches(session)).map(|(key, _)| *key).collect();
        for key in found {
            self.end_session(key, reason, now_ns);
        }
    }

    /// Ends a session. Its connection is unbound, or ended where it cannot be; the local port is logged out.
    pub(super) fn end_session(&mut self, key: SessionKey, reason: EndReason, now_ns: u64) {
        let Some(mut session) = self.sessions.remove(&key) else { return };
        self.by_pair.remove(&session.pair);
        for timer in [Timer::Awaited(key), Timer::Test(key), Timer::Silence(key)] {
            self.timers.clear(timer);
        }
        self.collector.forget_pair(session.local_id, session.remote_id);
        if std::mem::replace(&mut session.full, false) {
            self.count_full(session.local_id, false);
        }
        self.counters.sessions_ended += 1;
        self.event(Event::SessionEnded(session.peer, session.pair, reason));
        for login in std::mem::take(&mut session.waiting) {
            self.deliver(rejected(&login.frame, refusal(reason)));
        }
        // A port that is gone has no logins; a port that was rejected or logged out knows.
        let knows = matches!(reason, EndReason::LoggedOut | EndReason::LoginRejected | EndReason::LocalPortGone);
        if session.logged_in && !knows {
            self.log_out(&session);
        }
        if let Some(connection) = session.connection {
            self.release(connection, &session, reason, now_ns);
        }
    }

    /// Takes a connection from its session.
    fn release(&mut self, connection: ConnectionKey, session: &Session, reason: EndReason, now_ns: u64) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        own.session = None;
        self.counters.expired += own.frames.len() as u64;
        own.clear_frames();
        match (own.phase, reason) {
            // The connection goes on to be made: it serves the next session.
            (Phase::Connecting, _) => {}
            // The peer did this already, or refused to begin.
            (_, EndReason::Unbound) => own.phase = Phase::Unbound,
            (_, EndReason::Refused(_)) => {
                own.phase = Phase::Unbound;
                self.trim(connection);
            }
            (Phase::Open, EndReason::Replaced) => {
                // The peer's UNBIND may be on its way.
                own.phase = Phase::Released;
                self.timers.set(Timer::Setup(connection), now_ns + self.settings.setup_timeout_ns);
            }
            (Phase::Open, _) if reason != EndReason::WrongMode => {
                own.phase = Phase::Unbinding;
                let message = SessionMessage::Unbind { user: session.user, handle: own.handle };
                own.control.clear();
                self.timers.set(Timer::Setup(connection), now_ns + self.settings.setup_timeout_ns);
                self.send_control(connection, message, TimeStamp::NONE, now_ns);
            }
            _ => {
                self.closes.push_back((connection, Closing::Reset));
                self.remove_connection(connection, reason, now_ns);
            }
        }
    }

    /// Ends all connections with a peer by a reset, without UNBIND (RFC 4172, 4.6.2).
    pub(super) fn abort_peer(&mut self, peer: PeerKey, reason: EndReason, now_ns: u64) {
        let connections: Vec<ConnectionKey> =
            self.peers.get(&peer).map(|peer| peer.connections.iter().copied().collect()).unwrap_or_default();
        for connection in connections {
            self.drop_connection(connection, reason, now_ns);
        }
    }

    /// Takes an UNBIND.
    pub(super) fn handle_unbind(&mut self, connection: ConnectionKey, user: u32, handle: u16, now_ns: u64) {
        let Some(own) = self.connections.get(&connection) else { return };
        let known = matches!(own.phase, Phase::Open | Phase::Released | Phase::Unbinding) && own.handle == handle;
        let (phase, session) = (own.phase, own.session);
        let status = if known { UNBOUND } else { INVALID_HANDLE };
        if known {
            if let Some(session) = session {
                self.end_session(session, EndReason::Unbound, now_ns);
            }
        }
        let response = SessionMessage::UnbindResponse { user, handle, status };
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if known && phase != Phase::Unbinding {
            own.phase = Phase::Unbound;
            own.control.clear();
            self.timers.clear(Timer::Setup(connection));
        }
        self.send_control(connection, response, TimeStamp::NONE, now_ns);
    }

    /// Takes the response to UNBIND.
    pub(super) fn handle_unbound(&mut self, connection: ConnectionKey, handle: u16, status: u16, now_ns: u64) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if own.phase != Phase::Unbinding || own.handle != handle || status != UNBOUND {
            return self.drop_connection(connection, EndReason::ProtocolError, now_ns);
        }
        own.phase = Phase::Unbound;
        self.timers.clear(Timer::Setup(connection));
        self.trim(connection);
    }

    /// Lets a session message wait for its connection. A peer that asks on and on and takes no answer loses the
    /// connection.
    pub(super) fn send_control(
        &mut self,
        connection: ConnectionKey,
        message: SessionMessage,
        time: TimeStamp,
        now_ns: u64,
    ) {
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if own.control.len() >= CONTROL_MAX {
            return self.drop_connection(connection, EndReason::ProtocolError, now_ns);
        }
        own.control.push_back(Message::Session(message, time));
        self.announce(connection);
    }

    /// Logs a local port out of a remote one, in that one's name.
    fn log_out(&mut self, session: &Session) {
        if self.local_ids.get(&session.pair.local) != Some(&session.local_id) {
            return;
        }
        let range = OWN_EXCHANGES.end - OWN_EXCHANGES.start;
        self.next_exchange = (self.next_exchange + 1) % range;
        let header = FrameHeader {
            r_ctl: routing::ELS_REQUEST,
            kind: FrameType::ELS,
            d_id: session.local_id,
            s_id: session.remote_id,
            f_ctl: frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
            ox_id: OWN_EXCHANGES.start + self.next_exchange,
            ..FrameHeader::default()
        };
        let logout = Request::Logout(Logout { id: session.remote_id, port: session.pair.remote });
        self.deliver(Frame::class3(header, logout.to_bytes()));
    }
}

/// Reason and explanation of the LS_RJT for a login whose session did not come about (RFC 4172, table 8).
pub(super) fn refusal(reason: EndReason) -> Reject {
    let explanation = match reason {
        EndReason::Refused(BindStatus::NoSuchDevice) => Reject::INVALID_PORT_NAME,
        EndReason::Refused(BindStatus::LackOfResources) => Reject::INSUFFICIENT_RESOURCES,
        _ => Reject::NO_EXPLANATION,
    };
    Reject { reason: Reject::UNABLE, explanation }
}

/// The answer that rejects a link service, as if the receiver of the request sent it.
pub(super) fn rejected(request: &Frame, reject: Reject) -> Frame {
    Frame::class3(answering(&request.header), reject.to_bytes())
}

/// The header of an answer to a link service of one frame.
pub(super) fn answering(asked: &FrameHeader) -> FrameHeader {
    FrameHeader {
        r_ctl: asked.r_ctl | 1,
        d_id: asked.s_id,
        s_id: asked.d_id,
        kind: asked.kind,
        f_ctl: frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
        ox_id: asked.ox_id,
        ..FrameHeader::default()
    }
}
