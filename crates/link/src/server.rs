//! A queue served by one pending event: for disciplines that decide when a packet leaves, and for jitter.

use crate::codel::{Codel, CodelParams, TimedQueue};
use crate::config::{LinkConfig, LossModel, QueueConfig};
use crate::fq_codel::FqCodel;
use crate::jitter::JitterSource;
use crate::ledger::{DropReason, Ledger};
use crate::line::Line;
use crate::loss::Loss;
use crate::random::Random;
use crate::red::{Red, Verdict};
use crate::serializer::Serializer;
use crate::{Admission, Packet};
use units::{Rate, Span};

/// A time that does not come.
const NEVER: u64 = u64::MAX;

enum Discipline<P> {
    Tail { queue: TimedQueue<P>, limit_packets: u64, limit_bytes: u64, red: Option<Red> },
    Codel { queue: TimedQueue<P>, limit_packets: u64, state: Codel, params: CodelParams },
    FqCodel(FqCodel<P>),
}

pub(crate) struct Server<P> {
    queue: Discipline<P>,
    /// When the queue last became non-empty: no packet in it can start earlier.
    backlog_since: u64,
    line: Serializer,
    on_line: Line<P>,
    delay: u64,
    jitter: Option<JitterSource>,
    loss: Loss,
    up: bool,
}

impl<P: Packet> Server<P> {
    /// From a checked configuration; `seed` gives the seed of the stream of a given name.
    pub fn new(config: &LinkConfig, seed: impl Fn(&str) -> u64) -> Server<P> {
        let random = |name: &str| Random::new(seed(name));
        let params = |target: Span, interval: Span, ecn| CodelParams { target: target.0, interval: interval.0, ecn };
        let queue = match config.queue {
            QueueConfig::DropTail { .. } | QueueConfig::Red { .. } => {
                let (limit_packets, limit_bytes) = config.queue.limits();
                let red = Red::new(&config.queue, config.rate, random("red"));
                Discipline::Tail { queue: TimedQueue::new(), limit_packets, limit_bytes, red }
            }
            QueueConfig::Codel { limit_packets, target, interval, ecn } => {
                let (queue, params) = (TimedQueue::new(), params(target, interval, ecn));
                Discipline::Codel { queue, limit_packets, state: Codel::default(), params }
            }
            QueueConfig::FqCodel { limit_packets, flows, quantum_bytes, target, interval, ecn } => {
                let (params, salt) = (params(target, interval, ecn), random("fq_codel").next_u64());
                Discipline::FqCodel(FqCodel::new(flows, quantum_bytes, limit_packets, params, salt))
            }
        };
        Server {
            queue,
            backlog_since: 0,
            line: Serializer::new(config.rate),
            on_line: Line::new(config.jitter.as_ref().is_some_and(|j| j.reordering)),
            delay: config.delay.0,
            jitter: config.jitter.as_ref().map(|j| JitterSource::new(j, random("jitter"))),
            loss: Loss::new(&config.loss, seed("loss")),
            up: true,
        }
    }

    /// The next event: an arrival at the far end, or the line free for a packet that waits.
    pub fn due(&self) -> u64 {
        let service = if self.up && self.queue.len() > 0 { self.line.free_at() } else { NEVER };
        service.min(self.on_line.due())
    }

    pub fn inside(&self) -> u64 {
        self.queue.len() + self.on_line.len()
    }

    pub fn queue(&mut self, now: u64, ledger: &mut Ledger<P>) -> (u64, u64) {
        self.serve(now, ledger);
        (self.queue.len(), self.queue.bytes())
    }

    pub fn handle_packet(&mut self, now: u64, mut packet: P, ledger: &mut Ledger<P>) -> Admission<P> {
        self.serve(now, ledger);
        let bytes = packet.bytes();
        let free_at = self.line.free_at();
        let (queued, queued_bytes) = (self.queue.len(), self.queue.bytes());
        let waits = free_at > now || queued > 0;
        let refused = match &mut self.queue {
            Discipline::Tail { limit_packets, limit_bytes, red, .. } => {
                let idle_since = (!waits).then_some(free_at);
                let verdict = red.as_mut().map(|r| r.admit(now, queued_bytes, idle_since, packet.is_ect()));
                if verdict == Some(Verdict::Mark) {
                    packet.mark_ce();
                    ledger.stats.marked += 1;
                }
                let full = queued >= *limit_packets || queued_bytes + u64::from(bytes) > *limit_bytes;
                match verdict {
                    Some(Verdict::Drop) => Some(DropReason::Aqm),
                    _ => (waits && full).then_some(DropReason::QueueFull),
                }
            }
            Discipline::Codel { limit_packets, .. } => {
                (waits && queued >= *limit_packets).then_some(DropReason::QueueFull)
            }
            // The queue itself chooses whom the limit hits.
            Discipline::FqCodel(_) => None,
        };
        if let Some(reason) = refused {
            ledger.stats.count_drop(reason);
            return Admission::Dropped(packet, reason);
        }
        ledger.stats.enqueued += 1;
        if queued == 0 {
            self.backlog_since = now;
        }
        match &mut self.queue {
            Discipline::Tail { queue, .. } | Discipline::Codel { queue, .. } => queue.push(now, bytes, packet),
            Discipline::FqCodel(queue) => queue.enqueue(now, packet, ledger),
        }
        self.serve(now, ledger);
        if waits {
            ledger.stats.saw_queue(self.queue.len(), self.queue.bytes());
        }
        Admission::Queued
    }

    pub fn handle_timeout(&mut self, now: u64, ledger: &mut Ledger<P>) {
        self.serve(now, ledger);
    }

    pub fn poll_delivery(&mut self, now: u64, ledger: &mut Ledger<P>) -> Option<P> {
        self.serve(now, ledger);
        if self.on_line.due() > now {
            return None;
        }
        let (bytes, packet) = self.on_line.pop()?;
        ledger.deliver(bytes);
        Some(packet)
    }

    /// Sends what waits, at each time up to `now` at which the line becomes free.
    fn serve(&mut self, now: u64, ledger: &mut Ledger<P>) {
        while self.up && self.queue.len() > 0 {
            let free_at = self.line.free_at();
            let start = free_at.max(self.backlog_since);
            if start > now {
                break;
            }
            let Some((bytes, packet)) = self.queue.dequeue(start, ledger) else { continue };
            // On a busy line the transmitter carries the fraction of a ns; a packet that came when it was free starts on a
            // whole one.
            let ready = if self.backlog_since >= free_at { self.backlog_since } else { 0 };
            let depart = self.line.send(ready, bytes);
            // Drawn for lost packets too: losses do not change the jitter of the others.
            let extra = self.jitter.as_mut().map_or(0, JitterSource::draw);
            let due = depart.saturating_add(self.delay).saturating_add(extra);
            if self.loss.takes(bytes, || packet.flow_hash()) {
                self.on_line.lose(due);
                ledger.lose(packet, DropReason::Loss);
            } else {
                self.on_line.push(due, bytes, packet);
            }
        }
    }

    pub fn set_rate(&mut self, now: u64, rate: Rate, ledger: &mut Ledger<P>) {
        self.serve(now, ledger);
        self.line.set_rate(rate);
        if let Discipline::Tail { red: Some(red), .. } = &mut self.queue {
            red.set_rate(rate);
        }
    }

    pub fn set_delay(&mut self, now: u64, delay: u64, ledger: &mut Ledger<P>) {
        self.serve(now, ledger);
        self.delay = delay;
    }

    pub fn set_loss(&mut self, now: u64, model: &LossModel, ledger: &mut Ledger<P>) {
        self.serve(now, ledger);
        self.loss.replace(model);
    }

    /// Whether it carries.
    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn set_up(&mut self, now: u64, up: bool, ledger: &mut Ledger<P>) {
        self.serve(now, ledger);
        if up == self.up {
            return;
        }
        self.up = up;
        if up {
            self.line.restart(now);
            self.serve(now, ledger);
        } else {
            self.line.halt();
            while let Some((_, packet)) = self.on_line.pop() {
                ledger.lose(packet, DropReason::Outage);
            }
            self.on_line.forget_order();
        }
    }
}

impl<P: Packet> Discipline<P> {
    fn len(&self) -> u64 {
        match self {
            Discipline::Tail { queue, .. } | Discipline::Codel { queue, .. } => queue.len(),
            Discipline::FqCodel(queue) => queue.len(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Discipline::Tail { queue, .. } | Discipline::Codel { queue, .. } => queue.bytes(),
            Discipline::FqCodel(queue) => queue.bytes(),
        }
    }

    fn dequeue(&mut self, now: u64, ledger: &mut Ledger<P>) -> Option<(u32, P)> {
        match self {
            Discipline::Tail { queue, .. } => queue.pop().map(|(_, bytes, packet)| (bytes, packet)),
            Discipline::Codel { queue, state, params, .. } => state.dequeue(now, params, queue, ledger),
            Discipline::FqCodel(queue) => queue.dequeue(now, ledger),
        }
    }
}
