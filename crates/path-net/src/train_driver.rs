//! Packet trains over STAMP: packets leave when they are due, the reflector's stamps tell when each arrived.

use crate::address::resolve;
use crate::clock::{clock_quality, monotonic_ns, unix_ns, Distance};
use crate::error::PathError;
use crate::socket::{wait, Outgoing, Report, Room, TestSocket, BATCH, PAYLOAD_MAX};
use path_test::session::train_packet;
use path_test::stamp::{
    header_bytes, verify_base, ErrorEstimate, Key, Reply, Request, TimeFormat, AUTHENTICATED_BYTES, OPEN_BYTES,
};
use path_test::train::{RouterReply, Train, TrainPacket, TrainReport};
use rustix::fd::AsFd;
use rustix::thread::{nanosleep, Timespec};
use std::net::SocketAddr;

/// Time before a packet is due at which the driver stops sleeping and spins, ns: a timer's usual lateness.
const SPIN_NS: u64 = 80_000;
/// Time to the next packet below which replies are left for later, ns.
const DRAIN_NS: u64 = 200_000;
/// Lateness from which a packet counts as late, ns.
const LATE_NS: u64 = 100_000;
/// Longest sleep between two looks for a stop, ns.
const NAP_NS: u64 = 50_000_000;
/// Silence after which a train is over whose packets do not all come back, ns, at least; else twice the longest round
/// trip that it saw.
const SILENCE_NS: u64 = 200_000_000;
/// Packets of a train at most: numbers and stamps of them are kept until it is over.
pub const TRAIN_PACKETS_MAX: usize = 1_000_000;

/// Sends trains to one reflector.
pub struct TrainDriver {
    to: SocketAddr,
    socket: TestSocket,
    key: Option<Key>,
    room: Room,
    /// Number of the next packet: goes on from train to train, so that a late reply is told from a new one.
    next: u32,
    ssid: u16,
    wait_ns: u64,
}

impl TrainDriver {
    /// Towards `host:port`. A train whose packets have no answer at all is over `wait_ns` after its last one.
    ///
    /// # Errors
    /// The name is unknown, or there is no route.
    pub fn open(towards: &str, key: Option<&[u8]>, wait_ns: u64) -> Result<TrainDriver, PathError> {
        let to = resolve(towards)?;
        let failed = || PathError::io(format!("UDP to {to}"));
        let socket = TestSocket::connect(to, 0).map_err(failed())?;
        socket.hold_bursts();
        let ssid = socket.local().map_err(failed())?.port();
        let key = key.map(Key::new);
        Ok(TrainDriver { to, socket, key, room: Room::new(BATCH), next: 0, ssid, wait_ns })
    }

    /// The reflector's address.
    pub fn towards(&self) -> SocketAddr {
        self.to
    }

    /// The clock of trains and of their reports' sender, ns.
    pub fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    /// Sends a train and waits for its replies. `stop` is asked now and then.
    ///
    /// # Errors
    /// The train cannot be; the kernel refuses a socket option; told to stop.
    pub fn send(&mut self, train: &Train, stop: &mut dyn FnMut() -> bool) -> Result<TrainReport, PathError> {
        let count = train.offsets_ns.len();
        if count > TRAIN_PACKETS_MAX {
            let text = format!("a train of {count} packets: at most {TRAIN_PACKETS_MAX} are possible");
            return Err(PathError::Input(text));
        }
        let payload = self.payload_bytes(train)?;
        let failed = || PathError::io(format!("UDP to {}", self.to));
        self.socket.set_ttl(train.ttl).map_err(failed())?;
        self.socket.set_do_not_fragment(train.do_not_fragment).map_err(failed())?;
        // The numbers of the kernel's stamps begin anew, whatever it refused before.
        self.socket.stamp_sent().map_err(failed())?;
        let mut run = Run {
            base: self.next,
            packets: vec![TrainPacket::default(); count],
            told: 0,
            sent: vec![],
            answered: 0,
            last_heard_ns: 0,
            longest_ns: 0,
            heads: self.heads(count, payload),
            refusals: 0,
        };
        self.next = self.next.wrapping_add(count as u32);
        let start_ns = monotonic_ns() + if train.offsets_ns.last() > Some(&0) { SPIN_NS } else { 0 };
        let mut at = 0;
        while at < count {
            let due_ns = start_ns.saturating_add(train.offsets_ns[at]);
            if !self.sleep_until(due_ns, &mut run, stop) {
                return Err(PathError::Stopped);
            }
            // All that are due now go by one call: those of one time, and those that the host is late with.
            let now_ns = monotonic_ns();
            let due = train.offsets_ns[at..]
                .iter()
                .take(BATCH)
                .take_while(|&&offset| start_ns.saturating_add(offset) <= now_ns);
            let due = due.count().max(1);
            at += self.send_some(&mut run, at, due);
        }
        self.collect(&mut run, stop)?;
        let late = (0..count).filter(|&at| {
            let offset = train.offsets_ns[at];
            // One that is to follow the packet before at once has no time of its own.
            let has_time = at == 0 || offset > train.offsets_ns[at - 1];
            has_time && run.packets[at].sent_ns > start_ns.saturating_add(offset).saturating_add(LATE_NS)
        });
        let late = late.count();
        Ok(TrainReport { stamp_step_ns: stamp_step(&run.packets), packets: run.packets, late: late as u32 })
    }

    fn payload_bytes(&self, train: &Train) -> Result<usize, PathError> {
        let headers = header_bytes(self.to);
        let base = if self.key.is_some() { AUTHENTICATED_BYTES } else { OPEN_BYTES };
        let (least, most) = (base + headers, PAYLOAD_MAX + headers);
        let bytes = train.packet_bytes as usize;
        if !(least..=most).contains(&bytes) {
            return Err(PathError::Input(format!("packets of {bytes} bytes: {least} to {most} are needed")));
        }
        Ok(bytes - headers)
    }

    /// The first octets of each packet, as far as they differ, and the padding behind them.
    fn heads(&self, count: usize, payload: usize) -> Heads {
        let quality = clock_quality();
        let error = ErrorEstimate::of(quality.error_ns, quality.is_synchronized, TimeFormat::Ntp);
        let mut made = Heads { bytes: vec![], each: 0, tail: vec![] };
        let mut packet = vec![];
        for at in 0..count {
            let sequence = self.next.wrapping_add(at as u32);
            let timestamp = TimeFormat::Ntp.encode(unix_ns());
            let request = Request { sequence, timestamp, error, ssid: self.ssid };
            train_packet(
                &request,
                self.key.as_ref(),
                if at == 0 { payload } else { payload.min(HEAD_MAX) },
                &mut packet,
            );
            if at == 0 {
                made.each = payload.min(HEAD_MAX).min(packet.len());
                made.tail = packet.split_off(made.each);
                made.bytes.reserve_exact(made.each * count);
                made.bytes.extend_from_slice(&packet);
            } else {
                // The head of a shorter packet is that of this one, but for the length of its padding.
                let first = made.bytes[..made.each].to_vec();
                packet.truncate(made.each);
                copy_padding_header(&first, &mut packet, self.key.is_some());
                made.bytes.extend_from_slice(&packet);
            }
        }
        made
    }

    /// Sleeps until a packet is due, with replies read meanwhile; the last moment is spun. False: told to stop.
    fn sleep_until(&mut self, due_ns: u64, run: &mut Run, stop: &mut dyn FnMut() -> bool) -> bool {
        loop {
            let left = due_ns.saturating_sub(monotonic_ns());
            if left > DRAIN_NS {
                self.take(run);
            }
            let left = due_ns.saturating_sub(monotonic_ns()).min(left);
            if left <= SPIN_NS {
                break;
            }
            let time = (left - SPIN_NS).min(NAP_NS);
            let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: time as i64 });
            if time == NAP_NS && stop() {
                return false;
            }
        }
        while monotonic_ns() < due_ns {
            std::hint::spin_loop();
        }
        true
    }

    /// Sends up to `due` packets from number `at` on; returns how many are done with.
    fn send_some(&mut self, run: &mut Run, at: usize, due: usize) -> usize {
        let outgoing: Vec<Outgoing<'_>> = (at..at + due)
            .map(|at| Outgoing { parts: [run.heads.head(at), &run.heads.tail], to: None, from: None, traffic_class: 0 })
            .collect();
        let now_ns = monotonic_ns();
        match self.socket.send(&outgoing) {
            Ok(sent) => {
                for at in at..at + sent {
                    run.packets[at].sent_ns = now_ns;
                    run.sent.push(at as u32);
                }
                run.refusals = 0;
                sent
            }
            Err(error) => {
                run.packets[at].sent_ns = now_ns;
                run.refusals += 1;
                // Kernels differ in the numbers that they give after an error: numbering begins anew.
                self.take(run);
                run.sent.clear();
                let _ = self.socket.stamp_sent();
                match error.raw_os_error() {
                    Some(libc::EMSGSIZE) => self.own_refusal(run, at),
                    // An ICMP error of an earlier packet, or a full queue of the own host, which drains at the line's
                    // rate; a lasting one is no route.
                    Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) if run.refusals < 4 => return 0,
                    Some(libc::EAGAIN | libc::ENOBUFS) => return 0,
                    _ => {}
                }
                run.refusals = 0;
                1
            }
        }
    }

    /// The own link's MTU is smaller than the packet.
    fn own_refusal(&self, run: &mut Run, at: usize) {
        let Ok(local) = self.socket.local() else { return };
        let (icmp_type, icmp_code) = if self.to.is_ipv6() { (2, 0) } else { (3, 4) };
        run.packets[at].router = Some(RouterReply {
            address: local.ip(),
            icmp_type,
            icmp_code,
            mtu_bytes: None,
            at_ns: run.packets[at].sent_ns,
        });
    }

    /// Waits for what is still on its way.
    fn collect(&mut self, run: &mut Run, stop: &mut dyn FnMut() -> bool) -> Result<(), PathError> {
        let last_sent_ns = monotonic_ns();
        loop {
            self.take(run);
            let is_over = run.packets.iter().all(|packet| packet.returned_ns.is_some() || packet.router.is_some());
            let now_ns = monotonic_ns();
            let wait_ns = if run.answered == 0 { self.wait_ns } else { SILENCE_NS.max(2 * run.longest_ns) };
            let end_ns = last_sent_ns.max(run.last_heard_ns) + wait_ns;
            if is_over || now_ns >= end_ns {
                // Times of sending may still be in the queue.
                self.take(run);
                return Ok(());
            }
            if stop() {
                return Err(PathError::Stopped);
            }
            let left = (end_ns - now_ns).min(NAP_NS);
            wait(&[self.socket.as_fd()], left).map_err(PathError::io("waiting for replies"))?;
        }
    }

    /// Reads the error queue and the replies that have come.
    fn take(&mut self, run: &mut Run) {
        let distance = Distance::now();
        let socket = &self.socket;
        let _ = self.room.reports(socket, |report| match report {
            Report::Sent { number, at_unix_ns, .. } => {
                let Some(&at) = run.sent.get(number as usize) else { return };
                if let (Some(at_unix_ns), Some(packet)) = (at_unix_ns, run.packets.get_mut(at as usize)) {
                    packet.sent_ns = distance.monotonic(at_unix_ns);
                }
            }
            Report::Icmp { offender, kind, code, mtu, at_unix_ns, quoted, .. } => {
                let Some(address) = offender.or_else(|| Some(socket.local().ok()?.ip())) else { return };
                let at_ns = distance.monotonic(at_unix_ns);
                let reply = RouterReply { address, icmp_type: kind, icmp_code: code, mtu_bytes: mtu, at_ns };
                run.routed(reply, &quoted.0[..quoted.1]);
            }
        });
        let (key, ssid) = (self.key.as_ref(), self.ssid);
        loop {
            let distance = Distance::now();
            let got = self.room.receive(socket, |packet, facts| {
                let Some(reply) = Reply::decode(packet, key.is_some()) else { return };
                if (reply.ssid != ssid && reply.ssid != 0) || key.is_some_and(|key| !verify_base(packet, key)) {
                    return;
                }
                run.returned(&reply, distance.monotonic(facts.at_unix_ns), facts.at_unix_ns);
            });
            if !matches!(got, Ok(BATCH)) {
                break;
            }
        }
    }
}

/// Octets of a packet's number, with which its payload begins (RFC 8762, 4.2.1).
const NUMBER_BYTES: usize = 4;
/// Octets in which packets of a train differ, at most: an authenticated base packet, control of the reply, an HMAC TLV,
/// and a padding's header.
const HEAD_MAX: usize = AUTHENTICATED_BYTES + 16 + 20 + 4;

/// Gives a head the padding's length of another one, whose packet is longer. Padding comes last, so that no HMAC covers
/// it.
fn copy_padding_header(first: &[u8], packet: &mut [u8], is_authenticated: bool) {
    let base = if is_authenticated { AUTHENTICATED_BYTES } else { OPEN_BYTES };
    let padding = path_test::stamp_tlv::places(first, base)
        .map(|(place, _)| place)
        .find(|place| place.kind == path_test::stamp_tlv::EXTRA_PADDING);
    if let Some(place) = padding {
        packet[place.at..].copy_from_slice(&first[place.at..]);
    }
}

/// First octets of a train's packets, and the padding that all have.
struct Heads {
    bytes: Vec<u8>,
    each: usize,
    tail: Vec<u8>,
}

impl Heads {
    fn head(&self, at: usize) -> &[u8] {
        &self.bytes[at * self.each..][..self.each]
    }
}

/// A train under way.
struct Run {
    base: u32,
    packets: Vec<TrainPacket>,
    /// Packets that a router's reply without their number is not for: those before have an answer.
    told: usize,
    /// Packets in the order in which the kernel numbers them.
    sent: Vec<u32>,
    answered: usize,
    last_heard_ns: u64,
    longest_ns: u64,
    heads: Heads,
    /// Refusals of the own kernel in turn.
    refusals: u32,
}

impl Run {
    fn returned(&mut self, reply: &Reply, at_ns: u64, near_unix_ns: u64) {
        let at = reply.sender_sequence.wrapping_sub(self.base) as usize;
        let Some(packet) = self.packets.get_mut(at).filter(|packet| packet.returned_ns.is_none()) else { return };
        packet.received_ns = Some(reply.error.format.decode(reply.received, near_unix_ns));
        packet.returned_ns = Some(at_ns);
        self.longest_ns = self.longest_ns.max(at_ns.saturating_sub(packet.sent_ns));
        self.last_heard_ns = at_ns;
        self.answered += 1;
    }

    /// A router's reply is for the packet that it quotes. Some quote no more than the UDP header: theirs are for the
    /// earliest packet without an answer.
    fn routed(&mut self, reply: RouterReply, quoted: &[u8]) {
        // Zeros fill a short quotation up (RFC 4884, 4); a time stamp of a packet is never 0.
        let quoted = if quoted.iter().all(|&octet| octet == 0) { &[] } else { quoted };
        let is_open = |packet: &TrainPacket| {
            packet.returned_ns.is_none()
                && packet.router.as_ref().is_none_or(|known| known.mtu_bytes.is_none() && reply.mtu_bytes.is_some())
        };
        let at = match self.quoted(quoted) {
            Some(at) => Some(at).filter(|&at| is_open(&self.packets[at])),
            None if quoted.len() >= NUMBER_BYTES => None,
            None => (self.told..self.packets.len()).find(|&at| is_open(&self.packets[at])),
        };
        let Some(at) = at else { return };
        if quoted.len() < NUMBER_BYTES {
            self.told = at + 1;
        }
        let packet = &mut self.packets[at];
        self.answered += 1;
        self.last_heard_ns = reply.at_ns;
        self.longest_ns = self.longest_ns.max(reply.at_ns.saturating_sub(packet.sent_ns));
        packet.router = Some(reply);
    }

    /// The packet of this train whose payload begins as the quoted one.
    fn quoted(&self, quoted: &[u8]) -> Option<usize> {
        let number = u32::from_be_bytes(quoted.get(..NUMBER_BYTES)?.try_into().ok()?);
        let at = number.wrapping_sub(self.base) as usize;
        (at < self.packets.len() && self.heads.head(at).starts_with(quoted)).then_some(at)
    }
}

/// Steps of the reflector's stamps: of decimal clocks, as hosts have them.
fn stamp_step(packets: &[TrainPacket]) -> u64 {
    let stamps: Vec<u64> = packets.iter().filter_map(|packet| packet.received_ns).collect();
    let all = |step: u64| stamps.len() > 3 && stamps.iter().all(|stamp| stamp % step < 2);
    [10_000_000, 1_000_000, 100_000, 10_000, 1000].into_iter().find(|step| all(*step)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A train of three packets, the first of number 7.
    fn run() -> Run {
        let head = |number: u32| [&number.to_be_bytes()[..], &[9; 40]].concat();
        let heads = Heads { bytes: [7, 8, 9].map(head).concat(), each: 44, tail: vec![] };
        let packets = vec![TrainPacket { sent_ns: 100, ..TrainPacket::default() }; 3];
        Run {
            base: 7,
            packets,
            told: 0,
            sent: vec![],
            answered: 0,
            last_heard_ns: 0,
            longest_ns: 0,
            heads,
            refusals: 0,
        }
    }

    fn of(last: u8) -> RouterReply {
        RouterReply { address: [192, 0, 2, last].into(), icmp_type: 11, icmp_code: 0, mtu_bytes: None, at_ns: 500 }
    }

    fn routers(run: &Run) -> Vec<Option<String>> {
        run.packets.iter().map(|packet| Some(packet.router.as_ref()?.address.to_string())).collect()
    }

    #[test]
    fn a_routers_reply_is_for_the_packet_that_it_quotes() {
        let mut run = run();
        let quoted: Vec<u8> = run.heads.head(2)[..12].to_vec();
        run.routed(of(3), &quoted);
        assert_eq!(routers(&run), [None, None, Some("192.0.2.3".into())]);
        // Of an earlier train, and of another packet of this number.
        run.routed(of(4), &[0, 0, 0, 6, 9, 9, 9, 9]);
        run.routed(of(4), &[0, 0, 0, 7, 8, 8, 8, 8]);
        assert_eq!(run.answered, 1);
    }

    #[test]
    fn a_routers_reply_without_the_payload_is_for_the_earliest_packet() {
        let mut run = run();
        run.routed(of(1), &[]);
        run.routed(of(2), &[0; 12]);
        assert_eq!(routers(&run), [Some("192.0.2.1".into()), Some("192.0.2.2".into()), None]);
    }
}
