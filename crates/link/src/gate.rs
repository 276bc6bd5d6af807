//! A delay line at a router that moves flows to a shorter way: what comes after the move is kept back until what went before is
//! past, so that nothing is overtaken.
//!
//! The line begins, at time B, with a delay D, the difference of the two ways. A packet that comes at t leaves at
//!
//! B + D + (t - B) / (1 + s), but not before t, nor before the line beyond has sent the packet ahead of it.
//!
//! So for s = 0 it is a line of delay D for ever; for s > 0 it is shortened by s for each unit of time at its far end, and what
//! came at a rate r leaves at (1 + s) r until the delay is gone, at t = B + D (1 + s) / s. With s without bound everything leaves
//! at B + D, one packet behind the other: then it is a hold. The line beyond may be given a lower rate than it has, that of a
//! slower one further on: what waits then waits here and not in that one's queue.

use crate::ledger::{DropReason, Ledger};
use crate::ring::Ring;
use crate::serializer::Serializer;
use crate::{Admission, Packet};
use units::{Rate, Span, Time};

/// Parts of one in shares.
const PPM: u128 = 1_000_000;

/// How a gate keeps packets back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// D: the delay that it begins with.
    pub delay: Span,
    /// s, parts per million: by how much more than came leaves while the line is shortened; None = everything that was kept back
    /// leaves as soon as D is over.
    pub share_ppm: Option<u32>,
}

/// What a gate has kept back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Kept {
    /// Packets that did not leave when they came.
    pub packets: u64,
    /// Most bytes inside at once: the buffer that it needs.
    pub most_bytes: u64,
    /// Longest that a packet was inside.
    pub longest: Span,
    /// When the last packet that was kept back left or will leave; the start of time when there was none.
    pub until: Time,
}

pub(crate) struct Gate<P> {
    ring: Ring<P>,
    bytes: u64,
    /// Most bytes inside.
    limit_bytes: u64,
    /// The line beyond: what is let go is spaced as it can send.
    line: Serializer,
    begin: u64,
    hold: Option<Hold>,
    kept: Kept,
}

impl<P: Packet> Gate<P> {
    pub fn new(rate: Rate, limit_bytes: Option<u64>) -> Gate<P> {
        Gate {
            ring: Ring::new(),
            bytes: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            line: Serializer::new(rate),
            begin: 0,
            hold: None,
            kept: Kept::default(),
        }
    }

    pub fn begin(&mut self, now: u64, hold: Hold) {
        (self.begin, self.hold) = (now, Some(hold));
    }

    pub fn kept(&self) -> Kept {
        self.kept
    }

    pub fn take_kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }

    pub fn due(&self) -> u64 {
        self.ring.head_time()
    }

    pub fn inside(&self) -> u64 {
        self.ring.len()
    }

    pub fn queue(&self) -> (u64, u64) {
        (self.ring.len(), self.bytes)
    }

    pub fn handle_packet(&mut self, now: u64, packet: P, ledger: &mut Ledger<P>) -> Admission<P> {
        let bytes = packet.bytes();
        let mut leaves = now.max(self.open_at(now));
        // A gate that keeps nothing back is not there: the line beyond has a queue of its own.
        if leaves > now || self.ring.len() > 0 {
            leaves = leaves.max(self.line.free_at());
        }
        if leaves > now {
            let total = self.bytes + u64::from(bytes);
            if total > self.limit_bytes {
                ledger.stats.count_drop(DropReason::QueueFull);
                return Admission::Dropped(packet, DropReason::QueueFull);
            }
            self.kept.packets += 1;
            self.kept.most_bytes = self.kept.most_bytes.max(total);
            self.kept.longest = self.kept.longest.max(Span(leaves - now));
            self.kept.until = Time(leaves);
            ledger.stats.saw_queue(self.ring.len() + 1, total);
            self.line.send(leaves, bytes);
        }
        self.bytes += u64::from(bytes);
        ledger.stats.enqueued += 1;
        self.ring.push(leaves, bytes, packet, false);
        Admission::Queued
    }

    pub fn poll_delivery(&mut self, ledger: &mut Ledger<P>) -> Option<P> {
        let bytes = self.ring.head_bytes();
        let packet = self.ring.pop()?;
        self.bytes -= u64::from(bytes);
        ledger.deliver(bytes);
        Some(packet)
    }

    /// When what comes at `now` may leave; 0 once the delay is gone.
    fn open_at(&mut self, now: u64) -> u64 {
        let Some(Hold { delay, share_ppm }) = self.hold else { return 0 };
        let since = now.saturating_sub(self.begin);
        let shrunk = match share_ppm {
            // since <= 2^64, times 10^6 < 2^84.
            Some(share) => (u128::from(since) * PPM / (PPM + u128::from(share))) as u64,
            None => 0,
        };
        let open = self.begin.saturating_add(delay.0).saturating_add(shrunk);
        if open <= now {
            self.hold = None;
        }
        open
    }
}
