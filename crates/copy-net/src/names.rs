//! Names of entries as text, and faults about them.

use crate::error::{CopyError, EntryFault, ErrorKind};
use copy::{Entry, FaultKind, FileFault};
use std::io;

/// Name of the folder with the states of copies, in a destination. No entry has it.
pub(crate) const STATE_NAME: &str = ".elephan-copy";

/// A fault about an entry.
pub(crate) fn fault(path: &[Vec<u8>], kind: FaultKind, reason: impl Into<String>) -> FileFault {
    FileFault { path: copy::show_path(path), kind, reason: reason.into() }
}

/// The kernel's words for an error, without Rust's number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// True for ENOSPC and EDQUOT.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// The error of a destination that cannot be used.
pub(crate) fn io_error(destination: &str, error: &io::Error) -> CopyError {
    CopyError { kind: ErrorKind::Io, text: format!("destination {destination:?}: {}", words(error)) }
}

/// The fault of an entry that cannot be made.
pub(crate) fn unwritable(entry: &Entry, error: &io::Error) -> EntryFault {
    unwritable_path(&entry.path, error)
}

/// The fault of a path of the destination that cannot be changed.
pub(crate) fn unwritable_path(path: &[Vec<u8>], error: &io::Error) -> EntryFault {
    EntryFault { os_error: error.raw_os_error(), ..fault(path, FaultKind::Unwritable, words(error)).into() }
}
