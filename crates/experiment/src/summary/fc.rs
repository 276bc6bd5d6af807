//! Metrics of Fibre Channel frames between gateways.

use super::messages::insert_latency;
use crate::fc_counters::{CreditStalls, FcCounters};
use crate::metric::{insert_values, Metric, Metrics};
use units::Histogram;

/// Adds the metrics of a connection, whose measured interval is `interval` s.
pub fn insert_fc(metrics: &mut Metrics, counters: &FcCounters, interval: f64) {
    for (name, value) in [
        ("messages", counters.generated),
        ("offered_bytes", counters.generated_bytes),
        ("fc_frames", counters.delivered),
        ("fc_bytes", counters.delivered_bytes),
        ("credit_stalls", counters.port_stalls.count),
        ("gateway_credit_stalls", counters.gateway_stalls.count),
    ] {
        metrics.insert(name, Metric::Integer(value));
    }
    insert_fc_stall_times(metrics, [counters.port_stalls, counters.gateway_stalls]);
    insert_fc_rate(metrics, counters.measured_bytes(), interval);
    insert_latency(metrics, &counters.times.measured, &counters.times.start_up);
    insert_fc_latency(metrics, &counters.times.measured);
}

/// Adds the time of the waits for credits of N_Ports and of gateways.
pub fn insert_fc_stall_times(metrics: &mut Metrics, [ports, gateways]: [CreditStalls; 2]) {
    for (name, stalls) in [("credit_stall_s", ports), ("gateway_credit_stall_s", gateways)] {
        metrics.insert(name, Metric::Real(stalls.ns as f64 / 1e9));
    }
}

/// Adds the rate of `bytes` of frames' payload in `interval` s.
pub fn insert_fc_rate(metrics: &mut Metrics, bytes: u64, interval: f64) {
    if interval > 0.0 {
        metrics.insert("fc_bytes_per_s", Metric::Real(bytes as f64 / interval));
    }
}

/// Adds what frames have beside the latencies of other messages.
pub fn insert_fc_latency(metrics: &mut Metrics, latency: &Histogram) {
    let value = latency.quantile(950).map(|ns| ns as f64 / 1e9);
    insert_values(metrics, [("latency_p95_s", value)].into_iter());
}
