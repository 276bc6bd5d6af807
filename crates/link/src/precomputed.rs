//! A drop-tail link with a fixed configuration: arrival or drop of a packet is computed when the packet enters.
//!
//! With rate, delay, limits and loss fixed, the time at which a packet reaches the far end follows from the packets
//! before it. A caller who knows that this link is the only one upstream of the next may hand the packet on at once,
//! with its future arrival time: a whole path costs one event. Counters and queue lengths are still those of the time
//! at which they are read: each packet that somebody may still see on its way leaves a 16-byte record until then.

use crate::admission::Admission;
use crate::calm::Calm;
use crate::config::{LinkConfig, QueueConfig};
use crate::counters::{DropReason, Stats};
use crate::loss::Loss;
use crate::packet::Packet;
use crate::prefetch::prefetch;
use crate::ring::Ring;
use crate::sampling::{Arrived, Sample, Sampling};
use crate::serializer::{Line, Serializer};
use crate::waiting::Waiting;
use std::collections::VecDeque;
use units::{Rate, Span, Time};

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
    /// Waits up to it need no look at the queue; see [`PrecomputedLink::find_calm`].
    calm_ns: u64,
    /// From then on only packets of the present size wait.
    mixed_until: u64,
    /// Packets that wait, as of the latest arrival.
    waiting: Waiting,
    /// Times of the next samples of arrivals and of deliveries; never: `u64::MAX`.
    next_samples: [u64; 2],
    /// Bytes of all packets that were not lost.
    passed_bytes: u64,
    /// Packets dropped, those that arrive later than now among them.
    drops: u64,
    sampling: Option<Box<Sampling>>,
    /// Packets that left no mark: they had reached the far end before anybody could ask.
    unmarked: u64,
    /// Of these: packets and bytes that were not lost and are not in `stats` yet.
    fresh: (u64, u64),
    loss: Loss,
    /// Departures and marks of packets that have not reached the far end.
    marks: Ring<PacketMark, ()>,
    /// Packets left here until they reach the far end, with their arrival times.
    arriving: Ring<P, ()>,
    limit_packets: u64,
    limit_bytes: u64,
    /// Longest queue in packets and in bytes, future arrivals included.
    max_queue: (u64, u64),
    /// Numbers of the packets that the line loses, ascending.
    lost: VecDeque<u64>,
    /// Of those with marks: packets that had arrived at the last read of the queue.
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
            waiting: Waiting::new(),
            calm_ns: 0,
            mixed_until: 0,
            marks: Ring::new(),
            arriving: Ring::new(),
            next_samples: [u64::MAX; 2],
            passed_bytes: 0,
            drops: 0,
            sampling: None,
            unmarked: 0,
            fresh: (0, 0),
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

    /// `packet` arrives at `at`. Returns when it reaches the far end. The packet stays with the caller, who hands it to
    /// the next link or leaves it here by [`PrecomputedLink::deliver_at`].
    ///
    /// Counters and queues will be read as of `now` at the earliest: what is over by then leaves no trace but in the
    /// counters. `now` may be before `at` or after it. Over calls `at` may not go back, nor may `now` of the next read.
    ///
    /// # Errors
    /// Why the link drops the packet; it is not reported again.
    #[inline]
    pub fn admit(&mut self, now: Time, at: Time, packet: &P) -> Result<Time, DropReason> {
        let mut line = self.transmitter.line();
        let arrives = self.pass(&mut line, now.0, at.0, packet);
        self.transmitter.put(line);
        arrives.map(Time)
    }

    /// As [`PrecomputedLink::admit`] for each of `packets` with its time of arrival here, ns; leaves those that reach
    /// the far end, with their times there, and hands the others to `refused`, with their times here.
    pub fn admit_all(&mut self, now: u64, packets: &mut Vec<(u64, P)>, mut refused: impl FnMut(u64, P, DropReason))
    where
        P: Copy,
    {
        let mut line = self.transmitter.line();
        let (mut kept, mut index) = (0, 0);
        while index < packets.len() {
            let marks = line.free_at().max(packets[index].0).saturating_add(self.delay) > now;
            let calm = if marks {
                self.settle(now);
                self.pass_calmly::<true>(&mut line, now, &mut packets[index..])
            } else {
                self.pass_calmly::<false>(&mut line, now, &mut packets[index..])
            };
            if kept < index {
                packets.copy_within(index..index + calm, kept);
            }
            (index, kept) = (index + calm, kept + calm);
            let Some(&(at, packet)) = packets.get(index) else { break };
            index += 1;
            match self.pass(&mut line, now, at, &packet) {
                Ok(arrives) => {
                    packets[kept] = (arrives, packet);
                    kept += 1;
                }
                Err(reason) => refused(at, packet, reason),
            }
        }
        packets.truncate(kept);
        self.transmitter.put(line);
    }

    /// As [`PrecomputedLink::admit_all`] over a link that drops nothing; writes the times at the far end in place.
    ///
    /// # Panics
    /// When it drops a packet: [`PrecomputedLink::drops_nothing_after`] tells before that it does not.
    pub fn admit_each(&mut self, now: u64, packets: &mut [(u64, P)])
    where
        P: Copy,
    {
        let mut line = self.transmitter.line();
        let mut rest = packets;
        while let Some(&(at, _)) = rest.first() {
            let marks = line.free_at().max(at).saturating_add(self.delay) > now;
            let calm = if marks {
                self.settle(now);
                self.pass_calmly::<true>(&mut line, now, rest)
            } else {
                self.pass_calmly::<false>(&mut line, now, rest)
            };
            rest = &mut rest[calm..];
            let Some((next, others)) = rest.split_first_mut() else { break };
            match self.pass(&mut line, now, next.0, &next.1) {
                Ok(arrives) => next.0 = arrives,
                Err(reason) => unreachable!("a link that drops nothing drops a packet: {reason:?}"),
            }
            rest = others;
        }
        self.transmitter.put(line);
    }

    /// The common case ([`Calm`]), for as many of `packets` as it holds. Returns how many; their times are those at the
    /// far end. With `MARKS` they may be there later than `now`.
    #[inline]
    fn pass_calmly<const MARKS: bool>(&mut self, line: &mut Line, now: u64, packets: &mut [(u64, P)]) -> usize {
        let Some(&(first, _)) = packets.first() else { return 0 };
        if first < self.mixed_until {
            return 0;
        }
        let (bytes, delay) = (line.last_bytes(), self.delay);
        let [next_sample, next_delivered] = self.next_samples;
        let latest = if MARKS { next_delivered } else { next_delivered.min(now) };
        let Some(latest) = latest.checked_sub(delay) else { return 0 };
        let calm = Calm { bytes, next_sample, latest, longest_wait: self.calm_ns, flow: self.loss.flow(), delay };
        if first >= line.free_at() && first <= next_sample {
            self.waiting.clear();
        }
        let certain = usize::try_from(self.loss.certain(bytes)).unwrap_or(usize::MAX);
        let most = packets.len().min(certain);
        let packets = &mut packets[..most];
        let free = if MARKS { 0 } else { calm.pass_free(line, packets) };
        let mut writer = self.waiting.writer();
        let most = packets.len().min(free + writer.room());
        let packets = &mut packets[..most];
        let mark = |depart, after| {
            if MARKS {
                self.marks.push(depart, (), PacketMark::new(bytes, after), false);
            }
        };
        let count = free + calm.pass_any(line, &mut writer, &mut packets[free..], mark);
        let last = writer.last();
        self.waiting.put(last);
        self.loss.pass_certain(bytes, count as u64);
        self.passed_bytes += count as u64 * u64::from(bytes);
        if !MARKS {
            self.unmarked += count as u64;
            self.fresh = (self.fresh.0 + count as u64, self.fresh.1 + count as u64 * u64::from(bytes));
        }
        count
    }

    // Once per packet and hop; as a call it takes a tenth more instructions (callgrind).
    #[inline(always)]
    fn pass(&mut self, line: &mut Line, now: u64, at: u64, packet: &P) -> Result<u64, DropReason> {
        let bytes = packet.bytes();
        if line.last_bytes() != bytes {
            self.resize(line, bytes);
        }
        if at > self.next_samples[0] {
            self.sample_arrivals(at);
        }
        let free_at = line.free_at();
        // A free line takes the packet at once: it never waits and no limit holds for it.
        if at < free_at {
            if free_at - at > self.calm_ns || at < self.mixed_until {
                self.check_queue(now, at, line)?;
            }
            self.waiting.push(at, free_at, bytes);
        }
        let depart = line.send(at);
        let arrives = depart.saturating_add(self.delay);
        if arrives > self.next_samples[1] {
            self.sample_deliveries(arrives);
        }
        let lost = self.loss.loses(bytes, || packet.flow_hash());
        self.passed_bytes += if lost { 0 } else { u64::from(bytes) };
        if arrives > now {
            if self.marks.is_block_full() {
                // Once per block: cheap, and the ring stays as short as the packets inside.
                self.settle(now);
            }
            self.marks.push(depart, (), PacketMark::new(bytes, depart - at), false);
        } else {
            self.unmarked += 1;
            if !lost {
                self.fresh = (self.fresh.0 + 1, self.fresh.1 + u64::from(bytes));
            }
        }
        if lost {
            if arrives > now {
                self.lost.push_back(self.marks.taken() + self.marks.len() - 1);
            }
            self.defer_drop(now, at, DropReason::Loss);
            return Err(DropReason::Loss);
        }
        Ok(arrives)
    }

    /// Packets of another size come. Those of earlier sizes may wait until the line would be free.
    #[cold]
    fn resize(&mut self, line: &mut Line, bytes: u32) {
        assert!(bytes <= MAX_BYTES, "a packet of {bytes} bytes: an IP packet has 65,535 at most");
        self.mixed_until = line.free_at();
        self.transmitter.resize(line, bytes);
        self.find_calm(line);
    }

    /// A packet of the line's size comes at `at` and may find no room, or make the queue longer than ever.
    #[inline(never)]
    fn check_queue(&mut self, now: u64, at: u64, line: &Line) -> Result<(), DropReason> {
        debug_assert!(at < line.free_at(), "a free line takes a packet at once");
        let bytes = line.last_bytes();
        self.waiting.start(at);
        let (others, total) = (self.waiting.packets(), self.waiting.bytes() + u64::from(bytes));
        if others >= self.limit_packets || total > self.limit_bytes {
            self.defer_drop(now, at, DropReason::QueueFull);
            return Err(DropReason::QueueFull);
        }
        if others >= self.max_queue.0 || total > self.max_queue.1 {
            self.raise_max_queue(now, at, others + 1, total);
            self.find_calm(line);
        }
        Ok(())
    }

    /// Finds the longest wait at which the queue is certainly neither full nor longer than ever before, as long as all
    /// that wait are of the present size: they are sent without a pause until the line is free, behind the rest of
    /// another packet, and so take less than the wait together.
    fn find_calm(&mut self, line: &Line) {
        let bytes = self.max_queue.1.min(self.limit_bytes) / u64::from(line.last_bytes().max(1));
        let packets = self.max_queue.0.min(self.limit_packets).min(bytes);
        self.calm_ns = packets.saturating_mul(line.least_ns());
    }

    /// Leaves `packet` here until `at`, its arrival at the far end by [`PrecomputedLink::admit`].
    #[inline]
    pub fn deliver_at(&mut self, at: Time, packet: P) {
        self.arriving.push(at.0, (), packet, false);
        self.due = self.due.min(at.0);
    }

    /// Begins to fetch what the next packet needs beside the link itself.
    #[inline]
    pub fn prefetch(&self) {
        self.waiting.prefetch();
    }

    /// Rate of the line.
    pub fn rate(&self) -> Rate {
        self.transmitter.rate()
    }

    /// Returns true if it certainly drops and loses nothing that comes over a line of `before` alone, packets of
    /// `smallest` to `largest` bytes: it is no slower, so that at most one packet's time waits, in which the largest
    /// packet is followed by few of the smallest. Twice these, so that rounding to ns does not matter.
    pub fn drops_nothing_after(&self, before: &PrecomputedLink<P>, [smallest, largest]: [u32; 2]) -> bool {
        self.loss.is_never()
            && self.transmitter.rate() >= before.transmitter.rate()
            && self.transmitter.framing() == before.transmitter.framing()
            && self.limit_packets >= 2 * u64::from(largest.div_ceil(smallest.max(1)) + 1)
            && self.limit_bytes >= 2 * 2 * u64::from(largest)
    }

    /// Time from the last bit's departure to its arrival.
    pub fn delay(&self) -> Span {
        Span(self.delay)
    }

    /// The packet that reaches the far end next.
    pub fn first_arriving(&self) -> Option<&P> {
        self.arriving.head_packet()
    }

    /// Takes that packet, ahead of its time; returns it with the time.
    pub fn take_arriving(&mut self) -> Option<(Time, P)> {
        let at = Time(self.due);
        Some((at, self.poll_delivery(at.0)?))
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
    #[inline]
    pub(crate) fn settle(&mut self, now: u64) {
        let (packets, bytes) = std::mem::take(&mut self.fresh);
        self.stats.delivered += packets;
        self.stats.delivered_bytes += bytes;
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
        self.stats.enqueued = self.unmarked + self.arrived;
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

    /// See [`crate::Link::take_samples`].
    pub(crate) fn take_samples(&mut self, first: u64, interval: u64) {
        self.sampling = Some(Box::new(Sampling::new(first, interval)));
        self.next_samples = [first; 2];
    }

    /// Begins to fetch what a sample needs beside the link itself.
    #[inline]
    pub fn prefetch_sample(&self) {
        if let Some(sampling) = &self.sampling {
            prefetch(&**sampling, size_of::<Sampling>());
        }
    }

    /// Takes the samples that do not see a packet that comes at `at`.
    #[cold]
    fn sample_arrivals(&mut self, at: u64) {
        let Some(sampling) = &mut self.sampling else { return };
        // Those computed ahead of their time, too: they all came before.
        let dropped_packets = self.drops;
        while at > self.next_samples[0] {
            let time = self.next_samples[0];
            self.waiting.start(time);
            let (queue_packets, queue_bytes) = (self.waiting.packets(), self.waiting.bytes());
            let part = Arrived { queue_packets, queue_bytes, dropped_packets };
            self.next_samples[0] = sampling.take_arrived(part);
        }
    }

    /// Takes the samples that do not see a packet that reaches the far end at `arrives`.
    #[cold]
    fn sample_deliveries(&mut self, arrives: u64) {
        let Some(sampling) = &mut self.sampling else { return };
        while arrives > self.next_samples[1] {
            self.next_samples[1] = sampling.take_delivered(self.passed_bytes);
        }
    }

    /// The sample at `now`; None: it was told of none.
    #[inline]
    pub(crate) fn sample(&mut self, now: u64) -> Option<Sample> {
        // All packets that are here came by now: none of them will tell.
        let [arrivals, deliveries] = self.next_samples;
        if arrivals <= now {
            self.sample_arrivals(now.saturating_add(1));
        }
        if deliveries <= now {
            self.sample_deliveries(now.saturating_add(1));
        }
        let sample = self.sampling.as_mut()?.poll(now);
        Some(sample.unwrap_or_else(|| unreachable!("a link is sampled at the times that it was told")))
    }

    #[cold]
    fn defer_drop(&mut self, now: u64, at: u64, reason: DropReason) {
        self.drops += 1;
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
