//! Policers and shapers told from plain links: trains at the capacity's rate, each twice the one before.
//!
//! Behind a policer, packets are lost once the bucket is empty, while delays stay as they are, and what arrives has the
//! bucket's rate (Flach et al., SIGCOMM 2016). Behind a shaper the rate steps down to the bucket's without loss, and
//! delays rise from there on (ShaperProbe: Kanuparthy and Dovrolis, IMC 2011).

use crate::budget::Budget;
use crate::dispersion::{groups, quantile, Arrived, Group};
use crate::estimate::{Cost, Estimate, Estimator, Next, Outcome};
use crate::first_capacity::FirstCapacity;
use crate::settings::Settings;
use crate::train::{Train, TrainReport};

/// Packets of the first train, and how much longer the next is.
const FIRST_TRAIN: usize = 32;
const LONGER: usize = 2;
/// Rate of the trains, as a share of the capacity: an idle plain link passes it without a queue.
const RATE: f64 = 0.95;
/// Packets after the bucket is empty, and lost ones, that tell its rate.
const MIN_AFTER: usize = 40;
const MIN_LOST: usize = 5;
/// Packets before a shaper's bucket is empty: cross traffic that overloads the line makes delays rise sooner.
const MIN_BEFORE: usize = 100;
/// Lost packets, of all, above which a train that shows no bucket is no plain link's.
const MAX_LOST: f64 = 0.1;
/// A bucket's rate is at most this share of the train's; two trains agree within this share.
const SLOWER: f64 = 0.9;
const AGREE: f64 = 0.1;
/// Two trains agree on the bucket's size within this share.
const AGREE_ON_BURST: f64 = 0.2;
/// Longest time that a sender may pause during a train, and the shortest pause that counts, as shares of the train's
/// duration. The bucket fills up during a pause and then stays full, so the packets after it do not show its rate.
const MAX_PAUSED: f64 = 0.03;
const LEAST_PAUSE: f64 = 0.005;
/// Trains that left late, after which the host is too busy.
const MAX_LATE_TRAINS: u32 = 12;
/// Rest after a train, in its times, in which a bucket fills up again.
const REST: u64 = 5;

/// A token bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bucket {
    /// Without a queue.
    policer: bool,
    rate_bps: f64,
    burst_bytes: f64,
}

/// The estimator of `policer`.
pub struct Policer {
    settings: Settings,
    budget: Budget,
    capacity: FirstCapacity,
    packets: usize,
    late_trains: u32,
    sent: Option<Train>,
    found: Option<Bucket>,
    outcome: Option<Outcome>,
}

impl Policer {
    /// A test within `settings`.
    pub fn new(settings: Settings) -> Policer {
        Policer {
            budget: Budget::new(settings.line_rate_bps, settings.share_ppm),
            capacity: FirstCapacity::new(&settings),
            settings,
            packets: FIRST_TRAIN,
            late_trains: 0,
            sent: None,
            found: None,
            outcome: None,
        }
    }

    fn rate_bps(&self) -> f64 {
        RATE * self.capacity.value_bps.unwrap_or(1.0)
    }

    fn gap_ns(&self) -> u64 {
        ((f64::from(self.settings.packet_bytes) * 8e9 / self.rate_bps()) as u64).max(1)
    }

    /// Most bytes of one train: unless told, what the line carries in a second.
    fn max_train_bytes(&self) -> u64 {
        self.settings.max_bytes.unwrap_or(self.capacity.value_bps.unwrap_or(0.0) as u64 / 8)
    }

    fn bucket(&self, group: &Group) -> Option<Bucket> {
        if group.sent > group.arrived.len() {
            self.policer(group)
        } else {
            self.shaper(group)
        }
    }

    /// Rate at which `packets` arrived, bit/s.
    fn rate_of(&self, packets: &[Arrived]) -> Option<f64> {
        let (first, last) = (packets.first()?, packets.last()?);
        let ns = (last.offset_ns - first.offset_ns) as i64 + last.delay_ns - first.delay_ns;
        let bits = f64::from(self.settings.packet_bytes) * 8.0 * (packets.len() - 1) as f64;
        (ns > 0).then(|| bits * 1e9 / ns as f64)
    }

    fn bucket_of(&self, policer: bool, before: &[Arrived], after: &[Arrived]) -> Option<Bucket> {
        let rate_bps = self.rate_of(after)?;
        if rate_bps > SLOWER * self.rate_bps() {
            return None;
        }
        let last = before.last()?;
        let sent_s = last.offset_ns as f64 / 1e9;
        let burst = before.len() as f64 * f64::from(self.settings.packet_bytes) - rate_bps / 8.0 * sent_s;
        Some(Bucket { policer, rate_bps, burst_bytes: burst.max(0.0) })
    }

    fn policer(&self, group: &Group) -> Option<Bucket> {
        let lost = group.sent - group.arrived.len();
        let first = group.arrived.iter().enumerate().find(|&(index, one)| one.place != index)?.0;
        let (before, after) = group.arrived.split_at(first);
        if lost < MIN_LOST || after.len() < MIN_AFTER {
            return None;
        }
        // The wait of the packet before each loss beside that of all: a full queue loses while they are longest.
        let least = group.arrived.iter().map(|one| one.delay_ns).min()?;
        let waits = |packets: &mut dyn Iterator<Item = &Arrived>| {
            packets.map(|one| (one.delay_ns - least) as f64).collect::<Vec<_>>()
        };
        let lossy = group.arrived.windows(2).filter(|pair| pair[1].place != pair[0].place + 1).map(|pair| &pair[0]);
        let at_loss = quantile(&mut waits(&mut { lossy }), 0.5);
        let longest = quantile(&mut waits(&mut group.arrived.iter()), 0.95);
        let packet_ns = self.gap_ns() as f64;
        if at_loss > 0.5 * longest && longest > 2.0 * packet_ns {
            return None;
        }
        // The rate is the same all along, as random loss or cross traffic would hardly be.
        let parts: Vec<f64> = after.chunks(after.len() / 4).filter_map(|part| self.rate_of(part)).collect();
        let all = self.rate_of(after)?;
        let even = parts.iter().take(4).all(|rate| (rate / all - 1.0).abs() < 0.2);
        even.then(|| self.bucket_of(true, before, after)).flatten()
    }

    fn shaper(&self, group: &Group) -> Option<Bucket> {
        let packets = &group.arrived;
        let least = packets.iter().map(|one| one.delay_ns).min()?;
        let packet_ns = self.gap_ns() as f64;
        // Delays rise for good from the last packet on that did not wait.
        let waits = |one: &Arrived| (one.delay_ns - least) as f64 > 3.0 * packet_ns;
        let first = packets.iter().rposition(|one| !waits(one))? + 1;
        let (before, after) = packets.split_at(first);
        if before.len() < MIN_BEFORE || after.len() < MIN_AFTER {
            return None;
        }
        let parts: Vec<f64> = after.chunks(after.len() / 4).filter_map(|part| self.rate_of(part)).collect();
        let all = self.rate_of(after)?;
        let even = parts.iter().take(4).all(|rate| (rate / all - 1.0).abs() < 0.1);
        even.then(|| self.bucket_of(false, before, after)).flatten()
    }

    fn refuse(&mut self, now_ns: u64, why: String) {
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
    }

    fn cost(&self, now_ns: u64) -> Cost {
        self.capacity.cost_with(self.budget.cost(now_ns))
    }

    /// Time that the sender paused in a train, ns.
    fn paused_ns(&self, report: &TrainReport) -> u64 {
        let least_ns = (LEAST_PAUSE * (self.gap_ns() * self.packets as u64) as f64) as u64;
        let pauses = report.packets.windows(2).map(|pair| pair[1].sent_ns.saturating_sub(pair[0].sent_ns));
        pauses.map(|gap_ns| gap_ns.saturating_sub(self.gap_ns())).filter(|&pause_ns| pause_ns > least_ns).sum()
    }

    fn handle_train(&mut self, now_ns: u64, group: &Group, paused_ns: u64) {
        let asked_ns = self.gap_ns() * (self.packets as u64 - 1);
        let bytes = self.packets as u64 * u64::from(self.settings.packet_bytes);
        let is_last = bytes * LONGER as u64 > self.max_train_bytes();
        let bucket = self.bucket(group);
        if (is_last || bucket.is_some()) && paused_ns as f64 > MAX_PAUSED * asked_ns as f64 {
            self.late_trains += 1;
            if self.late_trains > MAX_LATE_TRAINS {
                return self.refuse(now_ns, format!("this host is too busy: {} trains left late", self.late_trains));
            }
            return;
        }
        if group.sent < self.packets || group.span_ns as f64 > 1.1 * asked_ns as f64 {
            return self.refuse(now_ns, format!("the sender did not keep up with {:.1} Mbit/s", self.rate_bps() / 1e6));
        }
        if group.arrived.len() < 2 {
            return self.refuse(now_ns, format!("{} of {} packets arrived", group.arrived.len(), group.sent));
        }
        match (bucket, self.found) {
            (Some(bucket), Some(before)) => {
                let agree = |a: f64, b: f64| (a / b - 1.0).abs() <= AGREE;
                let largest = bucket.burst_bytes.max(before.burst_bytes).max(f64::from(self.settings.packet_bytes));
                let same_burst = (bucket.burst_bytes - before.burst_bytes).abs() <= AGREE_ON_BURST * largest;
                if bucket.policer == before.policer && agree(bucket.rate_bps, before.rate_bps) && same_burst {
                    return self.conclude(now_ns, before, bucket);
                }
                self.found = Some(bucket);
            }
            // The same train again: a bucket shows itself twice.
            (Some(bucket), None) => {
                self.found = Some(bucket);
                return;
            }
            (None, _) => self.found = None,
        }
        self.packets *= LONGER;
        if is_last {
            let lost = group.sent - group.arrived.len();
            if lost as f64 > MAX_LOST * group.sent as f64 {
                let sent = group.sent;
                return self.refuse(
                    now_ns,
                    format!("{lost} of {sent} packets were lost: too few arrived to tell a policer from a full queue"),
                );
            }
            let rate = self.rate_bps() / 1e6;
            let note =
                format!("no token bucket was seen: of {bytes} bytes at {rate:.1} Mbit/s, {lost} packets were lost");
            let cost = self.cost(now_ns);
            self.outcome = Some(Outcome { estimates: vec![], refused: None, notes: vec![note], cost });
        }
    }

    fn conclude(&mut self, now_ns: u64, one: Bucket, other: Bucket) {
        let kind =
            if one.policer { "a policer: loss without delay" } else { "a shaper: delay from a step of the rate on" };
        let packet = 2.0 * f64::from(self.settings.packet_bytes);
        let estimate = |quantity, a: f64, b: f64, least: f64| {
            let (value, half) = ((a + b) / 2.0, (a - b).abs().max(least));
            Estimate { quantity, value, low: (value - half).max(0.0), high: value + half }
        };
        let estimates = vec![
            estimate("policer_rate_bps", one.rate_bps, other.rate_bps, 0.02 * one.rate_bps),
            estimate("policer_burst_bytes", one.burst_bytes, other.burst_bytes, packet.max(0.05 * one.burst_bytes)),
        ];
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates, refused: None, notes: vec![kind.to_owned()], cost });
    }
}

impl Estimator for Policer {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        let outcome = self.outcome.as_ref();
        if let Some(next) = self.capacity.poll_before(now_ns, outcome, &self.settings, &mut self.budget) {
            return next;
        }
        let train = Train::even(self.packets as u32, self.settings.packet_bytes, self.gap_ns());
        self.sent = Some(train.clone());
        self.budget.send_soon(self.capacity.rest_until_ns().max(now_ns), train, REST)
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        if self.capacity.handle_report(now_ns, report) {
            return;
        }
        let Some(train) = self.sent.take() else { return };
        match groups(&train, &[self.packets], report).first() {
            Some(group) => self.handle_train(now_ns, group, self.paused_ns(report)),
            None => self.refuse(now_ns, "the sender sent no packet".to_owned()),
        }
    }
}
