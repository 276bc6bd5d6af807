//! Messages of a stripe in the order of their issue, each on one lane.

use crate::message_times::MessageTimes;
use std::collections::VecDeque;
use units::{Span, Time};

/// Messages that are on their way over several lanes.
pub struct Order {
    /// True if a message counts as delivered only after all before it: a mirror applies writes in their order.
    in_order: bool,
    lanes: Vec<Lane>,
    /// In order: the lane of each message that does not count as there, oldest first.
    waiting: VecDeque<u32>,
    /// Time from issue until a message counts as there.
    pub times: MessageTimes,
    /// Bytes of all lanes: issued, of messages that count as there, delivered.
    issued_bytes: u64,
    applied_bytes: u64,
    received_bytes: u64,
    /// Messages of all lanes that have not arrived.
    in_transit: usize,
}

#[derive(Default)]
struct Lane {
    /// Messages that do not count as there: (first byte after it, time of issue), ascending in both.
    pending: VecDeque<(u64, Time)>,
    /// Messages that have arrived and wait for messages of other lanes.
    arrived: usize,
    /// Messages issued to it.
    issued: u64,
    issued_bytes: u64,
    /// End of the last message that counts as there.
    applied_bytes: u64,
    received_bytes: u64,
}

impl Order {
    pub(super) fn new(lanes: usize, in_order: bool, from: Time) -> Order {
        Order {
            in_order,
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            waiting: VecDeque::new(),
            times: MessageTimes::new(from),
            issued_bytes: 0,
            applied_bytes: 0,
            received_bytes: 0,
            in_transit: 0,
        }
    }

    pub(super) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// A message of `bytes` that was due at `due` goes to `lane`.
    pub(super) fn issue(&mut self, lane: usize, due: Time, bytes: u64) {
        let of = &mut self.lanes[lane];
        of.issued += 1;
        of.issued_bytes += bytes;
        of.pending.push_back((of.issued_bytes, due));
        self.issued_bytes += bytes;
        self.in_transit += 1;
        if self.in_order {
            self.waiting.push_back(lane as u32);
        }
    }

    /// `received` bytes have arrived over `lane`.
    pub(super) fn handle_delivered(&mut self, now: Time, lane: usize, received: u64) {
        let of = &mut self.lanes[lane];
        self.received_bytes += received - of.received_bytes;
        of.received_bytes = received;
        while of.pending.get(of.arrived).is_some_and(|&(end, _)| end <= received) {
            of.arrived += 1;
            self.in_transit -= 1;
        }
        if !self.in_order {
            while self.lanes[lane].arrived > 0 {
                self.apply(now, lane);
            }
            return;
        }
        while let Some(&oldest) = self.waiting.front() {
            if self.lanes[oldest as usize].arrived == 0 {
                break;
            }
            self.waiting.pop_front();
            self.apply(now, oldest as usize);
        }
    }

    /// The oldest message of `lane`, which has arrived, counts as there.
    fn apply(&mut self, now: Time, lane: usize) {
        let of = &mut self.lanes[lane];
        let Some((end, issued)) = of.pending.pop_front() else { return };
        of.arrived -= 1;
        self.applied_bytes += end - of.applied_bytes;
        of.applied_bytes = end;
        self.times.record(issued, now);
    }

    /// Bytes issued that are at risk: in order all behind the first byte that is missing, else those that have not
    /// arrived.
    pub fn lag_bytes(&self) -> u64 {
        if !self.in_order {
            return self.issued_bytes - self.received_bytes;
        }
        self.issued_bytes
            - self.applied_bytes
            - self.waiting.front().map_or(0, |&lane| self.lanes[lane as usize].part())
    }

    /// [`Order::lag_bytes`] as it was at `now`, which may lie before the issue of the latest messages: a report of a
    /// delivery takes its time.
    pub(super) fn lag_bytes_at(&self, now: Time) -> u64 {
        let later = self.lanes.iter().map(|lane| lane.issued_after(now)).sum();
        self.lag_bytes().saturating_sub(later)
    }

    /// The part of it that `lane` carries: age of the oldest message that does not count as there, and bytes that add
    /// up to [`Order::lag_bytes`].
    pub fn lag_of(&self, lane: usize, now: Time) -> (Span, u64) {
        let of = &self.lanes[lane];
        let age = of.pending.front().map_or(Span::ZERO, |&(_, issued)| now.since(issued));
        let there = match self.in_order {
            true if self.waiting.front() != Some(&(lane as u32)) => of.applied_bytes,
            _ => of.received_bytes,
        };
        // Copies issue no messages.
        (age, of.issued_bytes.saturating_sub(there))
    }

    /// Messages issued, over all lanes, that have not arrived.
    pub fn in_transit(&self) -> usize {
        self.in_transit
    }

    /// Messages issued to `lane` that have not arrived.
    pub fn in_transit_on(&self, lane: usize) -> usize {
        self.lanes[lane].pending.len() - self.lanes[lane].arrived
    }

    /// Messages issued, over all lanes, that do not count as there.
    pub fn not_applied(&self) -> usize {
        self.lanes.iter().map(|lane| lane.pending.len()).sum()
    }

    /// Messages issued to `lane`, and their bytes.
    pub fn issued(&self, lane: usize) -> (u64, u64) {
        (self.lanes[lane].issued, self.lanes[lane].issued_bytes)
    }
}

impl Lane {
    /// Bytes of messages issued after `now`.
    fn issued_after(&self, now: Time) -> u64 {
        if self.pending.back().is_none_or(|&(_, issued)| issued <= now) {
            return 0;
        }
        let last = self.pending.iter().rev().find(|&&(_, issued)| issued <= now);
        self.issued_bytes - last.map_or(self.applied_bytes, |&(end, _)| end)
    }

    /// Bytes of its oldest message that have arrived, where that message is not whole.
    fn part(&self) -> u64 {
        self.received_bytes - self.applied_bytes
    }
}
