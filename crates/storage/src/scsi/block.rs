//! Commands that read, write and compare blocks (SBC-3, section 5).

use super::cdb::{extent, Cdb, Extent};
use super::command::{CommandResult, Continuation, Step};
use super::limits::{MAX_COMPARE_BLOCKS, MAX_TRANSFER_BYTES};
use super::lun::Lun;
use super::medium::Op;
use super::sense::Sense;
use super::settings::LunConfig;
use wire::iscsi::{Payload, Rope};

/// Bytes of a piece of a repeated block.
const REPEATED: usize = 65_536;

/// READ CAPACITY(10).
pub(super) fn capacity10(config: &LunConfig, cdb: &Cdb) -> CommandResult {
    // The address has no meaning without PMI, which is obsolete.
    if cdb[8] & 1 == 0 && cdb[2..6] != [0; 4] {
        return Err(Sense::cdb(2));
    }
    let last = u32::try_from(config.geometry.blocks - 1).unwrap_or(u32::MAX);
    Ok([last.to_be_bytes(), config.geometry.block_bytes.to_be_bytes()].concat())
}

/// READ CAPACITY(16).
pub(super) fn capacity16(config: &LunConfig) -> CommandResult {
    let geometry = config.geometry;
    let mut data = (geometry.blocks - 1).to_be_bytes().to_vec();
    data.extend_from_slice(&geometry.block_bytes.to_be_bytes());
    let exponent = (geometry.physical_bytes / geometry.block_bytes).trailing_zeros() as u8;
    // LBPME and LBPRZ: thin, and unmapped blocks read as zeros.
    data.extend_from_slice(&[0, exponent & 0x0f, if config.thin { 0xc0 } else { 0 }, 0]);
    data.resize(32, 0);
    Ok(data)
}

/// Returns whether the blocks are there.
pub(super) fn within(lun: &Lun, lba: u64, blocks: u64) -> Result<(), Sense> {
    // A transfer of nothing may begin at the end itself, no further (SBC-3, 4.6).
    match lba.checked_add(blocks) {
        Some(end) if end <= lun.config.geometry.blocks => Ok(()),
        _ => Err(Sense::OUT_OF_RANGE),
    }
}

fn checked(lun: &Lun, cdb: &Cdb) -> Result<Extent, Sense> {
    let extent = extent(cdb);
    within(lun, extent.lba, u64::from(extent.blocks))?;
    if extent.blocks > MAX_TRANSFER_BYTES / lun.config.geometry.block_bytes {
        return Err(Sense::cdb(extent.length_at));
    }
    Ok(extent)
}

/// Begins a command of this family.
pub(super) fn begin(lun: &Lun, cdb: &Cdb, data: Rope) -> Result<Step, Sense> {
    match cdb[0] {
        0x08 | 0x28 | 0x88 | 0xa8 => {
            let extent = checked(lun, cdb)?;
            extent.unprotected()?;
            if extent.blocks == 0 {
                return Ok(Lun::good());
            }
            Ok(Step::Work(Op::Read { lba: extent.lba, blocks: extent.blocks }, Continuation::Plain))
        }
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae | 0x8b => write(lun, cdb, data),
        0x2f | 0x8f | 0xaf => verify(lun, cdb, data),
        0x34 | 0x90 => {
            let mut extent = extent(cdb);
            within(lun, extent.lba, u64::from(extent.blocks))?;
            if extent.blocks == 0 {
                // All from there to the end.
                extent.blocks = u32::try_from(lun.config.geometry.blocks - extent.lba).unwrap_or(u32::MAX);
            }
            let op = Op::Prefetch { lba: extent.lba, blocks: u64::from(extent.blocks) };
            Ok(Step::Work(op, Continuation::Prefetch))
        }
        0x35 | 0x91 => {
            let extent = extent(cdb);
            within(lun, extent.lba, u64::from(extent.blocks))?;
            // All of the cache goes, whatever part was asked for: that is allowed (SBC-3, 5.26).
            Ok(Step::Work(Op::Flush, Continuation::Plain))
        }
        0x89 => compare_and_write(lun, cdb, data),
        _ => Err(Sense::OPERATION_CODE),
    }
}

fn write(lun: &Lun, cdb: &Cdb, data: Rope) -> Result<Step, Sense> {
    let extent = checked(lun, cdb)?;
    extent.unprotected()?;
    let verify = matches!(cdb[0], 0x2e | 0x8e | 0xae);
    let data = whole_blocks(lun, data, extent.blocks)?;
    if data.is_empty() {
        return Ok(Lun::good());
    }
    // WRITE AND VERIFY has BYTCHK where WRITE has FUA, and reaches the medium in any case.
    let durable = verify || extent.fua() || !lun.modes.write_cache;
    let lba = extent.lba;
    let op = if cdb[0] == 0x8b { Op::OrWrite { lba, data, durable } } else { Op::Write { lba, data, durable, verify } };
    Ok(Step::Work(op, Continuation::Plain))
}

/// The data that there is for `blocks`: the initiator may have offered less, and then whole blocks only.
fn whole_blocks(lun: &Lun, mut data: Rope, blocks: u32) -> Result<Rope, Sense> {
    let block = lun.config.geometry.block_bytes as usize;
    let data = data.split_to(blocks as usize * block);
    if !data.len().is_multiple_of(block) {
        return Err(Sense::INFORMATION_UNIT);
    }
    Ok(data)
}

fn verify(lun: &Lun, cdb: &Cdb, data: Rope) -> Result<Step, Sense> {
    let extent = checked(lun, cdb)?;
    extent.unprotected()?;
    let (lba, blocks) = (extent.lba, extent.blocks);
    let block = lun.config.geometry.block_bytes as usize;
    match extent.byte_check() {
        2 => Err(Sense::cdb(1)),
        _ if blocks == 0 => Ok(Lun::good()),
        0 => Ok(Step::Work(Op::Verify { lba, blocks }, Continuation::Plain)),
        1 => {
            let data = whole_blocks(lun, data, blocks)?;
            let blocks = (data.len() / block) as u32;
            Ok(Step::Work(Op::Compare { lba, blocks, data }, Continuation::Plain))
        }
        _ => {
            if data.len() < block {
                return Err(Sense::INFORMATION_UNIT);
            }
            let one = data.to_payload().slice(0, block);
            Ok(Step::Work(Op::Compare { lba, blocks, data: repeated(&one, blocks) }, Continuation::Plain))
        }
    }
}

/// A block so many times: of large data, one piece of it stands for all.
fn repeated(block: &Payload, blocks: u32) -> Rope {
    let per_piece = (REPEATED / block.len()).max(1) as u32;
    let piece: Payload = block.to_bytes().repeat(per_piece as usize).into();
    let mut all = Rope::default();
    for _ in 0..blocks / per_piece {
        all.push(piece.clone());
    }
    all.push(piece.slice(0, (blocks % per_piece) as usize * block.len()));
    all
}

fn compare_and_write(lun: &Lun, cdb: &Cdb, mut data: Rope) -> Result<Step, Sense> {
    let blocks = u32::from(cdb[13]);
    let extent = Extent { blocks, ..extent(cdb) };
    within(lun, extent.lba, u64::from(blocks))?;
    extent.unprotected()?;
    if blocks == 0 {
        return Ok(Lun::good());
    }
    if blocks > u32::from(MAX_COMPARE_BLOCKS) {
        return Err(Sense::cdb(13));
    }
    let half = blocks as usize * lun.config.geometry.block_bytes as usize;
    if data.len() != 2 * half {
        return Err(Sense::INFORMATION_UNIT);
    }
    let expected = data.split_to(half);
    let durable = extent.fua() || !lun.modes.write_cache;
    Ok(Step::Work(Op::CompareAndWrite { lba: extent.lba, expected, data, durable }, Continuation::Plain))
}
