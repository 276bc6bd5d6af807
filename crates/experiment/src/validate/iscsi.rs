//! iSCSI sessions, as far as no file has to be opened for it.

use super::block::{check_disk, check_source};
use crate::error::RunError;
use crate::iscsi::settings::settings;
use spec::{FlowSpec, IscsiSpec, WorkloadSpec};

/// Checks that `flows` are the connections of one session as `spec` says; the first describes it.
pub fn check(flows: &[FlowSpec], spec: &IscsiSpec) -> Result<(), RunError> {
    let flow = &flows[0];
    flows.iter().try_for_each(|other| check_alike(flow, spec, other))?;
    let (initiator, target) = settings(spec, flows.len());
    if initiator.within_ranges() != initiator || target.within_ranges() != target {
        return Err(wrong(flow, "a key is out of the range that RFC 7143 gives it"));
    }
    if spec.queue_depth == 0 || !(1..=4096).contains(&spec.command_window) {
        return Err(wrong(flow, "a queue depth of at least 1 and a command window of 1 to 4096"));
    }
    check_disk(&spec.disk, |what| wrong(flow, what))?;
    check_source(&spec.source, |what| wrong(flow, what))
}

fn wrong(flow: &FlowSpec, what: &str) -> RunError {
    RunError::Spec(format!("flow {}: iscsi: {what}", flow.name))
}

/// The connections of a session are one session.
fn check_alike(flow: &FlowSpec, spec: &IscsiSpec, other: &FlowSpec) -> Result<(), RunError> {
    let same = matches!(&other.workload, WorkloadSpec::Iscsi(theirs) if **theirs == *spec)
        && (other.source, other.destination, other.start_ns, other.stop_ns)
            == (flow.source, flow.destination, flow.start_ns, flow.stop_ns);
    if same {
        return Ok(());
    }
    Err(wrong(other, "the connections of a session have the same workload, ends, start and stop"))
}
