//! What a run measured. Names carry units; what does not apply is absent, never zero.

use crate::entry;
use crate::extrapolated;
use crate::iscsi::{insert_requests, insert_reverse, ConnectionTally};
use crate::managed::ManagerOutcome;
use crate::measure::{FlowSeries, LinkSeries};
use crate::quantiles::insert_quantiles;
use crate::spec::{FlowSpec, RunSpec, WorkloadSpec};
use crate::tally::{BackgroundTally, FlowTally, RunTally, TrimTally, TrimmedFor};
use crate::workload::{Most, Source, Times};
use std::collections::{BTreeMap, BTreeSet};
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
    /// A value for each of [`crate::QUANTILES_PER_MILLE`].
    Table(Vec<f64>),
}

/// Metrics by name.
pub type Metrics = BTreeMap<&'static str, Metric>;

/// Everything a run gives back.
pub struct Outcome {
    /// Of the whole run.
    pub metrics: Metrics,
    /// Of each connection, in the order of the spec.
    pub flows: Vec<Metrics>,
    /// Of each workload that several connections share.
    pub entries: Vec<Metrics>,
    /// Of each link, in the order of the spec.
    pub links: Vec<Metrics>,
    /// Of each background source.
    pub background: Vec<Metrics>,
    /// Of each crowd.
    pub crowds: Vec<Metrics>,
    /// What the manager did, where there is one.
    pub managed: Option<ManagerOutcome>,
    /// What was extrapolated of a copy, or why nothing was.
    pub extrapolation: Option<Metrics>,
    /// What a reader of the numbers has to know.
    pub notes: Vec<String>,
    /// When each event of the spec happened, s since the run began; None: it did not.
    pub happened_s: Vec<Option<f64>>,
    /// Of each sender that was told to trim its window.
    pub trims: Vec<Metrics>,
    /// Empty unless asked for.
    pub flow_series: FlowSeries,
    /// Empty unless asked for.
    pub link_series: LinkSeries,
}

/// Sums up a finished run. Counters and rates are those of the run proper; lag and drain tell of what came after as well.
///
/// # Panics
/// When `tally` is of another spec: flows, links and background sources must be as many as the spec has.
pub fn sum_up(spec: &RunSpec, tally: RunTally) -> Outcome {
    assert_eq!(
        (tally.flows.len(), tally.links.len(), tally.background.len()),
        (spec.flows.len(), spec.links.len(), spec.background.len())
    );
    let mut notes = vec![];
    let mut flows: Vec<_> =
        spec.flows.iter().zip(&tally.flows).map(|(s, f)| of_flow(spec, s, f, &tally, &mut notes)).collect();
    let mut entries: Vec<_> = tally.stripes.iter().map(|s| entry::metrics(spec, s, &tally, &mut notes)).collect();
    let links = spec.links.iter().zip(&tally.links).map(|(s, l)| of_link(&s.name, l, tally.end)).collect();
    let background = spec.background.iter().zip(&tally.background).map(|(s, b)| of_background(&s.name, b)).collect();
    let mut metrics = of_run(spec, &tally, &flows, &entries);
    let extrapolation = tally.found.as_ref().map(|found| {
        // Of the copy as a whole, which is the run's only flow.
        let of_copy = if let [entry] = &mut entries[..] { entry } else { &mut flows[0] };
        extrapolated::apply(spec, &tally, found, [&mut metrics, of_copy])
    });
    let happened_s = tally.happened.iter().map(|at| at.map(Time::as_secs_f64)).collect();
    let trims = tally.trims.iter().map(|trim| of_trim(spec, trim)).collect();
    notes.extend(tally.notes);
    let RunTally { flow_series, link_series, crowds, managed, .. } = tally;
    Outcome {
        metrics,
        flows,
        entries,
        links,
        background,
        crowds: crowds.into_iter().map(|crowd| crowd.metrics).collect(),
        managed,
        extrapolation,
        notes,
        happened_s,
        trims,
        flow_series,
        link_series,
    }
}

/// What came of telling a sender; without `kept_segments` it was not done.
fn of_trim(spec: &RunSpec, trim: &TrimTally) -> Metrics {
    let mut metrics = BTreeMap::from([
        match trim.why {
            TrimmedFor::Event(event) => ("event", Metric::Integer(event as u64)),
            TrimmedFor::Entry(entry) => ("entry", Metric::Integer(entry as u64)),
        },
        ("flow", Metric::Text(spec.flows[trim.flow].name.clone())),
        ("at_s", Metric::Real(trim.at.as_secs_f64())),
        ("srtt_s", Metric::Real(trim.srtt.as_secs_f64())),
    ]);
    if let Some(trimmed) = trim.trimmed {
        metrics.insert("window_segments", Metric::Integer(trimmed.window.into()));
        metrics.insert("kept_segments", Metric::Integer(trimmed.kept.into()));
    }
    metrics
}

/// The slowest link of the data's route at the start of the run, the first of several.
pub fn bottleneck(spec: &RunSpec, flow: &FlowSpec) -> usize {
    *flow.route.iter().min_by_key(|&&l| spec.links[l].rate_bps).expect("a route has at least one link")
}

/// Counters that add up over flows.
const SUMMED: [&str; 21] = [
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
    "startup_lag_max_bytes",
    "reverse_delivered_bytes",
    "reverse_delivered_packets",
    "reverse_retransmitted_segments",
    "reverse_retransmitted_bytes",
    "reverse_dropped_packets",
    "reverse_timeouts",
    "reverse_fast_retransmits",
];

fn of_run(spec: &RunSpec, tally: &RunTally, of_flows: &[Metrics], of_entries: &[Metrics]) -> Metrics {
    let mut metrics = Metrics::new();
    for name in SUMMED {
        let mut values = of_flows.iter().chain(of_entries).filter_map(|m| integer(m, name)).peekable();
        if values.peek().is_some() {
            metrics.insert(name, Metric::Integer(values.sum()));
        }
    }
    let dropped = tally.links.iter().chain(&tally.gates).map(link::Stats::dropped).sum();
    metrics.insert("dropped_packets", Metric::Integer(dropped));

    insert_kept(&mut metrics, tally);
    let first = spec.flows.iter().map(|f| f.start_ns).min().unwrap_or(0).max(spec.measure.warmup_ns);
    let interval = tally.end.since(Time(first)).as_secs_f64();
    let bytes: u64 = tally.flows.iter().map(FlowTally::measured_bytes).sum();
    if interval > 0.0 {
        let goodput = bytes as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        let bottlenecks: BTreeSet<_> = spec.flows.iter().map(|f| bottleneck(spec, f)).collect();
        let capacity: u64 = bottlenecks.iter().map(|&link| spec.links[link].rate_bps).sum();
        metrics.insert("line_share", Metric::Real(goodput / capacity as f64));
    }
    if let Some(taken) = completion(spec, tally) {
        metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
    }
    if spec.flows.len() > 1 {
        let rates: Vec<f64> = of_flows.iter().filter_map(|m| real(m, "goodput_bps")).collect();
        if let Some(index) = jain(&rates) {
            metrics.insert("jain_index", Metric::Real(index));
        }
    }
    insert_rtt(&mut metrics, &tally.flows);
    // Each of the measured interval, and of the warm-up.
    let [mut lag, mut latency]: [[Histogram; 2]; 2] = Default::default();
    let add = |[measured, start_up]: &mut [Histogram; 2], times: &Times| {
        measured.merge(&times.measured);
        start_up.merge(&times.start_up);
    };
    let mut requests = None;
    for flow in &tally.flows {
        match &flow.workload.source {
            Source::Bulk { .. } | Source::Shared(_) => {}
            Source::Iscsi(tally) => requests.get_or_insert_with(ConnectionTally::default).merge(tally),
            Source::Offered(offered) => add(&mut latency, &offered.messages.times),
            Source::Replicate(replicate) => add(&mut lag, &replicate.messages.times),
        }
    }
    for stripe in &tally.stripes {
        add(if stripe.is_mirror() { &mut lag } else { &mut latency }, &stripe.messages().times);
    }
    insert_latency(&mut metrics, &latency[0], &latency[1]);
    insert_lag(&mut metrics, &lag[0], &lag[1]);
    if let Some(requests) = requests {
        insert_requests(&mut metrics, &requests, interval);
    }
    let reverse: Vec<_> = of_flows.iter().filter_map(|m| real(m, "reverse_goodput_bps")).collect();
    if !reverse.is_empty() {
        let bytes = |flow: &FlowTally| flow.reverse.map_or(0, |r| r.received_bytes - r.received_at_warmup);
        let bits = tally.flows.iter().map(bytes).sum::<u64>() as f64 * 8.0;
        metrics.insert("reverse_goodput_bps", Metric::Real(bits / interval));
    }
    if !tally.crowds.is_empty() {
        let mut completion = Histogram::default();
        for crowd in &tally.crowds {
            completion.merge(&crowd.completion);
        }
        crate::crowd::insert_completion(&mut metrics, &completion);
        let flows = tally.crowds.iter().filter_map(|crowd| integer(&crowd.metrics, "flows")).sum();
        metrics.insert("short_flows", Metric::Integer(flows));
    }
    if let Some(managed) = &tally.managed {
        for name in ["moves", "wasted_moves", "returns", "refusals", "set_ups", "wasted_set_ups", "offloaded_bytes"] {
            metrics.insert(name, managed.metrics[name].clone());
        }
    }
    let drains: Vec<_> = of_flows.iter().chain(of_entries).filter_map(|m| real(m, "drain_s")).collect();
    let replicating = tally.flows.iter().filter(|f| matches!(f.workload.source, Source::Replicate(_))).count()
        + tally.stripes.iter().filter(|stripe| stripe.is_mirror()).count();
    if replicating > 0 && drains.len() == replicating {
        metrics.insert("drain_s", Metric::Real(drains.iter().copied().fold(0.0, f64::max)));
    }
    metrics.insert("simulated_s", Metric::Real(tally.drained_at.as_secs_f64()));
    metrics
}

/// From the opening of the first connection to the last byte of all, where all that is sent is copies and all have ended.
fn completion(spec: &RunSpec, tally: &RunTally) -> Option<Span> {
    let ends = spec.flows.iter().zip(&tally.flows).map(|(flow, of_it)| match flow.workload {
        WorkloadSpec::Bulk { bytes: Some(_) } | WorkloadSpec::Program { bytes: Some(_), .. } => of_it.workload.done_at,
        _ => None,
    });
    let last = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let first = spec.flows.iter().map(|flow| flow.start_ns).min()?;
    Some(last.since(Time(first)))
}

fn of_flow(run: &RunSpec, spec: &FlowSpec, flow: &FlowTally, tally: &RunTally, notes: &mut Vec<String>) -> Metrics {
    let mut metrics = Metrics::new();
    let c = &flow.counters;
    let received = c.received_bytes;
    metrics.insert("name", Metric::Text(spec.name.clone()));
    metrics.insert("congestion_control", Metric::Text(spec.transport.congestion_control.clone()));
    for (name, value) in [
        ("group", Some(spec.group as u64)),
        ("delivered_bytes", Some(received)),
        ("delivered_packets", c.delivered_packets),
        ("sent_segments", c.sent_segments),
        ("retransmitted_segments", c.retransmitted_segments),
        ("retransmitted_bytes", c.retransmitted_bytes),
        ("dropped_packets", c.dropped_packets),
        ("duplicate_acks", c.duplicate_acks),
        ("timeouts", c.timeouts),
        ("fast_retransmits", c.fast_retransmits),
        ("tlp_probes", c.tlp_probes),
        ("spurious_recoveries", c.spurious_recoveries),
        ("acks", c.acks),
    ] {
        if let Some(value) = value {
            metrics.insert(name, Metric::Integer(value));
        }
    }
    let from = Time(spec.start_ns.max(run.measure.warmup_ns));
    let to = end_of(spec, flow.workload.done_at, tally.end);
    let interval = to.since(from).as_secs_f64();
    if interval > 0.0 {
        let goodput = flow.measured_bytes() as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        let line = run.links[bottleneck(run, spec)].rate_bps;
        metrics.insert("line_share", Metric::Real(goodput / line as f64));
    }
    insert_rtt(&mut metrics, std::slice::from_ref(flow));
    if let Some(reverse) = &flow.reverse {
        insert_reverse(&mut metrics, reverse, interval);
    }
    match &flow.workload.source {
        Source::Bulk { bytes } => {
            if let (Some(_), Some(done)) = (bytes, flow.workload.done_at) {
                let taken = done.since(Time(spec.start_ns));
                metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
            } else if let (Some(bytes), None) = (bytes, &tally.found) {
                notes.push(format!("flow {}: {received} of {bytes} bytes had arrived at the end", spec.name));
            }
        }
        Source::Iscsi(tally) => insert_requests(&mut metrics, tally, interval),
        Source::Shared(share) => {
            entry::insert_share(&mut metrics, spec, flow, &tally.stripes[share.stripe], share.lane)
        }
        Source::Offered(offered) => {
            metrics.insert("messages", Metric::Integer(offered.messages.issued));
            metrics.insert("offered_bytes", Metric::Integer(offered.messages.issued_bytes));
            insert_latency_of(&mut metrics, &offered.messages.times);
            notes.extend(longest_at_start(run, spec, &spec.name, "latency", &offered.messages.times));
        }
        Source::Replicate(replicate) => {
            metrics.insert("messages", Metric::Integer(replicate.messages.issued));
            metrics.insert("offered_bytes", Metric::Integer(replicate.messages.issued_bytes));
            insert_lag_of(&mut metrics, run, &replicate.messages.times, &replicate.at_risk, replicate.lag_bytes());
            notes.extend(longest_at_start(run, spec, &spec.name, "lag", &replicate.messages.times));
            let waiting = replicate.messages.in_transit();
            if waiting > 0 {
                notes.push(never_arrived(&spec.name, waiting));
            } else if let Some(stopped) = flow.workload.stopped_at {
                let done = flow.workload.done_at.unwrap_or(stopped);
                metrics.insert("drain_s", Metric::Real(done.since(stopped).as_secs_f64()));
            }
        }
    }
    metrics
}

/// The note for writes that never arrived.
pub(crate) fn never_arrived(name: &str, writes: usize) -> String {
    format!("flow {name}: {writes} writes never arrived; the lag is of those that did, there is no drain_s")
}

/// When the interval over which the goodput of a flow counts ends.
pub(crate) fn end_of(spec: &FlowSpec, done_at: Option<Time>, end: Time) -> Time {
    let stop = spec.stop_ns.map_or(end, Time);
    done_at.map_or(stop, |done| if spec.stop_ns.is_some() { stop } else { done }).min(end)
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

fn of_background(name: &str, tally: &BackgroundTally) -> Metrics {
    Metrics::from([
        ("name", Metric::Text(name.to_owned())),
        ("sent_packets", Metric::Integer(tally.sent)),
        ("received_packets", Metric::Integer(tally.received)),
        ("dropped_packets", Metric::Integer(tally.dropped)),
    ])
}

fn insert_rtt(metrics: &mut Metrics, flows: &[FlowTally]) {
    let all = || flows.iter().map(|f| &f.counters.rtt);
    let (samples, sum) = all().filter_map(|r| r.mean).fold((0, 0), |(n, sum), (m, more)| (n + m, sum + more));
    if samples > 0 {
        metrics.insert("rtt_mean_s", Metric::Real(sum as f64 / samples as f64 / 1e6));
    }
    let least = all().filter_map(|r| r.min_us).min();
    let most = all().filter_map(|r| r.max_us).max();
    for (name, us) in [("rtt_min_s", least), ("rtt_max_s", most)] {
        if let Some(us) = us {
            metrics.insert(name, Metric::Real(Span::from_micros(us).as_secs_f64()));
        }
    }
}

/// Of gates at moving routers, where the spec has some.
fn insert_kept(metrics: &mut Metrics, tally: &RunTally) {
    let most = |of: fn(&link::hold_buffer::Stats) -> u64| tally.kept.iter().map(of).max();
    let (Some(bytes), Some(longest)) = (most(|kept| kept.max_bytes), most(|kept| kept.max_delay.0)) else { return };
    metrics.insert("held_packets", Metric::Integer(tally.kept.iter().map(|kept| kept.packets).sum()));
    metrics.insert("held_bytes_max", Metric::Integer(bytes));
    metrics.insert("held_max_s", Metric::Real(Span(longest).as_secs_f64()));
    metrics.insert("held_dropped_packets", Metric::Integer(tally.gates.iter().map(link::Stats::dropped).sum()));
}

/// Of frames of one flow.
pub(crate) fn insert_latency_of(metrics: &mut Metrics, times: &Times) {
    insert_latency(metrics, &times.measured, &times.start_up);
}

/// Of mirrored writes of one flow, and their data at risk, of which `left` bytes never arrived.
pub(crate) fn insert_lag_of(metrics: &mut Metrics, run: &RunSpec, times: &Times, at_risk: &Most, left: u64) {
    insert_lag(metrics, &times.measured, &times.start_up);
    metrics.insert("lag_max_bytes", Metric::Integer(at_risk.measured.max(left)));
    if run.measure.warmup_ns > 0 {
        metrics.insert("startup_lag_max_bytes", Metric::Integer(at_risk.start_up));
    }
}

/// Round trips from a flow's start within which its windows are still opening: slow start doubles them once each, and 2^20 packets are
/// more than any path here holds.
const START_UP_ROUND_TRIPS: u64 = 20;

/// A note where the longest of the times, far above the others, was at the start, and nothing was left out.
pub(crate) fn longest_at_start(
    run: &RunSpec,
    spec: &FlowSpec,
    name: &str,
    what: &str,
    times: &Times,
) -> Option<String> {
    let (longest, issued) = times.longest?;
    let links = spec.route.iter().chain(&spec.return_route);
    let rtt_ns: u64 = links.map(|&link| run.links[link].delay_ns).sum();
    let after = issued.since(Time(spec.start_ns));
    let stands_out = longest.0 > 2 * times.measured.quantile(500)?;
    (run.measure.warmup_ns == 0 && stands_out && after.0 < START_UP_ROUND_TRIPS * rtt_ns).then(|| {
        format!(
            "flow {name}: the longest {what} is from its first {START_UP_ROUND_TRIPS} round trips; measure.warmup tells start-up and \
             steady state apart"
        )
    })
}

fn insert_latency(metrics: &mut Metrics, histogram: &Histogram, start_up: &Histogram) {
    insert_ends(metrics, start_up, ["startup_latency_p99_s", "startup_latency_max_s"]);
    insert_distribution(metrics, histogram, ["latency_mean_s", "latency_p50_s", "latency_p99_s", "latency_max_s"]);
    insert_quantiles(metrics, "latency_quantiles_s", histogram);
}

fn insert_lag(metrics: &mut Metrics, histogram: &Histogram, start_up: &Histogram) {
    insert_ends(metrics, start_up, ["startup_lag_p99_s", "startup_lag_max_s"]);
    insert_distribution(metrics, histogram, ["lag_mean_s", "lag_p50_s", "lag_p99_s", "lag_max_s"]);
    insert_quantiles(metrics, "lag_quantiles_s", histogram);
}

/// Inserts what the worst of a distribution were.
fn insert_ends(metrics: &mut Metrics, histogram: &Histogram, names: [&'static str; 2]) {
    let values = [histogram.quantile(990), histogram.max()].map(|ns| ns.map(|ns| Span(ns).as_secs_f64()));
    insert_values(metrics, names.into_iter().zip(values));
}

fn insert_distribution(metrics: &mut Metrics, histogram: &Histogram, names: [&'static str; 4]) {
    let seconds = |ns: u64| Span(ns).as_secs_f64();
    let values = [
        histogram.mean().map(|ns| ns / 1e9),
        histogram.quantile(500).map(seconds),
        histogram.quantile(990).map(seconds),
        histogram.max().map(seconds),
    ];
    insert_values(metrics, names.into_iter().zip(values));
}

/// Inserts those that there are.
pub(crate) fn insert_values(metrics: &mut Metrics, values: impl Iterator<Item = (&'static str, Option<f64>)>) {
    for (name, value) in values {
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
