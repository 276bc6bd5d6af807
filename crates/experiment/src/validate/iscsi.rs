//! iSCSI sessions, as far as no file has to be opened for it.

use crate::error::RunError;
use crate::iscsi::settings::settings;
use spec::{DiskSpec, FlowSpec, IscsiSpec, SourceSpec, WorkloadSpec};
use storage::scsi::MAX_TRANSFER_BYTES;

/// Bytes of a block of the unit.
const BLOCK_BYTES: u32 = 512;

/// Largest unit, blocks: of 2^63 bytes.
const MOST_BLOCKS: u64 = 1 << 54;

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
    check_disk(flow, &spec.disk)?;
    check_source(flow, &spec.source)
}

fn check_disk(flow: &FlowSpec, disk: &DiskSpec) -> Result<(), RunError> {
    let block = u64::from(BLOCK_BYTES);
    if disk.model.is_none() {
        if !(1..=MOST_BLOCKS).contains(&(disk.size_bytes / block)) {
            return Err(wrong(flow, "a unit of at least one block of 512 B and at most 2^63 B"));
        }
    } else if disk.count == 0 || disk.stripe_bytes == 0 || !disk.stripe_bytes.is_multiple_of(block) {
        return Err(wrong(flow, "at least one disk, and stripes of a multiple of 512 B"));
    }
    Ok(())
}

fn check_source(flow: &FlowSpec, source: &SourceSpec) -> Result<(), RunError> {
    match *source {
        SourceSpec::Mix { request_bytes, .. } => {
            if request_bytes == 0 || request_bytes % BLOCK_BYTES != 0 || request_bytes > MAX_TRANSFER_BYTES {
                return Err(wrong(flow, "requests of a multiple of 512 B, at most 16 MiB"));
            }
        }
        SourceSpec::Postmark { files, smallest_bytes, largest_bytes, .. } => {
            let sizes =
                smallest_bytes > 0 && smallest_bytes <= largest_bytes && largest_bytes <= MAX_TRANSFER_BYTES / 2;
            if !sizes || !(1..=1 << 30).contains(&files) {
                return Err(wrong(
                    flow,
                    "postmark: 1 to 2^30 files of 1 B to 8 MiB, the smallest not above the largest",
                ));
            }
        }
        SourceSpec::Trace { .. } => {}
    }
    Ok(())
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
