//! Over which time and against which line a flow is measured.

use spec::{FlowSpec, RunSpec};
use units::Time;

/// The slowest link of the data's route at the start of the run, the first of several.
pub fn bottleneck(spec: &RunSpec, flow: &FlowSpec) -> usize {
    *flow.route.iter().min_by_key(|&&l| spec.links[l].rate_bps).expect("a route has at least one link")
}

/// Returns the end of the interval over which the goodput of a flow counts.
pub fn end_of(spec: &FlowSpec, done_at: Option<Time>, end: Time) -> Time {
    let stop = spec.stop_ns.map_or(end, Time);
    done_at.map_or(stop, |done| if spec.stop_ns.is_some() { stop } else { done }).min(end)
}
