//! The load that a test may put on the path: how far apart its trains are, and what they cost.

use crate::estimate::{Cost, Next};
use crate::train::Train;

/// Mean rate of a test, and its cost so far.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    /// Bits per second that the test may take on average; 0: unknown so far.
    pub rate_bps: f64,
    cost: Cost,
    begun_ns: Option<u64>,
    next_ns: u64,
}

impl Budget {
    /// A test that may take `share_ppm` of `line_bps`.
    pub fn new(line_bps: Option<u64>, share_ppm: u32) -> Budget {
        Budget { rate_bps: line_bps.unwrap_or(0) as f64 * f64::from(share_ppm) / 1e6, ..Budget::default() }
    }

    /// Returns the time that `bytes` have at the mean rate, ns; at least `least_ns`.
    pub fn time_of_ns(&self, bytes: u64, least_ns: u64) -> u64 {
        if self.rate_bps > 0.0 {
            ((bytes as f64 * 8e9 / self.rate_bps) as u64).max(least_ns)
        } else {
            least_ns
        }
    }

    /// Returns the train as the next step of an estimator. The one after it keeps the mean rate.
    pub fn send(&mut self, now_ns: u64, train: Train) -> Next {
        let at_ns = self.next_ns.max(now_ns);
        self.begun_ns.get_or_insert(at_ns);
        self.cost.packets += train.offsets_ns.len() as u64;
        self.cost.bytes += train.bytes();
        let span_ns = train.offsets_ns.last().copied().unwrap_or(0);
        self.next_ns = at_ns.saturating_add(self.time_of_ns(train.bytes(), span_ns));
        Next::Send { at_ns, train }
    }

    /// As [`Budget::send`], with a shorter rest after it, in times of the train's; what is missing is made up at the
    /// end, see [`Budget::cost`].
    pub fn send_soon(&mut self, now_ns: u64, train: Train, rest: u64) -> Next {
        let span_ns = train.offsets_ns.last().copied().unwrap_or(0);
        let next = self.send(now_ns, train);
        if let Next::Send { at_ns, .. } = &next {
            self.next_ns = self.next_ns.min(at_ns.saturating_add(span_ns.saturating_mul(rest + 1)));
        }
        next
    }

    /// Returns the first time at which the mean rate so far is kept, ns.
    pub fn rest_until_ns(&self) -> u64 {
        self.next_ns
    }

    /// Returns what was spent until `now_ns`, the rest after the last train included.
    pub fn cost(&self, now_ns: u64) -> Cost {
        let rested_ns = |begun: u64| begun.saturating_add(self.time_of_ns(self.cost.bytes, 0));
        let end_ns = now_ns.max(self.next_ns).max(self.begun_ns.map_or(0, rested_ns));
        let seconds = self.begun_ns.map_or(0.0, |begun| end_ns.saturating_sub(begun) as f64 / 1e9);
        Cost { seconds, ..self.cost }
    }
}
