//! Fields of a header at fixed places, read and written alike.

/// Bytes of a basic header segment.
pub const BHS_BYTES: usize = 48;

/// 16 bits, most significant byte first.
pub(super) mod half {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize) -> u16 {
        u16::from_be_bytes([bytes[at], bytes[at + 1]])
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: u16, at: usize) {
        bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// 32 bits, most significant byte first.
pub(super) mod word {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize) -> u32 {
        u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: u32, at: usize) {
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
}

/// 64 bits, most significant byte first.
pub(super) mod long {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize) -> u64 {
        (u64::from(super::word::get(bytes, at)) << 32) | u64::from(super::word::get(bytes, at + 4))
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: u64, at: usize) {
        bytes[at..at + 8].copy_from_slice(&value.to_be_bytes());
    }
}

/// One byte.
pub(super) mod byte {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize) -> u8 {
        bytes[at]
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: u8, at: usize) {
        bytes[at] = value;
    }
}

/// One bit of a byte.
pub(super) mod flag {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize, bit: u8) -> bool {
        bytes[at] & bit != 0
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: bool, at: usize, bit: u8) {
        bytes[at] = bytes[at] & !bit | if value { bit } else { 0 };
    }
}

/// Some bits of a byte.
pub(super) mod bits {
    pub fn get(bytes: &[u8; super::BHS_BYTES], at: usize, shift: u8, mask: u8) -> u8 {
        bytes[at] >> shift & mask
    }
    pub fn put(bytes: &mut [u8; super::BHS_BYTES], value: u8, at: usize, shift: u8, mask: u8) {
        bytes[at] = bytes[at] & !(mask << shift) | (value & mask) << shift;
    }
}

/// Bytes as they are.
pub(super) mod raw {
    pub fn get<const N: usize>(bytes: &[u8; super::BHS_BYTES], at: usize) -> [u8; N] {
        let mut taken = [0; N];
        taken.copy_from_slice(&bytes[at..at + N]);
        taken
    }
    pub fn put<const N: usize>(bytes: &mut [u8; super::BHS_BYTES], value: [u8; N], at: usize) {
        bytes[at..at + N].copy_from_slice(&value);
    }
}
