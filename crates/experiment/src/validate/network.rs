//! Links, routes, background sources and hold buffers.

use crate::active::Active;
use crate::error::RunError;
use crate::link_config::link_config;
use spec::{BackgroundSpec, FramesSpec, HoldBufferSpec, LinkSpec, RunSpec};

/// Most packets of a round of frames.
const ROUND_MAX: usize = 10_000;

/// Checks `spec` as a link between nodes of `run`.
pub fn check_link(run: &RunSpec, spec: &LinkSpec) -> Result<(), RunError> {
    if spec.from >= run.nodes.len() || spec.to >= run.nodes.len() {
        return Err(RunError::Spec(format!("link {}: its nodes do not exist", spec.name)));
    }
    if spec.rate_bps == 0 {
        return Err(RunError::Spec(format!("link {}: rate = 0: above zero", spec.name)));
    }
    link_config(spec).check().map_err(|e| RunError::Spec(format!("link {}: {e}", spec.name)))
}

/// Checks `spec` as a source in `run`.
pub fn check_background(run: &RunSpec, spec: &BackgroundSpec) -> Result<(), RunError> {
    let what = format!("background {}", spec.name);
    check_chain(&what, "route", &spec.route, &run.links)?;
    if spec.rate_bps == 0 || spec.packet_bytes == 0 || spec.packet_bytes > 65_535 {
        return Err(RunError::Spec(format!("{what}: rate above zero and packets of 1 to 65535 B")));
    }
    if spec.active.as_ref().is_some_and(|active| !Active::is_possible(active)) {
        return Err(RunError::Spec(format!("{what}: active: times on and off above zero, a phase below both")));
    }
    if let Some(FramesSpec { packets_bytes, .. }) = &spec.frames {
        let right = |&bytes: &u32| bytes > 0 && bytes <= spec.packet_bytes;
        if spec.rate_bps > link::MAX_RATE.0 {
            return Err(RunError::Spec(format!("{what}: rate of frames: at most 2^62 bit/s")));
        }
        if packets_bytes.is_empty() || packets_bytes.len() > ROUND_MAX || !packets_bytes.iter().all(right) {
            let text = format!("{what}: frames: 1 to {ROUND_MAX} packets of 1 B to packet_bytes");
            return Err(RunError::Spec(text));
        }
    }
    Ok(())
}

/// Checks that each link of `route` begins where the one before ends. `what` and `key` begin the error.
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

/// Checks that `route` leads from node `from` to node `to`.
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

/// Returns the error of a hold buffer with a missing link or a zero rate.
pub fn hold_buffer_problem(hold_buffer: &HoldBufferSpec, links: &[LinkSpec]) -> Option<String> {
    let waits = hold_buffer.queues.iter().map(|wait| wait.link);
    if hold_buffer.rate_bps == 0 {
        return Some("hold_buffer: rate = 0: above zero".to_owned());
    }
    let bad = waits.chain(hold_buffer.line).find(|&link| link >= links.len())?;
    Some(format!("hold_buffer: link {bad} does not exist, there are {}", links.len()))
}
