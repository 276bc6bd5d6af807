//! A walk over the sources: parents before children, a hard link after its first name, nothing behind a link.

use super::file::SourceFiles;
use crate::error::CopyError;
use copy::{CopyOptions, Entry, FileFault, SourcesShape};
use std::sync::Arc;

/// The sources, entry by entry.
pub struct SourceTree {}

impl SourceTree {
    /// Opens the sources. "SRC" goes to its last component below the destination, "SRC/" stands for its content.
    ///
    /// # Errors
    /// `Input`: a source that is not there, or an exclude pattern that is none.
    pub fn open(sources: &[String], options: &CopyOptions) -> Result<SourceTree, CopyError> {
        let _ = (sources, options);
        todo!()
    }

    /// What the sources are together; the receiver needs it for [`crate::Destination::open`].
    pub fn shape(&self) -> SourcesShape {
        todo!()
    }

    /// The files of this walk, to be shared by the threads of the streams.
    pub fn files(&self) -> Arc<SourceFiles> {
        todo!()
    }
}

impl Iterator for SourceTree {
    type Item = Result<(u64, Entry), FileFault>;

    /// The next entry with its number, which counts entries, not faults. A fault leaves one entry, or what is below it, out.
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
