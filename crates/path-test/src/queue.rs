//! Depth of the queue before the tight link: bursts at twice the capacity, each twice the one before, until
//! packets are lost; the depth is the capacity times the longest wait, as the queue then was full.
//!
//! The harm is bounded: while a burst lasts the queue fills at the capacity's rate at least, so the burst in which it
//! overflows has at most four times the bytes that it holds, and those before it as many. Three such bursts and those
//! before send at most sixteen times the queue's depth. After each the path rests for ten times as long; the rest that
//! makes the mean rate follows at the end, as part of the cost.

use crate::budget::Budget;
use crate::dispersion::{groups, mean_and_error, quantile, Group};
use crate::estimate::{Cost, Estimate, Estimator, Next, Outcome};
use crate::first_capacity::FirstCapacity;
use crate::settings::Settings;
use crate::train::{Train, TrainReport};
use link::random::{stream_seed, Random};

/// Single packets before a burst, for the delay of the empty path, and the mean time between them in packets' times.
const SINGLES: usize = 20;
const SINGLE_GAP: u64 = 20;
/// Packets of the first burst, and how much longer the next is.
const FIRST_BURST: usize = 16;
const LONGER: usize = 2;
/// Rest after a burst, in bursts' times.
const REST: u64 = 10;
/// Bursts that overflow the queue.
const BURSTS: usize = 3;
/// Packets lost in a burst that overflowed the queue, at least, and of all.
const MIN_LOST: usize = 3;
const MIN_LOST_SHARE: f64 = 0.03;
/// The delay at losses is the one that this share of them does not exceed.
const AT_LOSS: f64 = 0.33;
/// Two clocks drift apart by less, per ns.
const MAX_SKEW: f64 = 5e-5;
/// Losses at less than this share of the longest wait are not of a full queue.
const FULL: f64 = 0.6;
const MAX_EARLY: f64 = 0.35;
/// Waits at the last losses of a burst, of those at its first ones, below which the queue was not full.
const FALLING: f64 = 0.8;

/// A burst that overflowed the queue.
#[derive(Clone, Copy, Debug)]
struct Overflow {
    /// Its time, ns, and its least delay, by the two clocks.
    at_ns: u64,
    least_ns: i64,
    /// Delay at losses, where the queue is full: that which a third of them do not exceed, as other queues of the path
    /// add to it. Longest delay.
    at_loss_ns: i64,
    longest_ns: i64,
    lost: usize,
    /// Losses while the queue was not near full.
    early: usize,
}

/// The estimator of `queue`.
pub struct Queue {
    settings: Settings,
    budget: Budget,
    capacity: FirstCapacity,
    random: Random,
    burst: usize,
    sizes: Vec<usize>,
    sent: Option<Train>,
    overflows: Vec<Overflow>,
    outcome: Option<Outcome>,
}

impl Queue {
    /// A test within `settings`.
    pub fn new(settings: Settings) -> Queue {
        Queue {
            budget: Budget::new(settings.line_rate_bps, settings.share_ppm),
            capacity: FirstCapacity::new(&settings),
            random: Random::new(stream_seed(settings.seed, "queue")),
            settings,
            burst: FIRST_BURST,
            sizes: vec![],
            sent: None,
            overflows: vec![],
            outcome: None,
        }
    }

    fn packet_ns(&self) -> u64 {
        let capacity = self.capacity.value_bps.unwrap_or(1.0);
        ((f64::from(self.settings.packet_bytes) * 8e9 / capacity) as u64).max(1)
    }

    /// Most bytes of one burst: unless told, what the line carries in a second; a queue that holds more than half of
    /// that is not found.
    fn max_burst_bytes(&self) -> u64 {
        let second = self.capacity.value_bps.unwrap_or(0.0) as u64 / 8;
        self.settings.max_bytes.unwrap_or(second)
    }

    fn next_train(&mut self) -> Train {
        let packet_ns = self.packet_ns();
        let mut at = 0;
        let mut offsets_ns = vec![];
        for _ in 0..SINGLES {
            offsets_ns.push(at);
            at += packet_ns + self.random.exponential(SINGLE_GAP * packet_ns);
        }
        offsets_ns.extend((0..self.burst as u64).map(|place| at + place * packet_ns / 2));
        self.sizes = [vec![1; SINGLES], vec![self.burst]].concat();
        Train { offsets_ns, ..Train::even(0, self.settings.packet_bytes, 0) }
    }

    fn handle_groups(&mut self, now_ns: u64, all: &[Group]) {
        let Some((burst, singles)) = all.split_last().filter(|(burst, _)| burst.sent == self.burst) else {
            return self.refuse(now_ns, "the sender stopped within a burst".to_owned());
        };
        let delays = |group: &Group| group.arrived.iter().map(|one| one.delay_ns).min();
        let least = singles.iter().chain([burst]).filter_map(delays).min();
        let Some(least) = least else { return self.refuse(now_ns, "no packet arrived".to_owned()) };
        let asked_ns = self.packet_ns() / 2 * burst.sent as u64;
        if burst.span_ns as f64 > 1.3 * asked_ns as f64 {
            let took = burst.span_ns / 1000;
            return self.refuse(
                now_ns,
                format!(
                    "the sender took {took} us for a burst of {} us: it cannot send at twice the capacity",
                    asked_ns / 1000
                ),
            );
        }
        let lost = burst.sent - burst.arrived.len();
        if lost < MIN_LOST.max((MIN_LOST_SHARE * burst.sent as f64) as usize) {
            self.burst *= LONGER;
            let bytes = self.burst as u64 * u64::from(self.settings.packet_bytes);
            let most = self.max_burst_bytes();
            if bytes > most {
                let sent = bytes / LONGER as u64;
                let why = format!(
                    "{sent} bytes at twice the capacity overflowed no queue, and {bytes} would exceed max_bytes = \
                     {most}"
                );
                self.refuse(now_ns, why);
            }
            return;
        }
        let longest = burst.arrived.iter().map(|one| one.delay_ns).max().unwrap_or(least);
        let full = least + ((longest - least) as f64 * FULL) as i64;
        // Of each loss the delay of the packet before it.
        let (mut early, mut at_losses) = (0, vec![]);
        for pair in burst.arrived.windows(2) {
            let missing = pair[1].place - pair[0].place - 1;
            if missing > 0 && pair[0].delay_ns >= full {
                at_losses.push((pair[0].delay_ns - least) as f64);
            } else if pair[1].delay_ns < full {
                early += missing;
            }
        }
        // Behind a policer the queue empties while it drops; one that is full stays full.
        let third = at_losses.len() / 3;
        let median = |part: &[f64]| quantile(&mut part.to_vec(), 0.5);
        if third > 0 && median(&at_losses[2 * third..]) < FALLING * median(&at_losses[..third]) {
            early = lost;
        }
        let at_loss_ns = if at_losses.is_empty() { longest } else { least + quantile(&mut at_losses, AT_LOSS) as i64 };
        let at_ns = burst.begin_ns;
        self.overflows.push(Overflow { at_ns, least_ns: least, at_loss_ns, longest_ns: longest, lost, early });
        if self.overflows.len() >= BURSTS {
            self.conclude(now_ns);
        }
    }

    fn refuse(&mut self, now_ns: u64, why: String) {
        let cost = self.cost(now_ns);
        self.outcome = Some(Outcome { estimates: vec![], refused: Some(why), notes: vec![], cost });
    }

    fn cost(&self, now_ns: u64) -> Cost {
        self.capacity.cost_with(self.budget.cost(now_ns))
    }

    fn conclude(&mut self, now_ns: u64) {
        let capacity = self.capacity.value_bps.unwrap_or(1.0);
        let packet = f64::from(self.settings.packet_bytes);
        let lost: usize = self.overflows.iter().map(|one| one.lost).sum();
        let early: usize = self.overflows.iter().map(|one| one.early).sum();
        // The empty path's delay may have been seen before another burst.
        let least = |at: u64| {
            let seen = |one: &Overflow| one.least_ns as f64 + MAX_SKEW * at.abs_diff(one.at_ns) as f64;
            self.overflows.iter().map(seen).fold(f64::INFINITY, f64::min)
        };
        let wait = |one: &Overflow| one.at_loss_ns as f64 - least(one.at_ns).min(one.least_ns as f64);
        let mut waits: Vec<f64> = self.overflows.iter().map(wait).collect();
        let most = self.overflows.iter().map(|one| (one.longest_ns - one.least_ns) as f64).fold(0.0, f64::max);
        if most < 1.5 * self.packet_ns() as f64 {
            return self.refuse(
                now_ns,
                format!(
                    "{lost} packets were lost, none waited longer than {:.0} us: a policer, or loss on the line",
                    most / 1e3
                ),
            );
        }
        if early as f64 > MAX_EARLY * lost as f64 {
            return self.refuse(
                now_ns,
                format!(
                    "{early} of {lost} losses came while the queue was not full: it drops early, or a policer or the \
                     line does"
                ),
            );
        }
        let middle = quantile(&mut waits, 0.5);
        let (_, error) = mean_and_error(&waits);
        // The packet before a loss waits for those before it and the rest of the one being sent; with it, less than one
        // packet's room is left.
        let bytes = |wait_ns: f64| capacity / 8e9 * wait_ns;
        let value = bytes(middle) + packet;
        let half = (1.96 * bytes(error)).max(1.5 * packet).max(0.05 * value);
        let delay = middle / 1e9;
        let delay_half = half / value * delay;
        let estimates = vec![
            Estimate { quantity: "queue_bytes", value, low: (value - half).max(0.0), high: value + half },
            Estimate { quantity: "queue_delay_s", value: delay, low: delay - delay_half, high: delay + delay_half },
        ];
        let mut notes = vec![format!("{} bursts of {} packets lost {lost}", self.overflows.len(), self.burst)];
        if quantile(&mut waits, 0.0) < 0.8 * quantile(&mut waits, 1.0) {
            notes.push("the waits of the bursts differ by more than a fifth".to_owned());
        }
        self.outcome = Some(Outcome { estimates, refused: None, notes, cost: self.cost(now_ns) });
    }
}

impl Estimator for Queue {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        let outcome = self.outcome.as_ref();
        if let Some(next) = self.capacity.poll_before(now_ns, outcome, &self.settings, &mut self.budget) {
            return next;
        }
        let train = self.next_train();
        self.sent = Some(train.clone());
        self.budget.send_soon(self.capacity.rest_until_ns().max(now_ns), train, REST)
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        if self.capacity.handle_report(now_ns, report) {
            return;
        }
        let Some(train) = self.sent.take() else { return };
        let all = groups(&train, &self.sizes, report);
        self.handle_groups(now_ns, &all);
    }
}
