//! A link of a specification in the link crate's form.

use link::{Batching, Framing, Jitter, JitterDistribution, LinkConfig, LossModel, PolicerConfig, QueueConfig};
use spec::{BatchingSpec, FramingSpec, JitterKind, JitterSpec, LinkSpec, LossSpec, PolicerSpec, QueueSpec};
use units::{Rate, Span};

/// The link crate's form of `spec`.
pub fn link_config(spec: &LinkSpec) -> LinkConfig {
    // Its place is the network's.
    let LinkSpec {
        name: _,
        from: _,
        to: _,
        rate_bps,
        delay_ns,
        queue,
        loss,
        jitter,
        policer,
        framing,
        batching,
        mtu_bytes: _,
    } = spec;
    LinkConfig {
        rate: Rate(*rate_bps),
        framing: framing.map(framing_of).unwrap_or_default(),
        delay: Span(*delay_ns),
        queue: queue_config(queue),
        loss: loss_model(loss),
        jitter: jitter.as_ref().map(jitter_of),
        policer: policer.as_ref().map(policer_of),
        batching: batching.map(batching_of),
    }
}

fn queue_config(spec: &QueueSpec) -> QueueConfig {
    match *spec {
        QueueSpec::DropTail { limit_bytes, limit_packets } => QueueConfig::DropTail { limit_bytes, limit_packets },
        QueueSpec::Red { limit_bytes, min_bytes, max_bytes, max_probability_ppm, weight_shift, ecn } => {
            QueueConfig::Red { limit_bytes, min_bytes, max_bytes, max_probability_ppm, weight_shift, ecn }
        }
        QueueSpec::Codel { limit_packets, target_ns, interval_ns, ecn } => {
            QueueConfig::Codel { limit_packets, target: Span(target_ns), interval: Span(interval_ns), ecn }
        }
        QueueSpec::FqCodel { limit_packets, flows, quantum_bytes, target_ns, interval_ns, ecn } => {
            QueueConfig::FqCodel {
                limit_packets,
                flows,
                quantum_bytes,
                target: Span(target_ns),
                interval: Span(interval_ns),
                ecn,
            }
        }
    }
}

/// The link crate's loss model for `spec`.
pub fn loss_model(spec: &LossSpec) -> LossModel {
    match spec.clone() {
        LossSpec::None => LossModel::None,
        LossSpec::Independent { probability_e12 } => LossModel::Independent { probability_e12 },
        LossSpec::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 } => {
            LossModel::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 }
        }
        LossSpec::Runs { begins_e12, length } => LossModel::Runs { begins_e12, length },
        LossSpec::EveryNth { n } => LossModel::EveryNth { n },
        LossSpec::BitErrorRate { probability_e18 } => LossModel::BitErrorRate { probability_e18 },
        LossSpec::BitErrorBursts { good_to_bad_e18, bad_to_good_e18, error_bad_e18 } => {
            LossModel::BitErrorBursts { good_to_bad_e18, bad_to_good_e18, error_bad_e18 }
        }
        LossSpec::List { packets } => LossModel::List { packets },
    }
}

/// The link crate's form of jitter.
pub fn jitter_of(spec: &JitterSpec) -> Jitter {
    let JitterSpec { distribution, scale_ns, reordering } = *spec;
    let distribution = match distribution {
        JitterKind::Uniform => JitterDistribution::Uniform,
        JitterKind::Exponential => JitterDistribution::Exponential,
        JitterKind::Normal => JitterDistribution::Normal,
    };
    Jitter { distribution, scale: Span(scale_ns), reordering }
}

/// The link crate's form of a frame.
pub fn framing_of(spec: FramingSpec) -> Framing {
    let FramingSpec { header_bytes, min_frame_bytes, gap_bytes } = spec;
    Framing { header_bytes, min_frame_bytes, gap_bytes }
}

fn batching_of(spec: BatchingSpec) -> Batching {
    let BatchingSpec { max_bytes, wait_ns, wait_packets } = spec;
    Batching { max_bytes, wait: Span(wait_ns), wait_packets }
}

/// The link crate's form of a policer.
pub fn policer_of(spec: &PolicerSpec) -> PolicerConfig {
    let PolicerSpec { rate_bps, burst_bytes } = *spec;
    PolicerConfig { rate: Rate(rate_bps), burst_bytes }
}
