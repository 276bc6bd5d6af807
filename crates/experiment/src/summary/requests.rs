//! Metrics of requests.

use crate::counters::ReverseCounters;
use crate::metric::{insert_quantiles, insert_values, Metric, Metrics};
use crate::request_counters::{RequestCounters, RequestKindCounters};
use units::Histogram;

/// Names of the metrics of a kind of request.
struct KindNames {
    done: &'static str,
    bytes: &'static str,
    bytes_per_s: &'static str,
    iops: &'static str,
    latency: [&'static str; 5],
    quantiles: &'static str,
    layers: [&'static str; 3],
}

const READS: KindNames = KindNames {
    done: "reads",
    bytes: "read_bytes",
    bytes_per_s: "read_bytes_per_s",
    iops: "read_iops",
    latency: [
        "read_latency_mean_s",
        "read_latency_p50_s",
        "read_latency_p95_s",
        "read_latency_p99_s",
        "read_latency_max_s",
    ],
    quantiles: "read_latency_quantiles_s",
    layers: ["read_queue_mean_s", "read_network_mean_s", "read_disk_mean_s"],
};

const WRITES: KindNames = KindNames {
    done: "writes",
    bytes: "written_bytes",
    bytes_per_s: "write_bytes_per_s",
    iops: "write_iops",
    latency: [
        "write_latency_mean_s",
        "write_latency_p50_s",
        "write_latency_p95_s",
        "write_latency_p99_s",
        "write_latency_max_s",
    ],
    quantiles: "write_latency_quantiles_s",
    layers: ["write_queue_mean_s", "write_network_mean_s", "write_disk_mean_s"],
};

const LAYERS: [[&str; 2]; 3] =
    [["queue_mean_s", "queue_p99_s"], ["network_mean_s", "network_p99_s"], ["disk_mean_s", "disk_p99_s"]];

/// Adds the metrics of requests that were done within `interval` s.
pub fn insert_requests(metrics: &mut Metrics, counters: &RequestCounters, interval: f64) {
    insert_kind(metrics, &counters.reads, &READS, interval);
    insert_kind(metrics, &counters.writes, &WRITES, interval);
    let done = counters.reads.done + counters.writes.done;
    metrics.insert("requests", Metric::Integer(done));
    metrics.insert("requests_failed", Metric::Integer(counters.failed));
    if interval > 0.0 {
        let bytes = counters.reads.bytes + counters.writes.bytes;
        metrics.insert("io_bytes_per_s", Metric::Real(bytes as f64 / interval));
        metrics.insert("iops", Metric::Real(done as f64 / interval));
    }
    for (layer, names) in counters.layers.iter().zip(LAYERS) {
        insert_values(metrics, names.into_iter().zip([mean(layer), quantile(layer, 990)]));
    }
}

fn insert_kind(metrics: &mut Metrics, kind: &RequestKindCounters, names: &KindNames, interval: f64) {
    metrics.insert(names.done, Metric::Integer(kind.done));
    metrics.insert(names.bytes, Metric::Integer(kind.bytes));
    if interval > 0.0 {
        metrics.insert(names.bytes_per_s, Metric::Real(kind.bytes as f64 / interval));
        metrics.insert(names.iops, Metric::Real(kind.done as f64 / interval));
    }
    let latency = &kind.latency;
    let values = [
        mean(latency),
        quantile(latency, 500),
        quantile(latency, 950),
        quantile(latency, 990),
        latency.max().map(|ns| ns as f64 / 1e9),
    ];
    insert_values(metrics, names.latency.into_iter().zip(values));
    insert_quantiles(metrics, names.quantiles, latency);
    if kind.done > 0 {
        let means = kind.layers.map(|ns| Some(ns as f64 / kind.done as f64 / 1e9));
        insert_values(metrics, names.layers.into_iter().zip(means));
    }
}

fn mean(histogram: &Histogram) -> Option<f64> {
    histogram.mean().map(|ns| ns / 1e9)
}

fn quantile(histogram: &Histogram, per_mille: u64) -> Option<f64> {
    histogram.quantile(per_mille).map(|ns| ns as f64 / 1e9)
}

/// Adds the metrics of the data that the other end sent within `interval` s.
pub fn insert_reverse(metrics: &mut Metrics, reverse: &ReverseCounters, interval: f64) {
    for (name, value) in [
        ("reverse_delivered_bytes", reverse.received_bytes),
        ("reverse_delivered_packets", reverse.delivered_packets),
        ("reverse_sent_segments", reverse.sent_segments),
        ("reverse_retransmitted_segments", reverse.retransmitted_segments),
        ("reverse_retransmitted_bytes", reverse.retransmitted_bytes),
        ("reverse_dropped_packets", reverse.dropped_packets),
        ("reverse_timeouts", reverse.timeouts),
        ("reverse_fast_retransmits", reverse.fast_retransmits),
    ] {
        metrics.insert(name, Metric::Integer(value));
    }
    if interval > 0.0 {
        let bits = (reverse.received_bytes - reverse.received_at_warmup) as f64 * 8.0;
        metrics.insert("reverse_goodput_bps", Metric::Real(bits / interval));
    }
}
