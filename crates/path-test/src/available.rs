//! Available bandwidth: short groups at the capacity's rate, whose gaps tell the cross traffic that came between
//! (Spruce: Strauss, Katabi and Kaashoek, IMC 2003), then streams, whose delays tell if that holds for every link of
//! the path (SLoPS: Jain and Dovrolis, SIGCOMM 2002).

use crate::budget::Budget;
use crate::dispersion::{groups, Group};
use crate::estimate::{Estimate, Estimator, Next, Outcome};
use crate::first_capacity::FirstCapacity;
use crate::settings::Settings;
use crate::train::{Train, TrainReport};
use crate::trend::{trend, Trend};
use link::random::{stream_seed, Random};

/// Groups of a train, and trains.
const GROUPS: usize = 60;
const GROUP_TRAINS: usize = 3;
/// Groups before each stream: cross traffic changes while the streams take their time.
const GROUPS_BETWEEN: usize = 7;
/// Packets of a group, unless stamps are coarse.
const GROUP_PACKETS: usize = 2;
const MAX_GROUP: usize = 40;
/// Long groups in place of the second search, where streams tell nothing, and their packets: bursts of cross traffic
/// come seldom between two packets, and many at once.
const LONG: usize = 80;
const LONG_PACKETS: usize = 24;
/// Packets of a stream.
const STREAM_PACKETS: usize = 48;
/// Streams of a search over all rates, then of one around what it found; half the width of that, of the capacity.
const WIDE: usize = 24;
const CLOSE: usize = 40;
const CLOSE_WIDTH: f64 = 0.25;

/// Difference of groups and streams from which on the streams count, of the capacity.
const DIFFERENCE: f64 = 0.06;
/// Streams that no available bandwidth explains, of all, from which on they count for nothing beside the groups.
const MAX_MISFIT: f64 = 0.12;

/// A group left too slowly where it took so much longer than was asked, in parts and in ns: its gap is the host's. The
/// least is that of a send by system call.
const SLOW_PART: f64 = 0.2;
const SLOW_LEAST_NS: f64 = 20_000.0;
/// Packets that left late, of all, from which on the host has spoiled the test: a tenth of the streams and pairs left
/// at other rates than theirs, and a stream that a late host fills up looks like a queue.
const MAX_LATE: f64 = 0.1;
/// The same where streams contradict each other: that is a late host's doing as well as that of bursts.
const MAX_LATE_MISFIT: f64 = 0.03;
/// Packets after which more than this share of late ones ends the test at once: the rest would take minutes, and would
/// have to leave on time, every one of them.
const EARLY_PACKETS: u64 = 1000;
const EARLY_LATE: f64 = 0.15;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Groups,
    Wide,
    Close,
    Long,
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
    /// Of each group, what crossed meanwhile and what the line could carry, bits.
    by_groups: Vec<(f64, f64)>,
    /// Groups of the first trains of which two packets arrived.
    arrived: usize,
    /// Rates of the streams of the train that is on its way, bit/s.
    rates: Vec<f64>,
    wide: Vec<(f64, Trend)>,
    close: Vec<(f64, Trend)>,
    late: u64,
    packets: u64,
    /// Groups that left too slowly.
    slow: usize,
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
            arrived: 0,
            rates: vec![],
            wide: vec![],
            close: vec![],
            late: 0,
            packets: 0,
            slow: 0,
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
    fn spaced(&mut self, parts: Vec<(usize, u64)>) -> Train {
        let mut offsets_ns = vec![];
        let mut at = 0;
        for &(size, gap) in &parts {
            offsets_ns.extend((0..size as u64).map(|place| at + place * gap));
            let span = (size as u64 - 1) * gap;
            let mean = self.budget.time_of_ns(size as u64 * u64::from(self.settings.packet_bytes), 100_000);
            at += span + mean.saturating_sub(span) / 2 + self.random.exponential(mean.saturating_sub(span) / 2);
        }
        self.sizes = parts.into_iter().map(|(size, _)| size).collect();
        Train { offsets_ns, ..Train::even(0, self.settings.packet_bytes, 0) }
    }

    /// Packets of a group and the time between them, ns.
    fn group(&self) -> (usize, u64) {
        let gap_ns = (self.bits() * 1e9 / self.capacity_bps()) as u64;
        let step = self.capacity.stamp_step_ns;
        let for_stamps = if step > 1 { 40 * step / gap_ns.max(1) } else { 0 };
        ((1 + for_stamps as usize).clamp(GROUP_PACKETS, MAX_GROUP), gap_ns)
    }

    fn streams(&mut self, rates: Vec<f64>) -> Train {
        let group = self.group();
        let parts = rates.iter().flat_map(|rate| {
            let stream = (STREAM_PACKETS, (self.bits() * 1e9 / rate) as u64);
            [vec![group; GROUPS_BETWEEN], vec![stream]].concat()
        });
        let parts = parts.collect();
        self.rates = rates;
        self.spaced(parts)
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
                let group = self.group();
                self.spaced(vec![group; GROUPS])
            }
            Stage::Wide => {
                let rates = self.spread(0.0, capacity, WIDE);
                self.streams(rates)
            }
            Stage::Long => {
                let (size, gap_ns) = self.group();
                self.spaced(vec![(size.max(LONG_PACKETS), gap_ns); LONG])
            }
            Stage::Close => {
                let (low, high) = self.close_range();
                let rates = self.spread(low, high, CLOSE);
                self.streams(rates)
            }
        }
    }

    /// Streams that no available bandwidth explains, of all: the least number of those that rise below it or are steady
    /// above. Cross traffic whose bursts last longer than a stream makes many.
    fn misfit(&self) -> f64 {
        let mut all = [self.wide.clone(), self.close.clone()].concat();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let rises: Vec<f64> = all.iter().map(|&(_, trend)| rising_share(&[trend])).collect();
        let mut wrong = rises.iter().map(|rises| 1.0 - rises).sum::<f64>();
        let mut least = wrong;
        for rises in &rises {
            wrong += 2.0 * rises - 1.0;
            least = least.min(wrong);
        }
        least / rises.len().max(1) as f64
    }

    fn close_range(&self) -> (f64, f64) {
        let capacity = self.capacity_bps();
        let middle = capacity * steady_share(&self.wide);
        ((middle - CLOSE_WIDTH * capacity).max(0.0), (middle + CLOSE_WIDTH * capacity).min(capacity))
    }

    fn add_group(&mut self, group: &Group) {
        let (capacity, bits) = (self.capacity_bps(), self.bits());
        let (count, dispersion) = (group.arrived.len(), group.dispersion_ns());
        if count < 2 {
            // A queue that is full leaves nothing.
            let carried = bits * (group.sent - 1) as f64;
            return self.by_groups.push((carried, carried));
        }
        let span = group.arrived[count - 1].offset_ns - group.arrived[0].offset_ns;
        if dispersion <= 0 || span == 0 {
            return;
        }
        let asked_ns = (self.group().1 * (group.sent as u64 - 1)) as f64;
        if group.span_ns as f64 > asked_ns + (SLOW_PART * asked_ns).max(SLOW_LEAST_NS) {
            self.slow += 1;
            return;
        }
        // Bits that the line sent between its first and last packet, less the group's own, came meanwhile.
        let crossed = capacity * dispersion as f64 / 1e9 - bits * (count - 1) as f64;
        self.by_groups.push((crossed, capacity * span as f64 / 1e9));
    }

    fn handle_groups(&mut self, now_ns: u64, all: &[Group]) {
        for group in all {
            self.arrived += usize::from(group.arrived.len() >= 2);
            self.add_group(group);
        }
        self.trains += 1;
        if self.trains < GROUP_TRAINS {
            return;
        }
        let (arrived, asked) = (self.arrived, GROUPS * GROUP_TRAINS);
        if arrived * 4 < asked {
            return self.refuse(now_ns, format!("only {arrived} of {asked} groups arrived"));
        }
        self.stage = Stage::Wide;
    }

    fn handle_streams(&mut self, now_ns: u64, all: &[Group]) {
        let bits = self.bits();
        // A stream that the sender could not send at its rate says nothing of it.
        let kept = |&(group, rate): &(&Group, f64)| {
            let sent = bits * (group.sent.max(2) - 1) as f64 * 1e9 / group.span_ns.max(1) as f64;
            group.sent == STREAM_PACKETS && (sent / rate - 1.0).abs() < 0.05
        };
        let is_stream = |place: usize| place % (GROUPS_BETWEEN + 1) == GROUPS_BETWEEN;
        let (streams, between): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|&(place, _)| is_stream(place));
        for (_, group) in between {
            self.add_group(group);
        }
        let found: Vec<(f64, Trend)> = streams
            .into_iter()
            .map(|(_, group)| group)
            .zip(self.rates.clone())
            .filter(kept)
            .map(|(group, rate)| (rate, trend(group)))
            .collect();
        if found.len() * 2 < self.rates.len() {
            let (kept, sent) = (found.len(), self.rates.len());
            return self.refuse(now_ns, format!("the sender kept the rate of only {kept} of {sent} streams"));
        }
        match self.stage {
            Stage::Groups | Stage::Long => {}
            Stage::Wide => {
                self.wide = found;
                self.stage = if self.misfit() > MAX_MISFIT { Stage::Long } else { Stage::Close };
            }
            Stage::Close => {
                self.close = found;
                self.conclude(now_ns);
            }
        }
    }

    fn refuse_late(&mut self, now_ns: u64) {
        let (late, all) = (self.late, self.packets);
        self.refuse(now_ns, format!("this host is too busy: {late} of {all} packets left late"));
    }

    fn refuse(&mut self, now_ns: u64, why: String) {
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
    }

    fn cost(&self, now_ns: u64) -> crate::estimate::Cost {
        self.capacity.cost_with(self.budget.cost(now_ns))
    }

    /// Rate by the streams, and half of its interval, bit/s; None: they contradict each other.
    fn by_streams(&self) -> Option<(f64, f64)> {
        if self.close.is_empty() || self.misfit() > MAX_MISFIT {
            return None;
        }
        let capacity = self.capacity_bps();
        let (low, high) = self.close_range();
        let below = rising_share(&trends(&self.wide, |rate| rate < low));
        let above = steady_share(&filtered(&self.wide, |rate| rate > high));
        let share = steady_share(&self.close);
        let value = low * (1.0 - below) + (high - low) * share + (capacity - high) * above;
        let deviation = libm::sqrt(share * (1.0 - share) / self.close.len() as f64);
        Some((value, (1.96 * deviation * (high - low)).max(0.02 * capacity)))
    }

    fn conclude(&mut self, now_ns: u64) {
        let most_late = if self.misfit() > MAX_MISFIT { MAX_LATE_MISFIT } else { MAX_LATE };
        if self.late as f64 > most_late * self.packets as f64 {
            return self.refuse_late(now_ns);
        }
        let (slow, all) = (self.slow, self.slow + self.by_groups.len());
        if 2 * slow > all {
            return self.refuse(now_ns, format!("this host is too busy: {slow} of {all} groups left too slowly"));
        }
        let capacity = self.capacity_bps();
        let carried = self.by_groups.iter().map(|group| group.1).sum::<f64>().max(1.0);
        let crossed = self.by_groups.iter().map(|group| group.0).sum::<f64>() / carried;
        let squares = self.by_groups.iter().map(|group| (group.0 - crossed * group.1) * (group.0 - crossed * group.1));
        let error = libm::sqrt(squares.sum()) / carried;
        let groups = (1.0 - crossed).clamp(0.0, 1.0) * capacity;
        let (groups_mbps, streams) = (groups / 1e6, self.wide.len() + self.close.len());
        let mut notes =
            vec![format!("{} groups at {:.1} Mbit/s give {groups_mbps:.1}", self.by_groups.len(), capacity / 1e6)];
        let of_groups = 1.96 * error * capacity;
        let misfit = 100.0 * self.misfit();
        let (value, half) = match self.by_streams() {
            Some((value, half)) => {
                let by_streams = value / 1e6;
                notes.push(format!("{streams} streams of {STREAM_PACKETS} packets give {by_streams:.1}"));
                // The groups are exact where the narrow link is the tight one, and no other is loaded.
                if (groups - value).abs() < DIFFERENCE * capacity {
                    (groups, of_groups.max(0.02 * capacity).max((groups - value).abs()))
                } else {
                    notes.push("more than the narrow link is loaded: the streams count".to_owned());
                    (value, half)
                }
            }
            None => {
                notes.push(format!(
                    "cross traffic comes in bursts ({misfit:.0} % of {streams} streams contradict the others): where \
                     the tight link is not the narrow one, this is not its available bandwidth"
                ));
                // Bursts on other hops make gaps longer on average.
                (groups, of_groups + 0.05 * capacity)
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
        let outcome = self.outcome.as_ref();
        if let Some(next) = self.capacity.poll_before(now_ns, outcome, &self.settings, &mut self.budget) {
            return next;
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
        self.packets += report.packets.len() as u64;
        if self.packets >= EARLY_PACKETS && self.late as f64 > EARLY_LATE * self.packets as f64 {
            return self.refuse_late(now_ns);
        }
        let all = groups(&train, &self.sizes, report);
        match self.stage {
            Stage::Groups => self.handle_groups(now_ns, &all),
            Stage::Long => {
                for group in &all {
                    self.add_group(group);
                }
                self.conclude(now_ns);
            }
            _ => self.handle_streams(now_ns, &all),
        }
    }
}
