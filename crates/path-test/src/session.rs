//! A Session-Sender (RFC 8762, 4.2) without I/O: packets that are due, replies that came, and a sample for each packet.

use crate::clock::{ClockState, FarClock};
use crate::stamp::{
    verify_base, ErrorEstimate, Key, Reply, Request, TimeFormat, AUTHENTICATED_BYTES, HMAC_BYTES, OPEN_BYTES,
};
use crate::stamp_tlv::{self as tlv, Integrity, HEADER_BYTES};
use serde::Serialize;
use std::collections::VecDeque;

/// Packets on their way at most: those of the longest wait at the shortest interval. Beyond it the oldest are lost.
const PENDING_MAX: usize = 65_536;
/// Window of the far end's clock, ns.
const CLOCK_WINDOW_NS: u64 = 320_000_000_000;

/// Settings of a session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Between two packets, ns.
    pub interval_ns: u64,
    /// UDP payload of a packet, octets; less than a base packet has is taken for that.
    pub payload_bytes: usize,
    /// Session identifier (RFC 8972, 3).
    pub ssid: u16,
    /// Key of both ends; none: no authentication.
    pub key: Option<Key>,
    /// Time after which a packet is lost, ns (RFC 7680, 2.5).
    pub timeout_ns: u64,
    /// Packets to send; none: no end.
    pub count: Option<u64>,
    /// Form of the time stamps.
    pub format: TimeFormat,
}

/// The session's clock when a packet is written.
#[derive(Clone, Copy, Debug)]
pub struct SenderClock {
    /// ns since 1970.
    pub unix_ns: u64,
    /// Its error, ns.
    pub error_ns: u64,
    /// It follows UTC.
    pub is_synchronized: bool,
}

/// A reply that came.
#[derive(Clone, Copy, Debug)]
pub struct ReplyArrival<'a> {
    /// UDP payload.
    pub packet: &'a [u8],
    /// Time of arrival, ns of the session's clock, which makes no steps.
    pub at_ns: u64,
    /// Time of arrival by the adapter's clock, ns.
    pub hardware_ns: Option<u64>,
    /// Time at which the program read it, ns of the session's clock.
    pub read_ns: u64,
    /// TTL or hop limit, where the kernel tells.
    pub ttl: Option<u8>,
}

/// One packet, answered or lost.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Sample {
    /// Its number, from 0.
    pub sequence: u64,
    /// Time at which it left, ns since 1970.
    pub sent_unix_ns: u64,
    /// Round trip without the reflector's time, ns; none: lost.
    pub rtt_ns: Option<u64>,
    /// One-way delay to the reflector, ns, by the estimated offset of its clock.
    pub forward_ns: Option<i64>,
    /// One-way delay back, ns.
    pub reverse_ns: Option<i64>,
    /// The largest error of both one-way delays that the clocks bring, ns.
    pub one_way_error_ns: Option<u64>,
    /// TTL or hop limit at the reflector.
    pub forward_ttl: Option<u8>,
    /// TTL or hop limit of the reply here.
    pub ttl: Option<u8>,
    /// Smoothed jitter of the round trip, ns (RFC 3550, 6.4.1).
    pub jitter_ns: u64,
    /// Replies that came once more, since the sample before.
    pub duplicates: u32,
    /// It came after a later one (RFC 4737, 3).
    pub is_reordered: bool,
    /// Packets sent later that had come before it (RFC 4737, 4.2.1, the extent in packets); 0 where it is in order.
    pub reorder_extent: u64,
    /// It passed later ones on the way to the reflector.
    pub is_forward_reordered: bool,
    /// The far end's clock made a step just before.
    pub clock_stepped: bool,
    /// By the numbers of a reflector with state: the loss was on the way back; none: nobody can tell.
    pub lost_in_reverse: Option<bool>,
    /// Lateness of this host, ns: from the time at which the packet was due to the one at which it left, or from the
    /// reply's arrival to its reading, whichever is longer.
    pub late_ns: u64,
    /// Time that the packet spent at the reflector by its own stamps, ns.
    pub residence_ns: u64,
}

/// Replies that were not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Unused {
    /// Too short, of another session, or of a packet that was not sent.
    pub strange: u64,
    /// With a wrong HMAC.
    pub wrong_hmac: u64,
    /// After the packet had been given up.
    pub late: u64,
    /// With time stamps that the round trip contradicts, so that nothing but the round trip was used: none at the
    /// arrival, a reply before the arrival, or longer between both than the round trip took. Both stamps have to be of
    /// one clock (RFC 8762, 4.3.1).
    pub timestamps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    due_ns: u64,
    sent_ns: u64,
    unix_ns: u64,
    hardware_ns: Option<u64>,
    is_answered: bool,
    /// Its sample, while an earlier packet is neither answered nor lost.
    held: Option<Sample>,
}

impl Pending {
    fn late_ns(&self) -> u64 {
        self.sent_ns.saturating_sub(self.due_ns)
    }
}

/// A sender's session.
#[derive(Clone, Debug)]
pub struct Session {
    config: SessionConfig,
    base: usize,
    padding: Vec<u8>,
    /// Packets of which the time is not over, the first of them being of number `first`.
    pending: VecDeque<Pending>,
    first: u64,
    /// Number of the packet whose sample is next.
    next_sample: u64,
    next_ns: u64,
    clock: FarClock,
    samples: VecDeque<Sample>,
    unused: Unused,
    duplicates: u32,
    jitter_ns: f64,
    rtt_before_ns: Option<u64>,
    /// Highest number of the replies, and the arrival of its packet at the reflector.
    highest: Option<(u64, u64)>,
    /// Highest number of a packet that was answered, and of the reflector's own.
    reflected: Option<(u64, u64)>,
    is_stateful: bool,
    both_synchronized: Option<u64>,
}

impl Session {
    /// A session whose first packet is due at `now_ns` of a clock that makes no steps.
    pub fn new(config: SessionConfig, now_ns: u64) -> Session {
        let base = if config.key.is_some() { AUTHENTICATED_BYTES } else { OPEN_BYTES };
        let padding = padding(config.payload_bytes.saturating_sub(base));
        Session {
            config,
            base,
            padding,
            pending: VecDeque::new(),
            first: 0,
            next_sample: 0,
            next_ns: now_ns,
            clock: FarClock::new(CLOCK_WINDOW_NS),
            samples: VecDeque::new(),
            unused: Unused::default(),
            duplicates: 0,
            jitter_ns: 0.0,
            rtt_before_ns: None,
            highest: None,
            reflected: None,
            is_stateful: false,
            both_synchronized: None,
        }
    }

    fn next(&self) -> u64 {
        self.first + self.pending.len() as u64
    }

    fn is_over(&self) -> bool {
        self.config.count.is_some_and(|count| self.next() >= count)
    }

    /// True when every packet of a session with an end is answered or lost.
    pub fn is_done(&self) -> bool {
        self.is_over() && self.pending.iter().all(|packet| packet.is_answered)
    }

    /// Packets sent.
    pub fn sent(&self) -> u64 {
        self.next()
    }

    /// Time of the next call, ns; None: never, the session is over.
    pub fn poll_timeout(&self) -> Option<u64> {
        let send = (!self.is_over()).then_some(self.next_ns);
        let lost = self.pending.front().map(|packet| packet.sent_ns.saturating_add(self.config.timeout_ns));
        send.into_iter().chain(lost).min()
    }

    /// Writes a packet that is due, and returns its number; None: none is.
    pub fn poll_transmit(&mut self, now_ns: u64, clock: SenderClock, packet: &mut Vec<u8>) -> Option<u64> {
        if self.is_over() || now_ns < self.next_ns {
            return None;
        }
        let number = self.next();
        packet.clear();
        packet.resize(self.base, 0);
        packet.extend_from_slice(&self.padding);
        let format = self.config.format;
        let request = Request {
            sequence: number as u32,
            timestamp: format.encode(clock.unix_ns),
            error: ErrorEstimate::of(clock.error_ns, clock.is_synchronized && format == TimeFormat::Ntp, format),
            ssid: self.config.ssid,
        };
        request.encode(packet, self.config.key.as_ref());
        if self.pending.len() == PENDING_MAX {
            self.give_up();
        }
        self.pending.push_back(Pending {
            due_ns: self.next_ns,
            sent_ns: now_ns,
            unix_ns: clock.unix_ns,
            hardware_ns: None,
            is_answered: false,
            held: None,
        });
        // Packets that a sleeping host has missed are not made up for.
        self.next_ns = self.next_ns.saturating_add(self.config.interval_ns);
        if self.next_ns.saturating_add(self.config.interval_ns) < now_ns {
            self.next_ns = now_ns.saturating_add(self.config.interval_ns);
        }
        Some(number)
    }

    /// Takes the time at which a packet really left, as the kernel or the adapter stamped it.
    pub fn handle_sent(&mut self, number: u64, at_ns: Option<u64>, hardware_ns: Option<u64>) {
        let Some(packet) = number.checked_sub(self.first).and_then(|at| self.pending.get_mut(at as usize)) else {
            return;
        };
        if let Some(at_ns) = at_ns {
            packet.unix_ns = packet.unix_ns.saturating_add_signed(at_ns.wrapping_sub(packet.sent_ns) as i64);
            packet.sent_ns = at_ns;
        }
        packet.hardware_ns = hardware_ns.or(packet.hardware_ns);
    }

    /// Takes a reply.
    pub fn handle_reply(&mut self, arrival: &ReplyArrival<'_>) {
        let Some((number, reply)) = self.accepted(arrival.packet) else { return };
        let at = (number - self.first) as usize;
        let packet = self.pending[at];
        if packet.is_answered {
            self.duplicates = self.duplicates.saturating_add(1);
            return;
        }
        self.pending[at].is_answered = true;
        let format = reply.error.format;
        let came_ns = format.decode(reply.received, packet.unix_ns);
        let answered_ns = format.decode(reply.timestamp, packet.unix_ns);
        let residence_ns = answered_ns.saturating_sub(came_ns);
        let round_ns = match (arrival.hardware_ns, packet.hardware_ns) {
            // One clock's, whatever its offset from the system's is.
            (Some(back_ns), Some(sent_ns)) if back_ns > sent_ns => back_ns - sent_ns,
            _ => arrival.at_ns.saturating_sub(packet.sent_ns),
        };
        // Clocks of two time scales (TAI, UTC), or a step between both stamps.
        let is_consistent = reply.received != 0 && answered_ns >= came_ns && residence_ns <= round_ns;
        let rtt_ns = if is_consistent { round_ns - residence_ns } else { round_ns };
        let mut clock_stepped = false;
        let (mut forward_ns, mut reverse_ns, mut one_way_error_ns) = (None, None, None);
        if is_consistent {
            clock_stepped = self.clock.handle_times(packet.sent_ns, came_ns, answered_ns, arrival.at_ns);
            self.both_synchronized = (reply.error.synchronized && reply.sender_error.synchronized)
                .then(|| reply.error.error_ns().saturating_add(reply.sender_error.error_ns()));
            (forward_ns, reverse_ns, one_way_error_ns) = self.one_way(&packet, came_ns, answered_ns, arrival.at_ns);
        } else {
            self.unused.timestamps += 1;
        }
        if let Some(before) = self.rtt_before_ns.replace(rtt_ns) {
            self.jitter_ns += (rtt_ns.abs_diff(before) as f64 - self.jitter_ns) / 16.0;
        }
        let mut sample = Sample {
            sequence: number,
            sent_unix_ns: packet.unix_ns,
            rtt_ns: Some(rtt_ns),
            forward_ns,
            reverse_ns,
            one_way_error_ns,
            // 255 is also what a reflector says that does not know (RFC 8762, 4.3.1), and TWAMP's may say 0.
            forward_ttl: (reply.sender_ttl != 0).then_some(reply.sender_ttl),
            ttl: arrival.ttl,
            jitter_ns: self.jitter_ns as u64,
            duplicates: std::mem::take(&mut self.duplicates),
            clock_stepped,
            late_ns: packet.late_ns().max(arrival.read_ns.saturating_sub(arrival.at_ns)),
            residence_ns: if is_consistent { residence_ns } else { 0 },
            ..Sample::default()
        };
        match self.highest {
            Some((highest, highest_came_ns)) if number < highest => {
                sample.is_reordered = true;
                let later = self.pending.iter().skip(at + 1).filter(|packet| packet.is_answered).count();
                sample.reorder_extent = later as u64;
                sample.is_forward_reordered = is_consistent && came_ns > highest_came_ns;
            }
            _ => self.highest = Some((number, came_ns)),
        }
        self.count_reflected(number, reply.sequence);
        self.pending[at].held = Some(sample);
        self.release();
    }

    /// Releases samples up to the first packet that is neither answered nor lost.
    fn release(&mut self) {
        while let Some(place) = self.next_sample.checked_sub(self.first) {
            let Some(sample) = self.pending.get_mut(place as usize).and_then(|packet| packet.held.take()) else {
                break;
            };
            self.samples.push_back(sample);
            self.next_sample += 1;
        }
    }

    /// The packet's number and the reply, where the reply is one to this session.
    fn accepted(&mut self, packet: &[u8]) -> Option<(u64, Reply)> {
        let key = self.config.key.as_ref();
        let Some(reply) = Reply::decode(packet, key.is_some()) else {
            self.unused.strange += 1;
            return None;
        };
        if key.is_some_and(|key| !verify_base(packet, key)) {
            self.unused.wrong_hmac += 1;
            return None;
        }
        // TWAMP's reflectors have zeros where STAMP has its identifier.
        if reply.ssid != self.config.ssid && reply.ssid != 0 {
            self.unused.strange += 1;
            return None;
        }
        // Numbers have 32 bits and wrap; the one nearest to the latest is meant.
        let latest = self.next().saturating_sub(1);
        let number = latest.wrapping_add_signed(i64::from(reply.sender_sequence.wrapping_sub(latest as u32) as i32));
        if number >= self.next() {
            self.unused.strange += 1;
            return None;
        }
        if number < self.first {
            self.unused.late += 1;
            return None;
        }
        Some((number, reply))
    }

    /// Delays to and fro, and their error.
    fn one_way(
        &self,
        packet: &Pending,
        came_ns: u64,
        answered_ns: u64,
        back_ns: u64,
    ) -> (Option<i64>, Option<i64>, Option<u64>) {
        let Some(state) = self.clock.state(back_ns) else { return (None, None, None) };
        // A clock that follows UTC at both ends tells more than the round trip where its error is smaller.
        // The packets refute a claim that would have them arrive before they left.
        let utc_ns = packet.unix_ns.wrapping_sub(packet.sent_ns) as i64;
        let (offset_ns, error_ns) = match self.both_synchronized {
            Some(error_ns)
                if error_ns < state.error_ns
                    && utc_ns.abs_diff(state.offset_ns) <= state.error_ns.saturating_add(error_ns) =>
            {
                (utc_ns, error_ns)
            }
            _ => (state.offset_ns, state.error_ns),
        };
        let forward = (came_ns.wrapping_sub(packet.sent_ns) as i64).wrapping_sub(offset_ns);
        let reverse = (back_ns.wrapping_sub(answered_ns) as i64).wrapping_add(offset_ns);
        (Some(forward), Some(reverse), Some(error_ns))
    }

    /// Keeps the numbers of a reflector with state: its own count falls behind by those that it did not get.
    fn count_reflected(&mut self, number: u64, reflected: u32) {
        if reflected != number as u32 {
            self.is_stateful = true;
        }
        let (highest, most) = self.reflected.unwrap_or((number, reflected.into()));
        self.reflected = Some((highest.max(number), most.max(reflected.into())));
    }

    /// Gives up packets whose time is over.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        while let Some(packet) = self.pending.front() {
            if packet.sent_ns.saturating_add(self.config.timeout_ns) > now_ns {
                break;
            }
            self.give_up();
        }
    }

    /// The oldest packet's time is over.
    fn give_up(&mut self) {
        let Some(packet) = self.pending.pop_front() else { return };
        let sequence = self.first;
        self.first += 1;
        if !packet.is_answered {
            let duplicates = std::mem::take(&mut self.duplicates);
            self.samples.push_back(Sample {
                sequence,
                sent_unix_ns: packet.unix_ns,
                jitter_ns: self.jitter_ns as u64,
                duplicates,
                late_ns: packet.late_ns(),
                ..Sample::default()
            });
            self.next_sample = self.first;
            self.release();
        }
    }

    /// The next sample, in the order of sending: one behind a packet without an answer waits until that one's time is
    /// over. So a reader takes a lost packet for neither a late one nor a clock that was set back.
    pub fn poll_sample(&mut self) -> Option<Sample> {
        self.samples.pop_front()
    }

    /// The far end's clock against the session's.
    pub fn clock(&self, now_ns: u64) -> Option<ClockState> {
        self.clock.state(now_ns)
    }

    /// Replies that came once more since the latest sample.
    pub fn untold_duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Replies that were not used.
    pub fn unused(&self) -> Unused {
        self.unused
    }

    /// Packets that got lost on the way to a reflector with state, up to the highest that was answered: those that it
    /// has not counted, less those that came twice. None: the reflector does not count.
    pub fn lost_forward(&self) -> Option<u64> {
        let (number, reflected) = self.reflected.filter(|_| self.is_stateful)?;
        number.checked_sub(reflected)
    }
}

/// Extra Padding of so many octets with its header; 0 for none, else 4 at least. Its content cannot be compressed.
pub fn padding(bytes: usize) -> Vec<u8> {
    let mut made = vec![];
    if bytes > 0 {
        push_padding(&mut made, bytes.max(HEADER_BYTES));
    }
    made
}

fn push_padding(packet: &mut Vec<u8>, bytes: usize) {
    let mut state = 0x9e37_79b9_u32;
    let value: Vec<u8> = (HEADER_BYTES..bytes)
        .map(|_| {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as u8
        })
        .collect();
    tlv::push(packet, tlv::EXTRA_PADDING, &value);
}

/// Writes a test packet of `bytes` of payload that asks for a reply of a base packet's length (RFC 10052, 3), and is
/// filled with Extra Padding. A packet too small for that asks for nothing.
pub fn train_packet(request: &Request, key: Option<&Key>, bytes: usize, packet: &mut Vec<u8>) {
    let base = if key.is_some() { AUTHENTICATED_BYTES } else { OPEN_BYTES };
    packet.clear();
    packet.resize(base, 0);
    request.encode(packet, key);
    let control = HEADER_BYTES + tlv::REPLY_CONTROL_BYTES;
    let signature = if key.is_some() { HEADER_BYTES + HMAC_BYTES } else { 0 };
    if bytes >= base + control + signature + HEADER_BYTES {
        // Length 0: as short as it can be. One packet, no interval, an empty sub-TLV.
        tlv::push(packet, tlv::REPLY_CONTROL, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        if let Some(key) = key {
            let at = packet.len();
            tlv::push(packet, tlv::HMAC, &[0; HMAC_BYTES]);
            tlv::sign(packet, base, at, key);
        }
    }
    let left = bytes.saturating_sub(packet.len());
    if left > 0 {
        push_padding(packet, left.max(HEADER_BYTES));
    }
}

/// True for a reply whose TLVs, if there are any, have a right HMAC, or none where none is needed.
pub fn verify_tlvs(packet: &[u8], key: Option<&Key>) -> bool {
    let base = if key.is_some() { AUTHENTICATED_BYTES } else { OPEN_BYTES };
    tlv::verify(packet, base, key, key.is_some()) != Integrity::Wrong
}
