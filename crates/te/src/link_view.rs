//! A link by its counters.

use units::{Rate, Size, Span};

/// A link is full from this load on: a TCP flow that it limits leaves it idle at times, and counters are of an
/// interval.
const FULL_PPM: u64 = 950_000;

/// State of a link by its counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkView {
    /// Rate of the line.
    pub capacity: Rate,
    /// Its load in the latest interval.
    pub load: Rate,
    /// Mean length of its queue over the latest interval.
    pub queue: Size,
    /// Limit of its queue.
    pub queue_limit: Size,
    /// Packets dropped there since the start.
    pub dropped: u64,
}

impl LinkView {
    /// Time that a packet waits in that queue.
    pub fn wait(&self) -> Span {
        self.capacity.time_for(self.queue)
    }

    /// Bytes that its queue has room for.
    pub(crate) fn free_queue(&self) -> u64 {
        self.queue_limit.0.saturating_sub(self.queue.0)
    }

    /// Returns whether it is full.
    pub(crate) fn is_full(&self) -> bool {
        self.load_ppm() >= FULL_PPM
    }

    /// Load as parts per million of the capacity.
    pub fn load_ppm(&self) -> u64 {
        (u128::from(self.load.0) * 1_000_000 / u128::from(self.capacity.0.max(1))) as u64
    }
}

/// Load of other flows on a link of `capacity` with an apparent `rate`: zero up to the share that a full link leaves
/// idle, by which a flow's mean rate and the latest load differ anyway.
pub(crate) fn load_of_others(rate: u64, capacity: Rate) -> Rate {
    let idle = u128::from(capacity.0) * u128::from(1_000_000 - FULL_PPM) / 1_000_000;
    Rate(if u128::from(rate) <= idle { 0 } else { rate })
}
