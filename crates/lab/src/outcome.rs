//! What a run measured. Names carry units; what does not apply is absent, never zero.

use crate::flow::{Counters, Flow};
use crate::measure::{FlowSeries, LinkSeries};
use crate::packet::Packet;
use crate::spec::RunSpec;
use crate::workload::Source;
use crate::world::World;
use sim::Network;
use std::collections::BTreeMap;
use units::{Histogram, Span, Time};

/// A measured value.
#[derive(Clone, PartialEq, Debug)]
pub enum Metric {
    /// A count or an amount in the unit of its name.
    Integer(u64),
    /// A ratio, a mean, a time in s, a rate in bit/s.
    Real(f64),
    /// A name.
    Text(String),
}

/// Metrics by name.
pub type Metrics = BTreeMap<&'static str, Metric>;

/// Everything a run gives back.
pub struct Outcome {
    /// Of the whole run.
    pub metrics: Metrics,
    /// Of each connection, in the order of the spec.
    pub flows: Vec<Metrics>,
    /// Of each link, in the order of the spec.
    pub links: Vec<Metrics>,
    /// Of each background source.
    pub background: Vec<Metrics>,
    /// What a reader of the numbers has to know.
    pub notes: Vec<String>,
    /// Empty unless asked for.
    pub flow_series: FlowSeries,
    /// Empty unless asked for.
    pub link_series: LinkSeries,
}

/// Counters when the run proper ended, before what is on its way drains.
pub struct Measured {
    end: Time,
    flows: Vec<Counters>,
    links: Vec<link::Stats>,
}

impl Measured {
    /// The counters now, at `end`.
    pub fn at_end(world: &World, net: &Network<Packet>, end: Time) -> Measured {
        Measured {
            end,
            flows: world.flows.iter().map(Flow::counters).collect(),
            links: net.links().iter().map(|l| *l.stats()).collect(),
        }
    }
}

/// Sums up the finished run. Counters and rates are those of the run proper; lag and drain tell of what came after as well.
pub fn sum_up(
    spec: &RunSpec,
    world: World,
    net: &Network<Packet>,
    measured: &Measured,
    captured: Option<(u64, u64)>,
) -> Outcome {
    let mut notes = vec![];
    let end = measured.end;
    let counted = world.flows.iter().zip(&measured.flows);
    let flows: Vec<_> = counted.map(|(f, c)| of_flow(spec, f, c, end, &mut notes)).collect();
    let links: Vec<_> = spec.links.iter().zip(&measured.links).map(|(s, l)| of_link(&s.name, l, end)).collect();
    let background = world
        .background
        .iter()
        .map(|b| {
            Metrics::from([
                ("name", Metric::Text(b.spec.name.clone())),
                ("sent_packets", Metric::Integer(b.sent_packets)),
                ("received_packets", Metric::Integer(b.received_packets)),
                ("dropped_packets", Metric::Integer(b.dropped_packets)),
            ])
        })
        .collect();
    for change in world.changes.iter().filter(|c| !c.done) {
        notes.push(format!("an event never happened: {:?}", change.spec.when));
    }
    if let Some((_, skipped)) = captured.filter(|&(_, skipped)| skipped > 0) {
        notes.push(format!("the capture is full: {skipped} later packets are not in it"));
    }
    let mut metrics = of_run(spec, &world.flows, &flows, net, measured);
    metrics.insert("events", Metric::Integer(net.events()));
    Outcome { metrics, flows, links, background, notes, flow_series: world.flow_series, link_series: world.link_series }
}

/// Counters that add up over flows.
const SUMMED: [&str; 13] = [
    "delivered_bytes",
    "delivered_packets",
    "retransmitted_segments",
    "retransmitted_bytes",
    "duplicate_acks",
    "timeouts",
    "fast_retransmits",
    "tlp_probes",
    "spurious_recoveries",
    "acks",
    "offered_bytes",
    "messages",
    "lag_max_bytes",
];

fn of_run(spec: &RunSpec, flows: &[Flow], of_flows: &[Metrics], net: &Network<Packet>, measured: &Measured) -> Metrics {
    let end = measured.end;
    let mut metrics = Metrics::new();
    for name in SUMMED {
        let mut values = of_flows.iter().filter_map(|m| integer(m, name)).peekable();
        if values.peek().is_some() {
            metrics.insert(name, Metric::Integer(values.sum()));
        }
    }
    let dropped = measured.links.iter().map(link::Stats::dropped).sum();
    metrics.insert("dropped_packets", Metric::Integer(dropped));

    let first = flows.iter().map(|f| f.spec.start_ns).min().unwrap_or(0).max(spec.measure.warmup_ns);
    let interval = end.since(Time(first)).as_secs_f64();
    let counted = flows.iter().zip(&measured.flows);
    let bytes: u64 = counted.map(|(f, c)| c.received - f.received_at_warmup).sum();
    if interval > 0.0 {
        let goodput = bytes as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        let bottlenecks: BTreeMap<_, _> = flows.iter().map(|f| (f.bottleneck, f.bottleneck_bps)).collect();
        let capacity: u64 = bottlenecks.values().sum();
        metrics.insert("line_share", Metric::Real(goodput / capacity as f64));
    }
    if flows.len() > 1 {
        let rates: Vec<f64> = of_flows.iter().filter_map(|m| real(m, "goodput_bps")).collect();
        if let Some(index) = jain(&rates) {
            metrics.insert("jain_index", Metric::Real(index));
        }
    }
    insert_rtt(&mut metrics, measured.flows.iter());
    let mut lag = Histogram::default();
    let mut latency = Histogram::default();
    for flow in flows {
        match &flow.workload.source {
            Source::Bulk { .. } => {}
            Source::Offered(offered) => latency.merge(&offered.messages.latency),
            Source::Replicate(replicate) => lag.merge(&replicate.messages.latency),
        }
    }
    insert_latency(&mut metrics, &latency);
    insert_lag(&mut metrics, &lag);
    let drains: Vec<_> = of_flows.iter().filter_map(|m| real(m, "drain_s")).collect();
    let replicating = flows.iter().filter(|f| matches!(f.workload.source, Source::Replicate(_))).count();
    if replicating > 0 && drains.len() == replicating {
        metrics.insert("drain_s", Metric::Real(drains.iter().copied().fold(0.0, f64::max)));
    }
    metrics.insert("simulated_s", Metric::Real(net.now().as_secs_f64()));
    metrics
}

fn of_flow(spec: &RunSpec, flow: &Flow, counters: &Counters, end: Time, notes: &mut Vec<String>) -> Metrics {
    let mut metrics = Metrics::new();
    let Counters { sender, receiver, received, dropped_packets } = counters;
    let (received, dropped_packets) = (*received, *dropped_packets);
    metrics.insert("name", Metric::Text(flow.spec.name.clone()));
    metrics.insert("stack", Metric::Text(flow.spec.stack.congestion.clone()));
    for (name, value) in [
        ("group", flow.spec.group as u64),
        ("delivered_bytes", received),
        ("delivered_packets", receiver.data_segments_received),
        ("sent_segments", sender.data_segments_sent),
        ("retransmitted_segments", sender.retransmitted_segments),
        ("retransmitted_bytes", sender.retransmitted_bytes),
        ("dropped_packets", dropped_packets),
        ("duplicate_acks", sender.duplicate_acks_received),
        ("timeouts", sender.timeouts),
        ("fast_retransmits", sender.fast_retransmits),
        ("tlp_probes", sender.tlp_probes),
        ("spurious_recoveries", sender.spurious_undos()),
        ("acks", receiver.acks_sent),
    ] {
        metrics.insert(name, Metric::Integer(value));
    }
    let from = Time(flow.spec.start_ns.max(spec.measure.warmup_ns));
    let stop = flow.spec.stop_ns.map_or(end, Time);
    let to = flow.workload.done_at.map_or(stop, |done| if flow.spec.stop_ns.is_some() { stop } else { done }).min(end);
    let interval = to.since(from).as_secs_f64();
    if interval > 0.0 {
        let goodput = (received - flow.received_at_warmup) as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        metrics.insert("line_share", Metric::Real(goodput / flow.bottleneck_bps as f64));
    }
    insert_rtt(&mut metrics, std::iter::once(counters));
    match &flow.workload.source {
        Source::Bulk { bytes } => {
            if let (Some(_), Some(done)) = (bytes, flow.workload.done_at) {
                let taken = done.since(Time(flow.spec.start_ns));
                metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
            } else if let Some(bytes) = bytes {
                notes.push(format!("flow {}: {received} of {bytes} bytes had arrived at the end", flow.spec.name));
            }
        }
        Source::Offered(offered) => {
            metrics.insert("messages", Metric::Integer(offered.messages.issued));
            metrics.insert("offered_bytes", Metric::Integer(offered.messages.issued_bytes));
            insert_latency(&mut metrics, &offered.messages.latency);
        }
        Source::Replicate(replicate) => {
            metrics.insert("messages", Metric::Integer(replicate.messages.issued));
            metrics.insert("offered_bytes", Metric::Integer(replicate.messages.issued_bytes));
            metrics.insert("lag_max_bytes", Metric::Integer(replicate.lag_max_bytes));
            insert_lag(&mut metrics, &replicate.messages.latency);
            let waiting = replicate.messages.in_transit();
            if waiting > 0 {
                let name = &flow.spec.name;
                notes.push(format!(
                    "flow {name}: {waiting} writes never arrived; the lag is of those that did, there is no drain_s"
                ));
            } else if let Some(stopped) = flow.workload.stopped_at {
                let done = flow.workload.done_at.unwrap_or(stopped);
                metrics.insert("drain_s", Metric::Real(done.since(stopped).as_secs_f64()));
            }
        }
    }
    metrics
}

fn of_link(name: &str, stats: &link::Stats, end: Time) -> Metrics {
    let mut metrics = Metrics::from([("name", Metric::Text(name.to_owned()))]);
    for (name, value) in [
        ("delivered_packets", stats.delivered),
        ("delivered_bytes", stats.delivered_bytes),
        ("dropped_packets", stats.dropped()),
        ("dropped_by_queue", stats.dropped_by_queue),
        ("dropped_by_aqm", stats.dropped_by_aqm),
        ("dropped_by_loss", stats.dropped_by_loss),
        ("dropped_by_outage", stats.dropped_by_outage),
        ("marked_packets", stats.marked),
        ("queue_max_packets", stats.max_queue_packets),
        ("queue_max_bytes", stats.max_queue_bytes),
    ] {
        metrics.insert(name, Metric::Integer(value));
    }
    if end > Time::ZERO {
        let rate = stats.delivered_bytes as f64 * 8.0 / end.as_secs_f64();
        metrics.insert("carried_bps", Metric::Real(rate));
    }
    metrics
}

fn insert_rtt<'a>(metrics: &mut Metrics, flows: impl Iterator<Item = &'a Counters>) {
    let (mut samples, mut sum, mut min, mut max) = (0u64, 0u64, u64::MAX, 0u64);
    for stats in flows.map(|c| &c.sender) {
        samples += stats.rtt_samples;
        sum += stats.rtt_sum_us;
        min = min.min(stats.rtt_min_us);
        max = max.max(stats.rtt_max_us);
    }
    if samples > 0 {
        metrics.insert("rtt_mean_s", Metric::Real(sum as f64 / samples as f64 / 1e6));
        metrics.insert("rtt_min_s", Metric::Real(Span::from_micros(min).as_secs_f64()));
        metrics.insert("rtt_max_s", Metric::Real(Span::from_micros(max).as_secs_f64()));
    }
}

fn insert_latency(metrics: &mut Metrics, histogram: &Histogram) {
    insert_distribution(metrics, histogram, ["latency_mean_s", "latency_p50_s", "latency_p99_s", "latency_max_s"]);
}

fn insert_lag(metrics: &mut Metrics, histogram: &Histogram) {
    insert_distribution(metrics, histogram, ["lag_mean_s", "lag_p50_s", "lag_p99_s", "lag_max_s"]);
}

fn insert_distribution(metrics: &mut Metrics, histogram: &Histogram, names: [&'static str; 4]) {
    let seconds = |ns: u64| Span(ns).as_secs_f64();
    let values = [
        histogram.mean().map(|ns| ns / 1e9),
        histogram.quantile(500).map(seconds),
        histogram.quantile(990).map(seconds),
        histogram.max().map(seconds),
    ];
    for (name, value) in names.into_iter().zip(values) {
        if let Some(value) = value {
            metrics.insert(name, Metric::Real(value));
        }
    }
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984); None when nothing was delivered.
fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

fn integer(metrics: &Metrics, name: &str) -> Option<u64> {
    match metrics.get(name) {
        Some(Metric::Integer(value)) => Some(*value),
        _ => None,
    }
}

fn real(metrics: &Metrics, name: &str) -> Option<f64> {
    match metrics.get(name) {
        Some(Metric::Real(value)) => Some(*value),
        _ => None,
    }
}
