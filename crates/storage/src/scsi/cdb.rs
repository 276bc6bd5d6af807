//! Fields of command descriptor blocks.

use super::sense::Sense;

/// A command descriptor block, filled up with zeros.
pub(super) type Cdb = [u8; 16];

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

/// Fields of a block command of any length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    pub lba: u64,
    pub blocks: u32,
    /// Flags of byte 1: protection in bits 7-5, DPO 4, FUA 3, BYTCHK 2-1.
    pub flags: u8,
    /// Place of the number of blocks.
    pub length_at: u16,
}

impl Extent {
    pub(super) fn fua(&self) -> bool {
        self.flags & 0x08 != 0
    }

    pub(super) fn byte_check(&self) -> u8 {
        self.flags >> 1 & 3
    }

    /// Protection information is not kept.
    pub(super) fn unprotected(&self) -> Result<(), Sense> {
        if self.flags & 0xe0 != 0 {
            return Err(Sense::cdb(1));
        }
        Ok(())
    }
}

/// The blocks of a command of 6, 10, 12 or 16 bytes, by the group of its operation code (SPC-4, 4.2.5.1).
pub(super) fn extent(cdb: &Cdb) -> Extent {
    match cdb[0] >> 5 {
        0 => {
            let lba = u64::from(be32(cdb, 0) & 0x1f_ffff);
            // Of READ(6) and WRITE(6): 0 stands for 256 blocks.
            let blocks = if cdb[4] == 0 { 256 } else { u32::from(cdb[4]) };
            Extent { lba, blocks, flags: 0, length_at: 4 }
        }
        4 => Extent { lba: be64(cdb, 2), blocks: be32(cdb, 10), flags: cdb[1], length_at: 10 },
        5 => Extent { lba: u64::from(be32(cdb, 2)), blocks: be32(cdb, 6), flags: cdb[1], length_at: 6 },
        _ => Extent { lba: u64::from(be32(cdb, 2)), blocks: u32::from(be16(cdb, 7)), flags: cdb[1], length_at: 7 },
    }
}
