//! Tests of whole links, and the fixture that carries them: a link, probes, a virtual clock.

mod aqm;
mod batched;
mod changes;
mod fifo;
mod hold_buffer;
mod properties;

use crate::{
    Admission, DropReason, Framing, Jitter, JitterDistribution, Link, LinkConfig, LossModel, Packet, QueueConfig,
};
use crate::{HoldBuffer, Pacers, VariableLink};
use std::cell::RefCell;
use std::rc::Rc;
use units::{Rate, Span, Time};

/// A packet with the time of its arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    pub number: u64,
    pub bytes: u32,
    pub flow: u64,
    pub ect: bool,
    pub ce: bool,
    pub arrived: u64,
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
    fn offload_bytes(&self) -> u32 {
        self.bytes.saturating_sub(52)
    }
}

/// A link with its clock, and the delivered and dropped packets with their times.
pub struct Bench {
    pub link: Link<Probe>,
    pub pacers: Rc<RefCell<Pacers>>,
    pub now: u64,
    pub sent: u64,
    pub delivered: Vec<(u64, Probe)>,
    pub dropped: Vec<(u64, Probe, DropReason)>,
}

impl Bench {
    pub fn new(config: LinkConfig) -> Bench {
        Bench::of(Link::variable(&config, 1))
    }

    pub fn of(link: Link<Probe>) -> Bench {
        Bench { link, pacers: Rc::default(), now: 0, sent: 0, delivered: vec![], dropped: vec![] }
    }

    pub fn variable(&mut self) -> &mut VariableLink<Probe> {
        self.link.as_variable_mut().expect("a variable link")
    }

    pub fn hold_buffer(&mut self) -> &mut HoldBuffer<Probe> {
        self.link.as_hold_buffer_mut().expect("a hold buffer")
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
        let mut pacers = self.pacers.borrow_mut();
        while let Some(probe) = self.link.handle_event(now, &mut pacers).delivered {
            self.delivered.push((self.now, probe));
        }
        drop(pacers);
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
        let probe = Probe { number: self.sent, bytes, flow, ect, ce: false, arrived: self.now };
        if let Admission::Dropped(probe, reason) =
            self.link.handle_packet(Time(self.now), probe, &mut self.pacers.borrow_mut())
        {
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
    LinkConfig {
        rate,
        framing: Framing::default(),
        delay,
        queue,
        loss: LossModel::None,
        jitter: None,
        policer: None,
        batching: None,
    }
}

/// Jitter of zero: a scheduled queue with the results of a FIFO link.
pub fn no_jitter() -> Option<Jitter> {
    Some(Jitter { distribution: JitterDistribution::Uniform, scale: Span::ZERO, reordering: false })
}

/// A FIFO link and a scheduled queue.
pub fn both_kinds(config: &LinkConfig) -> [LinkConfig; 2] {
    [LinkConfig { jitter: None, ..config.clone() }, LinkConfig { jitter: no_jitter(), ..config.clone() }]
}

/// A FIFO link, a scheduled queue and a fixed link.
pub fn benches(config: &LinkConfig) -> Vec<Bench> {
    let mut benches: Vec<_> = both_kinds(config).into_iter().map(Bench::new).collect();
    benches.push(Bench::of(Link::fixed(config, 1)));
    benches
}
