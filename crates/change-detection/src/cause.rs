//! The likely cause of changes that several quantities of a path show at one time.
//!
//! Rules in an order: the causes that mimic others come first. A clock that steps looks like a longer path in one
//! direction; a host that is late looks like a queue; a longer route moves every delay. No rule holds: unknown.

use serde::{Deserialize, Serialize};

/// One quantity before and after.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// Its name, as detectors have it.
    pub quantity: String,
    /// In the quantity's unit.
    pub before: f64,
    /// In the quantity's unit.
    pub after: f64,
}

/// Delays of a while: its least, median and 95th percentile, s.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// Least.
    pub min_s: f64,
    /// Median.
    pub median_s: f64,
    /// 95th percentile.
    pub p95_s: f64,
}

/// Signs of an end host.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// `near`, `far` or its name.
    pub name: String,
    /// Part of a core that was busy, 0 to 1, the busiest core.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// Part of the packets that were sent or stamped late, 0 to 1.
    #[serde(default)]
    pub late: Option<f64>,
    /// Step of its clock that it knows of, s.
    #[serde(default)]
    pub clock_step_s: Option<f64>,
}

/// Evidence of the time around a change.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Quantities that changed at that time.
    pub changes: Vec<Move>,
    /// Round trips before the change.
    #[serde(default)]
    pub rtt_before: Option<Delays>,
    /// Round trips after it.
    #[serde(default)]
    pub rtt_after: Option<Delays>,
    /// True if the hops answer in another order or are others; None where nobody looked.
    #[serde(default)]
    pub route_changed: Option<bool>,
    /// True if a test found a policer; None where none ran.
    #[serde(default)]
    pub policer: Option<bool>,
    /// The ends.
    #[serde(default)]
    pub hosts: Vec<Host>,
}

/// A cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An end's clock stepped.
    ClockStep,
    /// An end is too busy.
    EndHost,
    /// Packets take another route, or a longer line below IP.
    Route,
    /// Something drops what exceeds a rate.
    Policer,
    /// The bottleneck's own rate changed.
    Capacity,
    /// Traffic waits at a bottleneck.
    Queue,
    /// Packets are lost that do not wait.
    Loss,
    /// Nothing comes through.
    Outage,
    /// Not decided.
    Unknown,
}

/// A cause and its evidence.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// The cause.
    pub cause: Cause,
    /// One line each.
    pub evidence: Vec<String>,
    /// Other causes that the evidence does not exclude.
    pub also: Vec<Cause>,
}

/// Two steps are of one size within this part.
const SAME: f64 = 0.25;
/// A core that is busier, or a larger part of late packets, is a sign.
const BUSY: f64 = 0.9;
const LATE: f64 = 0.01;
/// The least change of a delay that counts, in parts of it and in s.
const DELAY_PART: f64 = 0.05;
const DELAY_LEAST_S: f64 = 0.1e-3;

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

fn rate(bps: f64) -> String {
    if bps >= 1e9 {
        format!("{:.2} Gbit/s", bps / 1e9)
    } else {
        format!("{:.2} Mbit/s", bps / 1e6)
    }
}

/// The move of the distribution of round trips.
struct Shape {
    min_s: f64,
    median_s: f64,
    spread_s: f64,
    spread_before_s: f64,
    counts_s: f64,
}

impl Evidence {
    fn moved(&self, quantity: &str) -> Option<&Move> {
        self.changes.iter().find(|change| change.quantity == quantity)
    }

    fn by(&self, quantity: &str) -> f64 {
        self.moved(quantity).map_or(0.0, |change| change.after - change.before)
    }

    fn shape(&self) -> Option<Shape> {
        let (before, after) = (self.rtt_before?, self.rtt_after?);
        let spread = |delays: Delays| delays.p95_s - delays.min_s;
        Some(Shape {
            min_s: after.min_s - before.min_s,
            median_s: after.median_s - before.median_s,
            spread_s: spread(after) - spread(before),
            spread_before_s: spread(before),
            counts_s: (DELAY_PART * before.min_s).max(DELAY_LEAST_S),
        })
    }

    fn clock_step(&self) -> Option<Vec<String>> {
        let mut lines: Vec<String> = self
            .hosts
            .iter()
            .filter_map(|host| host.clock_step_s.map(|step| (host, step)))
            .filter(|(_, step)| step.abs() > 0.0)
            .map(|(host, step)| format!("the clock of {} stepped by {}", host.name, ms(step)))
            .collect();
        let (forward, reverse) = (self.by("forward_delay_s"), self.by("reverse_delay_s"));
        let opposite = forward * reverse < 0.0 && (forward + reverse).abs() <= SAME * forward.abs().max(reverse.abs());
        if opposite && self.by("rtt_s").abs() <= SAME * forward.abs() {
            lines.push(format!(
                "the delays of both directions moved by {} and {}, and the round trip did not",
                ms(forward),
                ms(reverse)
            ));
        } else if !lines.is_empty() && self.changes.iter().any(|change| !change.quantity.ends_with("_delay_s")) {
            // A known step of a clock explains one-way delays and nothing else.
            return None;
        }
        (!lines.is_empty()).then_some(lines)
    }

    fn end_host(&self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        for host in &self.hosts {
            if let Some(late) = host.late.filter(|late| *late > LATE) {
                lines.push(format!("{:.1} % of the packets of {} were late", 100.0 * late, host.name));
            }
            if let Some(cpu) = host.cpu.filter(|cpu| *cpu > BUSY) {
                lines.push(format!("a core of {} was busy for {:.0} %", host.name, 100.0 * cpu));
            }
        }
        (!lines.is_empty() && !self.hops_differ()).then_some(lines)
    }

    fn hops_differ(&self) -> bool {
        self.route_changed == Some(true) || self.moved("ttl").is_some() || self.moved("hops").is_some()
    }

    fn route(&self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        for name in ["ttl", "hops"] {
            if let Some(change) = self.moved(name) {
                let shown = if name == "ttl" { "TTL" } else { "number of hops" };
                lines.push(format!("the {shown} went from {} to {}", change.before, change.after));
            }
        }
        if self.route_changed == Some(true) {
            lines.push("the hops are others than before".into());
        }
        if let Some(shape) = self.shape() {
            let whole = (shape.median_s - shape.min_s).abs() <= SAME * shape.min_s.abs();
            if shape.min_s.abs() >= shape.counts_s && (whole || !lines.is_empty()) {
                lines.push(format!(
                    "the least round trip moved by {}, the median by {}",
                    ms(shape.min_s),
                    ms(shape.median_s)
                ));
            }
        } else if !lines.is_empty() && self.moved("rtt_s").is_some() {
            lines.push(format!("the round trip moved by {}", ms(self.by("rtt_s"))));
        }
        (!lines.is_empty()).then_some(lines)
    }

    fn waits_longer(&self) -> Option<Shape> {
        self.shape().filter(|shape| {
            shape.spread_s >= shape.counts_s.max(0.5 * shape.spread_before_s) && shape.min_s.abs() < shape.spread_s
        })
    }

    fn policer(&self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        if self.policer == Some(true) {
            lines.push("a test found a policer".into());
        }
        if let Some(change) = self.moved("policer_rate_bps") {
            lines.push(format!("the policer's rate is {}", rate(change.after)));
        }
        let down = ["throughput_bps", "available_bps"].into_iter().find(|name| self.by(name) < 0.0);
        if let (true, Some(change)) = (lines.is_empty(), down.and_then(|name| self.moved(name))) {
            let known = self.shape().is_some() && self.waits_longer().is_none();
            if known && self.by("loss") > 0.0 && self.policer.is_none() && self.by("capacity_bps") == 0.0 {
                lines.push(format!(
                    "{} went from {} to {} with loss and without a queue",
                    change.quantity.trim_end_matches("_bps"),
                    rate(change.before),
                    rate(change.after)
                ));
            }
        }
        (!lines.is_empty()).then_some(lines)
    }

    fn capacity(&self) -> Option<Vec<String>> {
        let change = self.moved("capacity_bps")?;
        Some(vec![format!("the capacity went from {} to {}", rate(change.before), rate(change.after))])
    }

    fn queue(&self) -> Option<Vec<String>> {
        let shape = self.waits_longer()?;
        let mut lines = vec![format!(
            "the spread of round trips rose by {}, the least round trip moved by {}",
            ms(shape.spread_s),
            ms(shape.min_s)
        )];
        if self.by("available_bps") < 0.0 {
            lines.push("available bandwidth fell".into());
        }
        if self.by("loss") > 0.0 {
            lines.push("packets are lost while they wait".into());
        }
        Some(lines)
    }

    fn loss(&self) -> Option<Vec<String>> {
        let change = self.moved("loss").filter(|change| change.after > change.before)?;
        let mut lines = vec![format!("loss went from {:.2e} to {:.2e}", change.before, change.after)];
        if self.shape().is_some() {
            lines.push("round trips are as before".into());
        }
        Some(lines)
    }
}

/// Returns the likely cause of changes at one time.
pub fn likely_cause(evidence: &Evidence) -> Verdict {
    let outage = evidence.moved("silent").map(|_| vec!["no packet comes back".to_owned()]);
    let rules = [
        (Cause::Outage, outage),
        (Cause::ClockStep, evidence.clock_step()),
        (Cause::EndHost, evidence.end_host()),
        (Cause::Route, evidence.route()),
        (Cause::Policer, evidence.policer()),
        (Cause::Capacity, evidence.capacity()),
        (Cause::Queue, evidence.queue()),
        (Cause::Loss, evidence.loss()),
    ];
    let mut holding = rules.into_iter().filter_map(|(cause, lines)| lines.map(|lines| (cause, lines)));
    match holding.next() {
        Some((cause, evidence)) => Verdict { cause, evidence, also: holding.map(|(cause, _)| cause).collect() },
        None => Verdict {
            cause: Cause::Unknown,
            evidence: vec!["the measurements fit none of the known causes".into()],
            also: Vec::new(),
        },
    }
}
