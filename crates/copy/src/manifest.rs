//! The manifest: a row per entry, in the order of the entries; its BLAKE3 is the root of the copy.

use crate::entry::{Entry, EntryKind, Stamp};
use crate::names::{show_bytes, show_path};
use crate::spec::CopyOptions;
use std::collections::BTreeMap;

/// Row of an entry: path, size, hash, kind, mode, owner, group, time, target; "-" for what was not asked for or is not
/// known. `hash`: of the content. `first`: path that a hard link leads to.
pub fn manifest_row(entry: &Entry, first: Option<&[Vec<u8>]>, hash: Option<[u8; 32]>, options: &CopyOptions) -> String {
    let (size, kind, target) = match &entry.kind {
        EntryKind::File { size, .. } => (size.to_string(), "file", "-".into()),
        EntryKind::Folder => ("-".into(), "folder", "-".into()),
        EntryKind::Symlink { target } => ("-".into(), "symlink", show_bytes(target)),
        EntryKind::HardLink { .. } => ("-".into(), "link", show_path(first.unwrap_or_default())),
        EntryKind::Fifo => ("-".into(), "fifo", "-".into()),
        EntryKind::Device { block: true, major, minor } => ("-".into(), "block", format!("{major}:{minor}")),
        EntryKind::Device { block: false, major, minor } => ("-".into(), "char", format!("{major}:{minor}")),
    };
    let hash = hash.map_or("-".into(), |hash| hex(&hash));
    let (uid, gid) = match options.owners {
        true => (entry.uid.to_string(), entry.gid.to_string()),
        false => ("-".into(), "-".into()),
    };
    let Stamp { seconds, nanoseconds } = entry.modified;
    format!(
        "{}\t{size}\t{hash}\t{kind}\t{:04o}\t{uid}\t{gid}\t{seconds}.{nanoseconds:09}\t{target}\n",
        show_path(&entry.path),
        entry.mode
    )
}

/// Hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of hex digits.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Puts rows in order. What waits is bounded by the sender's window of entries that are not concluded.
#[derive(Debug, Default)]
pub struct Manifest {
    next: u64,
    waiting: BTreeMap<u64, Option<String>>,
    hasher: blake3::Hasher,
}

impl Manifest {
    /// Entry `number` is concluded; None: it is left out. Returns rows that are in order now, to be written.
    pub fn conclude(&mut self, number: u64, row: Option<String>) -> String {
        self.waiting.insert(number, row);
        let mut rows = String::new();
        while let Some(row) = self.waiting.remove(&self.next) {
            self.next += 1;
            if let Some(row) = row {
                self.hasher.update(row.as_bytes());
                rows.push_str(&row);
            }
        }
        rows
    }

    /// Entries that are concluded, without a gap.
    pub fn concluded(&self) -> u64 {
        self.next
    }

    /// Hash of all rows so far.
    pub fn root(&self) -> [u8; 32] {
        *self.hasher.finalize().as_bytes()
    }
}
