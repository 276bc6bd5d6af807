//! Paths taken apart.

use copy::{Entry, EntryKind};

/// The folder that holds an entry.
pub(super) fn parent_of(path: &[Vec<u8>]) -> &[Vec<u8>] {
    path.split_last().map_or(&[], |(_, parents)| parents)
}

/// A path in eight bytes, for `mirror`. Two that are equal would leave an entry where it is.
pub(crate) fn path_hash(path: &[Vec<u8>]) -> u64 {
    let hash = blake3::hash(&path.join(&b'/'));
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes of 32"))
}

/// Bytes of a file's entry.
pub(super) fn size_of(entry: &Entry) -> u64 {
    match entry.kind {
        EntryKind::File { size, .. } => size,
        _ => 0,
    }
}
