//! State of the samples that hosts take in their turns.

use super::processes::TimerScope;

/// Samples that wait for being written, at most.
const WAITING: u64 = 32;

/// Samples that hosts take in their turns.
pub(super) struct Samples {
    /// The timer of [`TimerScope::HostSamples`] and its interval, ns.
    pub(super) timer: Option<(u32, u64)>,
    /// Time of the first sample that is not written; horizons end at the timer, or there is none: `u64::MAX`.
    pub(super) first: u64,
    /// Time of the first one that is not among the events.
    pub(super) uncounted: u64,
    /// Those before it are taken in the turns of this horizon.
    pub(super) bound: u64,
}

impl Samples {
    pub fn new(of_timer: &[TimerScope]) -> Samples {
        let timer = (0..).zip(of_timer).find_map(|(timer, scope)| match scope {
            TimerScope::HostSamples(interval) => Some((timer, interval.0.max(1))),
            _ => None,
        });
        Samples { timer, first: u64::MAX, uncounted: u64::MAX, bound: 0 }
    }

    pub fn interval(&self) -> u64 {
        self.timer.map_or(u64::MAX, |(_, interval)| interval)
    }

    /// The number of samples from `from` on that are before `horizon`.
    pub fn count(&self, from: u64, horizon: u64) -> u64 {
        horizon.saturating_sub(from).div_ceil(self.interval())
    }

    /// The end of the longest horizon for whose samples there is room.
    pub fn latest_horizon(&self) -> u64 {
        self.first.saturating_add(self.interval().saturating_mul(WAITING))
    }
}
