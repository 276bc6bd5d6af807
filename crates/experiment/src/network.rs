//! The network of a spec for whoever carries packets over it: the simulator in virtual time, an emulator in wall-clock time.

use crate::error::RunError;
use crate::hold_buffers;
use crate::routes;
use crate::spec::{JitterKind, JitterSpec, LinkSpec, LossSpec, QueueSpec, RunSpec};
use link::random::stream_seed;
use link::{Jitter, JitterDistribution, Link, LinkConfig, LossModel, Packet, QueueConfig};
use units::{Rate, Span};

/// All links of `spec`, in its order, then the gates of its moves. With `ahead`, those that no event changes are made by [`Link::fixed`], which may tell of a
/// loss before its time.
///
/// # Errors
/// [`RunError::Spec`] names the link and what is wrong with it.
pub fn links<P: Packet>(spec: &RunSpec, ahead: bool) -> Result<Vec<Link<P>>, RunError> {
    let links = (0..spec.links.len()).map(|index| build_link(index, spec, ahead));
    let mut lines = hold_buffers::Lines::default();
    let gates = hold_buffers::make(routes::hold_buffers(spec).map(|(_, gate)| (lines.number(gate), gate)));
    links.chain(gates.into_iter().map(Ok)).collect()
}

/// Whether `route` is one link after the other, each from where the one before ends. `what` and `key` begin the error.
pub fn check_chain(what: &str, key: &str, route: &[usize], links: &[LinkSpec]) -> Result<(), RunError> {
    if route.is_empty() {
        return Err(RunError::Spec(format!("{what}: {key} is empty: at least one link")));
    }
    if let Some(bad) = route.iter().find(|&&l| l >= links.len()) {
        return Err(RunError::Spec(format!("{what}: {key}: link {bad} does not exist, there are {}", links.len())));
    }
    for pair in route.windows(2) {
        if links[pair[0]].to != links[pair[1]].from {
            let (a, b) = (&links[pair[0]].name, &links[pair[1]].name);
            return Err(RunError::Spec(format!("{what}: {key}: {b} does not begin where {a} ends")));
        }
    }
    Ok(())
}

/// Whether `route` leads from node `from` to node `to`.
///
/// # Errors
/// [`RunError::Spec`] begins with `what` and `key` and names the link that is wrong.
pub fn check_route(
    what: &str,
    key: &str,
    route: &[usize],
    from: usize,
    to: usize,
    links: &[LinkSpec],
) -> Result<(), RunError> {
    check_chain(what, key, route, links)?;
    if links[route[0]].from != from || links[route[route.len() - 1]].to != to {
        return Err(RunError::Spec(format!("{what}: {key} does not lead from node {from} to node {to}")));
    }
    Ok(())
}

fn build_link<P: Packet>(index: usize, run: &RunSpec, ahead: bool) -> Result<Link<P>, RunError> {
    let spec = &run.links[index];
    if spec.from >= run.nodes.len() || spec.to >= run.nodes.len() {
        return Err(RunError::Spec(format!("link {}: its nodes do not exist", spec.name)));
    }
    if spec.rate_bps == 0 {
        return Err(RunError::Spec(format!("link {}: rate = 0: above zero", spec.name)));
    }
    let config = link_config(spec);
    config.check().map_err(|e| RunError::Spec(format!("link {}: {e}", spec.name)))?;
    let seed = stream_seed(run.seed, &format!("link/{}", spec.name));
    let changes = run.events.iter().any(|e| e.action.link() == Some(index));
    Ok(if changes || !ahead { Link::new(config, seed) } else { Link::fixed(config, seed) })
}

fn link_config(spec: &LinkSpec) -> LinkConfig {
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
