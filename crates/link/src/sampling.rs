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

/// Samples at known times, as far as they were taken.
pub(crate) struct Sampling {
    interval: u64,
    /// The other part of each is still to come, or the sample.
    arrived: Parts<Arrived>,
    delivered: Parts<u64>,
}

/// Parts of samples, with their times: the first is here, and most often it is the only one.
struct Parts<T> {
    first: Option<(u64, T)>,
    others: VecDeque<(u64, T)>,
}

impl Sampling {
    pub fn new(interval: u64) -> Sampling {
        Sampling { interval: interval.max(1), arrived: Parts::new(), delivered: Parts::new() }
    }

    /// The sample at `at`; returns the time of the next one.
    #[inline]
    pub fn take_arrived(&mut self, at: u64, part: Arrived) -> u64 {
        self.arrived.push(at, part);
        at.saturating_add(self.interval)
    }

    /// The same for the bytes delivered.
    #[inline]
    pub fn take_delivered(&mut self, at: u64, bytes: u64) -> u64 {
        self.delivered.push(at, bytes);
        at.saturating_add(self.interval)
    }

    /// Returns the parts of the sample at `now`, as far as they were taken; forgets them and those before.
    #[inline]
    pub fn poll(&mut self, now: u64) -> (Option<Arrived>, Option<u64>) {
        (self.arrived.poll(now), self.delivered.poll(now))
    }
}

impl<T> Parts<T> {
    fn new() -> Parts<T> {
        Parts { first: None, others: VecDeque::new() }
    }

    #[inline]
    fn push(&mut self, at: u64, part: T) {
        if self.first.is_none() {
            self.first = Some((at, part));
        } else {
            self.others.push_back((at, part));
        }
    }

    #[inline]
    fn poll(&mut self, now: u64) -> Option<T> {
        while let Some((at, part)) = self.first.take_if(|(at, _)| *at <= now) {
            self.first = self.others.pop_front();
            if at == now {
                return Some(part);
            }
        }
        None
    }
}
