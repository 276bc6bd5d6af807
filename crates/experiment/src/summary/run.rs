//! Metrics of the whole run.

use super::fc::{insert_fc_latency, insert_fc_rate, insert_fc_stall_times};
use super::files::{self, Copied};
use super::flow::insert_rtt;
use super::interval::bottleneck;
use super::messages::{insert_lag, insert_latency};
use super::network::insert_kept;
use super::requests::insert_requests;
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::fc_counters::{CreditStalls, FcCounters};
use crate::message_times::MessageTimes;
use crate::metric::{integer, real, Metric, Metrics};
use crate::request_counters::RequestCounters;
use crate::short_flows::insert_completion;
use crate::workload::Source;
use spec::{RunSpec, WorkloadSpec};
use std::collections::BTreeSet;
use units::{Histogram, Span, Time};

/// Counters that add up over flows.
const SUMMED: [&str; 37] = [
    "delivered_bytes",
    "delivered_packets",
    "retransmitted_segments",
    "retransmitted_bytes",
    "duplicate_acks",
    "timeouts",
    "fast_retransmits",
    "tlp_probes",
    "cwnd_reductions",
    "spurious_recoveries",
    "acks",
    "offered_bytes",
    "messages",
    "files",
    "file_bytes",
    "jobs",
    "late_jobs",
    "fc_frames",
    "fc_bytes",
    "credit_stalls",
    "gateway_credit_stalls",
    "fc_exchanges",
    "fc_exchanges_unfinished",
    "fc_aborts",
    "fc_retries",
    "fc_stale_frames",
    "fc_discarded_frames",
    "fc_frames_unfinished",
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

pub fn of_run(spec: &RunSpec, measured: &MeasuredRun, of_flows: &[Metrics], of_entries: &[Metrics]) -> Metrics {
    let mut metrics = Metrics::new();
    for name in SUMMED {
        let mut values = of_flows.iter().chain(of_entries).filter_map(|m| integer(m, name)).peekable();
        if values.peek().is_some() {
            metrics.insert(name, Metric::Integer(values.sum()));
        }
    }
    let dropped =
        measured.network.links.iter().chain(&measured.network.hold_buffers.stats).map(link::Stats::dropped).sum();
    metrics.insert("dropped_packets", Metric::Integer(dropped));

    insert_kept(&mut metrics, measured);
    let first = spec.flows.iter().map(|f| f.start_ns).min().unwrap_or(0).max(spec.measure.warmup_ns);
    let interval = measured.end.since(Time(first)).as_secs_f64();
    let bytes: u64 = measured.flows.iter().map(MeasuredFlow::measured_bytes).sum();
    if interval > 0.0 && !spec.flows.is_empty() {
        let goodput = bytes as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        let bottlenecks: BTreeSet<_> = spec.flows.iter().map(|f| bottleneck(spec, f)).collect();
        let capacity: u64 = bottlenecks.iter().map(|&link| spec.links[link].rate_bps).sum();
        metrics.insert("line_share", Metric::Real(goodput / capacity as f64));
    }
    if let Some(taken) = completion(spec, measured) {
        metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
    }
    let rates: Vec<f64> = of_flows.iter().filter_map(|m| real(m, "goodput_bps")).collect();
    if let Some(index) = jain(&rates) {
        metrics.insert("jain_index", Metric::Real(index));
    }
    insert_rtt(&mut metrics, &measured.flows);
    // Each of the measured interval, and of the warm-up.
    let [mut lag, mut latency]: [[Histogram; 2]; 2] = Default::default();
    let add = |[measured, start_up]: &mut [Histogram; 2], times: &MessageTimes| {
        measured.merge(&times.measured);
        start_up.merge(&times.start_up);
    };
    let (mut requests, mut fc_bytes, mut stalls) = (None, None, [CreditStalls::default(); 2]);
    for flow in &measured.flows {
        match &flow.workload.source {
            Source::Bulk { .. } | Source::Fc(_) | Source::Shared(_) => {}
            Source::Iscsi(counters) => requests.get_or_insert_with(RequestCounters::default).merge(counters),
            Source::Fcp(counters) => {
                requests.get_or_insert_with(RequestCounters::default).merge(&counters.requests);
            }
            Source::ConstantRate(constant_rate) => add(&mut latency, &constant_rate.messages.times),
            Source::Replicate(replicate) => add(&mut lag, &replicate.messages.times),
        }
    }
    for counters in measured.flows.iter().filter_map(|flow| frames_of(&flow.workload.source)) {
        add(&mut latency, &counters.times);
        fc_bytes = Some(fc_bytes.unwrap_or(0) + counters.measured_bytes());
        stalls[0].add(counters.port_stalls);
        stalls[1].add(counters.gateway_stalls);
    }
    let mut copied = Copied::new();
    for stripe in &measured.stripes {
        if let Some(files) = stripe.file_copy() {
            copied.add(spec, stripe, files);
            continue;
        }
        add(if stripe.is_mirror() { &mut lag } else { &mut latency }, &stripe.messages().times);
    }
    copied.insert(&mut metrics);
    insert_latency(&mut metrics, &latency[0], &latency[1]);
    insert_lag(&mut metrics, &lag[0], &lag[1]);
    if let Some(bytes) = fc_bytes {
        insert_fc_rate(&mut metrics, bytes, interval);
        insert_fc_latency(&mut metrics, &latency[0]);
        insert_fc_stall_times(&mut metrics, stalls);
    }
    if let Some(requests) = requests {
        insert_requests(&mut metrics, &requests, interval);
    }
    let reverse: Vec<_> = of_flows.iter().filter_map(|m| real(m, "reverse_goodput_bps")).collect();
    if !reverse.is_empty() {
        let bytes = |flow: &MeasuredFlow| flow.reverse.map_or(0, |r| r.received_bytes - r.received_at_warmup);
        let bits = measured.flows.iter().map(bytes).sum::<u64>() as f64 * 8.0;
        metrics.insert("reverse_goodput_bps", Metric::Real(bits / interval));
    }
    if !measured.short_flows.is_empty() {
        let mut completion = Histogram::default();
        for entry in &measured.short_flows {
            completion.merge(&entry.completion);
        }
        insert_completion(&mut metrics, &completion);
        let flows = measured.short_flows.iter().filter_map(|entry| integer(&entry.metrics, "flows")).sum();
        metrics.insert("short_flows", Metric::Integer(flows));
    }
    if let Some(managed) = &measured.network.managed {
        for name in ["moves", "wasted_moves", "returns", "refusals", "set_ups", "wasted_set_ups", "offloaded_bytes"] {
            metrics.insert(name, managed.metrics[name].clone());
        }
    }
    let drains: Vec<_> = of_flows.iter().chain(of_entries).filter_map(|m| real(m, "drain_s")).collect();
    let replicating = measured.flows.iter().filter(|f| matches!(f.workload.source, Source::Replicate(_))).count()
        + measured.stripes.iter().filter(|stripe| stripe.is_mirror()).count();
    if replicating > 0 && drains.len() == replicating {
        metrics.insert("drain_s", Metric::Real(drains.iter().copied().fold(0.0, f64::max)));
    }
    metrics.insert("simulated_s", Metric::Real(measured.drained_at.as_secs_f64()));
    metrics
}

/// Frames of N_Ports over a connection between gateways, where it is one.
fn frames_of(source: &Source) -> Option<&FcCounters> {
    match source {
        Source::Fc(counters) => Some(counters),
        Source::Fcp(counters) => Some(&counters.frames),
        _ => None,
    }
}

/// From the opening of the first connection to the last byte of all, where all that is sent is copies and all have
/// ended.
fn completion(spec: &RunSpec, measured: &MeasuredRun) -> Option<Span> {
    let ends = spec.flows.iter().zip(&measured.flows).map(|(flow, of_it)| match &flow.workload {
        WorkloadSpec::Bulk { bytes: Some(_), .. } => of_it.workload.done_at,
        WorkloadSpec::Program(program) if program.bytes.is_some() => of_it.workload.done_at,
        WorkloadSpec::Copy(_) => files::end_of(&measured.stripes[of_it.workload.share()?.stripe]),
        _ => None,
    });
    let last = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    let first = spec.flows.iter().map(|flow| flow.start_ns).min()?;
    Some(last.since(Time(first)))
}

/// Jain's fairness index (Jain, Chiu, Hawe 1984), 1 for one flow by its definition; None when nothing was delivered.
fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}
