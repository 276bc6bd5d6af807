//! A hold buffer: a delay line at a router that moves flows to a shorter route. It holds packets that arrive after the
//! move until the packets sent before it have passed, so that no packet overtakes another.
//!
//! A hold begins at time B with a delay D, the difference between the two routes. A packet that arrives at t leaves at
//!
//! B + D + (t - B) / (1 + s), but not before t, nor before the pacer of the link behind the buffer grants its
//! departure.
//!
//! With s = 0 the delay stays D. With s > 0 the delay line shrinks by s per unit of time at its far end: packets that
//! arrive at rate r leave at (1 + s) r, and the delay is gone at t = B + D (1 + s) / s. With unbounded s every held
//! packet leaves from B + D on, back to back. The pacer may run at a lower rate than the link behind the buffer, that
//! of a slower link further on: packets then queue here and not there. Several hold buffers may share one pacer
//! ([`Pacers`]).

use crate::admission::Admission;
use crate::counters::{DropReason, LinkCounters};
use crate::pacer::{PacerId, Pacers};
use crate::packet::Packet;
use crate::ring::Ring;
use units::{Rate, Span, Time};

/// Parts per million in one.
const PPM: u128 = 1_000_000;

/// Configuration of a hold buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The pacer of the link behind the buffer.
    pub pacer: PacerId,
    /// Most bytes held; None = unlimited.
    pub limit_bytes: Option<u64>,
}

/// The delay of a hold buffer, and its decrease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// D: the delay at the begin of the hold.
    pub delay: Span,
    /// s, parts per million: by how much the departure rate exceeds the arrival rate while the delay shrinks; None =
    /// all held packets leave as soon as D is over.
    pub share_ppm: Option<u32>,
}

/// Counters of the packets that a hold buffer has held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets that did not leave on arrival.
    pub packets: u64,
    /// Most bytes inside at once: the buffer size that the hold needs.
    pub max_bytes: u64,
    /// Longest time that a held packet, since departed, was inside.
    pub max_delay: Span,
}

/// A packet inside.
#[derive(Clone, Copy, Default)]
struct Entry {
    bytes: u32,
    arrived: u64,
    /// A packet that is not held leaves in the ns of its arrival.
    held: bool,
}

/// See the module's documentation. It has neither loss nor outage.
pub struct HoldBuffer<P> {
    /// Packets with the times from which they may leave.
    ring: Ring<P, Entry>,
    bytes: u64,
    /// Held packets inside.
    held: u64,
    limit_bytes: u64,
    pacer: PacerId,
    /// The departure that the pacer granted to the oldest packet.
    grant: Option<u64>,
    /// The buffer shares its pacer's grants: from the begin of a hold until no buffer of the pacer holds anything.
    paced: bool,
    begin: u64,
    plan: Option<Plan>,
    stats: Stats,
    counters: LinkCounters<P>,
}

impl<P: Packet> HoldBuffer<P> {
    /// An idle hold buffer: packets pass until [`HoldBuffer::begin`].
    pub fn new(config: Config) -> HoldBuffer<P> {
        HoldBuffer {
            ring: Ring::new(),
            bytes: 0,
            held: 0,
            limit_bytes: config.limit_bytes.unwrap_or(u64::MAX),
            pacer: config.pacer,
            grant: None,
            paced: false,
            begin: 0,
            plan: None,
            stats: Stats::default(),
            counters: LinkCounters::new(),
        }
    }

    /// From `now` on the buffer holds packets by `plan`. Packets inside keep their departures.
    pub fn begin(&mut self, now: Time, plan: Plan) {
        (self.begin, self.plan, self.paced) = (now.0, Some(plan), true);
    }

    /// From now on the pacer of this buffer grants departures at `rate`; departures granted before stay.
    ///
    /// # Panics
    /// When `rate` is zero or above [`crate::MAX_RATE`].
    pub fn set_pace(&self, rate: Rate, pacers: &mut Pacers) {
        pacers.set_rate(self.pacer, rate);
    }

    /// Returns whether a packet that arrives at `now` may have to wait: while a hold lasts, and then as long as this
    /// buffer or another one of the same pacer holds packets.
    pub fn is_holding(&mut self, now: Time, pacers: &Pacers) -> bool {
        // `paced` is cleared for good when the hold is over: later packets do not ask the pacer.
        self.paced = self.paced && (self.open_at(now.0) > now.0 || pacers.is_backlogged(self.pacer));
        self.paced
    }

    /// Counters of held packets since the buffer was made or [`HoldBuffer::take_stats`] was called.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Returns the counters of held packets and sets them to zero.
    pub fn take_stats(&mut self) -> Stats {
        std::mem::take(&mut self.stats)
    }

    /// Time at which the oldest packet leaves, or may ask for a grant.
    pub(crate) fn due(&self) -> u64 {
        self.grant.unwrap_or_else(|| self.ring.head_time())
    }

    pub(crate) fn inside(&self) -> u64 {
        self.ring.len()
    }

    pub(crate) fn queue(&self) -> (u64, u64) {
        (self.ring.len(), self.bytes)
    }

    pub(crate) fn counters(&self) -> &LinkCounters<P> {
        &self.counters
    }

    pub(crate) fn handle_packet(&mut self, now: u64, packet: P, pacers: &mut Pacers) -> Admission<P> {
        let bytes = packet.bytes();
        let before = self.due();
        // A buffer that holds nothing passes packets on: the link behind it has its own queue.
        let held = self.is_holding(Time(now), pacers);
        if held {
            let total = self.bytes + u64::from(bytes);
            if total > self.limit_bytes {
                self.counters.stats.count_drop(DropReason::QueueFull);
                return Admission::Dropped(packet, DropReason::QueueFull);
            }
            self.stats.packets += 1;
            self.stats.max_bytes = self.stats.max_bytes.max(total);
            self.counters.stats.record_queue(self.ring.len() + 1, total);
            if self.held == 0 {
                pacers.add_backlogged(self.pacer);
            }
            self.held += 1;
        }
        self.bytes += u64::from(bytes);
        self.counters.stats.enqueued += 1;
        let open = self.open_at(now).max(now);
        self.ring.push(open, Entry { bytes, arrived: now, held }, packet, false);
        self.request_grant(now, pacers);
        let due = self.due();
        Admission::Queued { next_event: (due != before).then_some(Time(due)) }
    }

    /// Asks the pacer for the departure of the oldest packet once that packet may leave.
    fn request_grant(&mut self, now: u64, pacers: &mut Pacers) {
        let Entry { bytes, held, .. } = self.ring.head_bytes();
        if held && self.grant.is_none() && self.ring.head_time() <= now {
            self.grant = Some(pacers.grant(self.pacer, now, bytes));
        }
    }

    pub(crate) fn poll_delivery(&mut self, now: u64, pacers: &mut Pacers) -> Option<P> {
        self.request_grant(now, pacers);
        if self.due() > now {
            return None;
        }
        let Entry { bytes, arrived, held } = self.ring.head_bytes();
        let packet = self.ring.pop()?;
        self.bytes -= u64::from(bytes);
        if held {
            let left = self.grant.take().unwrap_or(now);
            self.stats.max_delay = self.stats.max_delay.max(Span(left - arrived));
            self.held -= 1;
            if self.held == 0 {
                pacers.remove_backlogged(self.pacer);
            }
        }
        self.request_grant(now, pacers);
        self.counters.deliver(bytes);
        Some(packet)
    }

    /// Time at which a packet that arrives at `now` may leave; 0 once the delay is gone.
    fn open_at(&mut self, now: u64) -> u64 {
        let Some(Plan { delay, share_ppm }) = self.plan else { return 0 };
        let since = now.saturating_sub(self.begin);
        let shrunk = match share_ppm {
            // since <= 2^64, times 10^6 < 2^84.
            Some(share) => (u128::from(since) * PPM / (PPM + u128::from(share))) as u64,
            None => 0,
        };
        let open = self.begin.saturating_add(delay.0).saturating_add(shrunk);
        if open <= now {
            self.plan = None;
        }
        open
    }
}
