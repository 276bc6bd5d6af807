//! FQ-CoDel (RFC 8290): flows hashed to queues, deficit round robin with new flows first, CoDel on each queue.

use crate::codel::{Codel, CodelParams, TimedQueue};
use crate::counters::{DropReason, LinkCounters};
use crate::packet::Packet;
use std::collections::VecDeque;

/// Packets dropped at once from the fattest queue when the limit is passed, at most (RFC 8290, section 4.1.3 drops
/// one; Linux found the search for the fattest too dear under overload and drops up to 64, and at most half of the
/// queue's bytes).
const DROP_BATCH: u32 = 64;

struct FlowQueue<P> {
    packets: TimedQueue<P>,
    codel: Codel,
    /// Bytes that may still be sent in this round; below zero by at most a packet.
    deficit: i64,
    /// In one of the lists.
    listed: bool,
}

pub(crate) struct FqCodel<P> {
    queues: Vec<FlowQueue<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    params: CodelParams,
    quantum: i64,
    limit: u64,
    packets: u64,
    bytes: u64,
    /// Salt of the hash, so that two runs with other seeds collide in other places (RFC 8290, section 4.1.1).
    salt: u64,
}

impl<P: Packet> FqCodel<P> {
    pub fn new(queues: u32, quantum: u32, limit: u64, params: CodelParams, salt: u64) -> FqCodel<P> {
        let queue = || FlowQueue { packets: TimedQueue::new(), codel: Codel::default(), deficit: 0, listed: false };
        FqCodel {
            queues: (0..queues).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            params,
            quantum: i64::from(quantum),
            limit,
            packets: 0,
            bytes: 0,
            salt,
        }
    }

    pub fn len(&self) -> u64 {
        self.packets
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes a packet in; over the limit, packets of the fattest queue go to the counters (this one may be among them).
    pub fn enqueue(&mut self, now: u64, packet: P, counters: &mut LinkCounters<P>) {
        let index = self.index(packet.flow_hash());
        let bytes = packet.bytes();
        let queue = &mut self.queues[index as usize];
        queue.packets.push(now, bytes, packet);
        self.packets += 1;
        self.bytes += u64::from(bytes);
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum;
            self.new.push_back(index);
        }
        if self.packets > self.limit {
            self.drop_from_fattest(counters);
        }
    }

    /// The next packet to send at `now` (RFC 8290, section 4.2).
    pub fn dequeue(&mut self, now: u64, counters: &mut LinkCounters<P>) -> Option<(u32, P)> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.deficit <= 0 {
                queue.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (queue.packets.len(), queue.packets.bytes());
            let taken = queue.codel.dequeue(now, &self.params, &mut queue.packets, counters);
            self.packets -= packets - queue.packets.len();
            self.bytes -= bytes - queue.packets.bytes();
            if let Some((bytes, packet)) = taken {
                queue.deficit -= i64::from(bytes);
                return Some((bytes, packet));
            }
            list.pop_front();
            // An empty new queue waits one round behind the old ones, or it could take a turn with every packet and
            // starve them (section 4.2).
            if from_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                queue.listed = false;
            }
        }
    }

    fn index(&self, hash: u64) -> u32 {
        let mixed = (hash ^ self.salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        // The high half of a product maps 64 bits evenly to the queues.
        ((u128::from(mixed) * self.queues.len() as u128) >> 64) as u32
    }

    #[cold]
    fn drop_from_fattest(&mut self, counters: &mut LinkCounters<P>) {
        // The first of the fattest: an explicit tie-break.
        let fattest = (0..self.queues.len()).rev().max_by_key(|&i| self.queues[i].packets.bytes());
        let Some(queue) = fattest.map(|i| &mut self.queues[i]) else { return };
        let half = queue.packets.bytes() / 2;
        let mut dropped = 0;
        for _ in 0..DROP_BATCH {
            let Some((_, bytes, packet)) = queue.packets.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(bytes);
            counters.drop_inside(packet, DropReason::QueueFull);
            dropped += u64::from(bytes);
            if dropped >= half {
                break;
            }
        }
    }
}
