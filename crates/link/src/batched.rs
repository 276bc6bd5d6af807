//! The side of a host that faces its adapter: it takes packets in batches, after an interrupt that waits for more.
//!
//! Packets wait in the queue. Where nothing is being taken, the first of them begins a wait: the interrupt comes after
//! the wait's time, or when as many packets are there. From then on batch after batch is taken until the queue is
//! empty, as a poll of NAPI goes on until its ring is. A batch is the oldest packet with those of its flow that
//! offloads join to it; it takes the time of one packet and of all its bytes, and leaves at one moment. With a wait of
//! 0 the batch is taken when all has come that comes in the same ns: a sender's burst is whole.

use crate::admission::Admission;
use crate::config::{Batching, LinkConfig};
use crate::counters::{DropReason, LinkCounters};
use crate::packet::Packet;
use crate::serializer::Serializer;
use crate::variable::LinkEvent;
use std::collections::VecDeque;
use units::{Rate, Time};

/// Oldest packets among which those of one flow are found: a poll's budget (Linux NAPI_POLL_WEIGHT).
const BUDGET: usize = 64;

/// A packet that is taken, or has been.
struct Taken<P> {
    /// Time at which it leaves.
    due: u64,
    packet: P,
    /// Another one of its batch comes behind it.
    followed: bool,
}

/// See the module's documentation. It has neither loss nor outage, and its configuration does not change.
pub struct BatchedLink<P> {
    waiting: VecDeque<P>,
    waiting_bytes: u64,
    limit_packets: u64,
    limit_bytes: u64,
    /// Packets of batches that were taken, in the order in which they leave.
    taken: VecDeque<Taken<P>>,
    /// The first of them that [`BatchedLink::foresee`] has passed.
    foreseen: usize,
    /// Time at which the next batch is taken, or the queue found empty; [`Time::NEVER`] while nothing is there.
    look: u64,
    /// A batch is being taken: what comes meanwhile needs no interrupt.
    busy: bool,
    transmitter: Serializer,
    delay: u64,
    batching: Batching,
    /// The packet that was delivered last has one of its batch behind it.
    followed: bool,
    counters: LinkCounters<P>,
}

impl<P: Packet> BatchedLink<P> {
    /// From a checked configuration.
    pub(crate) fn new(config: &LinkConfig, batching: Batching) -> BatchedLink<P> {
        let (limit_packets, limit_bytes) = config.queue.limits();
        BatchedLink {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            limit_packets,
            limit_bytes,
            taken: VecDeque::new(),
            foreseen: 0,
            look: Time::NEVER.0,
            busy: false,
            transmitter: Serializer::new(config.rate, config.framing),
            delay: config.delay.0,
            batching,
            followed: false,
            counters: LinkCounters::new(),
        }
    }

    /// Returns true if the packet that was delivered last has another one of its batch behind it.
    pub fn is_followed(&self) -> bool {
        self.followed
    }

    #[inline(never)]
    pub(crate) fn due(&self) -> u64 {
        self.taken.front().map_or(self.look, |first| first.due.min(self.look))
    }

    pub(crate) fn counters(&self) -> &LinkCounters<P> {
        &self.counters
    }

    pub(crate) fn inside(&self) -> u64 {
        (self.waiting.len() + self.taken.len()) as u64
    }

    pub(crate) fn queue(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.waiting_bytes)
    }

    // Beside the links that most runs have: a call, so that it costs those nothing.
    #[inline(never)]
    pub(crate) fn handle_packet(&mut self, now: u64, packet: P) -> Admission<P> {
        let (others, total) = (self.waiting.len() as u64, self.waiting_bytes + u64::from(packet.bytes()));
        let waits = self.busy || others > 0;
        if waits && (others >= self.limit_packets || total > self.limit_bytes) {
            self.counters.stats.count_drop(DropReason::QueueFull);
            return Admission::Dropped(packet, DropReason::QueueFull);
        }
        let before = self.due();
        self.waiting.push_back(packet);
        self.waiting_bytes = total;
        self.counters.stats.enqueued += 1;
        self.counters.stats.record_queue(others + 1, total);
        if !self.busy {
            if others == 0 {
                self.look = now.saturating_add(self.batching.wait.0);
            }
            if self.batching.wait_packets.is_some_and(|packets| others + 1 >= packets) {
                self.look = self.look.min(now);
            }
        }
        let due = self.due();
        Admission::Queued { next_event: (due != before).then_some(Time(due)) }
    }

    #[inline(never)]
    pub(crate) fn handle_event(&mut self, now: u64) -> LinkEvent<P> {
        // A batch that was taken leaves before the next one is taken: both may be due now.
        let delivered = match self.taken.front() {
            Some(first) if first.due <= now => self.taken.pop_front(),
            _ => None,
        };
        if let Some(taken) = &delivered {
            self.foreseen = self.foreseen.saturating_sub(1);
            self.followed = taken.followed;
            self.counters.deliver(taken.packet.bytes());
        } else if self.look <= now {
            self.take_batch();
        }
        LinkEvent { delivered: delivered.map(|taken| taken.packet), next_event: Time(self.due()), has_dropped: false }
    }

    /// Hands over copies of the taken packets that leave before `before`, with their times, each once. They stay here.
    pub(crate) fn foresee(&mut self, before: u64, mut hand: impl FnMut(u64, &P)) {
        for taken in self.taken.range(self.foreseen..) {
            if taken.due >= before {
                break;
            }
            hand(taken.due, &taken.packet);
            self.foreseen += 1;
        }
    }

    pub(crate) fn delay(&self) -> u64 {
        self.delay
    }

    /// Rate at which it takes packets.
    pub fn rate(&self) -> Rate {
        self.transmitter.rate()
    }

    /// Takes the next batch, at the time that was set for it.
    fn take_batch(&mut self) {
        let Some(first) = self.waiting.pop_front() else {
            (self.busy, self.look) = (false, Time::NEVER.0);
            return;
        };
        let (flow, size) = (first.flow_hash(), first.bytes());
        let (mut bytes, mut joined) = (size, size);
        let joins = first.offload_bytes() > 0;
        self.taken.push_back(Taken { due: 0, packet: first, followed: false });
        let (mut count, mut place, mut passed) = (1, 0, 1);
        while joins && passed < BUDGET && place < self.waiting.len() {
            passed += 1;
            let other = &self.waiting[place];
            if other.flow_hash() != flow {
                place += 1;
                continue;
            }
            // As GRO joins (net/ipv4/tcp_offload.c): equal segments, and a shorter one as the last.
            let (payload, other_size) = (other.offload_bytes(), other.bytes());
            if payload == 0 || other_size > size || joined + payload > self.batching.max_bytes {
                break;
            }
            let Some(packet) = self.waiting.remove(place) else { break };
            (bytes, joined, count) = (bytes + other_size, joined + payload, count + 1);
            self.taken.push_back(Taken { due: 0, packet, followed: false });
            if other_size < size {
                break;
            }
        }
        self.waiting_bytes -= u64::from(bytes);
        // On a busy host the transmitter carries the fraction of a ns.
        let ready = if self.busy { 0 } else { self.look };
        let done = self.transmitter.send(ready, bytes);
        let (due, first) = (done.saturating_add(self.delay), self.taken.len() - count);
        for (number, taken) in self.taken.range_mut(first..).enumerate() {
            (taken.due, taken.followed) = (due, number + 1 < count);
        }
        (self.busy, self.look) = (true, done);
    }
}
