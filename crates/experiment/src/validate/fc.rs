//! Flows between Fibre Channel gateways.

use crate::error::RunError;
use crate::workload::RandomWrites;
use spec::{FcProtocolSpec, FcSpec, FlowSpec, RunSpec, WorkloadSpec, WriteSizesSpec, WritesSpec};
use wire::fc::PAYLOAD_BYTES_MAX;

/// The specification of a flow's pairs, if it is one between gateways.
pub fn spec_of(flow: &FlowSpec) -> Option<&FcSpec> {
    match &flow.workload {
        WorkloadSpec::Fc(spec) => Some(spec),
        _ => None,
    }
}

/// Checks that `flows` are the connections between two gateways of `run` as `spec` says; the first describes it.
pub fn check(run: &RunSpec, flows: &[FlowSpec], spec: &FcSpec) -> Result<(), RunError> {
    let flow = &flows[0];
    for other in flows {
        let same = spec_of(other) == Some(spec)
            && (other.source, other.destination, other.stop_ns) == (flow.source, flow.destination, flow.stop_ns)
            && (spec.protocol == FcProtocolSpec::Ifcp || other.start_ns == flow.start_ns);
        if !same {
            return wrong(other, "the connections of a group have the same workload, ends, stop and, with FCIP, start");
        }
    }
    for node in [flow.source, flow.destination] {
        if !run.gateways.iter().any(|gateway| gateway.node == node) {
            return wrong(flow, &format!("node {} is no gateway", run.nodes[node]));
        }
    }
    let (pairs, connections) = (spec.pairs as usize, flows.len());
    if spec.protocol == FcProtocolSpec::Ifcp && pairs != connections {
        return wrong(flow, &format!("pairs = {pairs}: {connections}, as there are connections, with iFCP"));
    }
    if pairs < connections {
        return wrong(flow, &format!("pairs = {pairs}: at least {connections}, as there are connections"));
    }
    let load = &spec.load;
    let largest = match &load.sizes {
        WriteSizesSpec::Fixed { bytes } => Some(*bytes),
        WriteSizesSpec::Mix { sizes } => sizes.iter().map(|&[bytes, _]| bytes).max(),
        WriteSizesSpec::Lognormal { .. } | WriteSizesSpec::Pareto { .. } => None,
    };
    if largest.is_none_or(|bytes| bytes > PAYLOAD_BYTES_MAX as u64) {
        return wrong(flow, "frames of one size or a mix of sizes, of 1 to 2112 B");
    }
    let writes =
        WritesSpec { rate_bps: load.rate_bps, sizes: load.sizes.clone(), arrivals: load.arrivals, header_bytes: 0 };
    if !RandomWrites::is_possible(&writes) || load.queue_frames == 0 {
        return wrong(flow, "rate, sizes, weights, times and queue above zero, Pareto shapes of times above 1");
    }
    Ok(())
}

fn wrong(flow: &FlowSpec, what: &str) -> Result<(), RunError> {
    Err(RunError::Spec(format!("flow {}: fc: {what}", flow.name)))
}
