//! Loss as a steady stream of packets sees it: its share, its runs, and the part that no full queue explains.
//!
//! Packets leave at even gaps at a share of the capacity. A drop-tail queue loses packets only while it is full, so the
//! losses whose packet before had waited clearly less than the longest wait are the line's own (the argument of Liu and
//! Crovella 2001, "Using loss pairs to discover network properties", for single packets).

use crate::budget::Budget;
use crate::estimate::{Cost, Estimate, Estimator, Next, Outcome};
use crate::first_capacity::FirstCapacity;
use crate::settings::Settings;
use crate::train::{Train, TrainReport};

/// Time that the test takes unless `max_bytes` bounds it, s.
const SECONDS: f64 = 10.0;
/// Packets of one train, and of a test, at most; at least.
const TRAIN: u64 = 65_536;
const MOST: u64 = 4_000_000;
const LEAST: u64 = 50;
/// Waits from this share of the longest on are those of a full queue.
const FULL: f64 = 0.85;
/// A longest wait below so many packet times at the capacity is no queue's.
const NO_QUEUE_PACKETS: f64 = 5.0;
/// Normal quantile of 95 % of both sides.
const Z: f64 = 1.96;

/// Losses that follow each other without an arrival between.
#[derive(Clone, Copy, Debug)]
struct Run {
    lost: u64,
    /// RTT of the packet that arrived before it, ns.
    before_ns: Option<u64>,
}

/// The estimator of `loss`.
pub struct Loss {
    settings: Settings,
    budget: Budget,
    capacity: FirstCapacity,
    asked: u64,
    sent: u64,
    runs: Vec<Run>,
    rtts_ns: Vec<u64>,
    late: u64,
    outcome: Option<Outcome>,
}

impl Loss {
    /// A test within `settings`.
    pub fn new(settings: Settings) -> Loss {
        Loss {
            budget: Budget::new(settings.line_rate_bps, settings.share_ppm),
            capacity: FirstCapacity::new(&settings),
            settings,
            asked: 0,
            sent: 0,
            runs: vec![],
            rtts_ns: vec![],
            late: 0,
            outcome: None,
        }
    }

    /// Packets of the whole test.
    fn packets(&self) -> u64 {
        let bytes = self.settings.max_bytes.unwrap_or((self.budget.rate_bps / 8.0 * SECONDS) as u64);
        (bytes / u64::from(self.settings.packet_bytes)).clamp(LEAST, MOST)
    }

    fn gap_ns(&self) -> u64 {
        self.budget.time_of_ns(u64::from(self.settings.packet_bytes), 1)
    }

    fn cost(&self, now_ns: u64) -> Cost {
        self.capacity.cost_with(self.budget.cost(now_ns))
    }

    /// Waits from this RTT on are those of a full queue; none: no queue was seen.
    fn full_ns(&self) -> Option<f64> {
        let (least, longest) = (*self.rtts_ns.iter().min()? as f64, *self.rtts_ns.iter().max()? as f64);
        let packet_ns = f64::from(self.settings.packet_bytes) * 8e9 / self.capacity.value_bps.unwrap_or(1.0).max(1.0);
        (longest - least > NO_QUEUE_PACKETS * packet_ns).then_some(least + FULL * (longest - least))
    }

    fn conclude(&mut self, now_ns: u64) {
        let cost = self.cost(now_ns);
        if self.rtts_ns.is_empty() {
            let why = format!("none of {} packets has a reply", self.sent);
            self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
            return;
        }
        let full_ns = self.full_ns();
        let by_queue = |run: &Run| matches!((run.before_ns, full_ns), (Some(rtt), Some(full)) if rtt as f64 >= full);
        let line: Vec<Run> = self.runs.iter().filter(|run| !by_queue(run)).copied().collect();
        let waited = self.rtts_ns.iter().filter(|&&rtt| full_ns.is_some_and(|full| rtt as f64 >= full)).count() as u64;
        let lost_by_queue: u64 = self.runs.iter().filter(|run| by_queue(run)).map(|run| run.lost).sum();
        let free = self.sent.saturating_sub(waited + lost_by_queue).max(1);
        let mean_ns = self.rtts_ns.iter().sum::<u64>() as f64 / self.rtts_ns.len() as f64;
        let (least, longest) = (self.rtts_ns.iter().min(), self.rtts_ns.iter().max());
        let exact = |quantity, ns: f64| Estimate { quantity, value: ns / 1e9, low: ns / 1e9, high: ns / 1e9 };
        let estimates = vec![
            share("loss", &self.runs, self.sent),
            share("line_loss", &line, free),
            mean_run(&line),
            exact("rtt_min_s", *least.unwrap_or(&0) as f64),
            exact("rtt_mean_s", mean_ns),
            exact("rtt_max_s", *longest.unwrap_or(&0) as f64),
        ];
        let lost: u64 = self.runs.iter().map(|run| run.lost).sum();
        let mut notes =
            vec![format!("{lost} of {} packets were lost, {lost_by_queue} of them by a full queue", self.sent)];
        if self.late > 0 {
            notes.push(format!("{} packets left late", self.late));
        }
        self.outcome = Some(Outcome { estimates, refused: None, notes, cost });
    }
}

/// Share of `sent` that the runs lost. The interval is that of the number of runs, which come by chance (Poisson, as
/// Wilson and Hilferty 1931 approximate it); their lengths do not count as chance.
fn share(quantity: &'static str, runs: &[Run], sent: u64) -> Estimate {
    let (events, lost) = (runs.len() as f64, runs.iter().map(|run| run.lost).sum::<u64>() as f64);
    let each = if events > 0.0 { lost / events } else { 1.0 } / sent.max(1) as f64;
    let bound = |count: f64, z: f64| {
        let root = 1.0 - 1.0 / (9.0 * count) + z / (3.0 * libm::sqrt(count));
        (count * root * root * root).max(0.0)
    };
    let low = if events > 0.0 { bound(events, -Z) } else { 0.0 };
    Estimate { quantity, value: events * each, low: low * each, high: (bound(events + 1.0, Z) * each).min(1.0) }
}

/// Mean packets of a run; 1 where there is none.
fn mean_run(runs: &[Run]) -> Estimate {
    let lengths: Vec<f64> = runs.iter().map(|run| run.lost as f64).collect();
    let (mean, error) = crate::dispersion::mean_and_error(&lengths);
    let mean = if lengths.is_empty() { 1.0 } else { mean };
    let half = if lengths.len() > 2 { Z * error } else { mean };
    Estimate { quantity: "loss_run_packets", value: mean, low: (mean - half).max(1.0), high: mean + half }
}

impl Estimator for Loss {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        let outcome = self.outcome.as_ref();
        if let Some(next) = self.capacity.poll_before(now_ns, outcome, &self.settings, &mut self.budget) {
            return next;
        }
        let packets = (self.packets() - self.asked).min(TRAIN);
        self.asked += packets;
        let train = Train::even(packets as u32, self.settings.packet_bytes, self.gap_ns());
        self.budget.send(self.capacity.rest_until_ns().max(now_ns), train)
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        if self.capacity.handle_report(now_ns, report) {
            return;
        }
        self.late += u64::from(report.late);
        self.sent += report.packets.len() as u64;
        let (mut before_ns, mut lost) = (None, 0);
        for packet in &report.packets {
            if packet.received_ns.is_none() {
                lost += 1;
                continue;
            }
            if lost > 0 {
                self.runs.push(Run { lost, before_ns });
                lost = 0;
            }
            // A reply that was lost on its way back tells that its packet was not.
            if let Some(back) = packet.returned_ns {
                let rtt = back.saturating_sub(packet.sent_ns);
                self.rtts_ns.push(rtt);
                before_ns = Some(rtt);
            }
        }
        if lost > 0 {
            self.runs.push(Run { lost, before_ns });
        }
        if report.packets.is_empty() || self.asked >= self.packets() {
            self.conclude(now_ns);
        }
    }
}
