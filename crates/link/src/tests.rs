//! Tests of whole links, and the fixture that carries them: a link, probes, a virtual clock.

mod aqm;
mod changes;
mod fifo;
mod gate;
mod properties;

use crate::{Admission, DropReason, Jitter, JitterDistribution, Link, LinkConfig, LossModel, Packet, QueueConfig};
use units::{Rate, Span, Time};

/// A packet that remembers when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub number: u64,
    pub bytes: u32,
    pub flow: u64,
    pub ect: bool,
    pub ce: bool,
    pub came: u64,
}

impl Packet for Probe {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn flow_hash(&self) -> u64 {
        self.flow
    }
    fn is_ect(&self) -> bool {
        self.ect
    }
    fn mark_ce(&mut self) {
        self.ce = true;
    }
}

/// A link with its clock: what came out, and what was lost, with times.
pub struct Bench {
    pub link: Link<Probe>,
    pub now: u64,
    pub sent: u64,
    pub delivered: Vec<(u64, Probe)>,
    pub dropped: Vec<(u64, Probe, DropReason)>,
}

impl Bench {
    pub fn new(config: LinkConfig) -> Bench {
        Bench::of(Link::new(config, 1))
    }

    pub fn of(link: Link<Probe>) -> Bench {
        Bench { link, now: 0, sent: 0, delivered: vec![], dropped: vec![] }
    }

    /// Lets time pass up to `time`, taking each event when it is due.
    pub fn run_to(&mut self, time: u64) {
        while self.link.poll_timeout() <= Time(time) && self.link.poll_timeout() != Time::NEVER {
            assert!(self.link.poll_timeout().0 >= self.now, "an event in the past");
            self.now = self.link.poll_timeout().0;
            self.take();
        }
        self.now = time;
        self.link.settle(Time(time));
        self.link.queue(Time(time));
    }

    /// Lets time pass until nothing is inside, or nothing will happen.
    pub fn run_dry(&mut self) {
        self.take();
        while self.link.poll_timeout() != Time::NEVER {
            self.run_to(self.link.poll_timeout().0);
        }
    }

    /// Takes what has come out by now.
    pub fn take(&mut self) {
        let now = Time(self.now);
        self.link.handle_timeout(now);
        while let Some(probe) = self.link.poll_delivery(now) {
            self.delivered.push((self.now, probe));
        }
        while let Some((probe, reason)) = self.link.poll_dropped() {
            self.dropped.push((self.now, probe, reason));
        }
        self.link.settle(now);
        self.link.queue(now);
    }

    pub fn send(&mut self, bytes: u32) {
        self.send_of(bytes, 0, false);
    }

    pub fn send_of(&mut self, bytes: u32, flow: u64, ect: bool) {
        self.sent += 1;
        let probe = Probe { number: self.sent, bytes, flow, ect, ce: false, came: self.now };
        if let Admission::Dropped(probe, reason) = self.link.handle_packet(Time(self.now), probe) {
            self.dropped.push((self.now, probe, reason));
        }
        while let Some((probe, reason)) = self.link.poll_dropped() {
            self.dropped.push((self.now, probe, reason));
        }
    }

    pub fn times(&self) -> Vec<u64> {
        self.delivered.iter().map(|d| d.0).collect()
    }

    pub fn numbers(&self) -> Vec<u64> {
        self.delivered.iter().map(|d| d.1.number).collect()
    }
}

pub fn tail(packets: u64) -> QueueConfig {
    QueueConfig::DropTail { limit_bytes: None, limit_packets: Some(packets) }
}

/// 1 Gbit/s (1500 B in 12 us), 1 ms.
pub fn gigabit(queue: QueueConfig) -> LinkConfig {
    let (rate, delay) = (Rate(1_000_000_000), Span::from_millis(1));
    LinkConfig { rate, delay, queue, loss: LossModel::None, jitter: None }
}

/// Jitter of nothing: the event-driven engine with the results of the analytic one.
pub fn no_jitter() -> Option<Jitter> {
    Some(Jitter { distribution: JitterDistribution::Uniform, scale: Span::ZERO, reordering: false })
}

/// Both engines.
pub fn engines(config: &LinkConfig) -> [LinkConfig; 2] {
    [LinkConfig { jitter: None, ..config.clone() }, LinkConfig { jitter: no_jitter(), ..config.clone() }]
}

/// Both engines, and a link that stays as it is.
pub fn benches(config: &LinkConfig) -> Vec<Bench> {
    let mut benches: Vec<_> = engines(config).into_iter().map(Bench::new).collect();
    benches.push(Bench::of(Link::fixed(config.clone(), 1)));
    benches
}
