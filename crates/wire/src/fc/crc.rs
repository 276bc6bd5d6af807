//! The CRC of frames and of encapsulation headers (FC-FS-2, clause 10; RFC 3643, 3.1).

/// CRC-32 of IEEE 802.3 as the four bytes that follow `parts`: FC-2 sends the low-order byte first.
pub(crate) fn crc(parts: &[&[u8]]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_le_bytes()
}
