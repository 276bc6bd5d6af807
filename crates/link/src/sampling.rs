//! Samples of a link at times that are known before: taken as the packets pass that are the first behind each.
//!
//! A link that is computed ahead of its time need not remember each packet until a sample: all that a sample tells is
//! there when the first packet comes that the sample does not see.

use std::collections::VecDeque;

/// A sample of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Packets waiting, without the one being sent.
    pub queue_packets: u64,
    /// Their bytes.
    pub queue_bytes: u64,
    /// Packets dropped since the start, all reasons.
    pub dropped_packets: u64,
    /// Bytes delivered since the start.
    pub delivered_bytes: u64,
}

/// The part of a sample that arrivals at the queue change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub queue_packets: u64,
    pub queue_bytes: u64,
    pub dropped_packets: u64,
}

/// Samples at `first`, and every `interval` behind it.
pub(crate) struct Sampling {
    interval: u64,
    /// Parts that were taken, with the times of their samples; the other part is still to come, or the sample.
    arrived: VecDeque<(u64, Arrived)>,
    delivered: VecDeque<(u64, u64)>,
}

impl Sampling {
    pub fn new(interval: u64) -> Sampling {
        Sampling { interval: interval.max(1), arrived: VecDeque::new(), delivered: VecDeque::new() }
    }

    /// The sample at `at`; returns the time of the next one.
    pub fn take_arrived(&mut self, at: u64, part: Arrived) -> u64 {
        self.arrived.push_back((at, part));
        at.saturating_add(self.interval)
    }

    /// The same for the bytes delivered.
    pub fn take_delivered(&mut self, at: u64, bytes: u64) -> u64 {
        self.delivered.push_back((at, bytes));
        at.saturating_add(self.interval)
    }

    /// Returns the parts of the sample at `now`, as far as they were taken; forgets them and those before.
    pub fn poll(&mut self, now: u64) -> (Option<Arrived>, Option<u64>) {
        (poll(&mut self.arrived, now), poll(&mut self.delivered, now))
    }
}

fn poll<T>(parts: &mut VecDeque<(u64, T)>, now: u64) -> Option<T> {
    let mut found = None;
    while parts.front().is_some_and(|&(at, _)| at <= now) {
        found = parts.pop_front().filter(|&(at, _)| at == now).map(|(_, part)| part);
    }
    found
}
