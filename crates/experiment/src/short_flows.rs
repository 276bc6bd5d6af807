//! Crowds: many short flows of random size, as a stretch of flow specifications; what became of them, in one tally.

use crate::counters::ShortFlowsSummary;
use crate::error::RunError;
use crate::flow::Flow;
use crate::metric::{insert_quantiles, Metric, Metrics};
use crate::spec::{CrowdSpec, DistributionSpec, FlowSpec, RunSpec, SizesSpec, WorkloadSpec};
use link::random::{stream_seed, Random};
use te::mix::{exponential, Distribution};
use units::{Histogram, Span, Time};

/// Flows that a crowd has at most: each is an endpoint pair that stays in memory until the end, some kilobytes.
const FLOWS_MAX: usize = 1_000_000;

/// The flows of all crowds of `run`, crowd by crowd in the order in which they begin; with each the index of its crowd. Arrivals and
/// sizes have a stream each per crowd.
///
/// # Errors
/// [`RunError::Spec`] names the crowd and what is wrong with it.
pub fn members(run: &RunSpec) -> Result<Vec<(usize, FlowSpec)>, RunError> {
    let mut found = vec![];
    for (index, crowd) in run.crowds.iter().enumerate() {
        let wrong = |text: &str| Err(RunError::Spec(format!("crowd {}: {text}", crowd.name)));
        let Some(sizes) = distribution(&crowd.sizes) else {
            return wrong("sizes: a least size above zero and below the most, an index or sigma above zero");
        };
        if crowd.arrivals_per_ks == 0 {
            return wrong("arrivals = 0: above zero");
        }
        let random = |what: &str| Random::new(stream_seed(run.seed, &format!("crowd/{}/{what}", crowd.name)));
        let (mut arrivals, mut amounts) = (random("arrivals"), random("sizes"));
        let gap_ns = 1e12 / crowd.arrivals_per_ks as f64;
        let end = Time(crowd.stop_ns.unwrap_or(run.duration_ns).min(run.duration_ns));
        let mut next = Time(crowd.start_ns) + Span(exponential(gap_ns, &mut arrivals) as u64);
        let mut count = 0;
        while next < end {
            count += 1;
            if count > FLOWS_MAX {
                return wrong(&format!("more than {FLOWS_MAX} flows: fewer arrivals, or a shorter run"));
            }
            found.push((index, member(crowd, count, next, sizes.draw(&mut amounts), run.flows.len() + index)));
            next += Span(exponential(gap_ns, &mut arrivals) as u64);
        }
    }
    Ok(found)
}

fn member(crowd: &CrowdSpec, number: usize, start: Time, bytes: u64, group: usize) -> FlowSpec {
    FlowSpec {
        name: format!("{}.{number}", crowd.name),
        group,
        source: crowd.source,
        destination: crowd.destination,
        route: crowd.route.clone(),
        return_route: crowd.return_route.clone(),
        stack: crowd.stack.clone(),
        start_ns: start.0,
        stop_ns: None,
        workload: WorkloadSpec::Bulk { bytes: Some(bytes) },
        distribution: DistributionSpec::Each,
    }
}

fn distribution(spec: &SizesSpec) -> Option<Distribution> {
    Some(match *spec {
        SizesSpec::Pareto { index_e3, least_bytes, most_bytes } => {
            if index_e3 == 0 || least_bytes == 0 || least_bytes >= most_bytes {
                return None;
            }
            let (least, most) = (least_bytes as f64, most_bytes as f64);
            Distribution::Pareto { index: f64::from(index_e3) / 1e3, least, most }
        }
        SizesSpec::Lognormal { median_bytes, sigma_e3 } => {
            if median_bytes == 0 || sigma_e3 == 0 {
                return None;
            }
            Distribution::Lognormal { median: median_bytes as f64, sigma: f64::from(sigma_e3) / 1e3 }
        }
    })
}

/// What had become of a crowd's flows when the run proper ended.
pub fn summarize(crowd: &CrowdSpec, flows: &[&Flow], end: Time) -> ShortFlowsSummary {
    let mut completion = Histogram::default();
    let (mut delivered, mut offered, mut sent_again) = (0, 0, 0);
    for flow in flows {
        delivered += flow.receiver.bytes_received();
        sent_again += flow.sender.stats().retransmitted_segments;
        if let WorkloadSpec::Bulk { bytes: Some(bytes) } = flow.spec.workload {
            offered += bytes;
        }
        if let Some(done) = flow.workload.done_at {
            completion.record(done.since(Time(flow.spec.start_ns)).0);
        }
    }
    let mut metrics = Metrics::from([
        ("name", Metric::Text(crowd.name.clone())),
        ("flows", Metric::Integer(flows.len() as u64)),
        ("offered_bytes", Metric::Integer(offered)),
        ("delivered_bytes", Metric::Integer(delivered)),
        ("retransmitted_segments", Metric::Integer(sent_again)),
        ("completed", Metric::Integer(completion.count())),
    ]);
    let interval = end.since(Time(crowd.start_ns)).as_secs_f64();
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
