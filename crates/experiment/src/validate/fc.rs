//! Flows between Fibre Channel gateways: loads, and SCSI.

use super::block::{check_disk, check_source};
use crate::error::RunError;
use crate::workload::RandomWrites;
use spec::{FcLoadSpec, FcProtocolSpec, FcSpec, FcpSpec, FlowSpec, RunSpec, WorkloadSpec, WriteSizesSpec, WritesSpec};
use wire::fc::PAYLOAD_BYTES_MAX;

/// The specification of a flow's pairs, if it is one between gateways.
pub fn spec_of(flow: &FlowSpec) -> Option<&FcSpec> {
    match &flow.workload {
        WorkloadSpec::Fc(spec) => Some(spec),
        _ => None,
    }
}

/// The specification of a flow's initiators and targets, if it is one between gateways.
pub fn fcp_spec_of(flow: &FlowSpec) -> Option<&FcpSpec> {
    match &flow.workload {
        WorkloadSpec::Fcp(spec) => Some(spec),
        _ => None,
    }
}

/// Checks that `flows` are the connections between two gateways of `run`, which carry `pairs` by `protocol`.
fn check_gateways(run: &RunSpec, flows: &[FlowSpec], protocol: FcProtocolSpec, pairs: u32) -> Result<(), RunError> {
    let flow = &flows[0];
    for other in flows {
        let same = other.workload == flow.workload
            && (other.source, other.destination, other.stop_ns) == (flow.source, flow.destination, flow.stop_ns)
            && (protocol == FcProtocolSpec::Ifcp || other.start_ns == flow.start_ns);
        if !same {
            return wrong(other, "the connections of a group have the same workload, ends, stop and, with FCIP, start");
        }
    }
    for node in [flow.source, flow.destination] {
        if !run.gateways.iter().any(|gateway| gateway.node == node) {
            return wrong(flow, &format!("node {} is no gateway", run.nodes[node]));
        }
    }
    let (pairs, connections) = (pairs as usize, flows.len());
    if protocol == FcProtocolSpec::Ifcp && pairs != connections {
        return wrong(flow, &format!("pairs = {pairs}: {connections}, as there are connections, with iFCP"));
    }
    if pairs < connections {
        return wrong(flow, &format!("pairs = {pairs}: at least {connections}, as there are connections"));
    }
    Ok(())
}

/// Checks that `flows` carry SCSI as `spec` says; the first describes it.
pub fn check_fcp(run: &RunSpec, flows: &[FlowSpec], spec: &FcpSpec) -> Result<(), RunError> {
    let flow = &flows[0];
    check_gateways(run, flows, spec.protocol, spec.pairs)?;
    if !(256..=PAYLOAD_BYTES_MAX as u32).contains(&spec.frame_bytes) || !spec.frame_bytes.is_multiple_of(4) {
        return wrong(flow, &format!("frame = {} B: a multiple of 4, 256 to 2112 B", spec.frame_bytes));
    }
    if spec.max_burst_bytes < 512 || spec.queue_depth == 0 {
        return wrong(flow, "a burst of at least 512 B, and a queue depth of at least 1");
    }
    let wrong = |what: &str| RunError::Spec(format!("flow {}: fcp: {what}", flow.name));
    check_disk(&spec.disk, wrong)?;
    check_source(&spec.source, wrong)
}

/// Checks that `flows` carry a load as `spec` says; the first describes it.
pub fn check(run: &RunSpec, flows: &[FlowSpec], spec: &FcSpec) -> Result<(), RunError> {
    let flow = &flows[0];
    check_gateways(run, flows, spec.protocol, spec.pairs)?;
    let load = &spec.load;
    let largest = match &load.sizes {
        WriteSizesSpec::Fixed { bytes } => Some(*bytes),
        WriteSizesSpec::Mix { sizes } => sizes.iter().map(|&[bytes, _]| bytes).max(),
        WriteSizesSpec::Lognormal { .. } | WriteSizesSpec::Pareto { .. } => None,
    };
    if largest.is_none_or(|bytes| bytes > PAYLOAD_BYTES_MAX as u64) {
        return wrong(flow, "frames of one size or a mix of sizes, of 1 to 2112 B");
    }
    let FcLoadSpec { rate_bps, sizes, arrivals, .. } = load.clone();
    let writes = WritesSpec { rate_bps, sizes, arrivals, header_bytes: 0, active: None };
    if !RandomWrites::is_possible(&writes) || load.queue_frames == 0 {
        return wrong(flow, "rate, sizes, weights, times and queue above zero, Pareto shapes of times above 1");
    }
    Ok(())
}

fn wrong(flow: &FlowSpec, what: &str) -> Result<(), RunError> {
    let workload = if matches!(flow.workload, WorkloadSpec::Fcp(_)) { "fcp" } else { "fc" };
    Err(RunError::Spec(format!("flow {}: {workload}: {what}", flow.name)))
}
