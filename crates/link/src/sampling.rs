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
    /// Time of the first one that nobody has asked for.
    first: u64,
    /// Of so many of them [`Arrived`] is known, and the bytes delivered.
    arrived: usize,
    delivered: usize,
    /// Place of the first one.
    place: usize,
    /// The first ones, in a ring: most links never have more.
    near: [Sample; NEAR],
    /// Those behind them.
    far: VecDeque<Sample>,
}

/// Samples that are kept without a list of their own.
const NEAR: usize = 8;

impl Sampling {
    pub fn new(first: u64, interval: u64) -> Sampling {
        Sampling {
            interval: interval.max(1),
            first,
            arrived: 0,
            delivered: 0,
            place: 0,
            near: [Sample::default(); NEAR],
            far: VecDeque::new(),
        }
    }

    /// The next sample; returns the time of that behind it.
    #[inline]
    pub fn take_arrived(&mut self, part: Arrived) -> u64 {
        let Arrived { queue_packets, queue_bytes, dropped_packets } = part;
        let taken = self.at(self.arrived);
        *taken = Sample { queue_packets, queue_bytes, dropped_packets, delivered_bytes: taken.delivered_bytes };
        self.arrived += 1;
        self.time_of(self.arrived)
    }

    /// The same for the bytes delivered.
    #[inline]
    pub fn take_delivered(&mut self, delivered_bytes: u64) -> u64 {
        self.at(self.delivered).delivered_bytes = delivered_bytes;
        self.delivered += 1;
        self.time_of(self.delivered)
    }

    /// The place of the sample that is `index` behind the first one.
    #[inline]
    fn at(&mut self, index: usize) -> &mut Sample {
        if index < NEAR {
            return &mut self.near[(self.place + index) % NEAR];
        }
        if self.far.len() <= index - NEAR {
            self.far.resize(index - NEAR + 1, Sample::default());
        }
        &mut self.far[index - NEAR]
    }

    fn time_of(&self, index: usize) -> u64 {
        self.first.saturating_add(self.interval.saturating_mul(index as u64))
    }

    /// Returns the sample at `now`, if it was taken; forgets it and those before.
    #[inline]
    pub fn poll(&mut self, now: u64) -> Option<Sample> {
        while self.first <= now && self.arrived > 0 && self.delivered > 0 {
            let at = self.first;
            let next = self.far.pop_front().unwrap_or_default();
            let sample = std::mem::replace(&mut self.near[self.place], next);
            self.place = (self.place + 1) % NEAR;
            self.first = at.saturating_add(self.interval);
            (self.arrived, self.delivered) = (self.arrived - 1, self.delivered - 1);
            if at == now {
                return Some(sample);
            }
        }
        None
    }
}
