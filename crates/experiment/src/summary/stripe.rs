//! Metrics of a flow whose connections share one workload: of the flow, where a connection's own say little.

use super::files::insert_files;
use super::interval::{bottleneck, end_of};
use super::messages::{insert_lag_of, insert_latency_of, longest_at_start, never_arrived};
use crate::applications::name;
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::metric::{Metric, Metrics};
use crate::workload::Stripe;
use spec::{FlowSpec, RunSpec, WorkloadSpec};
use units::Time;

/// The metrics of a stripe as a whole; `measured` is of the run that it was in.
pub fn metrics(run: &RunSpec, stripe: &Stripe, measured: &MeasuredRun, notes: &mut Vec<String>) -> Metrics {
    let lanes = stripe.first..stripe.first + stripe.lanes();
    let (specs, flows) = (&run.flows[lanes.clone()], &measured.flows[lanes]);
    let spec = &specs[0];
    let name = name(spec);
    let mut metrics = Metrics::from([
        ("name", Metric::Text(name.to_owned())),
        ("group", Metric::Integer(spec.group as u64)),
        ("distribution", Metric::Text("striped".to_owned())),
        ("connections", Metric::Integer(specs.len() as u64)),
    ]);
    let start = Time(specs.iter().map(|s| s.start_ns).min().unwrap_or(0));
    let done_at = flows.iter().map(|f| f.workload.done_at).max().flatten();
    let done_at = done_at.filter(|_| flows.iter().all(|f| f.workload.done_at.is_some()));
    let interval = end_of(spec, done_at, measured.end).since(start.max(Time(run.measure.warmup_ns))).as_secs_f64();
    if interval > 0.0 {
        let goodput = flows.iter().map(MeasuredFlow::measured_bytes).sum::<u64>() as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        metrics.insert("line_share", Metric::Real(goodput / run.links[bottleneck(run, spec)].rate_bps as f64));
    }
    if let WorkloadSpec::Bulk { bytes: Some(bytes), .. } = spec.workload {
        if let Some(done) = done_at {
            metrics.insert("completion_s", Metric::Real(done.since(start).as_secs_f64()));
        } else if measured.copy.is_none() {
            let received: u64 = flows.iter().map(|f| f.counters.received_bytes).sum();
            notes.push(format!("flow {name}: {received} of {bytes} bytes had arrived at the end"));
        }
    }
    if stripe.file_copy().is_some() {
        notes.extend(insert_files(&mut metrics, run, stripe, name, measured.copy.is_some()));
        return metrics;
    }
    let times = &stripe.messages().times;
    let what = if stripe.is_mirror() { "lag" } else { "latency" };
    notes.extend(longest_at_start(run, spec, name, what, times));
    if !stripe.is_mirror() {
        insert_latency_of(&mut metrics, times);
        return metrics;
    }
    insert_lag_of(&mut metrics, run, times, &stripe.at_risk, stripe.messages().lag_bytes());
    let waiting = stripe.messages().not_applied();
    if waiting > 0 {
        notes.push(never_arrived(name, waiting));
    } else if let Some(stopped) = flows[0].workload.stopped_at {
        // A connection over which everything had come by then has no such time.
        let done = flows.iter().filter_map(|f| f.workload.done_at).max().unwrap_or(stopped);
        metrics.insert("drain_s", Metric::Real(done.since(stopped).as_secs_f64()));
    }
    metrics
}

/// Inserts a connection's share of the workload of `stripe`.
pub fn insert_share(metrics: &mut Metrics, spec: &FlowSpec, flow: &MeasuredFlow, stripe: &Stripe, lane: usize) {
    if stripe.is_copy() {
        if let Some(done) = flow.workload.done_at {
            let taken = done.since(Time(spec.start_ns));
            metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
        }
        return;
    }
    let (messages, bytes) = stripe.messages().issued(lane);
    metrics.insert("messages", Metric::Integer(messages));
    metrics.insert("offered_bytes", Metric::Integer(bytes));
}
