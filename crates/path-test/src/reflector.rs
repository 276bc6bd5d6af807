//! A Session-Reflector (RFC 8762, 4.3) without I/O: of a packet that arrived it makes the reply, never a longer one.

use crate::stamp::{
    verify_base, ErrorEstimate, Key, Reply, Request, TimeFormat, AUTHENTICATED_BYTES, OPEN_BYTES, TWAMP_REPLY_BYTES,
};
use crate::stamp_tlv::{self as tlv, Integrity, HEADER_BYTES, INTEGRITY, MALFORMED, NOT_CONFORMANT, UNRECOGNIZED};
use core::net::SocketAddr;
use serde::Serialize;
use std::collections::BTreeMap;

/// Sessions that a stateful reflector counts at most; packets of others are answered as without state.
pub const SESSIONS_MAX: usize = 1024;
/// A session that is silent for longer makes room for another where there is none, ns.
const IDLE_NS: u64 = 60_000_000_000;
/// A session that is silent for longer is over, and its name counts anew, ns (RFC 5357, 4.2, REFWAIT).
const OVER_NS: u64 = 900_000_000_000;
/// Time between two searches for sessions that are over, ns: a flood of new ones must not make each packet search.
const SEARCH_NS: u64 = 1_000_000_000;

/// Settings of a reflector.
#[derive(Clone, Debug, Default)]
pub struct ReflectorConfig {
    /// Answer only packets with this key's HMAC; none: those without authentication.
    pub key: Option<Key>,
    /// Count replies per session, so that a sender can tell in which direction a packet was lost (RFC 8762, 4.3).
    pub is_stateful: bool,
    /// Send replies that are shorter than their requests, where a request asks for it (RFC 10052, 5: off by default).
    pub short_replies: bool,
}

/// The reflector's clock, as it is when a reply leaves.
#[derive(Clone, Copy, Debug)]
pub struct ReflectorClock {
    /// ns since 1970.
    pub now_ns: u64,
    /// Its error, ns.
    pub error_ns: u64,
    /// It follows UTC.
    pub is_synchronized: bool,
    /// The time of arrival is the adapter's.
    pub is_hardware: bool,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Its source.
    pub peer: SocketAddr,
    /// UDP payload.
    pub packet: &'a [u8],
    /// Its TTL or hop limit, where the kernel tells.
    pub ttl: Option<u8>,
    /// Its traffic class, where the kernel tells: DSCP and ECN.
    pub traffic_class: u8,
    /// Its arrival, ns since 1970.
    pub at_ns: u64,
}

/// Reasons not to answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// No test packet: it has fewer octets than any reply.
    TooShort,
    /// Its HMAC is wrong.
    WrongHmac,
    /// It asks for no reply (RFC 10052, 3).
    NoReplyWanted,
    /// It is a reply itself: somebody forged its source, so that two reflectors would answer each other without end.
    IsReply,
}

/// Counts of a reflector.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ReflectorCounts {
    /// Replies.
    pub replies: u64,
    /// Packets too short to be answered.
    pub too_short: u64,
    /// Packets with a wrong HMAC.
    pub wrong_hmac: u64,
    /// Packets that asked for no reply.
    pub no_reply_wanted: u64,
    /// Replies of other reflectors, or own ones that came back.
    pub are_replies: u64,
}

struct Session {
    next: u32,
    last_ns: u64,
}

/// A reflector.
pub struct Reflector {
    config: ReflectorConfig,
    sessions: BTreeMap<(SocketAddr, u16), Session>,
    /// Time of the latest search for silent sessions.
    searched_ns: u64,
    counts: ReflectorCounts,
}

impl Reflector {
    /// A reflector that has seen nothing.
    pub fn new(config: ReflectorConfig) -> Reflector {
        Reflector { config, sessions: BTreeMap::new(), searched_ns: 0, counts: ReflectorCounts::default() }
    }

    /// Its counts.
    pub fn counts(&self) -> ReflectorCounts {
        self.counts
    }

    /// Makes the reply to a packet in `reply`, whose former content goes. Returns the reply's traffic class.
    ///
    /// # Errors
    /// The packet is not to be answered.
    pub fn handle_packet(
        &mut self,
        arrival: &Arrival<'_>,
        clock: ReflectorClock,
        reply: &mut Vec<u8>,
    ) -> Result<u8, Refusal> {
        let made = self.answer(arrival, clock, reply);
        match made {
            Ok(_) => self.counts.replies += 1,
            Err(Refusal::TooShort) => self.counts.too_short += 1,
            Err(Refusal::WrongHmac) => self.counts.wrong_hmac += 1,
            Err(Refusal::NoReplyWanted) => self.counts.no_reply_wanted += 1,
            Err(Refusal::IsReply) => self.counts.are_replies += 1,
        }
        made
    }

    fn answer(&mut self, arrival: &Arrival<'_>, clock: ReflectorClock, reply: &mut Vec<u8>) -> Result<u8, Refusal> {
        let packet = arrival.packet;
        let is_authenticated = self.config.key.is_some();
        let base = if is_authenticated { AUTHENTICATED_BYTES } else { OPEN_BYTES };
        if packet.len() < if is_authenticated { base } else { TWAMP_REPLY_BYTES } {
            return Err(Refusal::TooShort);
        }
        if self.config.key.as_ref().is_some_and(|key| !verify_base(packet, key)) {
            return Err(Refusal::WrongHmac);
        }
        let request = Request::decode(packet, is_authenticated).ok_or(Refusal::TooShort)?;
        if is_reply(packet, is_authenticated) {
            return Err(Refusal::IsReply);
        }
        reply.clear();
        reply.extend_from_slice(packet);
        // The reply's number is part of what the HMAC TLV covers, so that it comes before the TLVs.
        let integrity = tlv::verify(packet, base, self.config.key.as_ref(), is_authenticated);
        let mut traffic_class = 0;
        let mut wanted_bytes = None;
        match integrity {
            Integrity::Wrong => mark_all(reply, base),
            _ => wanted_bytes = self.process(arrival, clock, base, reply, &mut traffic_class)?,
        }
        // Time stamps have the form of the request's, so that a sender of one form only is served (RFC 8972, 4.3).
        let format = request.error.format;
        let fields = Reply {
            sequence: self.number(arrival, &request, clock.now_ns),
            timestamp: format.encode(clock.now_ns),
            error: ErrorEstimate::of(clock.error_ns, clock.is_synchronized && format == TimeFormat::Ntp, format),
            ssid: request.ssid,
            received: format.encode(arrival.at_ns),
            sender_sequence: request.sequence,
            sender_timestamp: request.timestamp,
            sender_error: request.error,
            sender_ttl: arrival.ttl.unwrap_or(255),
        };
        if let Some(bytes) = wanted_bytes {
            shorten(reply, base, bytes);
        }
        fields.encode(reply, self.config.key.as_ref());
        if let (Some(key), Integrity::Right(_)) = (&self.config.key, integrity) {
            let signed = tlv::places(reply, base).find(|(place, fits)| *fits && place.kind == tlv::HMAC);
            if let Some((place, _)) = signed {
                tlv::sign(reply, base, place.at, key);
            }
        }
        Ok(traffic_class)
    }

    /// Number of the reply.
    fn number(&mut self, arrival: &Arrival<'_>, request: &Request, now_ns: u64) -> u32 {
        if !self.config.is_stateful {
            return request.sequence;
        }
        let name = (arrival.peer, request.ssid);
        if self.sessions.len() >= SESSIONS_MAX && !self.sessions.contains_key(&name) {
            if now_ns.abs_diff(self.searched_ns) >= SEARCH_NS {
                self.searched_ns = now_ns;
                self.sessions.retain(|_, session| now_ns.saturating_sub(session.last_ns) < IDLE_NS);
            }
            if self.sessions.len() >= SESSIONS_MAX {
                return request.sequence;
            }
        }
        let session = self.sessions.entry(name).or_insert(Session { next: 0, last_ns: now_ns });
        if now_ns.saturating_sub(session.last_ns) > OVER_NS {
            session.next = 0;
        }
        let number = session.next;
        session.next = number.wrapping_add(1);
        session.last_ns = now_ns;
        number
    }

    /// Fills TLVs in. Returns the length that the reply is to have, where it was asked for.
    fn process(
        &self,
        arrival: &Arrival<'_>,
        clock: ReflectorClock,
        base: usize,
        reply: &mut [u8],
        traffic_class: &mut u8,
    ) -> Result<Option<usize>, Refusal> {
        let mut wanted = None;
        for (place, fits) in tlv::places(arrival.packet, base) {
            let value = place.at + HEADER_BYTES;
            let expected = match place.kind {
                tlv::TIMESTAMP_INFORMATION | tlv::CLASS_OF_SERVICE => Some(4),
                tlv::HMAC => Some(crate::stamp::HMAC_BYTES),
                _ => None,
            };
            let is_control = place.kind == tlv::REPLY_CONTROL && self.config.short_replies;
            let is_known = expected.is_some() || place.kind == tlv::EXTRA_PADDING || is_control;
            let is_whole = fits
                && expected.is_none_or(|bytes| place.length == bytes)
                && (!is_control || place.length >= tlv::REPLY_CONTROL_BYTES);
            reply[place.at] = match (is_known, is_whole) {
                (true, true) => 0,
                (false, true) => UNRECOGNIZED,
                (true, false) => MALFORMED,
                (false, false) => UNRECOGNIZED | MALFORMED,
            };
            if !is_whole {
                break;
            }
            match place.kind {
                tlv::TIMESTAMP_INFORMATION => {
                    let source = if clock.is_synchronized { tlv::SOURCE_NTP } else { tlv::SOURCE_LOCAL };
                    let taken = if clock.is_hardware { tlv::METHOD_HARDWARE } else { tlv::METHOD_SOFTWARE };
                    reply[value..value + 4].copy_from_slice(&[source, taken, source, tlv::METHOD_SOFTWARE]);
                }
                // DSCP1 of 6 bits is the class that the reply is to have; DSCP2 and ECN tell how the request arrived.
                tlv::CLASS_OF_SERVICE => {
                    let wanted_class = reply[value] & 0xfc;
                    *traffic_class = wanted_class;
                    let (dscp, ecn) = (arrival.traffic_class >> 2, arrival.traffic_class & 3);
                    reply[value] = wanted_class | dscp >> 4;
                    reply[value + 1] = (dscp & 15) << 4 | ecn << 2;
                }
                tlv::REPLY_CONTROL if is_control => {
                    let field = |at: usize| u16::from_be_bytes([reply[value + at], reply[value + at + 1]]);
                    let bytes = usize::from(field(0)).next_multiple_of(4);
                    match field(2) {
                        0 => return Err(Refusal::NoReplyWanted),
                        1 if bytes <= arrival.packet.len() => wanted = Some(bytes),
                        // More than came, or longer, is amplification.
                        _ => reply[place.at] |= NOT_CONFORMANT,
                    }
                }
                _ => {}
            }
        }
        Ok(wanted)
    }
}

/// True for a packet that a reflector made: its time of receipt is at most 1 s before that of sending, where a sender's
/// packet has zeros (RFC 8762, 4.2) or padding (RFC 5357, 4.1.2). Both forms of time have seconds in the upper half.
fn is_reply(packet: &[u8], is_authenticated: bool) -> bool {
    Reply::decode(packet, is_authenticated)
        .is_some_and(|reply| reply.received != 0 && reply.timestamp.wrapping_sub(reply.received) <= 1 << 32)
}

/// Tells in every TLV that the HMAC was wrong; their values stay (RFC 8972, 4.8).
fn mark_all(reply: &mut [u8], base: usize) {
    let all: Vec<usize> = tlv::places(reply, base).map(|(place, _)| place.at).collect();
    for at in all {
        reply[at] = INTEGRITY;
    }
}

/// Cuts Extra Padding out, and puts as much behind the other TLVs as the length of the reply needs.
fn shorten(reply: &mut Vec<u8>, base: usize, bytes: usize) {
    let mut to = base;
    let mut at = base;
    loop {
        let next = tlv::places(reply, at).next();
        let Some((place, true)) = next else { break };
        at = place.end();
        if place.kind != tlv::EXTRA_PADDING {
            reply.copy_within(place.at..at, to);
            to += at - place.at;
        }
    }
    let length = reply.len();
    reply.truncate(to);
    if bytes >= to + HEADER_BYTES && bytes <= length {
        let padding = bytes - to - HEADER_BYTES;
        reply.extend_from_slice(&[0, tlv::EXTRA_PADDING]);
        reply.extend_from_slice(&(padding as u16).to_be_bytes());
        reply.resize(bytes, 0);
    }
}
