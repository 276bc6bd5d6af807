//! Reasons that a copy ended before it was done, or that one entry is not copied.

use copy::{FaultKind, FileFault};
use std::fmt;

/// A copy that ended early; what is durable stays, and the same command goes on from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyError {
    /// Kind.
    pub kind: ErrorKind,
    /// One line.
    pub text: String,
}

/// Kinds, by what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The specification, a path or an option is wrong: the user's to change.
    Input,
    /// The port cannot be bound.
    Port,
    /// The other end did not come, or has gone: another attempt may help.
    Peer,
    /// The other end refuses this end's token: it runs another copy.
    Token,
    /// The other end said what the protocol does not have.
    Protocol,
    /// The disk is full; the text says how much is needed.
    Full,
    /// This host refused something else.
    Io,
    /// Both ends are of the same copy elsewhere: another process has its journal.
    Busy,
    /// It was asked to.
    Stopped,
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CopyError {}

/// An entry that could not be made, changed or removed at the destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFault {
    /// Path below the destination, as [`copy::show_path`] has it.
    pub path: String,
    /// Kind.
    pub kind: FaultKind,
    /// One line.
    pub reason: String,
    /// The system's error number, if a system call failed.
    pub os_error: Option<i32>,
}

impl EntryFault {
    /// True if the disk, its inodes or the user's quota are exhausted: other entries will fail too.
    pub fn is_full(&self) -> bool {
        matches!(self.os_error, Some(libc::ENOSPC | libc::EDQUOT))
    }
}

impl From<EntryFault> for FileFault {
    fn from(fault: EntryFault) -> FileFault {
        FileFault { path: fault.path, kind: fault.kind, reason: fault.reason }
    }
}

impl From<FileFault> for EntryFault {
    fn from(fault: FileFault) -> EntryFault {
        EntryFault { path: fault.path, kind: fault.kind, reason: fault.reason, os_error: None }
    }
}
