//! Limits of commands, as VPD page B0 announces them.

/// Longest transfer of one command, bytes; what is longer is refused, as VPD page B0 announces.
pub const MAX_TRANSFER_BYTES: u32 = 16 << 20;
/// Most blocks of one UNMAP's range and of all its ranges.
pub(super) const MAX_UNMAP_BLOCKS: u32 = u32::MAX;
/// Most ranges of one UNMAP.
pub(super) const MAX_UNMAP_RANGES: u32 = 256;
/// Most blocks of COMPARE AND WRITE; the CDB has one byte for them, and less than all of it shows that there is a
/// limit.
pub(super) const MAX_COMPARE_BLOCKS: u8 = 128;
