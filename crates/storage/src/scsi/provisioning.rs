//! Commands about blocks that need not be there: WRITE SAME, UNMAP, GET LBA STATUS (SBC-3, 5.48, 5.28, 5.5).

use super::block::within;
use super::cdb::{be16, be32, be64, extent, Cdb};
use super::command::{Continuation, Step};
use super::limits::{MAX_TRANSFER_BYTES, MAX_UNMAP_RANGES};
use super::lun::Lun;
use super::medium::Op;
use super::sense::Sense;
use wire::iscsi::Rope;

pub(super) fn begin(lun: &Lun, cdb: &Cdb, data: &Rope) -> Result<Step, Sense> {
    match cdb[0] {
        0x42 => unmap(lun, cdb, &data.to_payload().to_bytes()),
        0x9e => {
            let lba = be64(cdb, 2);
            if lba >= lun.config.geometry.blocks {
                return Err(Sense::OUT_OF_RANGE);
            }
            Ok(Step::Work(Op::Allocation { lba }, Continuation::LbaStatus(be32(cdb, 10))))
        }
        _ => write_same(lun, cdb, data),
    }
}

fn write_same(lun: &Lun, cdb: &Cdb, data: &Rope) -> Result<Step, Sense> {
    let extent = extent(cdb);
    extent.unprotected()?;
    let (unmap, anchor) = (cdb[1] & 0x08 != 0, cdb[1] & 0x10 != 0);
    if anchor || unmap && !lun.config.thin {
        return Err(Sense::cdb(1));
    }
    if extent.blocks == 0 {
        return Err(Sense::cdb(extent.length_at));
    }
    within(lun, extent.lba, u64::from(extent.blocks))?;
    if extent.blocks > MAX_TRANSFER_BYTES / lun.config.geometry.block_bytes {
        return Err(Sense::cdb(extent.length_at));
    }
    // NDOB: zeros, and no data at all.
    let pattern = if cdb[0] == 0x93 && cdb[1] & 1 != 0 {
        None
    } else {
        let block = lun.config.geometry.block_bytes as usize;
        if data.len() != block {
            return Err(Sense::INFORMATION_UNIT);
        }
        Some(data.to_payload())
    };
    let durable = !lun.modes.write_cache;
    let op = Op::WriteSame { lba: extent.lba, blocks: u64::from(extent.blocks), pattern, unmap, durable };
    Ok(Step::Work(op, Continuation::Plain))
}

fn unmap(lun: &Lun, cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    if !lun.config.thin {
        return Err(Sense::OPERATION_CODE);
    }
    // ANCHOR.
    if cdb[1] & 1 != 0 {
        return Err(Sense::cdb(1));
    }
    if list.is_empty() {
        return Ok(Lun::good());
    }
    if list.len() < 8 {
        return Err(Sense::LIST_LENGTH);
    }
    let described = usize::from(be16(list, 2)).min(list.len() - 8);
    let mut ranges = Vec::new();
    // The rest of a descriptor that was cut off does not count (SBC-3, 5.28.2).
    for (index, descriptor) in list[8..8 + described].chunks_exact(16).enumerate() {
        if index as u32 == MAX_UNMAP_RANGES {
            return Err(Sense::parameter(2));
        }
        let (lba, blocks) = (be64(descriptor, 0), be32(descriptor, 8));
        within(lun, lba, u64::from(blocks))?;
        if blocks > 0 {
            ranges.push((lba, blocks));
        }
    }
    if ranges.is_empty() {
        return Ok(Lun::good());
    }
    Ok(Step::Work(Op::Unmap { ranges }, Continuation::Plain))
}

/// Parameter data of GET LBA STATUS.
pub(super) fn status_data(runs: &[(u64, u32, bool)]) -> Vec<u8> {
    let mut data = (4 + 16 * runs.len() as u32).to_be_bytes().to_vec();
    data.extend_from_slice(&[0; 4]);
    for (lba, blocks, mapped) in runs {
        data.extend_from_slice(&lba.to_be_bytes());
        data.extend_from_slice(&blocks.to_be_bytes());
        data.extend_from_slice(&[u8::from(!mapped), 0, 0, 0]);
    }
    data
}
