//! A drop-tail link that nobody changes: what becomes of a packet is known when it comes.
//!
//! With rate, delay, limits and loss fixed, the time at which a packet reaches the far end follows from the packets that came
//! before it. So it is computed at once, and a caller who knows that only this link leads to the next may hand the packet on
//! to that one with the time at which it will be there: a whole path costs one event. Counters and queue lengths are still
//! those of the time at which they are asked for, which is why each packet leaves 16 bytes here until then.

use crate::config::{LinkConfig, QueueConfig};
use crate::ledger::{DropReason, Stats};
use crate::loss::Loss;
use crate::ring::Ring;
use crate::serializer::Serializer;
use crate::Packet;
use std::collections::VecDeque;

/// What a packet leaves behind beside its departure: its size, and how long it stayed, from its arrival to its departure.
#[derive(Clone, Copy)]
struct Mark(u64);

impl Mark {
    /// Size: 16 bits, all that an IP packet has. Stay: 48 bits of ns, 78 hours; a longer one is shown as that.
    #[inline]
    fn new(bytes: u32, stay: u64) -> Mark {
        Mark(stay.min(u64::MAX >> 16) << 16 | u64::from(bytes))
    }

    #[inline]
    fn bytes(self) -> u64 {
        self.0 & u64::from(MAX_BYTES)
    }

    #[inline]
    fn stay(self) -> u64 {
        self.0 >> 16
    }
}

/// Largest packet.
const MAX_BYTES: u32 = u16::MAX as u32;

/// The reader of departures and that of arrivals.
const DEPARTED: usize = 0;
const ARRIVED: usize = 1;

/// In the order of use: what each packet needs comes first and together.
#[repr(C)]
pub(crate) struct Passage {
    line: Serializer,
    delay: u64,
    /// Departures and marks of what has not arrived at the far end. Those that wait, as the latest packet found it, are
    /// from the cursor on.
    trace: Ring<Mark, ()>,
    waiting_bytes: u64,
    /// When the first packet that waits starts. Without meaning when none waits.
    starts: u64,
    limit_packets: u64,
    limit_bytes: u64,
    /// Most packets and bytes that have waited, those to come included.
    most: (u64, u64),
    loss: Loss,
    /// Numbers of the packets that the line loses, ascending.
    lost: VecDeque<u64>,
    /// Packets that had come when the queue was last asked for.
    arrived: u64,
    /// Bytes of the packets that the readers have passed.
    passed_bytes: [u64; 2],
    /// Bytes of the packets taken from the trace.
    taken_bytes: u64,
    ahead: Box<Ahead>,
}

/// What has been computed and has not happened yet.
#[derive(Default)]
struct Ahead {
    /// When, and what the longest queue is from then on.
    most: VecDeque<(u64, u64, u64)>,
    /// When, and why a packet is dropped.
    dropped: VecDeque<(u64, DropReason)>,
}

impl Passage {
    /// From a checked configuration; `seed` is that of the losses. None when the link is of another kind.
    pub fn new(config: &LinkConfig, seed: u64) -> Option<Passage> {
        if !matches!(config.queue, QueueConfig::DropTail { .. }) || config.jitter.is_some() {
            return None;
        }
        let (limit_packets, limit_bytes) = config.queue.limits();
        Some(Passage {
            line: Serializer::new(config.rate),
            delay: config.delay.0,
            limit_packets,
            limit_bytes,
            trace: Ring::new(),
            waiting_bytes: 0,
            starts: 0,
            loss: Loss::new(&config.loss, seed),
            lost: VecDeque::new(),
            most: (0, 0),
            arrived: 0,
            passed_bytes: [0; 2],
            taken_bytes: 0,
            ahead: Box::default(),
        })
    }

    /// `packet` comes at `at`, at `now` or later: when it reaches the far end, or why it does not. Neither time goes back.
    #[inline]
    pub fn pass<P: Packet>(&mut self, now: u64, at: u64, packet: &P, stats: &mut Stats) -> Result<u64, DropReason> {
        let bytes = packet.bytes();
        assert!(bytes <= MAX_BYTES, "a packet of {bytes} bytes: an IP packet has 65,535 at most");
        if self.trace.is_block_full() {
            // Once per block, so that it costs little and the trace stays as short as what is inside.
            self.settle(now, stats);
        }
        let free_at = self.line.free_at();
        // A free line takes the packet at once: it never waits and no limit holds for it.
        let waits = at < free_at;
        if waits {
            self.advance(at);
            let (others, total) = (self.trace.waiting(), self.waiting_bytes + u64::from(bytes));
            if others >= self.limit_packets || total > self.limit_bytes {
                self.drop_later(now, at, DropReason::QueueFull, stats);
                return Err(DropReason::QueueFull);
            }
            if others == 0 {
                self.starts = free_at;
            }
            self.waiting_bytes = total;
            if others >= self.most.0 || total > self.most.1 {
                self.raise_most(now, at, others + 1, total, stats);
            }
        } else if self.trace.waiting() > 0 {
            self.trace.start_all();
            self.waiting_bytes = 0;
        }
        let depart = self.line.send(at, bytes);
        self.trace.push(depart, (), Mark::new(bytes, depart - at), waits);
        if self.loss.takes(bytes, || packet.flow_hash()) {
            self.lost.push_back(self.trace.taken() + self.trace.len() - 1);
            self.drop_later(now, at, DropReason::Loss, stats);
            return Err(DropReason::Loss);
        }
        Ok(depart.saturating_add(self.delay))
    }

    /// Brings `stats` to `now`, which does not go back.
    #[inline(never)]
    pub fn settle(&mut self, now: u64, stats: &mut Stats) {
        self.advance(now);
        while self.trace.head_time().saturating_add(self.delay) <= now {
            self.take_oldest(stats);
        }
        if !self.ahead.is_empty() {
            self.ahead.settle(now, stats);
        }
    }

    /// Packets and bytes that wait at `now`.
    pub fn queue(&mut self, now: u64) -> (u64, u64) {
        if self.line.free_at() <= now {
            // All that was handed in has left: most links of a large run, most of the time.
            self.arrived = self.trace.taken() + self.trace.len();
            return (0, 0);
        }
        let Passage { trace, passed_bytes, taken_bytes, .. } = self;
        let mut upto = |which: usize, happened: &dyn Fn(u64, Mark) -> bool| {
            let bytes = &mut passed_bytes[which];
            *bytes = (*bytes).max(*taken_bytes);
            let number = trace.read(which, |depart, (), mark| {
                let passes = happened(depart, *mark);
                *bytes += if passes { mark.bytes() } else { 0 };
                passes
            });
            (number, *bytes)
        };
        let arrived = upto(ARRIVED, &|depart, mark| depart - mark.stay() <= now);
        let departed = upto(DEPARTED, &|depart, _| depart <= now);
        self.arrived = arrived.0;
        if arrived.0 == departed.0 {
            return (0, 0);
        }
        // The oldest that has not departed is being sent.
        let mut sending = 0;
        trace.read(DEPARTED, |_, (), mark| {
            sending = mark.bytes();
            false
        });
        (arrived.0 - departed.0 - 1, arrived.1 - departed.1 - sending)
    }

    /// Packets that have come, and are neither dropped nor at the far end, as of the last [`Passage::queue`].
    pub fn inside(&self) -> u64 {
        let lost = self.lost.partition_point(|&lost| lost < self.arrived) as u64;
        self.arrived.max(self.trace.taken()) - self.trace.taken() - lost
    }

    /// Packets that have come and were not refused, as of the last [`Passage::queue`].
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Takes the oldest packet off the trace.
    #[inline]
    fn take_oldest(&mut self, stats: &mut Stats) {
        let number = self.trace.taken();
        let Some(mark) = self.trace.pop() else { return };
        let bytes = mark.bytes();
        self.taken_bytes += bytes;
        if self.lost.front() == Some(&number) {
            self.lost.pop_front();
        } else {
            stats.delivered += 1;
            stats.delivered_bytes += bytes;
        }
    }

    /// Counts as started what has started by `now`.
    #[inline]
    fn advance(&mut self, now: u64) {
        while self.trace.waiting() > 0 && self.starts <= now {
            let Some((depart, bytes)) = self.trace.start(|depart, (), mark| (depart, mark.bytes())) else { return };
            self.waiting_bytes -= bytes;
            self.starts = depart;
        }
    }

    #[cold]
    fn drop_later(&mut self, now: u64, at: u64, reason: DropReason, stats: &mut Stats) {
        self.ahead.dropped.push_back((at, reason));
        self.ahead.settle(now, stats);
    }

    #[cold]
    fn raise_most(&mut self, now: u64, at: u64, packets: u64, bytes: u64, stats: &mut Stats) {
        self.most = (packets.max(self.most.0), bytes.max(self.most.1));
        self.ahead.most.push_back((at, self.most.0, self.most.1));
        self.ahead.settle(now, stats);
    }
}

impl Ahead {
    #[inline]
    fn is_empty(&self) -> bool {
        self.most.is_empty() && self.dropped.is_empty()
    }

    fn settle(&mut self, now: u64, stats: &mut Stats) {
        while let Some(&(_, packets, bytes)) = self.most.front().filter(|&&(at, ..)| at <= now) {
            stats.saw_queue(packets, bytes);
            self.most.pop_front();
        }
        while let Some(&(_, reason)) = self.dropped.front().filter(|&&(at, _)| at <= now) {
            stats.count_drop(reason);
            self.dropped.pop_front();
        }
    }
}
