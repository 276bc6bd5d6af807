//! The flow table: volume and rate of flows, within bounded memory, from samples.

use crate::flow_key::FlowKey;
use crate::policy::Thresholds;
use crate::sampling::{Estimate, Sampled};
use crate::space_saving::SpaceSaving;
use std::collections::BTreeMap;
use units::{Rate, Size, Span, Time};

/// Intervals with stored rates: the reference for a move.
const HISTORY: usize = 4;

/// A flow's rates, beside its count.
#[derive(Clone, Debug)]
pub struct Activity {
    /// In the present interval.
    open: Sampled,
    /// Since the flow entered the table.
    all: Sampled,
    /// In the latest interval that ended.
    latest: Estimate,
    /// Rates of the latest intervals, a ring.
    rates: [u64; HISTORY],
    /// Their standard errors.
    errors: [u64; HISTORY],
    intervals: usize,
    /// End of the latest interval in which something was seen.
    last_seen: Time,
}

impl Activity {
    /// The activity of a flow without packets up to `now`.
    pub fn new(now: Time) -> Activity {
        Activity {
            open: Sampled::default(),
            all: Sampled::default(),
            latest: Estimate::default(),
            rates: [0; HISTORY],
            errors: [0; HISTORY],
            intervals: 0,
            last_seen: now,
        }
    }

    /// `packets` sampled packets of `bytes`.
    pub fn add(&mut self, packets: u64, bytes: u64) {
        self.open.add(packets, bytes);
    }

    /// The interval of length `interval` ends at `now`.
    pub fn close(&mut self, now: Time, interval: Span, one_in: u64) {
        self.latest = self.open.estimate(one_in);
        self.all += self.open;
        if self.open.packets > 0 {
            self.last_seen = now;
        }
        self.open = Sampled::default();
        let slot = self.intervals % HISTORY;
        self.rates[slot] = rate_of(self.latest.bytes, interval).0;
        self.errors[slot] = rate_of(self.latest.standard_error, interval).0;
        self.intervals += 1;
    }

    /// Estimate of the latest interval.
    pub fn latest(&self) -> Estimate {
        self.latest
    }

    /// Volume since the flow entered the table.
    pub fn volume(&self, one_in: u64) -> Estimate {
        self.all.estimate(one_in)
    }

    /// Mean rate over the latest intervals, four at most; the first is left out where there are others, since a flow
    /// seldom begins with an interval.
    pub fn mean_rate(&self) -> Rate {
        let recent = self.recent();
        let count = recent.len().max(1) as u64;
        Rate(recent.map(|i| self.rates[i % HISTORY]).sum::<u64>() / count)
    }

    /// Standard error of [`Activity::mean_rate`] by sampling; intervals are sampled independently. 0 when all is
    /// counted.
    pub fn mean_rate_error(&self) -> Rate {
        let recent = self.recent();
        let count = recent.len().max(1) as f64;
        let squares: f64 = recent.map(|i| self.errors[i % HISTORY] as f64).map(|error| error * error).sum();
        Rate((squares.sqrt() / count) as u64)
    }

    /// The intervals of the mean rate.
    fn recent(&self) -> std::ops::Range<usize> {
        let count = self.intervals.min(HISTORY);
        let skip = usize::from(count > 1 && self.intervals <= HISTORY);
        self.intervals - count + skip..self.intervals
    }

    /// End of the latest interval with packets of the flow.
    pub fn last_seen(&self) -> Time {
        self.last_seen
    }
}

/// The rate of `bytes` in `span`.
pub(crate) fn rate_of(bytes: u64, span: Span) -> Rate {
    let bits_ns = u128::from(bytes) * 8 * u128::from(units::NS_PER_S);
    Rate(u64::try_from(bits_ns / u128::from(span.0.max(1))).unwrap_or(u64::MAX))
}

/// The largest flows, up to a fixed number: a Space-Saving summary over estimated bytes, with the activity of each flow
/// in it.
#[derive(Clone, Debug)]
pub struct FlowTable {
    summary: SpaceSaving<FlowKey>,
    activity: BTreeMap<FlowKey, Activity>,
    one_in: u64,
    /// Flows evicted.
    evictions: u64,
}

impl FlowTable {
    /// An empty table of `capacity` flows, for sampling 1 in `one_in`.
    pub fn new(capacity: usize, one_in: u64) -> FlowTable {
        FlowTable {
            summary: SpaceSaving::new(capacity),
            activity: BTreeMap::new(),
            one_in: one_in.max(1),
            evictions: 0,
        }
    }

    /// `packets` sampled packets of `flow`, of `bytes` altogether.
    pub fn handle_sampled(&mut self, now: Time, flow: FlowKey, packets: u64, bytes: u64) {
        if packets == 0 {
            return;
        }
        if let Some(evicted) = self.summary.add(flow, bytes.saturating_mul(self.one_in)) {
            self.activity.remove(&evicted);
            self.evictions += 1;
        }
        self.activity.entry(flow).or_insert_with(|| Activity::new(now)).add(packets, bytes);
    }

    /// The interval of length `interval` ends; flows without packets for `idle` are removed.
    pub fn handle_interval(&mut self, now: Time, interval: Span, idle: Span) {
        for activity in self.activity.values_mut() {
            activity.close(now, interval, self.one_in);
        }
        let gone: Vec<_> =
            self.activity.iter().filter(|(_, a)| now.since(a.last_seen) >= idle).map(|(&k, _)| k).collect();
        for flow in gone {
            self.forget(flow);
        }
    }

    /// Takes `flow` out; its activity, if it was in the table.
    pub fn forget(&mut self, flow: FlowKey) -> Option<Activity> {
        self.summary.remove(flow);
        self.activity.remove(&flow)
    }

    /// Flows in the table, by key.
    pub fn flows(&self) -> impl Iterator<Item = (FlowKey, &Activity)> {
        self.activity.iter().map(|(&key, activity)| (key, activity))
    }

    /// Activity of `flow`.
    pub fn get(&self, flow: FlowKey) -> Option<&Activity> {
        self.activity.get(&flow)
    }

    /// Lower bound of the bytes of `flow`, apart from the sampling error.
    pub fn volume(&self, flow: FlowKey) -> Size {
        Size(self.summary.get(flow).map_or(0, crate::space_saving::Counter::guaranteed))
    }

    /// Returns whether `flow` is an elephant: rate and volume, less the configured number of standard errors, both
    /// reach the thresholds.
    pub fn is_elephant(&self, flow: FlowKey, interval: Span, thresholds: &Thresholds) -> bool {
        let Some(activity) = self.activity.get(&flow) else { return false };
        let sure = |e: Estimate| {
            e.bytes.saturating_sub(e.standard_error.saturating_mul(u64::from(thresholds.confidence_sigmas_e3)) / 1000)
        };
        rate_of(sure(activity.latest), interval) >= thresholds.rate
            && Size(sure(activity.volume(self.one_in))) >= thresholds.volume
    }

    /// Flows evicted so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    #[test]
    fn rate_and_volume_are_those_of_the_interval_and_of_all() {
        let mut table = FlowTable::new(4, 1);
        for second in 1..=3u64 {
            table.handle_sampled(Time(0), 9, 1000, 125_000 * second);
            table.handle_interval(Time::ZERO + Span::from_secs(second), SECOND, Span::from_secs(10));
        }
        let activity = table.get(9).unwrap();
        assert_eq!(rate_of(activity.latest().bytes, SECOND), Rate(3_000_000));
        assert_eq!(table.volume(9), Size(750_000));
        // Without the first interval: 2 and 3 Mbit/s.
        assert_eq!(activity.mean_rate(), Rate(2_500_000));
    }

    #[test]
    fn both_thresholds_must_be_reached_with_the_errors_taken_off() {
        let mut table = FlowTable::new(4, 100);
        // 100 samples of 1500 B in a second: 15 MB, 120 Mbit/s, with a standard error of a tenth.
        table.handle_sampled(Time(0), 1, 100, 150_000);
        table.handle_interval(Time(SECOND.0), SECOND, SECOND);
        let of = |rate, volume, confidence_sigmas_e3| {
            let return_rate = Rate(1);
            Thresholds { rate: Rate(rate), volume: Size(volume), confidence_sigmas_e3, return_rate }
        };
        assert!(table.is_elephant(1, SECOND, &of(119_000_000, 14_900_000, 0)));
        assert!(!table.is_elephant(1, SECOND, &of(121_000_000, 1, 0)));
        assert!(!table.is_elephant(1, SECOND, &of(1, 15_100_000, 0)));
        assert!(!table.is_elephant(1, SECOND, &of(119_000_000, 1, 1000)));
        assert!(table.is_elephant(1, SECOND, &of(107_000_000, 13_000_000, 1000)));
    }

    #[test]
    fn a_silent_flow_is_removed_and_frees_its_slot() {
        let mut table = FlowTable::new(1, 1);
        table.handle_sampled(Time(0), 1, 1, 1_000_000);
        table.handle_interval(Time(SECOND.0), SECOND, Span::from_secs(2));
        table.handle_interval(Time(2 * SECOND.0), SECOND, Span::from_secs(2));
        assert!(table.get(1).is_some());
        table.handle_interval(Time(3 * SECOND.0), SECOND, Span::from_secs(2));
        assert!(table.get(1).is_none());
        table.handle_sampled(Time(3 * SECOND.0), 2, 1, 100);
        assert_eq!((table.volume(2), table.evictions()), (Size(100), 0));
    }
}
