//! Frames of peers, to the local ports (RFC 4172, 5.3.4).

use super::connection::Phase;
use super::event::{EndReason, Refusal};
use super::outbound::{login_of, UNKNOWN_PORT};
use super::output::ConnectionKey;
use super::services::{has_special_accept, is_device_traffic, is_link_service, is_request, policy, Policy};
use super::session::SessionKey;
use super::termination::answering;
use super::translation::{self, is_exempt, name_at, EndPoints, Fault};
use super::Gateway;
use crate::fc::sequence::{frames_of, Collected};
use bytes::Bytes;
use wire::encapsulation::{encapsulated_bytes, TimeStamp};
use wire::fc::els::Command;
use wire::fc::{frame_control, FcId, Frame, FrameHeader, Sof, Wwn};
use wire::ifcp::{AddressMode, DeviceFrame};

const NS_PER_MS: u64 = 1_000_000;
/// Place of the port's name in LOGO, ADISC and its accept.
const SENDER_NAME: usize = 8;

/// A frame with what its encapsulation says of it.
struct Received {
    frame: Frame,
    special: bool,
    accepted: Option<Command>,
}

impl Gateway {
    /// Takes device traffic.
    pub(super) fn handle_device(&mut self, connection: ConnectionKey, device: DeviceFrame, now_ns: u64) {
        let Some(own) = self.connections.get(&connection) else { return };
        if device.mode != self.settings.mode {
            let peer = own.peer;
            self.refuse(connection, Refusal::WrongMode);
            return self.abort_peer(peer, EndReason::WrongMode, now_ns);
        }
        if matches!(own.phase, Phase::Unbinding | Phase::Released) {
            // It was under way when the session ended.
            return;
        }
        let Some(key) = own.session.filter(|_| own.phase == Phase::Open) else {
            return self.refuse(connection, Refusal::NotBound);
        };
        if device.time == TimeStamp::NONE {
            return self.refuse(connection, Refusal::NoTimeStamp);
        }
        let difference_ns = device.time.difference_ns(self.stamp(now_ns));
        if difference_ns > self.settings.ip_tov_ns {
            let difference_ms = difference_ns / NS_PER_MS;
            return self.refuse(connection, Refusal::Stale { difference_ms });
        }
        let DeviceFrame { mut frame, special, accepted, .. } = device;
        if !is_device_traffic(&frame) {
            return self.refuse(connection, Refusal::NotDeviceTraffic);
        }
        let bytes = encapsulated_bytes(&frame) as u64;
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let (source, destination) = (session.remote_id, session.local_id);
        if self.settings.mode == AddressMode::Translation {
            // Addresses of the other region mean nothing here (RFC 4172, 4.6.1).
            (frame.header.s_id, frame.header.d_id) = (source, destination);
        }
        let addresses = [(frame.header.s_id, source), (frame.header.d_id, destination)];
        if let Some((found, expected)) = addresses.into_iter().find(|(found, expected)| found != expected) {
            return self.refuse(connection, Refusal::WrongAddress { found, expected });
        }
        session.heard_ns = now_ns;
        session.counters.received_frames += 1;
        session.counters.received_bytes += bytes;
        self.counters.received_frames += 1;
        self.receive(key, connection, Received { frame, special, accepted }, now_ns);
    }

    fn receive(&mut self, key: SessionKey, connection: ConnectionKey, received: Received, now_ns: u64) {
        let Received { frame, special, accepted } = received;
        if self.collector.expects(&frame) {
            match self.collector.add(&frame) {
                Collected::Whole(header, payload) => {
                    let header = FrameHeader { seq_cnt: 0, ..header };
                    self.receive_service(key, connection, &header, payload, now_ns);
                }
                Collected::Incomplete => {}
                Collected::Broken => self.refuse(connection, Refusal::Unexpected),
            }
            return;
        }
        if !is_link_service(&frame.header) || frame.sof != Sof::Initiate3 {
            return self.deliver(frame);
        }
        let payload = frame.payload.to_bytes();
        let command = match Command::of(&payload) {
            Ok(command) => command,
            Err(error) => return self.refuse(connection, Refusal::Malformed(error)),
        };
        match self.is_special(key, &frame.header, command, &payload, special, accepted) {
            Err(refusal) => self.refuse(connection, refusal),
            Ok(true) if frame.header.has(frame_control::END_SEQUENCE) => {
                self.receive_service(key, connection, &frame.header, payload, now_ns);
            }
            Ok(true) => {
                self.collector.add(&frame);
            }
            Ok(false) => {
                let rejected = !is_request(&frame.header) && command == Command::LS_RJT;
                let ox_id = frame.header.ox_id;
                self.deliver(frame);
                let Some(session) = self.sessions.get_mut(&key).filter(|_| rejected) else { return };
                // Of two ports that log in at once, one rejects the other's PLOGI because its own is under way (libfc
                // does): the session is for that one as well.
                if session.asked.take(ox_id) == Some(Command::PLOGI) && !session.has_login() {
                    self.end_session(key, EndReason::LoginRejected, now_ns);
                }
            }
        }
    }

    /// Says whether this gateway acts on a link service: the SPC flag and LS_COMMAND_ACC must fit what it is.
    fn is_special(
        &self,
        key: SessionKey,
        header: &FrameHeader,
        command: Command,
        payload: &[u8],
        special: bool,
        accepted: Option<Command>,
    ) -> Result<bool, Refusal> {
        let mode = self.settings.mode;
        if is_request(header) {
            let wanted = policy(header.kind, command, mode) == Policy::Special;
            if wanted && !special && !is_exempt(command, payload) {
                return Err(Refusal::WrongFlag(command));
            }
            return Ok(wanted && special);
        }
        if command != Command::LS_ACC {
            return Ok(false);
        }
        let asked = self.sessions.get(&key).and_then(|session| session.asked.get(header.ox_id));
        let asked = asked.filter(|asked| has_special_accept(*asked, mode));
        match (asked, special) {
            (None, false) => Ok(false),
            (None, true) => Err(Refusal::WrongAccept(accepted.unwrap_or(command))),
            (Some(asked), true) if accepted != Some(asked) => Err(Refusal::WrongAccept(accepted.unwrap_or(command))),
            (Some(_), true) => Ok(true),
            (Some(asked), false) if is_exempt(asked, payload) => Ok(false),
            (Some(asked), false) => Err(Refusal::WrongFlag(asked)),
        }
    }

    /// Delivers a link service on which the gateways act.
    fn receive_service(
        &mut self,
        key: SessionKey,
        connection: ConnectionKey,
        header: &FrameHeader,
        payload: Bytes,
        now_ns: u64,
    ) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let accept = !is_request(header);
        let answered = if accept { session.asked.take(header.ox_id) } else { None };
        let Some(command) = answered.or_else(|| Command::of(&payload).ok()) else { return };
        let expected = session.pair.remote;
        let found = match command {
            Command::PLOGI => login_of(&payload).map(|(name, _)| name),
            Command::LOGO if accept => Some(expected),
            Command::LOGO | Command::ADISC => name_at(&payload, SENDER_NAME),
            _ => Some(expected),
        };
        match found {
            Some(found) if found != expected => {
                return self.refuse(connection, Refusal::WrongName { found, expected });
            }
            Some(_) => {}
            None => return self.refuse(connection, Refusal::Unexpected),
        }
        let translated = match self.settings.mode {
            AddressMode::Translation => {
                let ends = EndPoints { source: header.s_id, destination: header.d_id };
                translation::inbound(command, accept, &payload, ends, |name| self.id_of(name))
            }
            _ => Ok(payload),
        };
        let payload = match translated {
            Ok(payload) => payload,
            Err(Fault::Malformed(error)) => return self.refuse(connection, Refusal::Malformed(error)),
            Err(fault) => {
                if let Fault::UnknownName(name) = fault {
                    self.refuse(connection, Refusal::UnknownPort(name));
                }
                return self.answer_unknown(key, header, accept, now_ns);
            }
        };
        let Some(session) = self.sessions.get_mut(&key) else { return };
        if !accept && has_special_accept(command, self.settings.mode) {
            session.asked_of.note(header.ox_id, command);
        }
        if let (Command::PLOGI, Some((_, receive_bytes))) = (command, login_of(&payload)) {
            session.remote_receive_bytes = receive_bytes;
            session.logged_in |= accept;
        }
        let most = usize::from(session.local_receive_bytes);
        for frame in frames_of(*header, &payload, most) {
            self.deliver(frame);
        }
        if command == Command::LOGO && accept {
            self.end_session(key, EndReason::LoggedOut, now_ns);
        }
    }

    /// Ends a remote port's link service that names a port unknown here: its originator gets a reject.
    fn answer_unknown(&mut self, key: SessionKey, header: &FrameHeader, accept: bool, now_ns: u64) {
        let payload = UNKNOWN_PORT.to_bytes();
        if accept {
            self.deliver(Frame::class3(*header, payload));
        } else {
            self.enqueue(key, Frame::class3(answering(header), payload), None, now_ns);
        }
    }

    /// The address of a port in this region, attached or presented.
    fn id_of(&self, name: Wwn) -> Option<FcId> {
        self.local_ids.get(&name).copied().or_else(|| self.remote_id(name))
    }
}
