//! Report of an end when a copy has ended.

use serde::{Deserialize, Serialize};

/// The answer of one end. Both have the same `root`, or the copy has failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// BLAKE3 over the sorted entries (path, kind, metadata that was asked for, hash of the content): 64 hex digits.
    pub root: String,
    /// Entries of all kinds.
    pub entries: u64,
    /// Regular files and devices.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of file data that went over the path in this attempt.
    pub sent_bytes: u64,
    /// Bytes that did not have to.
    pub reused_bytes: u64,
    /// Receiver: files that count as unchanged by size and time. Neither end has read them; empty files do not count.
    #[serde(default)]
    pub unread_files: u64,
    /// Chunks sent again, and streams made again.
    pub retries: u64,
    /// Entries that are not copied, with the reason.
    pub faults: Vec<FileFault>,
    /// Faults beyond the first 10,000, which alone are listed.
    pub faults_more: u64,
    /// Entries that went from the destination (`mirror`).
    pub removed: u64,
    /// Their paths, the first 10,000, as [`crate::show_path`] has them.
    #[serde(default)]
    pub removals: Vec<String>,
    /// File systems that are mounted below the sources and were walked; the sender alone reports them.
    #[serde(default)]
    pub mounts: Vec<SourceMount>,
    /// Time of this attempt, s.
    pub seconds: f64,
    /// CPU time of this end's threads, s.
    pub cpu_s: f64,
    /// Rows "path\tsize\thash" are in this file of the end's host (sorted by path): what `copy verify` checks.
    pub manifest: String,
}

/// A mount point below a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceMount {
    /// Index of the source in [`crate::EndSpec::sources`].
    pub source: usize,
    /// Path below the source, as [`crate::show_path`] has it.
    pub path: String,
}

/// An entry that is not copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFault {
    /// Path, relative to the destination; bytes that are no UTF-8 as `\xNN`.
    pub path: String,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Reason, in one line.
    pub reason: String,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It cannot be read at the source.
    Unreadable,
    /// It changed while it was copied, each time.
    Changed,
    /// It cannot be made at the destination.
    Unwritable,
    /// Its content is there; some of its metadata could not be set.
    Metadata,
}
