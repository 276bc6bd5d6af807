//! Metrics of messages: their delays and the data at risk.

use crate::message_times::MessageTimes;
use crate::metric::{insert_distribution, insert_ends, insert_quantiles, Metric, Metrics};
use crate::workload::Peak;
use spec::{FlowSpec, RunSpec};
use units::{Histogram, Time};

/// The note for writes that never arrived.
pub fn never_arrived(name: &str, writes: usize) -> String {
    format!("flow {name}: {writes} writes never arrived; the lag is of those that did, there is no drain_s")
}

/// Of frames of one flow.
pub fn insert_latency_of(metrics: &mut Metrics, times: &MessageTimes) {
    insert_latency(metrics, &times.measured, &times.start_up);
}

/// Of mirrored writes of one flow, and their data at risk, of which `left` bytes never arrived.
pub fn insert_lag_of(metrics: &mut Metrics, run: &RunSpec, times: &MessageTimes, at_risk: &Peak, left: u64) {
    insert_lag(metrics, &times.measured, &times.start_up);
    metrics.insert("lag_max_bytes", Metric::Integer(at_risk.measured.max(left)));
    if run.measure.warmup_ns > 0 {
        metrics.insert("startup_lag_max_bytes", Metric::Integer(at_risk.start_up));
    }
}

/// Round trips from a flow's start within which its windows are still opening: slow start doubles them once each, and
/// 2^20 packets are more than any path here holds.
const START_UP_ROUND_TRIPS: u64 = 20;

/// A note where the longest of the times, far above the others, was at the start, and nothing was left out.
pub fn longest_at_start(
    run: &RunSpec,
    spec: &FlowSpec,
    name: &str,
    what: &str,
    times: &MessageTimes,
) -> Option<String> {
    let (longest, issued) = times.longest?;
    let links = spec.route.iter().chain(&spec.return_route);
    let rtt_ns: u64 = links.map(|&link| run.links[link].delay_ns).sum();
    let after = issued.since(Time(spec.start_ns));
    let stands_out = longest.0 > 2 * times.measured.quantile(500)?;
    (run.measure.warmup_ns == 0 && stands_out && after.0 < START_UP_ROUND_TRIPS * rtt_ns).then(|| {
        format!(
            "flow {name}: the longest {what} is from its first {START_UP_ROUND_TRIPS} round trips; measure.warmup \
             tells start-up and steady state apart"
        )
    })
}

pub fn insert_latency(metrics: &mut Metrics, histogram: &Histogram, start_up: &Histogram) {
    insert_ends(metrics, start_up, ["startup_latency_p99_s", "startup_latency_max_s"]);
    insert_distribution(metrics, histogram, ["latency_mean_s", "latency_p50_s", "latency_p99_s", "latency_max_s"]);
    insert_quantiles(metrics, "latency_quantiles_s", histogram);
}

pub fn insert_lag(metrics: &mut Metrics, histogram: &Histogram, start_up: &Histogram) {
    insert_ends(metrics, start_up, ["startup_lag_p99_s", "startup_lag_max_s"]);
    insert_distribution(metrics, histogram, ["lag_mean_s", "lag_p50_s", "lag_p99_s", "lag_max_s"]);
    insert_quantiles(metrics, "lag_quantiles_s", histogram);
}
