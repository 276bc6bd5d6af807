//! Disks and sources of requests, as far as no file has to be opened for them.

use crate::error::RunError;
use spec::{DiskSpec, SourceSpec};
use storage::scsi::MAX_TRANSFER_BYTES;

/// Bytes of a block of the unit.
const BLOCK_BYTES: u32 = 512;

/// Largest unit, blocks: of 2^63 bytes.
const MOST_BLOCKS: u64 = 1 << 54;

/// Checks the disk behind a target; `wrong` makes an error of what would be right.
pub fn check_disk(disk: &DiskSpec, wrong: impl Fn(&str) -> RunError) -> Result<(), RunError> {
    let block = u64::from(BLOCK_BYTES);
    if disk.model.is_none() {
        if !(1..=MOST_BLOCKS).contains(&(disk.size_bytes / block)) {
            return Err(wrong("a unit of at least one block of 512 B and at most 2^63 B"));
        }
    } else if disk.count == 0 || disk.stripe_bytes == 0 || !disk.stripe_bytes.is_multiple_of(block) {
        return Err(wrong("at least one disk, and stripes of a multiple of 512 B"));
    }
    Ok(())
}

/// Checks the source of requests of a target's initiator.
pub fn check_source(source: &SourceSpec, wrong: impl Fn(&str) -> RunError) -> Result<(), RunError> {
    match *source {
        SourceSpec::Mix { request_bytes, .. } => {
            if request_bytes == 0 || request_bytes % BLOCK_BYTES != 0 || request_bytes > MAX_TRANSFER_BYTES {
                return Err(wrong("requests of a multiple of 512 B, at most 16 MiB"));
            }
        }
        SourceSpec::Postmark { files, smallest_bytes, largest_bytes, .. } => {
            let sizes =
                smallest_bytes > 0 && smallest_bytes <= largest_bytes && largest_bytes <= MAX_TRANSFER_BYTES / 2;
            if !sizes || !(1..=1 << 30).contains(&files) {
                return Err(wrong("postmark: 1 to 2^30 files of 1 B to 8 MiB, the smallest not above the largest"));
            }
        }
        SourceSpec::Trace { .. } => {}
    }
    Ok(())
}
