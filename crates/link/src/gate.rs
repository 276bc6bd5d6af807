//! A delay line at a router that moves flows to a shorter way: what comes after the move is kept back until what went before is
//! past, so that nothing is overtaken.
//!
//! The line begins, at time B, with a delay D, the difference of the two ways. A packet that comes at t leaves at
//!
//! B + D + (t - B) / (1 + s), but not before t, nor before its turn on the line beyond.
//!
//! So for s = 0 it is a line of delay D for ever; for s > 0 it is shortened by s for each unit of time at its far end, and what
//! came at a rate r leaves at (1 + s) r until the delay is gone, at t = B + D (1 + s) / s. With s without bound everything leaves
//! at B + D, one packet behind the other: then it is a hold. The line beyond may be given a lower rate than it has, that of a
//! slower one further on: what waits then waits here and not in that one's queue. Several gates may let go for one line ([`Pacer`]).

use crate::ledger::{DropReason, Ledger};
use crate::pacer::Pacer;
use crate::ring::Ring;
use crate::{Admission, Packet};
use units::{Rate, Span};

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
    /// Longest that one of those that have left was inside.
    pub longest: Span,
}

/// A packet inside.
#[derive(Clone, Copy, Default)]
struct Inside {
    bytes: u32,
    came: u64,
    /// Whether it was kept back; one that was not leaves at the ns at which it came.
    kept: bool,
}

pub(crate) struct Gate<P> {
    /// With the times from which they may leave.
    ring: Ring<P, Inside>,
    bytes: u64,
    /// Packets inside that are kept back.
    keeps: u64,
    /// Most bytes inside.
    limit_bytes: u64,
    /// The line beyond: what is let go is spaced as it can send.
    pacer: Pacer,
    /// When the oldest packet leaves, once its turn is taken.
    turn: Option<u64>,
    /// Whether it is one of those that take turns: from a hold on until none of them keeps anything back.
    takes_turns: bool,
    begin: u64,
    hold: Option<Hold>,
    kept: Kept,
}

impl<P: Packet> Gate<P> {
    pub fn new(pacer: Pacer, limit_bytes: Option<u64>) -> Gate<P> {
        Gate {
            ring: Ring::new(),
            bytes: 0,
            keeps: 0,
            limit_bytes: limit_bytes.unwrap_or(u64::MAX),
            pacer,
            turn: None,
            takes_turns: false,
            begin: 0,
            hold: None,
            kept: Kept::default(),
        }
    }

    pub fn begin(&mut self, now: u64, hold: Hold) {
        (self.begin, self.hold, self.takes_turns) = (now, Some(hold), true);
    }

    /// Those of its line that take turns let go at `rate` together.
    pub fn set_pace(&mut self, rate: Rate) {
        self.pacer.set_rate(rate);
    }

    /// Whether what comes at `now` may have to wait.
    pub fn is_closed(&mut self, now: u64) -> bool {
        // Flows that have nothing more to wait for do not ask, at each packet, what the others keep back.
        self.takes_turns = self.takes_turns && (self.open_at(now) > now || self.pacer.keeps());
        self.takes_turns
    }

    pub fn kept(&self) -> Kept {
        self.kept
    }

    pub fn take_kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }

    /// When the oldest packet leaves, or may take its turn.
    pub fn due(&self) -> u64 {
        self.turn.unwrap_or_else(|| self.ring.head_time())
    }

    pub fn inside(&self) -> u64 {
        self.ring.len()
    }

    pub fn queue(&self) -> (u64, u64) {
        (self.ring.len(), self.bytes)
    }

    pub fn handle_packet(&mut self, now: u64, packet: P, ledger: &mut Ledger<P>) -> Admission<P> {
        let bytes = packet.bytes();
        // A gate that keeps nothing back is not there: the line beyond has a queue of its own. But of flows that moved together one whose
        // packets come in one piece, when its hold is over, meets what the others' gates let go.
        let kept = self.is_closed(now);
        if kept {
            let total = self.bytes + u64::from(bytes);
            if total > self.limit_bytes {
                ledger.stats.count_drop(DropReason::QueueFull);
                return Admission::Dropped(packet, DropReason::QueueFull);
            }
            self.kept.packets += 1;
            self.kept.most_bytes = self.kept.most_bytes.max(total);
            ledger.stats.saw_queue(self.ring.len() + 1, total);
            if self.keeps == 0 {
                self.pacer.begin();
            }
            self.keeps += 1;
        }
        self.bytes += u64::from(bytes);
        ledger.stats.enqueued += 1;
        let open = self.open_at(now).max(now);
        self.ring.push(open, Inside { bytes, came: now, kept }, packet, false);
        self.take_turn(now);
        Admission::Queued
    }

    /// The oldest packet takes its turn when it may leave.
    pub fn take_turn(&mut self, now: u64) {
        let Inside { bytes, kept, .. } = self.ring.head_bytes();
        if kept && self.turn.is_none() && self.ring.head_time() <= now {
            self.turn = Some(self.pacer.turn(now, bytes));
        }
    }

    pub fn poll_delivery(&mut self, now: u64, ledger: &mut Ledger<P>) -> Option<P> {
        self.take_turn(now);
        if self.due() > now {
            return None;
        }
        let Inside { bytes, came, kept } = self.ring.head_bytes();
        let packet = self.ring.pop()?;
        self.bytes -= u64::from(bytes);
        if kept {
            let left = self.turn.take().unwrap_or(now);
            self.kept.longest = self.kept.longest.max(Span(left - came));
            self.keeps -= 1;
            if self.keeps == 0 {
                self.pacer.end();
            }
        }
        self.take_turn(now);
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
