//! Metrics of links, background sources and hold buffers.

use super::voice;
use crate::counters::{BackgroundCounters, MeasuredRun};
use crate::metric::{insert_distribution, insert_values, Metric, Metrics};
use crate::packet_times::PacketDelays;
use spec::{ActionSpec, BackgroundSpec, LinkSpec, LossSpec, RunSpec};
use units::{Span, Time};

/// Part of damaged frames that a check sequence of 32 bits lets pass (IEEE 802.3, 3.2.9): of a frame that is wrong
/// throughout, every value is as likely. Where the errors are few it is less: up to 3 in 1518 B are always found.
const UNDETECTED: f64 = 1.0 / (1u64 << 32) as f64;

/// Returns whether all that link `index` loses on the line are frames with bit errors.
fn loses_by_bit_errors(run: &RunSpec, index: usize) -> bool {
    let by_bits = |loss: &LossSpec| matches!(loss, LossSpec::BitErrorRate { .. } | LossSpec::BitErrorBursts { .. });
    let later = run.events.iter().filter_map(|event| match &event.action {
        ActionSpec::Loss { link, loss } if *link == index => Some(loss),
        _ => None,
    });
    by_bits(&run.links[index].loss) && later.into_iter().all(by_bits)
}

pub fn of_link(run: &RunSpec, index: usize, stats: &link::Stats, end: Time) -> Metrics {
    let spec: &LinkSpec = &run.links[index];
    let mut metrics = Metrics::from([("name", Metric::Text(spec.name.clone()))]);
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
    if spec.framing.is_some() && loses_by_bit_errors(run, index) {
        metrics.insert("fcs_errors", Metric::Integer(stats.dropped_by_loss));
        metrics.insert("undetected_errors_expected", Metric::Real(stats.dropped_by_loss as f64 * UNDETECTED));
    }
    if spec.policer.is_some() {
        metrics.insert("dropped_by_policer", Metric::Integer(stats.dropped_by_policer));
    }
    if end > Time::ZERO {
        let rate = stats.delivered_bytes as f64 * 8.0 / end.as_secs_f64();
        metrics.insert("carried_bps", Metric::Real(rate));
    }
    metrics
}

pub fn of_background(spec: &BackgroundSpec, counters: &BackgroundCounters) -> Metrics {
    let BackgroundCounters { sent, dropped, received, delays } = counters;
    let mut metrics = Metrics::from([
        ("name", Metric::Text(spec.name.clone())),
        ("sent_packets", Metric::Integer(*sent)),
        ("received_packets", Metric::Integer(*received)),
        ("dropped_packets", Metric::Integer(*dropped)),
    ]);
    // Of those whose fate the run has seen.
    let loss = (dropped + received > 0).then(|| *dropped as f64 / (dropped + received) as f64);
    insert_values(&mut metrics, [("loss_share", loss)].into_iter());
    if let Some(PacketDelays { each, variations }) = delays {
        insert_distribution(&mut metrics, each, ["delay_mean_s", "delay_p50_s", "delay_p99_s", "delay_max_s"]);
        insert_values(&mut metrics, [("jitter_s", variations.mean().map(|ns| ns / 1e9))].into_iter());
        let call = spec.codec.zip(loss).and_then(|(codec, loss)| voice::call(codec, spec.packet_bytes, loss, each));
        if let Some(voice::Call { rating, mos, delay_s }) = call {
            let of_call = [("voice_r", rating), ("voice_mos", mos), ("voice_delay_s", delay_s)];
            insert_values(&mut metrics, of_call.into_iter().map(|(name, value)| (name, Some(value))));
        }
    }
    metrics
}

/// Of hold buffers at moving routers, if the spec has any.
pub fn insert_kept(metrics: &mut Metrics, measured: &MeasuredRun) {
    let most = |of: fn(&link::hold_buffer::Stats) -> u64| measured.network.hold_buffers.kept.iter().map(of).max();
    let (Some(bytes), Some(longest)) = (most(|kept| kept.max_bytes), most(|kept| kept.max_delay.0)) else { return };
    metrics.insert(
        "held_packets",
        Metric::Integer(measured.network.hold_buffers.kept.iter().map(|kept| kept.packets).sum()),
    );
    metrics.insert("held_bytes_max", Metric::Integer(bytes));
    metrics.insert("held_max_s", Metric::Real(Span(longest).as_secs_f64()));
    metrics.insert(
        "held_dropped_packets",
        Metric::Integer(measured.network.hold_buffers.stats.iter().map(link::Stats::dropped).sum()),
    );
}
