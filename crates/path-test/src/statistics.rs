//! Outcome of a session's samples: delays, jitter, loss and its runs, order, TTL, with intervals.

use crate::clock::ClockState;
use crate::estimate::{Cost, Estimate, Outcome};
use crate::session::Sample;
use serde::Serialize;

/// Counts of loss and order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Packets answered or given up.
    pub packets: u64,
    /// Given up.
    pub lost: u64,
    /// Runs of packets lost one behind the other (RFC 3357, loss periods).
    pub loss_runs: u64,
    /// The longest.
    pub longest_loss_run: u64,
    /// Replies that came once more.
    pub duplicates: u64,
    /// Replies that came after later ones (RFC 4737).
    pub reordered: u64,
    /// Packets that were out of order at the reflector already.
    pub forward_reordered: u64,
    /// Most packets by which one was late.
    pub reorder_extent_max: u64,
    /// Steps of the far end's clock.
    pub clock_steps: u64,
}

/// Samples of one session, kept for quantiles: 40 octets for each.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    counts: Counts,
    rtt_ns: Vec<i64>,
    /// One-way delays with their errors: what is known of the far clock differs from packet to packet.
    forward_ns: Vec<(i64, u64)>,
    reverse_ns: Vec<(i64, u64)>,
    jitter_ns: u64,
    /// Numbers of lost packets that are not yet part of a run: samples come in the order of their end.
    lost: Vec<u64>,
    forward_ttl: Option<(u8, u8)>,
    ttl: Option<(u8, u8)>,
}

fn widen(range: &mut Option<(u8, u8)>, value: Option<u8>) {
    if let Some(value) = value {
        let (least, most) = range.unwrap_or((value, value));
        *range = Some((least.min(value), most.max(value)));
    }
}

impl Statistics {
    /// Takes a sample.
    pub fn handle_sample(&mut self, sample: &Sample) {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.duplicates += u64::from(sample.duplicates);
        counts.reordered += u64::from(sample.is_reordered);
        counts.forward_reordered += u64::from(sample.is_forward_reordered);
        counts.reorder_extent_max = counts.reorder_extent_max.max(sample.reorder_extent);
        counts.clock_steps += u64::from(sample.clock_stepped);
        match sample.rtt_ns {
            Some(rtt_ns) => {
                self.rtt_ns.push(rtt_ns.min(i64::MAX as u64) as i64);
                let error_ns = sample.one_way_error_ns.unwrap_or(0);
                self.forward_ns.extend(sample.forward_ns.map(|delay_ns| (delay_ns, error_ns)));
                self.reverse_ns.extend(sample.reverse_ns.map(|delay_ns| (delay_ns, error_ns)));
                self.jitter_ns = sample.jitter_ns;
            }
            None => {
                counts.lost += 1;
                self.lost.push(sample.sequence);
            }
        }
        widen(&mut self.forward_ttl, sample.forward_ttl);
        widen(&mut self.ttl, sample.ttl);
    }

    /// Takes replies that came once more after the last sample.
    pub fn add_duplicates(&mut self, duplicates: u32) {
        self.counts.duplicates += u64::from(duplicates);
    }

    /// The counts.
    pub fn counts(&self) -> Counts {
        let mut lost = self.lost.clone();
        lost.sort_unstable();
        let mut counts = self.counts.clone();
        let mut run = 0;
        let mut before = None;
        for number in lost {
            run = if before == Some(number.wrapping_sub(1)) { run + 1 } else { 1 };
            counts.loss_runs += u64::from(run == 1);
            counts.longest_loss_run = counts.longest_loss_run.max(run);
            before = Some(number);
        }
        counts
    }

    /// The outcome of a session of `cost`, with the far end's clock and losses by direction where they are known.
    pub fn outcome(&self, cost: Cost, clock: Option<ClockState>, lost_forward: Option<u64>) -> Outcome {
        let counts = self.counts();
        let mut estimates = vec![];
        let mut notes = vec![];
        if counts.packets == 0 {
            let refused = Some("no packet was sent long enough ago to be answered or lost".into());
            return Outcome { estimates, refused, notes, cost };
        }
        let mut rtt = self.rtt_ns.clone();
        rtt.sort_unstable();
        if let (Some(least), Some(most)) = (rtt.first(), rtt.last()) {
            estimates.push(median("rtt_s", rtt.iter().map(|&rtt_ns| (rtt_ns, 0))));
            let of_all = |share: f64| seconds(quantile(&rtt, share));
            notes.push(format!(
                "round trip: least {}, 95 % {}, 99 % {}, most {}",
                text(seconds(*least)),
                text(of_all(0.95)),
                text(of_all(0.99)),
                text(seconds(*most))
            ));
            for (quantity, delays) in [("forward_delay_s", &self.forward_ns), ("reverse_delay_s", &self.reverse_ns)] {
                if !delays.is_empty() {
                    estimates.push(median(quantity, delays.iter().copied()));
                }
            }
            let jitter = seconds(self.jitter_ns.min(i64::MAX as u64) as i64);
            if rtt.len() > 1 {
                let variation = seconds(quantile(&rtt, 0.99) - *least);
                estimates.push(Estimate { quantity: "jitter_s", value: jitter, low: 0.0, high: variation.max(jitter) });
                notes.push(format!(
                    "jitter is RFC 3550's of the round trip; its delay variation (RFC 5481, 99 % less the least) is {}",
                    text(variation)
                ));
            }
        }
        let (low, high) = proportion(counts.lost, counts.packets);
        let value = counts.lost as f64 / counts.packets as f64;
        estimates.push(Estimate { quantity: "loss", value, low, high });
        if let Some((least, most)) = self.ttl {
            let (low, high) = (f64::from(least), f64::from(most));
            estimates.push(Estimate { quantity: "ttl", value: high, low, high });
        }
        self.describe(&counts, clock, lost_forward, &mut notes);
        Outcome { estimates, refused: None, notes, cost }
    }

    fn describe(&self, counts: &Counts, clock: Option<ClockState>, lost_forward: Option<u64>, notes: &mut Vec<String>) {
        if let Some((least, most)) = self.forward_ttl {
            let range = if least == most { format!("{least}") } else { format!("{least} to {most}") };
            notes.push(format!("TTL at the reflector: {range}"));
        }
        if counts.lost > 0 {
            let direction = lost_forward
                .map_or_else(String::new, |forward| format!(", {} of them on the way there", forward.min(counts.lost)));
            notes.push(format!(
                "{} lost in {}, the longest of {}{direction}",
                counts.lost,
                counted(counts.loss_runs, "run"),
                counts.longest_loss_run
            ));
        }
        if counts.reordered > 0 {
            notes.push(format!(
                "{} out of order (RFC 4737), {} of them already at the reflector, by at most {}",
                counted(counts.reordered, "reply"),
                counts.forward_reordered,
                counted(counts.reorder_extent_max, "packet")
            ));
        }
        if counts.duplicates > 0 {
            notes.push(format!("{} came once more", counted(counts.duplicates, "reply")));
        }
        if let Some(clock) = clock {
            notes.push(format!(
                "clock of the reflector: {} {} this one, within {}, gains {:.3} ppm{}",
                text(clock.offset_ns.unsigned_abs() as f64 / 1e9),
                if clock.offset_ns < 0 { "behind" } else { "ahead of" },
                text(clock.error_ns as f64 / 1e9),
                clock.skew_ppb as f64 / 1e3,
                match clock.steps {
                    0 => String::new(),
                    steps => format!(
                        ", {}, the latest of {}",
                        counted(steps.into(), "step"),
                        text(clock.last_step_ns as f64 / 1e9)
                    ),
                }
            ));
        }
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// A time as people write it.
fn text(seconds: f64) -> String {
    let size = seconds.abs();
    if size >= 1.0 {
        format!("{seconds:.3} s")
    } else if size >= 1e-3 {
        format!("{:.3} ms", seconds * 1e3)
    } else {
        format!("{:.1} us", seconds * 1e6)
    }
}

/// A number with its noun.
fn counted(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
    }
}

/// The value below which `share` of the sorted values lie (nearest rank).
fn quantile(sorted: &[i64], share: f64) -> i64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The median of delays with errors, ns, none of which is below 0, between the order statistics that hold it in 95 of
/// 100 cases (by the normal form of the binomial): of the least that each value can be, and of the most.
fn median(quantity: &'static str, values: impl Iterator<Item = (i64, u64)> + Clone) -> Estimate {
    let sorted = |edge: fn((i64, u64)) -> i64| {
        let mut edges: Vec<i64> = values.clone().map(|delay| edge(delay).max(0)).collect();
        edges.sort_unstable();
        edges
    };
    let middle = sorted(|(value, _)| value);
    let half = 0.5 * 1.96 / (middle.len() as f64).sqrt();
    let least = sorted(|(value, error)| value.saturating_sub_unsigned(error));
    let most = sorted(|(value, error)| value.saturating_add_unsigned(error));
    Estimate {
        quantity,
        value: seconds(quantile(&middle, 0.5)),
        low: seconds(quantile(&least, (0.5 - half).max(0.0))),
        high: seconds(quantile(&most, (0.5 + half).min(1.0))),
    }
}

/// Wilson's interval of a share, 95 %.
fn proportion(part: u64, of: u64) -> (f64, f64) {
    let (n, z) = (of as f64, 1.96);
    let p = part as f64 / n;
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let low = if part == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if part == of { 1.0 } else { (middle + half).min(1.0) };
    (low, high)
}
