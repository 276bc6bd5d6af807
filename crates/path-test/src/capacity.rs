//! Capacity of the narrow link: packet pairs with the least delays (CapProbe: Kapoor, Chen, Lao, Gerla and Sanadidi,
//! SIGCOMM 2004); where no pair passes undisturbed, the strongest mode of the pairs' dispersion above the rate of long
//! trains (Pathrate: Dovrolis, Ramanathan and Moore, IEEE/ACM ToN 2004).

use crate::budget::Budget;
use crate::dispersion::{groups, lower_slope, mean_and_error, quantile, Group};
use crate::estimate::{Estimate, Estimator, Next, Outcome};
use crate::settings::Settings;
use crate::train::{Train, TrainReport};
use link::random::{stream_seed, Random};

/// Pairs of the first look, and the time between them.
const SCOUT_PAIRS: usize = 8;
const SCOUT_GAP_NS: u64 = 10_000_000;
/// Long trains of the first look.
const SCOUT_TRAINS: usize = 6;
const SCOUT_TRAIN_PACKETS: usize = 24;
/// Packets of a long train that tell its rate: a short queue drops the rest.
const MIN_OF_TRAIN: usize = 4;
/// Groups between two evaluations, and most evaluations.
const BATCH: usize = 50;
const MAX_BATCHES: usize = 16;
/// Every other batch has packets of a third of the size: cross traffic comes less often between two of them, and where
/// that always happens to the large ones (a tight link behind the narrow one), only the small ones tell.
const SMALLER: u32 = 3;
const MIN_SMALL_BYTES: u32 = 200;
/// Large groups that pass undisturbed, of all, from which on the small ones need not be asked.
const NEARLY_IDLE: f64 = 0.5;
/// Small groups are believed beside large ones where they give so much more: frames' overhead explains less.
const MUCH_MORE: f64 = 1.1;
/// Batches after which groups of one size count alone, and the share of them that has to pass.
const ENOUGH_BATCHES: usize = 8;
const ENOUGH_SHARE: f64 = 0.1;
/// Most packets of a group: more make up for coarse stamps no further.
const MAX_GROUP: usize = 64;
/// Undisturbed groups that make an estimate.
const MIN_UNDISTURBED: usize = 5;
/// Delays that differ from the least by this share of the dispersion are the least.
const TOLERANCE: f64 = 0.01;
/// Half width of a mode, as a share of the dispersion.
const MODE_WIDTH: f64 = 0.015;
/// Groups of a mode, of all.
const MIN_MODE: f64 = 0.15;
/// At up to 90 % of load a hop makes a train at most 1.9 times slower than the capacity; two such hops 3.6 times.
const MAX_OVER_TRAINS: f64 = 5.0;
/// Groups in which packets arrive at once, of all: above it the receiver coalesces interrupts.
const MAX_COALESCED: f64 = 0.1;

/// Time within which the packets of a group must have left, of the time that the line takes for them. Above a half of
/// it they must arrive further apart than they left, or the sender itself was the bottleneck.
const LEAVE_SHARE: f64 = 0.75;
const SPREAD: f64 = 1.1;
/// Groups that may have left too slowly, of all: the others count.
const MAX_SLOW: f64 = 0.8;

/// The estimator of `capacity`.
pub struct Capacity {
    settings: Settings,
    budget: Budget,
    random: Random,
    sizes: Vec<usize>,
    sent: Option<Train>,
    step_ns: u64,
    late: u64,
    scouts: Vec<Group>,
    trains: Vec<Group>,
    /// Of large packets, then of small ones.
    series: [Series; 2],
    batches: usize,
    /// The sender is too slow for small packets: only large ones go.
    is_large_only: bool,
    outcome: Option<Outcome>,
}

/// Groups of packets of one size.
#[derive(Default)]
struct Series {
    packet_bytes: u32,
    group_packets: usize,
    found: Vec<Group>,
    /// Groups sent, and those of them that left too slowly.
    tried: usize,
    slow: usize,
}

/// Capacity by the pairs, with its interval, bit/s.
struct Found {
    value: f64,
    low: f64,
    high: f64,
    note: String,
    /// Groups that count, of all.
    share: f64,
}

impl Capacity {
    /// A test within `settings`.
    pub fn new(settings: Settings) -> Capacity {
        let small = (settings.packet_bytes / SMALLER).max(MIN_SMALL_BYTES).min(settings.packet_bytes);
        Capacity {
            budget: Budget::new(settings.line_rate_bps, settings.share_ppm),
            random: Random::new(stream_seed(settings.seed, "capacity")),
            series: [Series::of(settings.packet_bytes), Series::of(small)],
            settings,
            sizes: vec![],
            sent: None,
            step_ns: 1,
            late: 0,
            scouts: vec![],
            trains: vec![],
            batches: 0,
            is_large_only: false,
            outcome: None,
        }
    }

    /// Series of the next batch.
    fn index(&self) -> usize {
        if self.is_large_only {
            0
        } else {
            self.batches % 2
        }
    }

    fn bits(&self, packets: usize) -> f64 {
        f64::from(self.settings.packet_bytes) * 8.0 * packets as f64
    }

    fn scout(&mut self) -> Train {
        self.sizes = [vec![2; SCOUT_PAIRS], vec![SCOUT_TRAIN_PACKETS; SCOUT_TRAINS]].concat();
        let offsets = self.sizes.iter().scan(0, |at, &size| {
            let begin = *at;
            *at += SCOUT_GAP_NS.max(self.budget.time_of_ns(size as u64 * u64::from(self.settings.packet_bytes), 0));
            Some(vec![begin; size])
        });
        Train { offsets_ns: offsets.flatten().collect(), ..Train::even(0, self.settings.packet_bytes, 0) }
    }

    fn batch(&mut self) -> Train {
        let Series { packet_bytes, group_packets, .. } = self.series[self.index()];
        self.sizes = vec![group_packets; BATCH];
        let bytes = group_packets as u64 * u64::from(packet_bytes);
        let mean = self.budget.time_of_ns(bytes, 100_000);
        let mut at = 0;
        let mut offsets_ns = Vec::with_capacity(BATCH * group_packets);
        for _ in 0..BATCH {
            offsets_ns.extend(std::iter::repeat_n(at, group_packets));
            // Half of the gap is fixed: a group does not run into the one before.
            at += mean / 2 + self.random.exponential(mean / 2);
        }
        Train { offsets_ns, ..Train::even(0, packet_bytes, 0) }
    }

    fn refuse(&mut self, now_ns: u64, why: String) {
        let cost = self.budget.cost(now_ns);
        self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
    }

    /// Rate of the long trains: the median, bit/s.
    fn train_rate(&self) -> f64 {
        let rate = |group: &Group| {
            let dispersion = group.dispersion_ns();
            (group.arrived.len() >= MIN_OF_TRAIN && dispersion > 0)
                .then(|| self.bits(group.arrived.len() - 1) * 1e9 / dispersion as f64)
        };
        quantile(&mut self.trains.iter().filter_map(rate).collect::<Vec<_>>(), 0.5)
    }

    fn handle_scouts(&mut self, now_ns: u64, all: Vec<Group>) {
        for group in all {
            if group.sent == 2 { &mut self.scouts } else { &mut self.trains }.push(group);
        }
        let arrived: usize = self.scouts.iter().chain(&self.trains).map(|group| group.arrived.len()).sum();
        if arrived == 0 {
            return self.refuse(now_ns, "no packet arrived".to_owned());
        }
        let whole = self.scouts.iter().filter(|group| group.is_complete());
        let pair = quantile(&mut whole.map(|group| group.dispersion_ns() as f64).collect::<Vec<_>>(), 0.5);
        let (step, by_trains) = (self.step_ns as f64, self.train_rate());
        let rate = if pair >= 4.0 * step && pair > 0.0 { self.bits(1) * 1e9 / pair } else { by_trains };
        if rate <= 0.0 && arrived * 4 < self.sizes.iter().sum() {
            let sent: usize = self.sizes.iter().sum();
            return self.refuse(now_ns, format!("only {arrived} of {sent} packets arrived"));
        }
        if rate <= 0.0 {
            let longest = SCOUT_TRAIN_PACKETS;
            return self.refuse(
                now_ns,
                format!(
                    "all of {longest} packets arrived in one step of the receiver's stamps ({step} ns): too coarse, or \
                     interrupts are coalesced"
                ),
            );
        }
        for series in &mut self.series {
            // 40 steps: the stamps' error is that of one group in the tolerance.
            let packet_ns = f64::from(series.packet_bytes) * 8e9 / rate;
            let for_stamps = if self.step_ns > 1 { (40.0 * step / packet_ns) as usize } else { 0 };
            series.group_packets = (2 + for_stamps).min(MAX_GROUP);
        }
        let packets = self.series[0].group_packets;
        let takes_ns = self.bits(packets - 1) * 1e9 / rate;
        if self.step_ns > 1 && step > 0.25 * takes_ns {
            return self.refuse(
                now_ns,
                format!("the receiver's stamps advance in steps of {step} ns: {packets} packets take {takes_ns:.0} ns"),
            );
        }
        if self.settings.line_rate_bps.is_none() {
            self.budget.rate_bps = rate * f64::from(self.settings.share_ppm) / 1e6;
        }
    }

    /// Returns why the receiver's stamps tell nothing of the path.
    fn coalesced(&self) -> Option<String> {
        let fastest = self.settings.max_rate_bps.map_or(0.0, |rate| self.bits(1) * 1e9 / rate as f64 / 2.0);
        let step = if self.step_ns > 1 { 0.0 } else { 1.0 };
        let all = self.groups().chain(&self.trains).flat_map(Group::gaps_ns);
        let (mut gaps, mut at_once) = (0, 0);
        for gap in all {
            gaps += 1;
            at_once += usize::from((gap as f64) < fastest.max(step));
        }
        (at_once as f64 > MAX_COALESCED * gaps as f64).then(|| {
            format!(
                "{at_once} of {gaps} packets arrived at once with the one before: the receiver coalesces interrupts"
            )
        })
    }

    fn groups(&self) -> impl Iterator<Item = &Group> {
        self.series.iter().flat_map(|series| &series.found)
    }

    /// Capacity by the groups with the least delays, once there are enough.
    fn by_least_delays(&self, last: bool) -> Option<Found> {
        let [large, small] = [0, 1].map(|index| self.series[index].by_least_delays(self.step_ns));
        match (large, small) {
            (Some(large), _) if large.share >= NEARLY_IDLE => Some(large),
            (Some(large), Some(small)) => Some(if small.value > MUCH_MORE * large.value { small } else { large }),
            (Some(one), None) | (None, Some(one)) if self.batches >= ENOUGH_BATCHES && one.share >= ENOUGH_SHARE => {
                Some(one)
            }
            (large, small) if last => large.or(small),
            _ => None,
        }
    }

    fn by_modes(&self) -> Option<Found> {
        let train_bps = self.train_rate();
        // Large packets first: a faster link behind the narrow one closes up small ones more often.
        self.series.iter().find_map(|series| series.by_modes(train_bps))
    }

    fn conclude(&mut self, now_ns: u64) {
        let last = self.batches >= MAX_BATCHES
            || self.settings.max_bytes.is_some_and(|most| self.budget.cost(now_ns).bytes >= most);
        if let Some(why) = self.coalesced() {
            return self.refuse(now_ns, why);
        }
        let found = self.by_least_delays(last).or_else(|| if last { self.by_modes() } else { None });
        let Some(found) = found else {
            if last {
                let groups = self.groups().count();
                self.refuse(
                    now_ns,
                    format!("of {groups} groups none passed undisturbed, and no dispersion is frequent"),
                );
            }
            return;
        };
        let by_trains = self.train_rate();
        if by_trains > 0.0 && found.value > MAX_OVER_TRAINS * by_trains {
            let (pairs, trains) = (found.value / 1e6, by_trains / 1e6);
            let why = format!(
                "pairs give {pairs:.1} Mbit/s, trains {trains:.1}: the receiver coalesces interrupts, or several hops \
                 are full"
            );
            return self.refuse(now_ns, why);
        }
        let mut notes = vec![found.note];
        if self.is_large_only {
            notes.push("the sender is too slow for groups of small packets: large ones alone count".to_owned());
        }
        if self.late > 0 {
            notes.push(format!("{} packets left late; their groups are left out", self.late));
        }
        let Found { value, low, high, .. } = found;
        if self.settings.line_rate_bps.is_none() {
            self.budget.rate_bps = value * f64::from(self.settings.share_ppm) / 1e6;
        }
        let estimates = vec![Estimate { quantity: "capacity_bps", value, low, high }];
        self.outcome = Some(Outcome { estimates, refused: None, notes, cost: self.budget.cost(now_ns) });
    }

    /// Delays of all groups that passed, ns: the least is that of the empty path.
    pub(crate) fn least_delay_ns(&self) -> Option<i64> {
        let all = self.groups().chain(&self.scouts).chain(&self.trains);
        all.filter_map(|group| group.arrived.first().filter(|first| first.place == 0)).map(|one| one.delay_ns).min()
    }

    /// First time at which the mean rate so far is kept, ns.
    pub(crate) fn rest_until_ns(&self) -> u64 {
        self.budget.rest_until_ns()
    }

    /// Steps of the receiver's stamps, ns.
    pub(crate) fn stamp_step_ns(&self) -> u64 {
        self.step_ns
    }
}

impl Series {
    fn of(packet_bytes: u32) -> Series {
        Series { packet_bytes, group_packets: 2, ..Series::default() }
    }

    /// Bits of a group after its first packet.
    fn bits(&self) -> f64 {
        f64::from(self.packet_bytes) * 8.0 * (self.group_packets - 1) as f64
    }

    /// Dispersion of the groups that passed without waiting, by their delays, ns.
    fn undisturbed(&self, slope: f64, step_ns: u64) -> Vec<f64> {
        let begin = self.found.first().map_or(0, |group| group.begin_ns);
        let ends = |group: &Group| {
            let drift = slope * (group.begin_ns - begin) as f64;
            let (first, last) = (group.arrived[0], group.arrived[group.sent - 1]);
            // Both since the first one left: a last packet that leaves a little later waits that much less.
            (first.delay_ns as f64 - drift, (last.delay_ns + last.offset_ns as i64) as f64 - drift)
        };
        let whole: Vec<_> = self.found.iter().filter(|group| group.is_complete()).map(ends).collect();
        let least = whole.iter().fold((f64::INFINITY, f64::INFINITY), |m, d| (m.0.min(d.0), m.1.min(d.1)));
        let tolerance = (TOLERANCE * (least.1 - least.0)).max(2.0 * step_ns as f64);
        let passed = whole.iter().filter(|d| d.0 - least.0 + d.1 - least.1 <= tolerance);
        passed.map(|d| d.1 - d.0).collect()
    }

    fn by_least_delays(&self, step_ns: u64) -> Option<Found> {
        let whole = self.found.iter().filter(|group| group.is_complete());
        let points: Vec<_> = whole.map(|group| (group.begin_ns as f64, group.arrived[0].delay_ns as f64)).collect();
        let slope = lower_slope(&points);
        let of_skew = if slope.abs() < 5e-4 { self.undisturbed(slope, step_ns) } else { vec![] };
        let plain = self.undisturbed(0.0, step_ns);
        let passed = if of_skew.len() > plain.len() { of_skew } else { plain };
        if passed.len() < MIN_UNDISTURBED {
            return None;
        }
        let (mean, error) = mean_and_error(&passed);
        let count = passed.len() as f64;
        let error = (1.96 * error).max(step_ns as f64 / libm::sqrt(count)).max(TOLERANCE / 10.0 * mean);
        if mean <= 0.0 || error > 0.05 * mean {
            return None;
        }
        let rate = |dispersion: f64| self.bits() * 1e9 / dispersion;
        let (packets, bytes) = (self.group_packets, self.packet_bytes);
        let note = format!(
            "{} of {} groups of {packets} packets of {bytes} bytes passed with the least delays",
            passed.len(),
            points.len()
        );
        let share = count / points.len() as f64;
        Some(Found { value: rate(mean), low: rate(mean + error), high: rate(mean - error), note, share })
    }

    fn by_modes(&self, train_bps: f64) -> Option<Found> {
        let whole = self.found.iter().filter(|group| group.is_complete() && group.dispersion_ns() > 0);
        let mut all: Vec<_> = whole.map(|group| group.dispersion_ns() as f64).collect();
        all.sort_by(f64::total_cmp);
        let rate = |dispersion: f64| self.bits() * 1e9 / dispersion;
        let within = |centre: f64| {
            let from = all.partition_point(|&one| one < centre * (1.0 - MODE_WIDTH));
            &all[from..all.partition_point(|&one| one <= centre * (1.0 + MODE_WIDTH))]
        };
        let candidates = all.iter().copied().filter(|&one| rate(one) >= 0.97 * train_bps);
        let strongest = candidates.max_by_key(|&centre| within(centre).len())?;
        let mode = within(strongest);
        let share = mode.len() as f64 / all.len() as f64;
        if mode.len() < 8 || share < MIN_MODE {
            return None;
        }
        let value = quantile(&mut mode.to_vec(), 0.5);
        let (low, high) = (rate(value * (1.0 + MODE_WIDTH)), rate(value * (1.0 - MODE_WIDTH)));
        let (packets, bytes) = (self.group_packets, self.packet_bytes);
        let note = format!(
            "no group passed undisturbed; the strongest mode of the dispersion has {} of {} groups of {packets} \
             packets of {bytes} bytes",
            mode.len(),
            all.len()
        );
        Some(Found { value: rate(value), low, high, note, share })
    }
}

impl Estimator for Capacity {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        if let Some(outcome) = &self.outcome {
            return Next::Done(outcome.clone());
        }
        let train = if self.scouts.is_empty() { self.scout() } else { self.batch() };
        self.sent = Some(train.clone());
        self.budget.send(now_ns, train)
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        let Some(train) = self.sent.take() else { return };
        self.step_ns = report.stamp_step_ns.max(1);
        self.late += u64::from(report.late);
        let mut all = groups(&train, &self.sizes, report);
        if report.packets.is_empty() {
            return self.refuse(now_ns, "the sender sent no packet".to_owned());
        }
        if self.scouts.is_empty() {
            return self.handle_scouts(now_ns, all);
        }
        // Packets of a group are to leave faster than the line takes them, so that they queue there: a host that wakes
        // another one for each packet needs most of a slow line's time.
        let rate = (self.budget.rate_bps / f64::from(self.settings.share_ppm) * 1e6).max(1.0);
        let index = self.index();
        let series = &mut self.series[index];
        let takes_ns = series.bits() * 1e9 / rate;
        let before = all.len();
        all.retain(|group| {
            let left_ns = group.span_ns as f64;
            left_ns <= takes_ns / 2.0
                || (left_ns <= takes_ns * LEAVE_SHARE && group.dispersion_ns() as f64 > left_ns * SPREAD)
        });
        series.tried += before;
        series.slow += before - all.len();
        let (tried, slow) = (series.tried, series.slow);
        if index == 1 && slow * 2 > tried {
            self.is_large_only = true;
        } else if index == 0 && slow as f64 > MAX_SLOW * tried as f64 {
            return self.refuse(
                now_ns,
                format!("{slow} of {tried} groups left the sender too slowly for a path of {:.0} Mbit/s", rate / 1e6),
            );
        }
        self.series[index].found.extend(all);
        self.batches += 1;
        self.conclude(now_ns);
    }
}
