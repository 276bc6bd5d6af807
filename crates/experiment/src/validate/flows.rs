//! Flows: their routes, transports and workloads.

use super::network::check_route;
use crate::active::Active;
use crate::arrivals::{arrivals, distribution};
use crate::error::RunError;
use crate::tcp_config::Algorithms;
use crate::workload::RandomWrites;
use spec::{
    CopySpec, DistributionSpec, FlowSpec, RunSpec, ShortFlowsSpec, TransportSpec, WorkloadSpec, ALL_CHANGED_PPM,
};

/// Data of a copy, and overhead of a file or chunk, at most, bytes: their sums stay within u64.
const BYTES_MAX: u64 = 1 << 62;
const OVERHEAD_MAX: u64 = 1 << 30;

/// Least MTU of a link that carries IPv6, bytes (RFC 8200, 5).
const IPV6_MTU_LEAST: u32 = 1280;

/// Short flows of an entry at most: each is an endpoint pair that stays in memory until the end, some kilobytes.
const SHORT_FLOWS_MAX: usize = 1_000_000;

fn wrong(flow: &FlowSpec, what: &str) -> RunError {
    RunError::Spec(format!("flow {}: {what}", flow.name))
}

/// Checks the routes of `spec` between its ends, and its workload.
pub fn check(run: &RunSpec, spec: &FlowSpec) -> Result<(), RunError> {
    let what = format!("flow {}", spec.name);
    check_route(&what, "route", &spec.route, spec.source, spec.destination, &run.links)?;
    check_route(&what, "return_route", &spec.return_route, spec.destination, spec.source, &run.links)?;
    match &spec.workload {
        WorkloadSpec::ConstantRate { frame_bytes: 0, .. } | WorkloadSpec::ConstantRate { rate_bps: 0, .. } => {
            Err(wrong(spec, "offered: frame and rate must be above zero"))
        }
        WorkloadSpec::ConstantRate { active: Some(active), .. } if !Active::is_possible(active) => {
            Err(wrong(spec, "constant_rate: active: times on and off above zero, a phase below both"))
        }
        WorkloadSpec::Replicate { trace, writes } if trace.is_some() == writes.is_some() => {
            Err(wrong(spec, "replicate: a trace or writes, not both"))
        }
        WorkloadSpec::Bulk { buffer_bytes: Some(0), .. } => Err(wrong(spec, "bulk: buffer above zero")),
        WorkloadSpec::Replicate { writes: Some(writes), .. } if !RandomWrites::is_possible(writes) => {
            Err(wrong(spec, "replicate: rate, sizes, weights and times above zero, Pareto shapes of times above 1"))
        }
        WorkloadSpec::Copy(copy) => copied(copy).map_or(Ok(()), |what| Err(wrong(spec, what))),
        _ => Ok(()),
    }
}

/// Returns the fault of a copy of files, if it has one.
fn copied(copy: &CopySpec) -> Option<&'static str> {
    let rates = [copy.read_bps, copy.write_bps, copy.hash_bps, copy.limit_bps];
    if copy.files.iter().any(|files| files.count == 0 || files.min_bytes > files.max_bytes) || copy.files.is_empty() {
        return Some("copy: files with a count above zero, and a smallest size not above the largest");
    }
    let bytes =
        copy.files.iter().try_fold(0u64, |sum, files| sum.checked_add(files.count.checked_mul(files.max_bytes)?));
    if bytes.is_none_or(|bytes| bytes > BYTES_MAX) || copy.file_overhead_bytes > OVERHEAD_MAX {
        return Some("copy: at most 2^62 bytes in all, 1 GiB of overhead for each file");
    }
    if copy.jobs == 0 || copy.chunk_bytes == Some(0) || copy.chunk_overhead_bytes > OVERHEAD_MAX {
        return Some("copy: jobs and chunk above zero, at most 1 GiB of overhead for each chunk");
    }
    if copy.changed_ppm > ALL_CHANGED_PPM || rates.into_iter().flatten().any(|rate| rate == 0) {
        return Some("copy: at most all chunks changed, rates above zero");
    }
    None
}

/// Checks that the group `flows` shares one workload, if it has to.
pub fn check_group(flows: &[FlowSpec]) -> Result<(), RunError> {
    let flow = &flows[0];
    if let WorkloadSpec::Copy(copy) = &flow.workload {
        if flows.iter().any(|flow| flow.distribution != DistributionSpec::Striped) {
            return Err(wrong(flow, "copy: distribution striped"));
        }
        if !flows.len().is_multiple_of(copy.jobs as usize) {
            return Err(wrong(flow, "copy: as many connections for each job"));
        }
    }
    // Of the others each connection has its own: as much as it takes, a program, or the session that shares requests by
    // itself.
    let shares = match &flow.workload {
        WorkloadSpec::Bulk { bytes: Some(_), .. }
        | WorkloadSpec::ConstantRate { .. }
        | WorkloadSpec::Replicate { .. }
        | WorkloadSpec::Copy(_) => flow.distribution == DistributionSpec::Striped,
        WorkloadSpec::Program(program) => {
            program.bytes.is_some() && program.streams > 1 && flow.distribution == DistributionSpec::Striped
        }
        WorkloadSpec::Bulk { bytes: None, .. }
        | WorkloadSpec::Iscsi(_)
        | WorkloadSpec::Fc(_)
        | WorkloadSpec::Fcp(_) => false,
    };
    let key = |f: &FlowSpec| (f.source, f.destination, f.stop_ns, f.distribution);
    match flows.iter().find(|other| other.workload != flow.workload || key(other) != key(flow)).filter(|_| shares) {
        Some(other) => Err(wrong(other, "connections that share a workload have the same one, ends and stop")),
        None => Ok(()),
    }
}

/// Checks that UDT carries the workload of `flow`, if that is its transport.
pub fn check_udt(flow: &FlowSpec) -> Result<(), RunError> {
    let is_session = matches!(flow.workload, WorkloadSpec::Iscsi(_) | WorkloadSpec::Fc(_) | WorkloadSpec::Fcp(_));
    if flow.transport.udt.is_some() && is_session {
        return Err(wrong(
            flow,
            "transport: iscsi, fc and fcp run over TCP; UDT carries bulk, constant_rate, replicate, copy",
        ));
    }
    Ok(())
}

/// Checks the settings of a simulated endpoint in `transport`, without opening a file. `before` is the transport that
/// was found right last: most flows are alike.
pub fn check_transport(flow: &str, transport: &TransportSpec, before: Option<&TransportSpec>) -> Result<(), RunError> {
    if !(68..=65_535).contains(&transport.mtu_bytes) {
        return Err(RunError::Spec(format!("flow {flow}: mtu = {} B: 68 to 65535", transport.mtu_bytes)));
    }
    if transport.ipv6 && transport.mtu_bytes < IPV6_MTU_LEAST {
        let mtu = transport.mtu_bytes;
        return Err(RunError::Spec(format!("flow {flow}: mtu = {mtu} B: IPv6 needs {IPV6_MTU_LEAST} (RFC 8200, 5)")));
    }
    let algorithm = |of: &TransportSpec| {
        of.congestion_control == transport.congestion_control && of.parameters == transport.parameters
    };
    if transport.has_own_control() || before.is_some_and(algorithm) {
        return Ok(());
    }
    Algorithms::default().controller(flow, transport).map(drop)
}

/// Checks that the short flows of `entry` can be drawn and are not too many.
pub fn check_short_flows(run: &RunSpec, entry: &ShortFlowsSpec) -> Result<(), RunError> {
    let wrong = |text: &str| Err(RunError::Spec(format!("short flows {}: {text}", entry.name)));
    let what = format!("short flows {}", entry.name);
    check_route(&what, "route", &entry.route, entry.source, entry.destination, &run.links)?;
    check_route(&what, "return_route", &entry.return_route, entry.destination, entry.source, &run.links)?;
    if distribution(&entry.sizes).is_none() {
        return wrong("sizes: a least size above zero and below the most, an index or sigma above zero");
    }
    if entry.active.as_ref().is_some_and(|active| !Active::is_possible(active)) {
        return wrong("active: times on and off above zero, a phase below both");
    }
    if entry.arrivals_per_ks == 0 {
        return wrong("arrivals = 0: above zero");
    }
    if arrivals(run, entry).nth(SHORT_FLOWS_MAX).is_some() {
        return wrong(&format!("more than {SHORT_FLOWS_MAX} flows: fewer arrivals, or a shorter run"));
    }
    Ok(())
}
