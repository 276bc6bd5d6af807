//! Short flows: many, of random size, as a stretch of flow specifications; what became of them, in one sum.

use crate::arrivals::{arrivals, distribution, stream};
use crate::counters::ShortFlowsSummary;
use crate::flow::Flow;
use crate::metric::{insert_quantiles, Metric, Metrics};
use crate::transport::Transport;
use crate::validate::ValidSimulation;
use spec::{DistributionSpec, FlowSpec, ShortFlowsSpec, WorkloadSpec};
use units::{Histogram, Span, Time};

/// The short flows of `run`, entry by entry in the order in which they begin; with each the index of its entry.
/// Arrivals and sizes have a random stream each per entry.
pub fn members(run: ValidSimulation<'_>) -> Vec<(usize, FlowSpec)> {
    let mut found = vec![];
    for (index, entry) in run.short_flows.iter().enumerate() {
        let sizes = distribution(&entry.sizes).expect("a valid run's sizes can be drawn");
        let mut amounts = stream(run.spec(), entry, "sizes");
        for (number, begin) in (1..).zip(arrivals(run.spec(), entry)) {
            found.push((index, member(entry, number, begin, sizes.draw(&mut amounts), run.flows.len() + index)));
        }
    }
    found
}

fn member(entry: &ShortFlowsSpec, number: usize, start: Time, bytes: u64, group: usize) -> FlowSpec {
    FlowSpec {
        name: format!("{}.{number}", entry.name),
        group,
        source: entry.source,
        destination: entry.destination,
        route: entry.route.clone(),
        return_route: entry.return_route.clone(),
        transport: entry.transport.clone(),
        start_ns: start.0,
        stop_ns: None,
        workload: WorkloadSpec::Bulk { bytes: Some(bytes), buffer_bytes: None },
        distribution: DistributionSpec::Each,
    }
}

/// A short flow at the end of the run proper.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredShortFlow {
    /// Index of its entry.
    pub entry: usize,
    /// Bytes that it has, and those delivered.
    offered: u64,
    delivered: u64,
    /// Data segments sent again.
    sent_again: u64,
    /// Time from its beginning to the delivery of its last byte.
    completion: Option<Span>,
}

impl MeasuredShortFlow {
    /// `flow`, of the entry with the index `entry`.
    pub fn of<T: Transport>(flow: &Flow<T>, entry: usize) -> MeasuredShortFlow {
        let offered = match flow.spec.workload {
            WorkloadSpec::Bulk { bytes: Some(bytes), .. } => bytes,
            _ => 0,
        };
        MeasuredShortFlow {
            entry,
            offered,
            delivered: flow.receiver.bytes_received(),
            sent_again: flow.sender.stats().retransmitted_segments,
            completion: flow.workload.done_at.map(|done| done.since(Time(flow.spec.start_ns))),
        }
    }
}

/// Summarizes an entry's flows at the `end` of the run proper.
pub fn summarize(entry: &ShortFlowsSpec, flows: &[&MeasuredShortFlow], end: Time) -> ShortFlowsSummary {
    let mut completion = Histogram::default();
    let (mut delivered, mut offered, mut sent_again) = (0, 0, 0);
    for flow in flows {
        delivered += flow.delivered;
        sent_again += flow.sent_again;
        offered += flow.offered;
        if let Some(time) = flow.completion {
            completion.record(time.0);
        }
    }
    let mut metrics = Metrics::from([
        ("name", Metric::Text(entry.name.clone())),
        ("flows", Metric::Integer(flows.len() as u64)),
        ("offered_bytes", Metric::Integer(offered)),
        ("delivered_bytes", Metric::Integer(delivered)),
        ("retransmitted_segments", Metric::Integer(sent_again)),
        ("completed", Metric::Integer(completion.count())),
    ]);
    let interval = end.since(Time(entry.start_ns)).as_secs_f64();
    if interval > 0.0 {
        metrics.insert("goodput_bps", Metric::Real(delivered as f64 * 8.0 / interval));
    }
    insert_completion(&mut metrics, &completion);
    ShortFlowsSummary { metrics, completion }
}

/// Inserts the distribution of completion times.
pub fn insert_completion(metrics: &mut Metrics, completion: &Histogram) {
    let seconds = |ns: u64| Span(ns).as_secs_f64();
    for (name, value) in [
        ("short_completion_mean_s", completion.mean().map(|ns| ns / 1e9)),
        ("short_completion_p50_s", completion.quantile(500).map(seconds)),
        ("short_completion_p99_s", completion.quantile(990).map(seconds)),
        ("short_completion_max_s", completion.max().map(seconds)),
    ] {
        if let Some(value) = value {
            metrics.insert(name, Metric::Real(value));
        }
    }
    insert_quantiles(metrics, "short_completion_quantiles_s", completion);
}
