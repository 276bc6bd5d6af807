//! Available bandwidth: short groups at the capacity's rate, whose gaps tell the cross traffic that came between
//! (Spruce: Strauss, Katabi and Kaashoek, IMC 2003), then streams, whose delays tell if that holds for every link of
//! the path (SLoPS: Jain and Dovrolis, SIGCOMM 2002).

use crate::budget::Budget;
use crate::dispersion::{groups, mean_and_error, Group};
use crate::estimate::{Estimate, Estimator, Next, Outcome};
use crate::first_capacity::FirstCapacity;
use crate::settings::Settings;
use crate::train::{Train, TrainReport};
use crate::trend::{trend, Trend};
use link::random::{stream_seed, Random};

/// Groups of a train, and trains.
const GROUPS: usize = 50;
const GROUP_TRAINS: usize = 8;
/// Packets of a group, unless stamps are coarse.
const GROUP_PACKETS: usize = 3;
const MAX_GROUP: usize = 60;
/// Packets of a stream.
const STREAM_PACKETS: usize = 48;
/// Streams that check the groups, and their rate as a share of what the groups give.
const CHECKS: usize = 12;
const CHECK_RATE: f64 = 0.8;
/// Rising checks, of all, from which on the tight link is taken for another than the narrow one.
const OTHER_TIGHT: f64 = 0.7;
/// Streams of a search over all rates, then of one around what it found; half the width of that, of the capacity.
const WIDE: usize = 24;
const CLOSE: usize = 40;
const CLOSE_WIDTH: f64 = 0.25;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Groups,
    Checks,
    Wide,
    Close,
}

/// The estimator of `available`.
pub struct Available {
    settings: Settings,
    budget: Budget,
    capacity: FirstCapacity,
    random: Random,
    stage: Stage,
    sizes: Vec<usize>,
    sent: Option<Train>,
    trains: usize,
    /// Of each group, available bandwidth as a share of the capacity.
    by_groups: Vec<f64>,
    checks: Vec<Trend>,
    /// Rates of the streams of the train that is on its way, bit/s.
    rates: Vec<f64>,
    wide: Vec<(f64, Trend)>,
    close: Vec<(f64, Trend)>,
    late: u64,
    outcome: Option<Outcome>,
}

impl Available {
    /// A test within `settings`.
    pub fn new(settings: Settings) -> Available {
        Available {
            budget: Budget::new(settings.line_rate_bps, settings.share_ppm),
            capacity: FirstCapacity::new(&settings),
            random: Random::new(stream_seed(settings.seed, "available")),
            settings,
            stage: Stage::Groups,
            sizes: vec![],
            sent: None,
            trains: 0,
            by_groups: vec![],
            checks: vec![],
            rates: vec![],
            wide: vec![],
            close: vec![],
            late: 0,
            outcome: None,
        }
    }

    fn capacity_bps(&self) -> f64 {
        self.capacity.value_bps.unwrap_or(1.0)
    }

    fn bits(&self) -> f64 {
        f64::from(self.settings.packet_bytes) * 8.0
    }

    /// Groups of `sizes[i]` packets `gaps[i]` ns apart, each with its rest after it.
    fn spaced(&mut self, sizes: Vec<usize>, gaps: &[u64]) -> Train {
        let mut offsets_ns = vec![];
        let mut at = 0;
        for (&size, &gap) in sizes.iter().zip(gaps) {
            offsets_ns.extend((0..size as u64).map(|place| at + place * gap));
            let span = (size as u64 - 1) * gap;
            let mean = self.budget.time_of_ns(size as u64 * u64::from(self.settings.packet_bytes), 100_000);
            at += span + mean.saturating_sub(span) / 2 + self.random.exponential(mean.saturating_sub(span) / 2);
        }
        self.sizes = sizes;
        Train { offsets_ns, ..Train::even(0, self.settings.packet_bytes, 0) }
    }

    fn streams(&mut self, rates: Vec<f64>) -> Train {
        let gaps: Vec<u64> = rates.iter().map(|rate| (self.bits() * 1e9 / rate) as u64).collect();
        self.rates = rates;
        self.spaced(vec![STREAM_PACKETS; gaps.len()], &gaps)
    }

    /// Rates spread evenly over a range, each at random within its part, in random order.
    fn spread(&mut self, low: f64, high: f64, count: usize) -> Vec<f64> {
        let (width, least) = ((high - low) / count as f64, 0.01 * self.capacity_bps());
        let mut rates: Vec<f64> = (0..count)
            .map(|part| low + width * (part as f64 + self.random.below(1000) as f64 / 1000.0))
            .map(|rate| rate.max(least))
            .collect();
        for index in (1..count).rev() {
            let other = self.random.below(index as u64 + 1) as usize;
            rates.swap(index, other);
        }
        rates
    }

    fn next_train(&mut self) -> Train {
        let capacity = self.capacity_bps();
        match self.stage {
            Stage::Groups => {
                let gap_ns = (self.bits() * 1e9 / capacity) as u64;
                let step = self.capacity.stamp_step_ns;
                let for_stamps = if step > 1 { 40 * step / gap_ns.max(1) } else { 0 };
                let size = (1 + for_stamps as usize).clamp(GROUP_PACKETS, MAX_GROUP);
                self.spaced(vec![size; GROUPS], &[gap_ns; GROUPS])
            }
            Stage::Checks => {
                let rate = CHECK_RATE * mean_and_error(&self.by_groups).0 * capacity;
                self.streams(vec![rate; CHECKS])
            }
            Stage::Wide => {
                let rates = self.spread(0.0, capacity, WIDE);
                self.streams(rates)
            }
            Stage::Close => {
                let (low, high) = self.close_range();
                let rates = self.spread(low, high, CLOSE);
                self.streams(rates)
            }
        }
    }

    fn close_range(&self) -> (f64, f64) {
        let capacity = self.capacity_bps();
        let middle = capacity * steady_share(&self.wide);
        ((middle - CLOSE_WIDTH * capacity).max(0.0), (middle + CLOSE_WIDTH * capacity).min(capacity))
    }

    fn handle_groups(&mut self, now_ns: u64, all: &[Group]) {
        let (capacity, bits) = (self.capacity_bps(), self.bits());
        for group in all {
            let (count, dispersion) = (group.arrived.len(), group.dispersion_ns());
            if count < 2 || dispersion <= 0 || group.span_ns == 0 {
                continue;
            }
            // Bits that the line sent between its first and last packet, less the group's own, came meanwhile.
            let crossed = capacity * dispersion as f64 / 1e9 - bits * (count - 1) as f64;
            let span = group.arrived[count - 1].offset_ns - group.arrived[0].offset_ns;
            self.by_groups.push(1.0 - crossed * 1e9 / span as f64 / capacity);
        }
        self.trains += 1;
        if self.trains < GROUP_TRAINS {
            return;
        }
        let asked = GROUPS * GROUP_TRAINS;
        if self.by_groups.len() * 2 < asked {
            let arrived = self.by_groups.len();
            return self.refuse(now_ns, format!("only {arrived} of {asked} groups arrived"));
        }
        let (mean, _) = mean_and_error(&self.by_groups);
        if mean < 0.1 {
            return self.conclude(now_ns);
        }
        self.stage = Stage::Checks;
    }

    fn handle_streams(&mut self, now_ns: u64, all: &[Group]) {
        // A stream that the sender could not send at its rate says nothing of it.
        let kept = |&(group, rate): &(&Group, f64)| {
            let sent = self.bits() * (group.sent.max(2) - 1) as f64 * 1e9 / group.span_ns.max(1) as f64;
            group.sent == STREAM_PACKETS && (sent / rate - 1.0).abs() < 0.05
        };
        let found: Vec<(f64, Trend)> =
            all.iter().zip(self.rates.clone()).filter(kept).map(|(group, rate)| (rate, trend(group))).collect();
        if found.len() * 2 < self.rates.len() {
            let (kept, sent) = (found.len(), self.rates.len());
            return self.refuse(now_ns, format!("the sender kept the rate of only {kept} of {sent} streams"));
        }
        match self.stage {
            Stage::Groups => {}
            Stage::Checks => {
                self.checks = found.iter().map(|&(_, trend)| trend).collect();
                if rising_share(&self.checks) < OTHER_TIGHT {
                    return self.conclude(now_ns);
                }
                self.stage = Stage::Wide;
            }
            Stage::Wide => {
                self.wide = found;
                self.stage = Stage::Close;
            }
            Stage::Close => {
                self.close = found;
                self.conclude(now_ns);
            }
        }
    }

    fn refuse(&mut self, now_ns: u64, why: String) {
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
    }

    fn cost(&self, now_ns: u64) -> crate::estimate::Cost {
        self.capacity.cost_with(self.budget.cost(now_ns))
    }

    fn conclude(&mut self, now_ns: u64) {
        let capacity = self.capacity_bps();
        let (mean, error) = mean_and_error(&self.by_groups);
        let groups = mean.clamp(0.0, 1.0) * capacity;
        let mut notes = vec![format!("{} groups at {:.1} Mbit/s", self.by_groups.len(), capacity / 1e6)];
        let (value, half) = if self.close.is_empty() {
            (groups, (1.96 * error).max(0.01) * capacity)
        } else {
            let (low, high) = self.close_range();
            let below = rising_share(&trends(&self.wide, |rate| rate < low));
            let above = steady_share(&filtered(&self.wide, |rate| rate > high));
            let share = steady_share(&self.close);
            let value = low * (1.0 - below) + (high - low) * share + (capacity - high) * above;
            notes.push(format!("{} streams of {STREAM_PACKETS} packets", self.wide.len() + self.close.len()));
            let deviation = libm::sqrt(share * (1.0 - share) / self.close.len() as f64);
            let half = (1.96 * deviation * (high - low)).max(0.02 * capacity);
            if value < groups - half {
                notes.push("a link with less available bandwidth than the narrow one is tight".to_owned());
                (value, half)
            } else {
                (groups, (1.96 * error).max(0.01) * capacity)
            }
        };
        if self.late > 0 {
            notes.push(format!("{} packets left late", self.late));
        }
        let (low, high) = ((value - half).max(0.0), value + half);
        let estimates = vec![Estimate { quantity: "available_bps", value, low, high }];
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates, refused: None, notes, cost });
    }
}

fn filtered(streams: &[(f64, Trend)], right: impl Fn(f64) -> bool) -> Vec<(f64, Trend)> {
    streams.iter().copied().filter(|&(rate, _)| right(rate)).collect()
}

fn trends(streams: &[(f64, Trend)], right: impl Fn(f64) -> bool) -> Vec<Trend> {
    filtered(streams, right).into_iter().map(|(_, trend)| trend).collect()
}

/// Share of streams that rise; one that is unclear counts half. 0 of none.
fn rising_share(streams: &[Trend]) -> f64 {
    let rising: f64 = streams
        .iter()
        .map(|trend| match trend {
            Trend::Rises => 1.0,
            Trend::Unclear => 0.5,
            Trend::Steady => 0.0,
        })
        .sum();
    rising / streams.len().max(1) as f64
}

fn steady_share(streams: &[(f64, Trend)]) -> f64 {
    if streams.is_empty() {
        return 0.0;
    }
    1.0 - rising_share(&trends(streams, |_| true))
}

impl Estimator for Available {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        if let Some(next) = self.capacity.poll_next(now_ns) {
            return next;
        }
        if let Some(outcome) = &self.outcome {
            return Next::Done(outcome.clone());
        }
        if self.settings.line_rate_bps.is_none() {
            self.budget.rate_bps = self.capacity_bps() * f64::from(self.settings.share_ppm) / 1e6;
        }
        let train = self.next_train();
        self.sent = Some(train.clone());
        self.budget.send(self.capacity.rest_until_ns().max(now_ns), train)
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        if self.capacity.handle_report(now_ns, report) {
            return;
        }
        let Some(train) = self.sent.take() else { return };
        self.capacity.stamp_step_ns = report.stamp_step_ns.max(1);
        self.late += u64::from(report.late);
        let all = groups(&train, &self.sizes, report);
        match self.stage {
            Stage::Groups => self.handle_groups(now_ns, &all),
            _ => self.handle_streams(now_ns, &all),
        }
    }
}
