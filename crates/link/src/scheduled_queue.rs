//! A link with one pending event: for queue disciplines that decide at dequeue (CoDel, FQ-CoDel), and for jitter.

use crate::admission::Admission;
use crate::codel::{Codel, CodelParams, TimedQueue};
use crate::config::{LinkConfig, LossModel, QueueConfig};
use crate::counters::{DropReason, LinkCounters};
use crate::delay_line::DelayLine;
use crate::fq_codel::FqCodel;
use crate::jitter::JitterSource;
use crate::loss::Loss;
use crate::packet::Packet;
use crate::random::Random;
use crate::red::{Red, RedDecision};
use crate::serializer::Serializer;
use units::{Rate, Span, Time};

enum Discipline<P> {
    DropTail { queue: TimedQueue<P>, limit_packets: u64, limit_bytes: u64, red: Option<Red> },
    Codel { queue: TimedQueue<P>, limit_packets: u64, state: Codel, params: CodelParams },
    FqCodel(FqCodel<P>),
}

/// A queue discipline, a transmitter and a delay line.
pub struct ScheduledQueue<P> {
    queue: Discipline<P>,
    /// Since when the queue is not empty: no packet in it can start earlier.
    backlog_since: u64,
    transmitter: Serializer,
    delay_line: DelayLine<P>,
    delay: u64,
    jitter: Option<JitterSource>,
    loss: Loss,
    up: bool,
    counters: LinkCounters<P>,
}

impl<P: Packet> ScheduledQueue<P> {
    /// From a checked configuration; `seed` gives the seed of the stream of a given name.
    pub(crate) fn new(config: &LinkConfig, seed: impl Fn(&str) -> u64) -> ScheduledQueue<P> {
        let random = |name: &str| Random::new(seed(name));
        let params = |target: Span, interval: Span, ecn| CodelParams { target: target.0, interval: interval.0, ecn };
        let queue = match config.queue {
            QueueConfig::DropTail { .. } | QueueConfig::Red { .. } => {
                let (limit_packets, limit_bytes) = config.queue.limits();
                let red = Red::new(&config.queue, config.rate, random("red"));
                Discipline::DropTail { queue: TimedQueue::new(), limit_packets, limit_bytes, red }
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
        ScheduledQueue {
            queue,
            backlog_since: 0,
            transmitter: Serializer::new(config.rate, config.framing),
            delay_line: DelayLine::new(config.jitter.as_ref().is_some_and(|j| j.reordering)),
            delay: config.delay.0,
            jitter: config.jitter.as_ref().map(|j| JitterSource::new(j, random("jitter"))),
            loss: Loss::new(&config.loss, config.framing, seed("loss")),
            up: true,
            counters: LinkCounters::new(),
        }
    }

    /// The next event: an arrival at the far end, or the line free for a packet that waits.
    pub(crate) fn due(&self) -> u64 {
        let service = if self.up && self.queue.len() > 0 { self.transmitter.free_at() } else { Time::NEVER.0 };
        service.min(self.delay_line.due())
    }

    pub(crate) fn counters(&self) -> &LinkCounters<P> {
        &self.counters
    }

    pub(crate) fn counters_mut(&mut self) -> &mut LinkCounters<P> {
        &mut self.counters
    }

    pub(crate) fn inside(&self) -> u64 {
        self.queue.len() + self.delay_line.len()
    }

    pub(crate) fn queue(&mut self, now: u64) -> (u64, u64) {
        self.serve(now);
        (self.queue.len(), self.queue.bytes())
    }

    pub(crate) fn handle_packet(&mut self, now: u64, mut packet: P) -> Admission<P> {
        let before = self.due();
        self.serve(now);
        let bytes = packet.bytes();
        let free_at = self.transmitter.free_at();
        let (queued, queued_bytes) = (self.queue.len(), self.queue.bytes());
        let waits = free_at > now || queued > 0;
        let refused = match &mut self.queue {
            Discipline::DropTail { limit_packets, limit_bytes, red, .. } => {
                let idle_since = (!waits).then_some(free_at);
                let decision = red.as_mut().map(|r| r.admit(now, queued_bytes, idle_since, packet.is_ect()));
                if decision == Some(RedDecision::Mark) {
                    packet.mark_ce();
                    self.counters.stats.marked += 1;
                }
                let full = queued >= *limit_packets || queued_bytes + u64::from(bytes) > *limit_bytes;
                match decision {
                    Some(RedDecision::Drop) => Some(DropReason::Aqm),
                    _ => (waits && full).then_some(DropReason::QueueFull),
                }
            }
            Discipline::Codel { limit_packets, .. } => {
                (waits && queued >= *limit_packets).then_some(DropReason::QueueFull)
            }
            // FQ-CoDel itself chooses which packet the limit drops.
            Discipline::FqCodel(_) => None,
        };
        if let Some(reason) = refused {
            self.counters.stats.count_drop(reason);
            return Admission::Dropped(packet, reason);
        }
        self.counters.stats.enqueued += 1;
        if queued == 0 {
            self.backlog_since = now;
        }
        match &mut self.queue {
            Discipline::DropTail { queue, .. } | Discipline::Codel { queue, .. } => queue.push(now, bytes, packet),
            Discipline::FqCodel(queue) => queue.enqueue(now, packet, &mut self.counters),
        }
        self.serve(now);
        if waits {
            self.counters.stats.record_queue(self.queue.len(), self.queue.bytes());
        }
        let due = self.due();
        Admission::Queued { next_event: (due != before).then_some(Time(due)) }
    }

    pub(crate) fn poll_delivery(&mut self, now: u64) -> Option<P> {
        self.serve(now);
        if self.delay_line.due() > now {
            return None;
        }
        let (bytes, packet) = self.delay_line.pop()?;
        self.counters.deliver(bytes);
        Some(packet)
    }

    /// Hands over copies of the packets on the line that arrive before `before`, with their times, each once. They stay
    /// here.
    pub(crate) fn foresee(&mut self, before: u64, hand: impl FnMut(u64, &P)) {
        self.delay_line.foresee(before, hand);
    }

    /// Least delay of packets that start from now on.
    pub(crate) fn delay(&self) -> u64 {
        self.delay
    }

    /// Sends what waits, at each time up to `now` at which the line becomes free.
    // Called several times per packet, mostly with nothing to do.
    #[inline]
    fn serve(&mut self, now: u64) {
        while self.transmitter.free_at().max(self.backlog_since) <= now && self.up && self.queue.len() > 0 {
            self.send_next();
        }
    }

    /// Sends the packet whose turn it is, unless the discipline drops it instead.
    #[inline(never)]
    fn send_next(&mut self) {
        let free_at = self.transmitter.free_at();
        let start = free_at.max(self.backlog_since);
        let Some((bytes, packet)) = self.queue.dequeue(start, &mut self.counters) else { return };
        // On a busy line the transmitter carries the fraction of a ns; a packet that came when it was free starts on a
        // whole one.
        let ready = if self.backlog_since >= free_at { self.backlog_since } else { 0 };
        let depart = self.transmitter.send(ready, bytes);
        // Drawn for lost packets too: losses do not change the jitter of the others.
        let extra = self.jitter.as_mut().map_or(0, JitterSource::draw);
        let due = depart.saturating_add(self.delay).saturating_add(extra);
        if self.loss.loses(bytes, || packet.flow_hash()) {
            self.delay_line.lose(due);
            self.counters.drop_inside(packet, DropReason::Loss);
        } else {
            self.delay_line.push(due, bytes, packet);
        }
    }

    pub(crate) fn set_rate(&mut self, now: u64, rate: Rate) {
        self.serve(now);
        self.transmitter.set_rate(rate);
        if let Discipline::DropTail { red: Some(red), .. } = &mut self.queue {
            red.set_rate(rate);
        }
    }

    pub(crate) fn set_delay(&mut self, now: u64, delay: u64) {
        self.serve(now);
        self.delay = delay;
    }

    pub(crate) fn set_loss(&mut self, now: u64, model: &LossModel) {
        self.serve(now);
        self.loss.replace(model);
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn set_up(&mut self, now: u64, up: bool) {
        self.serve(now);
        if up == self.up {
            return;
        }
        self.up = up;
        if up {
            self.transmitter.restart(now);
            self.serve(now);
        } else {
            self.transmitter.halt();
            while let Some((_, packet)) = self.delay_line.pop() {
                self.counters.drop_inside(packet, DropReason::Outage);
            }
            self.delay_line.clear_order();
        }
    }
}

impl<P: Packet> Discipline<P> {
    fn len(&self) -> u64 {
        match self {
            Discipline::DropTail { queue, .. } | Discipline::Codel { queue, .. } => queue.len(),
            Discipline::FqCodel(queue) => queue.len(),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Discipline::DropTail { queue, .. } | Discipline::Codel { queue, .. } => queue.bytes(),
            Discipline::FqCodel(queue) => queue.bytes(),
        }
    }

    fn dequeue(&mut self, now: u64, counters: &mut LinkCounters<P>) -> Option<(u32, P)> {
        match self {
            Discipline::DropTail { queue, .. } => queue.pop().map(|(_, bytes, packet)| (bytes, packet)),
            Discipline::Codel { queue, state, params, .. } => state.dequeue(now, params, queue, counters),
            Discipline::FqCodel(queue) => queue.dequeue(now, counters),
        }
    }
}
