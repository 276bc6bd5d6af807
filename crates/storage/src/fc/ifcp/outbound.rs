//! Frames of local ports, to the ports behind peers (RFC 4172, 5.3.3).

use super::event::{Event, Refusal};
use super::output::Pair;
use super::services::{has_special_accept, is_device_traffic, is_link_service, is_request, policy, Policy};
use super::session::SessionKey;
use super::termination::{answering, rejected};
use super::translation::{self, name_at, EndPoints, Fault, AUGMENTED_PAGE};
use super::Gateway;
use crate::fc::sequence::{frames_in_pieces, frames_of, Collected};
use bytes::Bytes;
use wire::encapsulation::encapsulated_bytes;
use wire::fc::els::{Command, Reject};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType, Sof, Wwn, LOGIN_BYTES};
use wire::ifcp::{AddressMode, DeviceFrame};

/// Reject of a link service that names a port which the gateway does not know (RFC 4172, 7.2).
pub(super) const UNKNOWN_PORT: Reject = Reject { reason: Reject::PROTOCOL_ERROR, explanation: Reject::INVALID_PORT_ID };
/// Reject of a link service that iFCP does not carry (RFC 4172, section 7).
const NOT_CARRIED: Reject = Reject { reason: Reject::NOT_SUPPORTED, explanation: Reject::NO_EXPLANATION };
/// Place of the port's name in a login.
pub(super) const LOGIN_NAME: usize = 20;

impl Gateway {
    /// Takes a frame from a local port to a remote one.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64) {
        if !is_device_traffic(&frame) {
            self.counters.local_malformed += 1;
            return;
        }
        let (s_id, d_id) = (frame.header.s_id, frame.header.d_id);
        let (Some(local), Some(remote)) = (self.local.get(&s_id), self.remote.get(&d_id)) else {
            self.counters.no_session += 1;
            return;
        };
        let pair = Pair { local: *local, remote: *remote };
        let open = self
            .by_pair
            .get(&pair)
            .copied()
            .filter(|key| self.sessions.get(key).is_some_and(|session| self.session_open(session)));
        if is_login(&frame) {
            if let Err(reject) = self.check_login(&frame, pair.local) {
                self.deliver(rejected(&frame, reject));
                return;
            }
            if open.is_none() {
                self.establish(pair, frame, now_ns);
                return;
            }
        }
        match open {
            Some(key) => self.send(key, frame, now_ns),
            // RFC 4172, 5.3.3: the port learned by a LOGO that its login is gone.
            None => self.counters.no_session += 1,
        }
    }

    /// Checks that a login is whole and in its sender's own name.
    fn check_login(&mut self, frame: &Frame, expected: Wwn) -> Result<(), Reject> {
        let payload = frame.payload.to_bytes();
        let name = name_at(&payload, LOGIN_NAME).filter(|_| payload.len() >= LOGIN_BYTES);
        let Some(found) = name.filter(|_| frame.header.has(frame_control::END_SEQUENCE)) else {
            self.counters.local_malformed += 1;
            return Err(Reject { reason: Reject::PROTOCOL_ERROR, explanation: Reject::NO_EXPLANATION });
        };
        if found != expected {
            self.event(Event::LocalRefused(frame.header.s_id, Refusal::WrongName { found, expected }));
            return Err(Reject { reason: Reject::UNABLE, explanation: Reject::INVALID_PORT_NAME });
        }
        Ok(())
    }

    /// Sends a frame over an open session. `came_ns`: time at which the port sent it, which its time stamp tells.
    pub(super) fn send(&mut self, key: SessionKey, frame: Frame, came_ns: u64) {
        if self.collector.expects(&frame) {
            match self.collector.add(&frame) {
                Collected::Whole(header, payload) => {
                    let header = FrameHeader { seq_cnt: 0, ..header };
                    self.send_service(key, &header, payload, came_ns);
                }
                Collected::Incomplete => {}
                Collected::Broken => self.counters.local_malformed += 1,
            }
            return;
        }
        if !is_link_service(&frame.header) || frame.sof != Sof::Initiate3 {
            self.enqueue(key, frame, None, came_ns);
            return;
        }
        let payload = frame.payload.to_bytes();
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let Ok(command) = Command::of(&payload) else {
            self.counters.local_malformed += 1;
            return;
        };
        let treatment = if is_request(&frame.header) {
            policy(frame.header.kind, command, self.settings.mode)
        } else if command == Command::LS_ACC && session.asked_of.get(frame.header.ox_id).is_some() {
            Policy::Special
        } else {
            session.asked_of.take(frame.header.ox_id);
            Policy::PassThrough
        };
        match treatment {
            Policy::PassThrough => self.enqueue(key, frame, None, came_ns),
            Policy::Rejected => self.deliver(rejected(&frame, NOT_CARRIED)),
            Policy::Special if frame.header.has(frame_control::END_SEQUENCE) => {
                self.send_service(key, &frame.header, payload, came_ns);
            }
            Policy::Special => {
                self.collector.add(&frame);
            }
        }
    }

    /// Sends a link service on which the gateways act.
    fn send_service(&mut self, key: SessionKey, header: &FrameHeader, payload: Bytes, came_ns: u64) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let accept = !is_request(header);
        let answered = if accept { session.asked_of.take(header.ox_id) } else { None };
        let Some(command) = answered.or_else(|| Command::of(&payload).ok()) else { return };
        if !accept && has_special_accept(command, self.settings.mode) {
            session.asked.note(header.ox_id, command);
        }
        match command {
            Command::PLOGI => {
                let expected = session.pair.local;
                match login_of(&payload) {
                    Some((found, receive_bytes)) if found == expected => {
                        session.local_receive_bytes = receive_bytes;
                        session.logged_in |= accept;
                    }
                    Some((found, _)) => {
                        let refusal = Refusal::WrongName { found, expected };
                        return self.event(Event::LocalRefused(header.s_id, refusal));
                    }
                    None => {
                        self.counters.local_malformed += 1;
                        return;
                    }
                }
            }
            Command::LOGO if accept => session.logged_in = false,
            _ => {}
        }
        let most = usize::from(session.remote_receive_bytes);
        let translated = match self.settings.mode {
            AddressMode::Translation => {
                let ends = EndPoints { source: header.s_id, destination: header.d_id };
                translation::outbound(command, accept, &payload, ends, |id| self.name_of(id))
            }
            _ => Ok(Some(payload.clone())),
        };
        let sent = match translated {
            Ok(sent) => sent,
            Err(Fault::Malformed(error)) => {
                self.counters.local_malformed += 1;
                return self.event(Event::LocalRefused(header.s_id, Refusal::Malformed(error)));
            }
            Err(_) => return self.reject_unknown(key, header, accept, came_ns),
        };
        let special = sent.is_some().then_some(accept.then_some(command));
        let payload = sent.unwrap_or(payload);
        let frames = if command == Command::TPRLO && special.is_some() {
            frames_in_pieces(*header, pages_in_frames(&payload, most))
        } else {
            frames_of(*header, &payload, most)
        };
        for frame in frames {
            self.enqueue(key, frame, special, came_ns);
        }
    }

    /// Ends a local port's link service that names an unknown port: its originator gets a reject.
    fn reject_unknown(&mut self, key: SessionKey, header: &FrameHeader, accept: bool, came_ns: u64) {
        if accept {
            self.enqueue(key, Frame::class3(*header, UNKNOWN_PORT.to_bytes()), None, came_ns);
        } else {
            if let Some(session) = self.sessions.get_mut(&key) {
                session.asked.take(header.ox_id);
            }
            self.deliver(Frame::class3(answering(header), UNKNOWN_PORT.to_bytes()));
        }
    }

    /// Lets a frame wait for its connection. `special`: it is part of a link service on which the receiving gateway
    /// acts, and the command that it accepts.
    pub(super) fn enqueue(&mut self, key: SessionKey, frame: Frame, special: Option<Option<Command>>, came_ns: u64) {
        let time = self.stamp(came_ns);
        let Some(session) = self.sessions.get(&key) else { return };
        let Some(connection) = session.connection else { return };
        let Some(own) = self.connections.get_mut(&connection) else { return };
        if own.frame_bytes + encapsulated_bytes(&frame) > self.settings.queue_bytes_max {
            self.counters.queue_full += 1;
            let id = session.local_id;
            return self.event(Event::LocalRefused(id, Refusal::QueueFull));
        }
        own.push_frame(DeviceFrame {
            frame,
            mode: self.settings.mode,
            special: special.is_some(),
            accepted: special.flatten(),
            time,
        });
        self.check_flow(key);
        self.announce(connection);
    }

    /// Compares what waits for a session's connection with the bounds at which its local port stops and resumes.
    pub(super) fn check_flow(&mut self, key: SessionKey) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let connection = session.connection.and_then(|connection| self.connections.get(&connection));
        let waiting = connection.map_or(0, |own| own.frame_bytes);
        let full =
            if session.full { waiting > self.settings.resume_bytes } else { waiting >= self.settings.full_bytes };
        if std::mem::replace(&mut session.full, full) != full {
            let id = session.local_id;
            self.count_full(id, full);
        }
    }

    /// Counts a session that became full, or is not any more: its local port stops with the first and resumes with the
    /// last.
    pub(super) fn count_full(&mut self, id: FcId, full: bool) {
        let before = self.full.get(&id).copied().unwrap_or(0);
        let after = if full { before + 1 } else { before.saturating_sub(1) };
        if after == 0 {
            self.full.remove(&id);
        } else {
            self.full.insert(id, after);
        }
        if (before == 0) != (after == 0) {
            self.flows.push_back(super::Flow { id, full });
        }
    }

    /// The name of a port of this region, attached or presented.
    fn name_of(&self, id: FcId) -> Option<Wwn> {
        self.local.get(&id).or_else(|| self.remote.get(&id)).copied()
    }
}

fn is_login(frame: &Frame) -> bool {
    let header = frame.header;
    header.kind == FrameType::ELS
        && header.r_ctl == routing::ELS_REQUEST
        && frame.sof == Sof::Initiate3
        && frame.payload.to_bytes().first() == Some(&Command::PLOGI.0)
}

/// Name of the port and the longest payload that it takes, of a login or its accept.
pub(super) fn login_of(payload: &[u8]) -> Option<(Wwn, u16)> {
    let name = name_at(payload, LOGIN_NAME).filter(|_| payload.len() >= LOGIN_BYTES)?;
    let receive_bytes = u16::from_be_bytes([payload[10], payload[11]]) & 0x0fff;
    Some((name, receive_bytes.clamp(256, 2112)))
}

/// An augmented TPRLO in pieces of whole pages, each of at most `most` bytes (RFC 4172, 7.3.1.17).
fn pages_in_frames(payload: &Bytes, most: usize) -> Vec<Bytes> {
    let pages = (most.saturating_sub(4) / AUGMENTED_PAGE).max(1);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < payload.len() {
        let head = if start == 0 { 4 } else { 0 };
        let end = payload.len().min(start + head + pages * AUGMENTED_PAGE);
        pieces.push(payload.slice(start..end));
        start = end;
    }
    pieces
}
