//! A link of a specification in the link crate's form.

use link::{Jitter, JitterDistribution, LinkConfig, LossModel, QueueConfig};
use spec::{JitterKind, JitterSpec, LinkSpec, LossSpec, QueueSpec};
use units::{Rate, Span};

/// The link crate's form of `spec`.
pub fn link_config(spec: &LinkSpec) -> LinkConfig {
    LinkConfig {
        rate: Rate(spec.rate_bps),
        delay: Span(spec.delay_ns),
        queue: queue_config(&spec.queue),
        loss: loss_model(&spec.loss),
        jitter: spec.jitter.as_ref().map(jitter),
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
        LossSpec::EveryNth { n } => LossModel::EveryNth { n },
        LossSpec::BitErrorRate { probability_e18 } => LossModel::BitErrorRate { probability_e18 },
        LossSpec::List { packets } => LossModel::List { packets },
    }
}

fn jitter(spec: &JitterSpec) -> Jitter {
    let distribution = match spec.distribution {
        JitterKind::Uniform => JitterDistribution::Uniform,
        JitterKind::Exponential => JitterDistribution::Exponential,
        JitterKind::Normal => JitterDistribution::Normal,
    };
    Jitter { distribution, scale: Span(spec.scale_ns), reordering: spec.reordering }
}
