//! A packet on the simulated links: a token of 16 bytes; its TCP header waits at the sender's end of the flight.
//!
//! A packet crosses several links and each moves it once, so what moves is kept to two registers. Segments that are
//! sent together are alike but for their numbers: one header is written when they are sent and read when they arrive,
//! in the same order but for losses, so headers of one direction of a flow lie in a queue. No queue is shared: a packet
//! that stands still would keep the headers of all that were sent after it. SACK blocks are rare and have a pool.
//! Together a packet in flight holds a part of the 40 bytes of its train here, 24 in the link or the inbox that keeps
//! it, 16 in each link that it has been computed to pass, and 24 in the sender's scoreboard.

use crate::packet::Packet;
use crate::transport::SegmentPool;
use link::{prefetch, prefetch_behind, Packet as _};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use tcp::segment::{
    base_header_bytes, flags, SackBlock, Segment, WindowScale, MAX_SACK_BLOCKS, TIMESTAMP_OPTION_BYTES,
};
use tcp::Arrival;
use units::growth::{fit, reserve};
use units::Time;

/// The TCP header of packets in flight that were sent together, as far as their tokens do not tell it: their payload is
/// what a token's bytes leave after headers and options.
#[derive(Clone, Copy, Default)]
struct Header {
    /// Of the first packet; each further one begins where the one before it ends.
    seq: u64,
    ack: u64,
    /// `window << 32 | ts_ecr`.
    window_ecr: u64,
    /// `ts_val << 32 | extra`; extra: slot of the SACK blocks; on a SYN, which carries none, `mss << 8` and the
    /// window scale's shift and 1, or 0 without one.
    val_extra: u64,
}

/// Bytes of trains that are fetched before a run of packets.
const TRAINS_BYTES: usize = 512;

/// Packets in flight that were sent together.
struct Train {
    header: Header,
    /// Number of the first packet.
    first: u32,
    /// Packets, and those of them that are still in flight.
    count: u16,
    left: u16,
}

const _: () = assert!(
    std::mem::size_of::<Train>() == 40,
    "memory per packet in flight is promised in docs/results/performance.md"
);

impl Train {
    /// Returns whether the packet `number` is one of it.
    #[inline]
    fn has(&self, number: u32) -> bool {
        number.wrapping_sub(self.first) < u32::from(self.count)
    }
}

/// Bits of the segment's flags within the token; above them the number of SACK blocks.
const FLAG_BITS: u32 = 12;
const FLAG_MASK: u16 = (1 << FLAG_BITS) - 1;

fn sack_count(packet: Packet) -> u8 {
    (packet.flags() >> FLAG_BITS) as u8
}

/// Headers and SACK blocks of all packets in flight.
#[derive(Default)]
pub struct Pool {
    /// Headers by source.
    flights: Vec<Flight>,
    sacks: Slots,
}

impl SegmentPool for Pool {
    type Segment = Segment;

    /// A pool for packets of sources `0..sources`.
    fn new(sources: usize) -> Pool {
        Pool { flights: (0..sources).map(|_| Flight::default()).collect(), ..Pool::default() }
    }

    /// SACK blocks are good for one packet.
    #[inline]
    fn pack(&mut self, segment: &Segment, hop: u32, source: u32, count: u32) -> Packet {
        self.departures(hop, source).pack(segment, count)
    }

    /// `source` sends from here on for another connection.
    fn begin_connection(&mut self, source: u32) {
        self.flights[source as usize].begin_connection();
    }

    /// Unpacks `packet`, which a TCP source sent, into `segment` and forgets its header.
    #[inline]
    fn unpack(&mut self, packet: Packet, segment: &mut Segment) {
        let (header, index) = self.flights[packet.source() as usize].take(packet.number());
        segment.seq = header.seq;
        segment.ack = header.ack;
        segment.window = (header.window_ecr >> 32) as u32;
        segment.ts_ecr = header.window_ecr as u32;
        segment.ts_val = (header.val_extra >> 32) as u32;
        segment.flags = packet.flags() & FLAG_MASK;
        segment.sack_count = sack_count(packet);
        if segment.flags & flags::SYN != 0 {
            segment.mss = (header.val_extra as u32 >> 8) as u16;
            segment.wscale = (header.val_extra as u8).checked_sub(1).map(WindowScale::new);
        } else if segment.sack_count > 0 {
            segment.sacks = self.sacks.take(header.val_extra as u32, segment.ack);
        }
        segment.len = packet.bytes() - segment.header_bytes();
        segment.seq += u64::from(index) * u64::from(segment.len);
    }

    #[inline]
    fn prefetch(&self, source: u32, next: bool) {
        let flight = &self.flights[source as usize];
        if !next {
            return prefetch(flight, std::mem::size_of::<Flight>());
        }
        let (trains, wrapped) = flight.trains.as_slices();
        prefetch(if trains.is_empty() { wrapped } else { trains }, TRAINS_BYTES);
    }

    #[inline]
    fn prefetch_room(&self, source: u32, next: bool) {
        let flight = &self.flights[source as usize];
        if !next {
            prefetch(flight, std::mem::size_of::<Flight>());
        } else if let Some(latest) = flight.trains.back() {
            prefetch_behind(latest, TRAINS_BYTES);
        }
    }

    fn is_current(&mut self, packet: Packet) -> bool {
        let flight = &mut self.flights[packet.source() as usize];
        flight.connection_from.is_none() || flight.is_of_connection(packet.number())
    }

    /// Forgets the header of a lost packet that a TCP source sent.
    fn discard(&mut self, packet: Packet) {
        let (header, _) = self.flights[packet.source() as usize].take(packet.number());
        if sack_count(packet) > 0 {
            self.sacks.take(header.val_extra as u32, header.ack);
        }
    }
}

impl Pool {
    /// Packs what `source` sends on the route that starts at `hop`.
    #[inline]
    pub fn departures(&mut self, hop: u32, source: u32) -> Departures<'_> {
        let Pool { flights, sacks } = self;
        Departures { flight: &mut flights[source as usize], sacks, hop, source }
    }

    /// Hands the segments of `packets`, which one end of a flow sent, to `take`, which returns how many of them it
    /// took; forgets their headers. Meanwhile the other end may send on the route that starts at `hop`.
    #[inline]
    pub fn take_run(
        &mut self,
        packets: &[(u64, Packet)],
        hop: u32,
        take: impl FnOnce(Arrivals<'_>, Departures<'_>) -> usize,
    ) -> usize {
        let Some(&(_, first)) = packets.first() else { return 0 };
        let Pool { flights, sacks } = self;
        let (from, source) = (first.source(), first.source() ^ 1);
        let [flight, own] = flights
            .get_disjoint_mut([from as usize, source as usize])
            .expect("a flow has two sources, of which the first is even");
        fit(&mut flight.trains);
        let taken = take(Arrivals::new(packets, flight), Departures { flight: own, sacks, hop, source });
        flight.forget_run(&packets[..taken]);
        taken
    }
}

/// Packs what one source sends on one route.
pub struct Departures<'a> {
    flight: &'a mut Flight,
    sacks: &'a mut Slots,
    hop: u32,
    source: u32,
}

impl Departures<'_> {
    /// See [`SegmentPool::pack`].
    #[inline(always)]
    pub fn pack(&mut self, segment: &Segment, count: u32) -> Packet {
        let is_plain = segment.flags & flags::SYN == 0 && segment.sack_count == 0;
        let extra = if is_plain { 0 } else { self.pack_extra(segment, count) };
        debug_assert!(segment.flags <= FLAG_MASK, "flags leave room for the number of SACK blocks");
        let bits = u16::from(segment.sack_count) << FLAG_BITS | segment.flags;
        let header = Header {
            seq: segment.seq,
            ack: segment.ack,
            window_ecr: u64::from(segment.window) << 32 | u64::from(segment.ts_ecr),
            val_extra: u64::from(segment.ts_val) << 32 | u64::from(extra),
        };
        let first = self.flight.put(header, segment.len, count);
        Packet::new(first, self.hop, self.source, segment.packet_bytes(), bits)
    }

    /// See [`Header::val_extra`].
    #[cold]
    fn pack_extra(&mut self, segment: &Segment, count: u32) -> u32 {
        if segment.flags & flags::SYN != 0 {
            return u32::from(segment.mss) << 8 | segment.wscale.map_or(0, |scale| u32::from(scale.shift()) + 1);
        }
        debug_assert!(count == 1, "SACK blocks for {count} packets");
        self.sacks.put(segment)
    }
}

/// The segments of packets in a row.
pub struct Arrivals<'a> {
    packets: std::slice::Iter<'a, (u64, Packet)>,
    flight: &'a Flight,
    /// The train of the latest packet.
    train: Option<&'a Train>,
    /// Those behind it, up to the end of the queue's memory, and from its beginning on.
    next: std::slice::Iter<'a, Train>,
    wrapped: std::slice::Iter<'a, Train>,
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    #[inline(always)]
    fn next(&mut self) -> Option<Arrival> {
        let &(at, packet) = self.packets.next()?;
        let number = packet.number();
        let train = match self.train {
            Some(train) if train.has(number) => train,
            _ => self.find(number),
        };
        let Train { header, first, .. } = train;
        let flags = packet.flags() & FLAG_MASK;
        // As far as a segment in a row can be: it has no other options.
        let options = if flags & flags::TIMESTAMPS != 0 { TIMESTAMP_OPTION_BYTES } else { 0 };
        let len = packet.bytes().saturating_sub(base_header_bytes(flags & flags::IPV6 != 0) + options);
        Some(Arrival {
            at: Time(at),
            seq: header.seq + u64::from(number.wrapping_sub(*first)) * u64::from(len),
            ack: header.ack,
            window: (header.window_ecr >> 32) as u32,
            flags,
            sack_count: sack_count(packet),
            ts_val: (header.val_extra >> 32) as u32,
            ts_ecr: header.window_ecr as u32,
            len,
        })
    }
}

impl<'a> Arrivals<'a> {
    fn new(packets: &'a [(u64, Packet)], flight: &'a Flight) -> Arrivals<'a> {
        let (next, wrapped) = flight.trains.as_slices();
        Arrivals { packets: packets.iter(), flight, train: None, next: next.iter(), wrapped: wrapped.iter() }
    }

    /// The train of `number`: the next one, unless packets are lost.
    #[inline(always)]
    fn find(&mut self, number: u32) -> &'a Train {
        let train = match self.next.next() {
            Some(train) if train.has(number) => train,
            _ => self.search(number),
        };
        self.train = Some(train);
        train
    }

    #[cold]
    fn search(&mut self, number: u32) -> &'a Train {
        let place = self.flight.place(number);
        let (next, wrapped) = self.flight.trains.as_slices();
        self.next = next.get(place + 1..).unwrap_or(&[]).iter();
        self.wrapped = wrapped.get((place + 1).saturating_sub(next.len())..).unwrap_or(&[]).iter();
        if self.next.as_slice().is_empty() {
            std::mem::swap(&mut self.next, &mut self.wrapped);
        }
        &self.flight.trains[place]
    }
}

/// Headers of one source, in the order of sending. A packet's number is good for 2^32 packets, six thousand of the
/// largest windows.
#[derive(Default)]
struct Flight {
    /// From the oldest with a packet in flight on.
    trains: VecDeque<Train>,
    /// Number of the next packet.
    next: u32,
    /// Number of the first packet of the present connection, for as long as those of earlier ones are in flight.
    connection_from: Option<u32>,
}

impl Flight {
    /// Adds a train of `count` packets of `len` bytes of payload; returns the number of the first.
    #[inline(always)]
    fn put(&mut self, header: Header, len: u32, count: u32) -> u32 {
        let first = self.next;
        self.next = first.wrapping_add(count);
        reserve(&mut self.trains, 1);
        let part = count.min(u32::from(u16::MAX)) as u16;
        self.trains.push_back(Train { header, first, count: part, left: part });
        if u32::from(part) < count {
            self.put_rest(len, count);
        }
        first
    }

    /// The rest of a train of `count` packets, of which the latest entry has what goes into one.
    #[cold]
    fn put_rest(&mut self, len: u32, count: u32) {
        let Some(&Train { header, first, count: part, .. }) = self.trains.back() else { return };
        let mut done = u32::from(part);
        while done < count {
            let seq = header.seq + u64::from(done) * u64::from(len);
            let part = (count - done).min(u32::from(u16::MAX)) as u16;
            let first = first.wrapping_add(done);
            self.trains.push_back(Train { header: Header { seq, ..header }, first, count: part, left: part });
            done += u32::from(part);
        }
    }

    #[cold]
    fn begin_connection(&mut self) {
        self.connection_from = Some(self.next);
    }

    /// Returns true if the packet `number`, which was just taken, is of the present connection.
    #[cold]
    fn is_of_connection(&mut self, number: u32) -> bool {
        // Fewer than 2^31 packets of a source are in flight.
        let is_before = |number: u32, from: u32| (number.wrapping_sub(from) as i32) < 0;
        let Some(from) = self.connection_from else { return true };
        if !is_before(self.trains.front().map_or(self.next, |train| train.first), from) {
            self.connection_from = None;
        }
        !is_before(number, from)
    }

    /// Takes the packet `number`: the header of its train, and its place there.
    #[inline]
    fn take(&mut self, number: u32) -> (Header, u32) {
        let at = self.place(number);
        let train = &self.trains[at];
        let (header, index) = (train.header, number.wrapping_sub(train.first));
        self.forget_at(at, 1);
        (header, index)
    }

    #[inline]
    fn forget_at(&mut self, at: usize, count: u16) {
        let train = &mut self.trains[at];
        train.left -= count;
        if train.left == 0 {
            self.forget_empty();
        }
    }

    /// Forgets `packets`, in whatever order they came.
    #[inline]
    fn forget_run(&mut self, packets: &[(u64, Packet)]) {
        let mut rest = packets;
        while let Some(&(_, first)) = rest.first() {
            let follow = |pair: &&[(u64, Packet)]| pair[1].1.number() == pair[0].1.number().wrapping_add(1);
            let row = 1 + rest.windows(2).take_while(follow).count();
            self.forget_row(first.number(), row as u32);
            rest = &rest[row..];
        }
    }

    /// Forgets the packets `number` and those behind it, `many` in all.
    #[inline]
    fn forget_row(&mut self, mut number: u32, mut many: u32) {
        while many > 0 {
            let mut done = self.forget_trains(number, many);
            if done == 0 {
                let at = self.place(number);
                let train = &self.trains[at];
                done = (u32::from(train.count) - number.wrapping_sub(train.first)).min(many);
                self.forget_at(at, done as u16);
            }
            (number, many) = (number.wrapping_add(done), many - done);
        }
    }

    /// Forgets the oldest trains if they begin with the packet `number` and have no others than it and those behind
    /// it, `many` in all; returns the number of packets of these trains.
    #[inline]
    fn forget_trains(&mut self, number: u32, many: u32) -> u32 {
        if self.trains.front().is_none_or(|train| train.first != number) {
            return 0;
        }
        let (mut trains, mut done) = (0, 0);
        for train in &self.trains {
            if done + u32::from(train.count) > many {
                break;
            }
            trains += 1;
            done += u32::from(train.count);
        }
        self.trains.drain(..trains);
        self.forget_empty();
        done
    }

    /// Forgets the oldest trains of which no packet is in flight.
    #[inline]
    fn forget_empty(&mut self) {
        while self.trains.front().is_some_and(|train| train.left == 0) {
            self.trains.pop_front();
        }
    }

    /// The place of the train of packet `number`: the oldest, unless an earlier packet is lost or comes later.
    #[inline]
    fn place(&self, number: u32) -> usize {
        let oldest = self.trains.front().expect("the train of a number is there while the number is");
        if oldest.has(number) {
            return 0;
        }
        let oldest = oldest.first;
        let from_oldest = number.wrapping_sub(oldest);
        self.trains.partition_point(|train| train.first.wrapping_sub(oldest) <= from_oldest) - 1
    }
}

/// Slots of a chunk: 8 KiB. A vector that doubles would hold up to twice as much.
const CHUNK: usize = 256;

/// SACK blocks of one packet, start and end, from the number that it acknowledges on: a window has less than 2^30 bytes
/// (RFC 7323, 2.3), above it and, for a DSACK, below.
type Blocks = [[i32; 2]; MAX_SACK_BLOCKS];

/// SACK blocks of the packets in flight; a freed slot is used next and names the one freed before it.
#[derive(Default)]
struct Slots {
    chunks: Vec<Box<[Blocks; CHUNK]>>,
    /// Slots ever used.
    used: u32,
    /// The slot that was freed last.
    free: Option<Slot>,
}

/// A slot by its number, from 1, so that none is 0 in a freed slot's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(NonZeroU32);

impl Slot {
    fn of(number: u32) -> Option<Slot> {
        NonZeroU32::new(number).map(Slot)
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl Slots {
    fn put(&mut self, segment: &Segment) -> u32 {
        let slot = match self.free {
            Some(slot) => {
                self.free = Slot::of(self.at(slot)[0][0] as u32);
                slot
            }
            None => self.grow(),
        };
        let distance = |number: u64| {
            let distance = number.wrapping_sub(segment.ack) as i64;
            debug_assert!(i32::try_from(distance).is_ok(), "a window beyond RFC 7323: {distance}");
            distance as i32
        };
        let used = &segment.sacks[..usize::from(segment.sack_count)];
        for (at, block) in self.at(slot).iter_mut().zip(used) {
            *at = [distance(block.start), distance(block.end)];
        }
        slot.0.get()
    }

    /// A slot that was never used.
    fn grow(&mut self) -> Slot {
        if self.used as usize == self.chunks.len() * CHUNK {
            self.chunks.push(Box::new([Blocks::default(); CHUNK]));
        }
        self.used += 1;
        Slot::of(self.used).expect("it counts from 1")
    }

    /// Takes the blocks of the slot that [`Slots::put`] gave the number `slot`.
    fn take(&mut self, slot: u32, ack: u64) -> [SackBlock; MAX_SACK_BLOCKS] {
        let slot = Slot::of(slot).expect("a packet with SACK blocks has a slot for them");
        let next = self.free.map_or(0, |free| free.0.get()) as i32;
        self.free = Some(slot);
        let at = self.at(slot);
        let blocks = *at;
        at[0][0] = next;
        let number = |distance: i32| ack.wrapping_add_signed(i64::from(distance));
        blocks.map(|[start, end]| SackBlock { start: number(start), end: number(end) })
    }

    fn at(&mut self, slot: Slot) -> &mut Blocks {
        &mut self.chunks[slot.index() / CHUNK][slot.index() % CHUNK]
    }
}

#[cfg(test)]
#[path = "tcp_pool_tests.rs"]
mod tests;
