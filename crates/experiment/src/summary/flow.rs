//! Metrics of a connection.

use super::fc::insert_fc;
use super::fcp::insert_exchanges;
use super::interval::{bottleneck, end_of};
use super::messages::{insert_lag_of, insert_latency_of, longest_at_start, never_arrived};
use super::requests::{insert_requests, insert_reverse};
use super::stripe::insert_share;
use crate::counters::{MeasuredFlow, MeasuredRun};
use crate::metric::{Metric, Metrics};
use crate::workload::Source;
use spec::{FlowSpec, RunSpec};
use units::{Span, Time};

pub fn of_flow(
    run: &RunSpec,
    spec: &FlowSpec,
    flow: &MeasuredFlow,
    measured: &MeasuredRun,
    notes: &mut Vec<String>,
) -> Metrics {
    let mut metrics = Metrics::new();
    let c = &flow.counters;
    let received = c.received_bytes;
    metrics.insert("name", Metric::Text(spec.name.clone()));
    let udt = spec.transport.udt.map(|udt| udt.version.name().to_owned());
    let control = udt.unwrap_or_else(|| spec.transport.congestion_control.clone());
    metrics.insert("congestion_control", Metric::Text(control));
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
        ("cwnd_reductions", c.cwnd_reductions),
        ("spurious_recoveries", c.spurious_recoveries),
        ("acks", c.acks),
    ] {
        if let Some(value) = value {
            metrics.insert(name, Metric::Integer(value));
        }
    }
    if let Some(sending) = &c.sending {
        for (name, us) in [
            ("busy_s", sending.busy_us),
            ("limited_by_receive_window_s", sending.receive_window_us),
            ("limited_by_send_buffer_s", sending.send_buffer_us),
        ] {
            metrics.insert(name, Metric::Real(Span::from_micros(us).as_secs_f64()));
        }
    }
    let from = Time(spec.start_ns.max(run.measure.warmup_ns));
    let to = end_of(spec, flow.workload.done_at, measured.end);
    let interval = to.since(from).as_secs_f64();
    if interval > 0.0 {
        let goodput = flow.measured_bytes() as f64 * 8.0 / interval;
        metrics.insert("goodput_bps", Metric::Real(goodput));
        let line = run.links[bottleneck(run, spec)].rate_bps;
        metrics.insert("line_share", Metric::Real(goodput / line as f64));
    }
    insert_rtt(&mut metrics, std::slice::from_ref(flow));
    // Frames of a load all go one way.
    if let Some(reverse) = flow.reverse.as_ref().filter(|_| !matches!(flow.workload.source, Source::Fc(_))) {
        insert_reverse(&mut metrics, reverse, interval);
    }
    match &flow.workload.source {
        Source::Bulk { bytes } => {
            if let (Some(_), Some(done)) = (bytes, flow.workload.done_at) {
                let taken = done.since(Time(spec.start_ns));
                metrics.insert("completion_s", Metric::Real(taken.as_secs_f64()));
            } else if let (Some(bytes), None) = (bytes, &measured.copy) {
                notes.push(format!("flow {}: {received} of {bytes} bytes had arrived at the end", spec.name));
            }
        }
        Source::Iscsi(counters) => insert_requests(&mut metrics, counters, interval),
        Source::Fc(counters) => insert_fc(&mut metrics, counters, interval),
        Source::Fcp(counters) => {
            insert_requests(&mut metrics, &counters.requests, interval);
            insert_fc(&mut metrics, &counters.frames, interval);
            insert_exchanges(&mut metrics, &counters.exchanges, &counters.frames);
        }
        Source::Shared(share) => insert_share(&mut metrics, spec, flow, &measured.stripes[share.stripe], share.lane),
        Source::ConstantRate(constant_rate) => {
            metrics.insert("messages", Metric::Integer(constant_rate.messages.issued));
            metrics.insert("offered_bytes", Metric::Integer(constant_rate.messages.issued_bytes));
            insert_latency_of(&mut metrics, &constant_rate.messages.times);
            notes.extend(longest_at_start(run, spec, &spec.name, "latency", &constant_rate.messages.times));
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

pub fn insert_rtt(metrics: &mut Metrics, flows: &[MeasuredFlow]) {
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
