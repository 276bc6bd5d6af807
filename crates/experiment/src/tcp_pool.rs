//! A packet on the simulated links: a token of 16 bytes; its TCP header waits at the sender's end of the flight.
//!
//! A packet crosses several links and each moves it once, so what moves is kept to two registers. The header is written
//! when the packet is sent and read when it arrives, in the same order but for losses, so headers of one direction of a
//! flow lie in a queue: a large window is read and written from one end to the other, which the processor's prefetcher
//! follows, where a free list would scatter it over the cache. No queue is shared: a packet that stands still would
//! keep the headers of all that were sent after it. SACK blocks are rare and have a pool. Nothing is allocated in the
//! steady state. Together a packet in flight holds 32 bytes here, 24 in the link that keeps it, 16 in each link that it
//! has been computed to pass, and 24 in the sender's scoreboard.

use crate::packet::Packet;
use crate::transport::SegmentPool;
use link::Packet as _;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use tcp::segment::{flags, SackBlock, Segment, WindowScale, MAX_SACK_BLOCKS};

/// The TCP header of a packet in flight, as far as the token does not tell it: its payload is what the token's bytes
/// leave after headers and options.
#[derive(Clone, Copy, Default)]
struct Header {
    seq: u64,
    ack: u64,
    /// `window << 32 | ts_ecr`.
    window_ecr: u64,
    /// `ts_val << 32 | extra`; extra: slot of the SACK blocks; on a SYN, which carries none, `mss << 8` and the
    /// window scale's shift and 1, or 0 without one.
    val_extra: u64,
}

const _: () = assert!(
    std::mem::size_of::<Header>() == 32,
    "memory per packet in flight is promised in docs/results/performance.md"
);

/// Bits of the segment's flags within the token; above them the number of SACK blocks.
const FLAG_BITS: u32 = 12;
const FLAG_MASK: u16 = (1 << FLAG_BITS) - 1;

/// Segments to be packed that are alike but for their numbers.
pub struct Template {
    header: Header,
    packet: Packet,
    len: u64,
}

fn sack_count(packet: Packet) -> u8 {
    (packet.flags() >> FLAG_BITS) as u8
}

/// Headers and SACK blocks of all packets in flight.
#[derive(Default)]
pub struct Pool {
    /// Headers by source.
    flights: Vec<Flight>,
    spare: Spare,
    sacks: Slots,
}

impl SegmentPool for Pool {
    type Segment = Segment;
    type Template = Template;

    /// A pool for packets of sources `0..sources`.
    fn new(sources: usize) -> Pool {
        Pool { flights: (0..sources).map(|_| Flight::default()).collect(), ..Pool::default() }
    }

    /// Returns the common part of `segment` of `source` and those that follow it on the route that starts at `hop`.
    /// SACK blocks are good for one packet.
    #[inline]
    fn template(&mut self, segment: &Segment, hop: u32, source: u32) -> Template {
        let extra = if segment.flags & flags::SYN != 0 {
            u32::from(segment.mss) << 8 | segment.wscale.map_or(0, |scale| u32::from(scale.shift()) + 1)
        } else if segment.sack_count > 0 {
            self.sacks.put(segment)
        } else {
            0
        };
        let header = Header {
            seq: segment.seq,
            ack: segment.ack,
            window_ecr: u64::from(segment.window) << 32 | u64::from(segment.ts_ecr),
            val_extra: u64::from(segment.ts_val) << 32 | u64::from(extra),
        };
        debug_assert!(segment.flags <= FLAG_MASK, "flags leave room for the number of SACK blocks");
        let bits = u16::from(segment.sack_count) << FLAG_BITS | segment.flags;
        let packet = Packet::new(0, hop, source, segment.packet_bytes(), bits);
        Template { header, packet, len: u64::from(segment.len) }
    }

    /// Packs the next segment of `template`.
    #[inline]
    fn pack(&mut self, template: &mut Template) -> Packet {
        let flight = &mut self.flights[template.packet.source() as usize];
        let number = flight.put(template.header, &mut self.spare);
        template.header.seq += template.len;
        template.packet.numbered(number)
    }

    /// `source` sends from here on for another connection.
    fn begin_connection(&mut self, source: u32) {
        self.flights[source as usize].begin_connection();
    }

    /// Unpacks `packet`, which a TCP source sent, into `segment` and forgets its header.
    #[inline]
    fn unpack(&mut self, packet: Packet, segment: &mut Segment) {
        let flight = &mut self.flights[packet.source() as usize];
        let header = flight.take(packet.number(), &mut self.spare);
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
    }

    fn is_current(&mut self, packet: Packet) -> bool {
        let flight = &mut self.flights[packet.source() as usize];
        flight.connection_from.is_none() || flight.is_of_connection(packet.number())
    }

    /// Forgets the header of a lost packet that a TCP source sent.
    fn discard(&mut self, packet: Packet) {
        let flight = &mut self.flights[packet.source() as usize];
        let header = flight.discard(packet.number(), &mut self.spare);
        if sack_count(packet) > 0 {
            self.sacks.take(header.val_extra as u32, header.ack);
        }
    }
}

/// Headers of a block.
const BLOCK: u32 = 32;

struct Block {
    headers: [Header; BLOCK as usize],
    /// Bit by header: taken before one that was sent earlier.
    taken: u32,
}

impl Default for Block {
    fn default() -> Self {
        Block { headers: [Header::default(); BLOCK as usize], taken: 0 }
    }
}

/// Blocks of headers to use again.
#[allow(clippy::vec_box, reason = "blocks move between flights, and a block is a kilobyte")]
type Spare = Vec<Box<Block>>;

/// Headers of one source, in the order of sending. A number is good for 2^32 packets, six thousand of the largest
/// windows.
///
/// Nearly all are taken in that order: then a packet costs its header and nothing else of the block.
#[derive(Default)]
struct Flight {
    /// The block being filled; none while there is nothing.
    filling: Option<Box<Block>>,
    /// Number of the oldest header not taken.
    head: u32,
    /// Number of the next header.
    next: u32,
    /// Headers taken that were sent after it.
    ahead: u32,
    /// Number of the first header of the present connection, for as long as those of earlier ones are in flight.
    connection_from: Option<u32>,
    /// Full blocks from the one with `head` on.
    full: VecDeque<Box<Block>>,
}

impl Flight {
    #[inline]
    fn put(&mut self, header: Header, spare: &mut Spare) -> u32 {
        let number = self.next;
        let block = match &mut self.filling {
            Some(block) => block,
            None => self.start(spare),
        };
        block.headers[(number % BLOCK) as usize] = header;
        self.next = number.wrapping_add(1);
        if self.next.is_multiple_of(BLOCK) {
            self.full.extend(self.filling.take());
        }
        number
    }

    #[cold]
    fn begin_connection(&mut self) {
        self.connection_from = Some(self.next);
    }

    /// Returns true if the header of `number`, which was just taken, is of the present connection.
    #[cold]
    fn is_of_connection(&mut self, number: u32) -> bool {
        // Fewer than 2^31 packets of a source are in flight.
        let is_before = |number: u32, from: u32| (number.wrapping_sub(from) as i32) < 0;
        let Some(from) = self.connection_from else { return true };
        if !is_before(self.head, from) {
            self.connection_from = None;
        }
        !is_before(number, from)
    }

    #[cold]
    fn start(&mut self, spare: &mut Spare) -> &mut Box<Block> {
        self.filling.insert(spare.pop().unwrap_or_default())
    }

    #[inline]
    fn take(&mut self, number: u32, spare: &mut Spare) -> Header {
        let index = number.wrapping_sub(self.head - self.head % BLOCK) / BLOCK;
        let block = match self.full.get_mut(index as usize) {
            Some(block) => block,
            None => self.filling.as_mut().expect("the block of a number is there while the number is"),
        };
        let header = block.headers[(number % BLOCK) as usize];
        if number != self.head {
            block.taken |= 1 << (number % BLOCK);
            self.ahead += 1;
        } else {
            self.head = number.wrapping_add(1);
            if self.ahead > 0 || self.head.is_multiple_of(BLOCK) {
                self.advance(spare);
            }
        }
        header
    }

    /// Takes the header of a lost packet. Most are refused when they are sent: then it is the newest, and leaves no
    /// gap.
    fn discard(&mut self, number: u32, spare: &mut Spare) -> Header {
        if number.wrapping_add(1) != self.next || self.next.is_multiple_of(BLOCK) {
            return self.take(number, spare);
        }
        self.next = number;
        if self.connection_from == Some(number.wrapping_add(1)) {
            // It was the last of an earlier connection: the number is the present one's.
            self.connection_from = Some(number);
        }
        let block = self.filling.as_ref().expect("the block of a number is there while the number is");
        block.headers[(number % BLOCK) as usize]
    }

    /// Moves `head` over the headers that were taken before their turn, and frees the blocks below it.
    fn advance(&mut self, spare: &mut Spare) {
        loop {
            if self.head.is_multiple_of(BLOCK) {
                if let Some(mut block) = self.full.pop_front() {
                    block.taken = 0;
                    spare.push(block);
                }
            }
            let Some(block) = self.full.front().or(self.filling.as_ref()) else { return };
            if self.ahead == 0 || block.taken & 1 << (self.head % BLOCK) == 0 {
                return;
            }
            self.ahead -= 1;
            self.head = self.head.wrapping_add(1);
        }
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
