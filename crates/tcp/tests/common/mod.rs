//! One fixture for most tests: two endpoints, a virtual clock, and a pipe with knobs between them.

#![allow(dead_code, reason = "each test file uses its own part")]

use congestion::Controller;
use std::collections::{BTreeMap, BinaryHeap};
use tcp::config::{Config, Reader};
use tcp::segment::{flags, Segment};
use tcp::Endpoint;
use units::{Span, Time};

/// Largest packet that any test's configuration allows, bytes.
const MTU: u32 = 1500;

/// The fate of a packet in the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    /// Arrives later by this much, overtaken by others.
    Delay(Span),
    /// Arrives twice.
    Duplicate,
    /// Congestion experienced, if ECN-capable.
    Mark,
}

/// Decides on the fate of the n-th packet (from 1) of a direction.
pub type Hook = Box<dyn FnMut(u64, &Segment) -> Fate>;

/// One direction.
pub struct Pipe {
    /// bit/s; 0 = infinite.
    pub rate: u64,
    pub delay: Span,
    /// Packets that may wait.
    pub queue: u64,
    pub hook: Option<Hook>,
    /// Packets that entered.
    pub count: u64,
    pub dropped: u64,
    free_at: u64,
}

impl Pipe {
    fn new(delay: Span) -> Pipe {
        Pipe { rate: 0, delay, queue: u64::MAX, hook: None, count: 0, dropped: 0, free_at: 0 }
    }
}

/// An arrival: time, order of entry, to the server or not.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival(std::cmp::Reverse<(u64, u64)>, bool);

/// A packet as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Time,
    pub seg: Segment,
    pub dropped: bool,
}

pub struct Pair {
    pub client: Endpoint,
    pub server: Endpoint,
    pub now: Time,
    /// Client to server.
    pub forward: Pipe,
    /// Server to client.
    pub back: Pipe,
    pub sent: Vec<Sent>,
    pub acks: Vec<Sent>,
    pub record: bool,
    heap: BinaryHeap<Arrival>,
    flying: BTreeMap<u64, Segment>,
    order: u64,
}

pub fn controller(name: &str) -> Controller {
    let algorithm = congestion::find(name).expect("a built-in algorithm");
    Controller::new(&algorithm, &BTreeMap::new()).expect("default parameters")
}

pub fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

pub fn at_ms(n: u64) -> Time {
    Time::ZERO + ms(n)
}

impl Pair {
    /// RTT 100 ms, no rate limit, both ends with `cfg`.
    pub fn new(cfg: Config) -> Pair {
        Pair::with(cfg.clone(), cfg, "reno", ms(50))
    }

    pub fn with(client: Config, server: Config, algorithm: &str, delay: Span) -> Pair {
        Pair {
            client: Endpoint::new_client(client, controller(algorithm), Time::ZERO),
            server: Endpoint::new_server(server, controller(algorithm), Time::ZERO),
            now: Time::ZERO,
            forward: Pipe::new(delay),
            back: Pipe::new(delay),
            sent: Vec::new(),
            acks: Vec::new(),
            record: true,
            heap: BinaryHeap::new(),
            flying: BTreeMap::new(),
            order: 0,
        }
    }

    /// Bottleneck of the forward direction.
    pub fn bottleneck(mut self, rate: u64, queue: u64) -> Pair {
        self.forward.rate = rate;
        self.forward.queue = queue;
        self
    }

    /// Drops these data segments (numbered from 1 among segments with payload, retransmissions included).
    pub fn drop_data(self, numbers: &[u64]) -> Pair {
        let numbers = numbers.to_vec();
        self.on_data(move |n, _| if numbers.contains(&n) { Fate::Drop } else { Fate::Pass })
    }

    /// Decides on data segments only.
    pub fn on_data(mut self, mut decide: impl FnMut(u64, &Segment) -> Fate + 'static) -> Pair {
        let mut n = 0;
        self.forward.hook = Some(Box::new(move |_, seg| {
            if seg.len == 0 {
                return Fate::Pass;
            }
            n += 1;
            decide(n, seg)
        }));
        self
    }

    pub fn on_ack(mut self, decide: impl FnMut(u64, &Segment) -> Fate + 'static) -> Pair {
        self.back.hook = Some(Box::new(decide));
        self
    }

    /// Handshake.
    pub fn connect(mut self) -> Pair {
        self.client.connect(self.now);
        self.flush();
        let mut limit = 100_000;
        while self.server.established_at().is_none() || self.client.established_at().is_none() {
            assert!(self.step(Time::NEVER), "the handshake does not end");
            limit -= 1;
            assert!(limit > 0, "the handshake does not end");
        }
        self
    }

    pub fn write(&mut self, bytes: u64) -> u64 {
        let accepted = self.client.write(self.now, bytes);
        self.flush();
        accepted
    }

    pub fn close(&mut self) {
        self.client.close(self.now);
        self.flush();
    }

    /// Runs to `until`; the clock stands there afterwards.
    pub fn run(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    pub fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        self.run(until);
    }

    /// Runs until the server has `bytes`, or fails at `limit`.
    pub fn run_until_received(&mut self, bytes: u64, limit: Time) {
        while self.server.bytes_received() < bytes {
            assert!(
                self.step(limit),
                "only {} of {bytes} bytes by {limit:?}: {:?}",
                self.server.bytes_received(),
                self.client
            );
        }
    }

    /// One event not later than `until`; false when there is none.
    pub fn step(&mut self, until: Time) -> bool {
        let arrival = self.heap.peek().map_or(u64::MAX, |a| a.0 .0 .0);
        let client = self.client.poll_timeout().0;
        let server = self.server.poll_timeout().0;
        let next = arrival.min(client).min(server);
        if next == u64::MAX || next > until.0 {
            return false;
        }
        self.now = Time(next.max(self.now.0));
        if next == arrival {
            let Arrival(std::cmp::Reverse((_, order)), to_server) = self.heap.pop().expect("peeked");
            let seg = self.flying.remove(&order).expect("in flight");
            if to_server {
                self.server.handle_segment(self.now, &seg);
            } else {
                self.client.handle_segment(self.now, &seg);
            }
        } else if next == client {
            self.client.handle_timeout(self.now);
            assert!(self.client.poll_timeout() > self.now, "the client's timer does not move");
        } else {
            self.server.handle_timeout(self.now);
            assert!(self.server.poll_timeout() > self.now, "the server's timer does not move");
        }
        self.flush();
        true
    }

    /// Sends what both ends have to send.
    pub fn flush(&mut self) {
        let mut seg = Segment::default();
        while Pair::sends(&mut self.client, self.now, &mut seg) {
            self.put(true, seg);
        }
        while Pair::sends(&mut self.server, self.now, &mut seg) {
            self.put(false, seg);
        }
    }

    /// One segment of an endpoint, which knows before whether there is one.
    fn sends(end: &mut Endpoint, now: Time, seg: &mut Segment) -> bool {
        let has = end.has_to_transmit(now);
        let sent = end.poll_transmit(now, seg);
        assert_eq!(has, sent, "at {now:?}: {end:?}");
        sent
    }

    fn put(&mut self, to_server: bool, mut seg: Segment) {
        let pipe = if to_server { &mut self.forward } else { &mut self.back };
        pipe.count += 1;
        assert!(seg.packet_bytes() <= MTU, "{} bytes in a packet", seg.packet_bytes());
        let mut fate = match pipe.hook.as_mut() {
            Some(hook) => hook(pipe.count, &seg),
            None => Fate::Pass,
        };
        let mut at = self.now.0;
        if let Some(time) = (u64::from(seg.packet_bytes()) * 8 * 1_000_000_000).checked_div(pipe.rate) {
            let backlog = pipe.free_at.saturating_sub(at);
            if fate != Fate::Drop && backlog / time.max(1) >= pipe.queue {
                fate = Fate::Drop;
            }
            if fate != Fate::Drop {
                pipe.free_at = pipe.free_at.max(at) + time;
                at = pipe.free_at;
            }
        }
        at += pipe.delay.0;
        pipe.dropped += u64::from(fate == Fate::Drop);
        if self.record {
            let sent = Sent { at: self.now, seg, dropped: fate == Fate::Drop };
            if to_server {
                self.sent.push(sent);
            } else {
                self.acks.push(sent);
            }
        }
        let mut copies = 1;
        match fate {
            Fate::Drop => copies = 0,
            Fate::Delay(span) => at += span.0,
            Fate::Duplicate => copies = 2,
            Fate::Mark if seg.has(flags::ECT) => seg.flags |= flags::CE,
            Fate::Mark | Fate::Pass => {}
        }
        for _ in 0..copies {
            self.order += 1;
            self.flying.insert(self.order, seg);
            self.heap.push(Arrival(std::cmp::Reverse((at, self.order)), to_server));
        }
    }

    pub fn cwnd(&self) -> u32 {
        self.client.controller().sock().snd_cwnd
    }

    pub fn ssthresh(&self) -> u32 {
        self.client.controller().sock().snd_ssthresh
    }

    /// Data segments sent by the client so far.
    pub fn data(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|s| s.seg.len > 0)
    }
}

/// A reader that waits to be told.
pub fn manual(cfg: Config) -> Config {
    Config { reader: Reader::Manual, ..cfg }
}
