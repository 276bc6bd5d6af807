//! A drop-tail link with a fixed configuration: arrival or drop of a packet is computed when the packet enters.
//!
//! With rate, delay, limits and loss fixed, the time at which a packet reaches the far end follows from the packets
//! before it. A caller who knows that this link is the only one upstream of the next may hand the packet on at once,
//! with its future arrival time: a whole path costs one event. Counters and queue lengths are still those of the time
//! at which they are read: each packet leaves a 16-byte record until then.

use crate::admission::Admission;
use crate::config::{LinkConfig, QueueConfig};
use crate::counters::{DropReason, Stats};
use crate::loss::Loss;
use crate::packet::Packet;
use crate::ring::Ring;
use crate::serializer::Serializer;
use std::collections::VecDeque;
use units::Time;

/// Size and sojourn time (arrival to departure) of a packet, beside its departure.
#[derive(Clone, Copy)]
struct PacketMark(u64);

impl PacketMark {
    /// Size: 16 bits, as in an IP header. Sojourn: 48 bits of ns, 78 hours; saturates.
    #[inline]
    fn new(bytes: u32, sojourn: u64) -> PacketMark {
        PacketMark(sojourn.min(u64::MAX >> 16) << 16 | u64::from(bytes))
    }

    #[inline]
    fn bytes(self) -> u64 {
        self.0 & u64::from(MAX_BYTES)
    }

    #[inline]
    fn sojourn(self) -> u64 {
        self.0 >> 16
    }
}

/// Largest packet.
const MAX_BYTES: u32 = u16::MAX as u32;

/// Readers of the ring: one for departures, one for arrivals.
const DEPARTED: usize = 0;
const ARRIVED: usize = 1;

/// A drop-tail link with a fixed configuration. See the module's documentation.
///
/// Fields in the order of use: those that each packet needs come first.
#[repr(C)]
pub struct PrecomputedLink<P> {
    /// Arrival of the oldest packet of `arriving`.
    due: u64,
    transmitter: Serializer,
    delay: u64,
    /// Departures and marks of packets that have not reached the far end. Its waiting part is as of the latest arrival.
    marks: Ring<PacketMark, ()>,
    /// Packets left here until they reach the far end, with their arrival times.
    arriving: Ring<P, ()>,
    waiting_bytes: u64,
    /// Time at which the first waiting packet starts. Undefined when none waits.
    next_start: u64,
    limit_packets: u64,
    limit_bytes: u64,
    /// Longest queue in packets and in bytes, future arrivals included.
    max_queue: (u64, u64),
    loss: Loss,
    /// Numbers of the packets that the line loses, ascending.
    lost: VecDeque<u64>,
    /// Packets that had arrived at the last read of the queue.
    arrived: u64,
    /// Bytes of the packets that the readers have passed.
    read_bytes: [u64; 2],
    /// Bytes of the packets whose marks were taken.
    retired_bytes: u64,
    stats: Stats,
    deferred: Box<DeferredStats>,
}

/// Statistics that were computed ahead of their time.
#[derive(Default)]
struct DeferredStats {
    /// (time, packets, bytes): the longest queue from that time on.
    max_queue: VecDeque<(u64, u64, u64)>,
    /// (time, reason) of drops.
    dropped: VecDeque<(u64, DropReason)>,
}

impl<P: Packet> PrecomputedLink<P> {
    /// From a checked configuration; `seed` is that of the losses. None unless drop-tail without jitter and policer.
    pub(crate) fn new(config: &LinkConfig, seed: u64) -> Option<PrecomputedLink<P>> {
        let other = config.jitter.is_some() || config.policer.is_some() || config.batching.is_some();
        if !matches!(config.queue, QueueConfig::DropTail { .. }) || other {
            return None;
        }
        let (limit_packets, limit_bytes) = config.queue.limits();
        Some(PrecomputedLink {
            due: Time::NEVER.0,
            transmitter: Serializer::new(config.rate, config.framing),
            delay: config.delay.0,
            limit_packets,
            limit_bytes,
            marks: Ring::new(),
            arriving: Ring::new(),
            waiting_bytes: 0,
            next_start: 0,
            loss: Loss::new(&config.loss, config.framing, seed),
            lost: VecDeque::new(),
            max_queue: (0, 0),
            arrived: 0,
            read_bytes: [0; 2],
            retired_bytes: 0,
            stats: Stats::default(),
            deferred: Box::default(),
        })
    }

    /// `packet` arrives at `at`, which may be later than `now`. Returns when it reaches the far end. The packet stays
    /// with the caller, who hands it to the next link or leaves it here by [`PrecomputedLink::deliver_at`].
    ///
    /// Neither `now` nor `at` may go back over calls.
    ///
    /// # Errors
    /// Why the link drops the packet; it is not reported again.
    // Once per packet and hop; as a call it takes a tenth more instructions (callgrind).
    #[inline(always)]
    pub fn admit(&mut self, now: Time, at: Time, packet: &P) -> Result<Time, DropReason> {
        let (now, at) = (now.0, at.0);
        let bytes = packet.bytes();
        assert!(bytes <= MAX_BYTES, "a packet of {bytes} bytes: an IP packet has 65,535 at most");
        if self.marks.is_block_full() {
            // Once per block: cheap, and the ring stays as short as the packets inside.
            self.settle(now);
        }
        let free_at = self.transmitter.free_at();
        // A free line takes the packet at once: it never waits and no limit holds for it.
        let waits = at < free_at;
        if waits {
            self.advance(at);
            let (others, total) = (self.marks.waiting(), self.waiting_bytes + u64::from(bytes));
            if others >= self.limit_packets || total > self.limit_bytes {
                self.defer_drop(now, at, DropReason::QueueFull);
                return Err(DropReason::QueueFull);
            }
            if others == 0 {
                self.next_start = free_at;
            }
            self.waiting_bytes = total;
            if others >= self.max_queue.0 || total > self.max_queue.1 {
                self.raise_max_queue(now, at, others + 1, total);
            }
        } else if self.marks.waiting() > 0 {
            self.marks.start_all();
            self.waiting_bytes = 0;
        }
        let depart = self.transmitter.send(at, bytes);
        self.marks.push(depart, (), PacketMark::new(bytes, depart - at), waits);
        if self.loss.loses(bytes, || packet.flow_hash()) {
            self.lost.push_back(self.marks.taken() + self.marks.len() - 1);
            self.defer_drop(now, at, DropReason::Loss);
            return Err(DropReason::Loss);
        }
        Ok(Time(depart.saturating_add(self.delay)))
    }

    /// Leaves `packet` here until `at`, its arrival at the far end by [`PrecomputedLink::admit`].
    #[inline]
    pub fn deliver_at(&mut self, at: Time, packet: P) {
        self.arriving.push(at.0, (), packet, false);
        self.due = self.due.min(at.0);
    }

    /// Returns whether a packet waits here for its arrival at the far end.
    #[inline]
    pub fn has_arriving(&self) -> bool {
        self.due != Time::NEVER.0
    }

    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Time, packet: P) -> Admission<P> {
        match self.admit(now, now, &packet) {
            Ok(at) => {
                self.deliver_at(at, packet);
                Admission::Queued { next_event: Some(Time(self.due)) }
            }
            Err(reason) => Admission::Dropped(packet, reason),
        }
    }

    #[inline]
    pub(crate) fn poll_delivery(&mut self, now: u64) -> Option<P> {
        if self.due > now {
            return None;
        }
        let packet = self.arriving.pop();
        self.due = self.arriving.head_time();
        packet
    }

    #[inline]
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Counters as of the last [`PrecomputedLink::settle`].
    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Brings counters to `now`, which does not go back.
    #[inline(never)]
    pub(crate) fn settle(&mut self, now: u64) {
        self.advance(now);
        while self.marks.head_time().saturating_add(self.delay) <= now {
            self.retire_oldest();
        }
        if !self.deferred.is_empty() {
            self.deferred.settle(now, &mut self.stats);
        }
    }

    /// Packets and bytes that wait at `now`.
    pub(crate) fn queue(&mut self, now: u64) -> (u64, u64) {
        let waiting = self.read_queue(now);
        self.stats.enqueued = self.arrived;
        waiting
    }

    fn read_queue(&mut self, now: u64) -> (u64, u64) {
        if self.transmitter.free_at() <= now {
            // All packets have departed: most links of a large run, most of the time.
            self.arrived = self.marks.taken() + self.marks.len();
            return (0, 0);
        }
        let PrecomputedLink { marks, read_bytes, retired_bytes, .. } = self;
        let mut upto = |which: usize, happened: &dyn Fn(u64, PacketMark) -> bool| {
            let bytes = &mut read_bytes[which];
            *bytes = (*bytes).max(*retired_bytes);
            let number = marks.read(which, |depart, (), mark| {
                let passes = happened(depart, *mark);
                *bytes += if passes { mark.bytes() } else { 0 };
                passes
            });
            (number, *bytes)
        };
        let arrived = upto(ARRIVED, &|depart, mark| depart - mark.sojourn() <= now);
        let departed = upto(DEPARTED, &|depart, _| depart <= now);
        self.arrived = arrived.0;
        if arrived.0 == departed.0 {
            return (0, 0);
        }
        // The oldest that has not departed is being sent.
        let mut sending = 0;
        marks.read(DEPARTED, |_, (), mark| {
            sending = mark.bytes();
            false
        });
        (arrived.0 - departed.0 - 1, arrived.1 - departed.1 - sending)
    }

    /// Packets that have arrived, and are neither dropped nor delivered, as of the last [`PrecomputedLink::queue`].
    pub(crate) fn inside(&self) -> u64 {
        let lost = self.lost.partition_point(|&lost| lost < self.arrived) as u64;
        self.arrived.max(self.marks.taken()) - self.marks.taken() - lost
    }

    /// Takes the oldest mark off and counts its packet as delivered or lost.
    #[inline]
    fn retire_oldest(&mut self) {
        let number = self.marks.taken();
        let Some(mark) = self.marks.pop() else { return };
        let bytes = mark.bytes();
        self.retired_bytes += bytes;
        if self.lost.front() == Some(&number) {
            self.lost.pop_front();
        } else {
            self.stats.delivered += 1;
            self.stats.delivered_bytes += bytes;
        }
    }

    /// Counts packets that have started by `now` as no longer waiting.
    #[inline]
    fn advance(&mut self, now: u64) {
        while self.marks.waiting() > 0 && self.next_start <= now {
            let Some((depart, bytes)) = self.marks.start(|depart, (), mark| (depart, mark.bytes())) else { return };
            self.waiting_bytes -= bytes;
            self.next_start = depart;
        }
    }

    #[cold]
    fn defer_drop(&mut self, now: u64, at: u64, reason: DropReason) {
        self.deferred.dropped.push_back((at, reason));
        self.deferred.settle(now, &mut self.stats);
    }

    #[cold]
    fn raise_max_queue(&mut self, now: u64, at: u64, packets: u64, bytes: u64) {
        self.max_queue = (packets.max(self.max_queue.0), bytes.max(self.max_queue.1));
        self.deferred.max_queue.push_back((at, self.max_queue.0, self.max_queue.1));
        self.deferred.settle(now, &mut self.stats);
    }
}

impl DeferredStats {
    #[inline]
    fn is_empty(&self) -> bool {
        self.max_queue.is_empty() && self.dropped.is_empty()
    }

    fn settle(&mut self, now: u64, stats: &mut Stats) {
        while let Some(&(_, packets, bytes)) = self.max_queue.front().filter(|&&(at, ..)| at <= now) {
            stats.record_queue(packets, bytes);
            self.max_queue.pop_front();
        }
        while let Some(&(_, reason)) = self.dropped.front().filter(|&&(at, _)| at <= now) {
            stats.count_drop(reason);
            self.dropped.pop_front();
        }
    }
}
