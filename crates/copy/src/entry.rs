//! One entry of a tree: what it is, and what it looked like when it was read.

use serde::{Deserialize, Serialize};

/// A file, folder, link or device of the sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path below the destination: components without "/", none of them "", "." or "..". None: the destination itself.
    pub path: Vec<Vec<u8>>,
    /// Its kind.
    pub kind: EntryKind,
    /// Permission bits, with set-user-ID, set-group-ID and sticky (07777).
    pub mode: u32,
    /// Owner and group, by number.
    pub uid: u32,
    /// See `uid`.
    pub gid: u32,
    /// Time of the last change of the content.
    pub modified: Stamp,
    /// Extended attributes, by name.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// Identity at the source, to tell whether it changes.
    pub identity: Identity,
}

/// Kinds of entries, with what belongs to each alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file, or a block device that is read like one.
    File {
        /// Bytes.
        size: u64,
        /// Parts that hold data, (begin, end), in order; None: all of it.
        extents: Option<Vec<(u64, u64)>>,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Symlink {
        /// Target, as it is written.
        target: Vec<u8>,
    },
    /// A hard link to an entry that came before.
    HardLink {
        /// Number of that entry.
        to: u64,
    },
    /// A FIFO.
    Fifo,
    /// A device node: made, not read.
    Device {
        /// True for a block device.
        block: bool,
        /// Its numbers.
        major: u32,
        /// See `major`.
        minor: u32,
    },
}

/// A time of a file: seconds since 1970 and nanoseconds, 0 to 999,999,999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamp {
    /// Seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds.
    pub nanoseconds: u32,
}

/// A file's identity at the source: two that are equal have the same content, as far as the file system tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Device and inode.
    pub device: u64,
    /// See `device`.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Change of the content.
    pub modified: Stamp,
    /// Change of content or metadata.
    pub changed: Stamp,
}
