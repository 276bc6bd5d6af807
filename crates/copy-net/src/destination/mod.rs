//! The destination of a copy: parts that become files when they are whole, checked and synced; nothing outside of it.

mod part;

pub use part::{Base, Part};

use crate::error::CopyError;
use copy::{CopyOptions, Entry, FileFault, SourcesShape};
use std::io;
use std::path::{Path, PathBuf};

/// What stands at an entry's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing, or something of another kind, which [`Destination::finish`] and [`Destination::make`] replace.
    Absent,
    /// The same, by size and time, with the same metadata: nothing is to be done.
    Same,
    /// The same content, by size and time, with other metadata: [`Destination::adjust`].
    SameContent,
    /// A file of `size` bytes with another content, or one that has to be compared (`checksum`): [`Base::Existing`].
    Differs {
        /// Bytes.
        size: u64,
    },
    /// Not there, but the older version (`link_to`) has the same content and metadata: [`Destination::link_older`].
    Linkable,
    /// Not there, but the older version has the name with `size` bytes: [`Base::Older`].
    Older {
        /// Bytes.
        size: u64,
    },
}

/// The result of [`Destination::close`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Entries that `mirror` removed.
    pub removed: u64,
    /// Folders whose metadata could not be set, entries that could not be removed.
    pub faults: Vec<FileFault>,
}

/// A folder, file name or block device that a copy goes to. All methods may be called by many threads at once.
pub struct Destination {}

impl Destination {
    /// Opens the destination, makes its folder and the state folder, and locks this copy against other processes.
    ///
    /// # Errors
    /// `Busy`: another process runs this copy. `Input`: the destination is no folder, or a device that is in use. `Io`.
    pub fn open(
        destination: &str,
        shape: SourcesShape,
        options: &CopyOptions,
        copy: &str,
    ) -> Result<Destination, CopyError> {
        let _ = (destination, shape, options, copy);
        todo!()
    }

    /// Parts and the receiver's journal are here, on the destination's file system.
    pub fn state_folder(&self) -> &Path {
        todo!()
    }

    /// What stands at the entry's name. Call it for each entry of the sources: `mirror` keeps those alone. `first`: path
    /// of the entry that a hard link leads to.
    ///
    /// # Errors
    /// `Unwritable`: no path that may be written (a component is "..", or a symbolic link at the destination).
    pub fn look(&self, entry: &Entry, first: Option<&[Vec<u8>]>) -> Result<Existing, FileFault> {
        let _ = (entry, first);
        todo!()
    }

    /// Begins the part of a file. `Base::Resume` takes the part of an earlier attempt, if it is there
    /// ([`Part::resumed`]).
    ///
    /// # Errors
    /// `Unwritable`; for a full disk ask [`is_full`] with the errors of the part's methods.
    pub fn begin(&self, number: u64, entry: &Entry, from: Base) -> Result<Part, FileFault> {
        let _ = (number, entry, from);
        todo!()
    }

    /// A part of an earlier attempt for this entry, bytes of its length.
    pub fn part_size(&self, entry: &Entry) -> Option<u64> {
        let _ = entry;
        todo!()
    }

    /// Gives a whole part the entry's size and metadata; [`Destination::sync`] after it makes both durable.
    ///
    /// # Errors
    /// `Unwritable` for the size; metadata that may not be set is returned as a fault of kind `Metadata`.
    pub fn seal(&self, part: &Part, entry: &Entry) -> Result<Option<FileFault>, FileFault> {
        let _ = (part, entry);
        todo!()
    }

    /// Makes all that was written to these parts durable, with their names in the state folder: fdatasync of few, syncfs
    /// of many. After an error nothing written since the last sync may count as durable.
    ///
    /// # Errors
    /// Those of fsync(2) and syncfs(2): give the attempt up.
    pub fn sync(&self, parts: &[&Part]) -> io::Result<()> {
        let _ = parts;
        todo!()
    }

    /// Gives sealed and synced parts their names, and makes the names durable. Many at once cost one sync per folder.
    pub fn finish(&self, parts: Vec<(Part, &Entry)>) -> Vec<Result<(), FileFault>> {
        let _ = parts;
        todo!()
    }

    /// Throws a part away: its source has gone or has changed.
    pub fn discard(&self, part: Part) {
        let _ = part;
        todo!()
    }

    /// Makes a folder, symbolic link, hard link (to the path `first`), FIFO or device node; replaces what is of another
    /// kind. A fault of kind `Metadata` is returned as `Ok(Some)`.
    ///
    /// # Errors
    /// `Unwritable`.
    pub fn make(&self, entry: &Entry, first: Option<&[Vec<u8>]>) -> Result<Option<FileFault>, FileFault> {
        let _ = (entry, first);
        todo!()
    }

    /// Makes the entry a hard link to its older version ([`Existing::Linkable`]).
    ///
    /// # Errors
    /// `Unwritable`.
    pub fn link_older(&self, entry: &Entry) -> Result<(), FileFault> {
        let _ = entry;
        todo!()
    }

    /// Sets metadata where the content is the same ([`Existing::SameContent`]).
    ///
    /// # Errors
    /// `Metadata`.
    pub fn adjust(&self, entry: &Entry) -> Result<(), FileFault> {
        let _ = entry;
        todo!()
    }

    /// Reads the file that stands at the entry's name, or its older version: to hash its chunks for a delta.
    ///
    /// # Errors
    /// `Unwritable`: it is gone or may not be read.
    pub fn base(&self, entry: &Entry, from: Base) -> Result<std::fs::File, FileFault> {
        let _ = (entry, from);
        todo!()
    }

    /// Sets times and modes of the folders, deepest first, and removes what the sources do not have if `mirror` was asked
    /// for and `complete` (no fault, sources seen to their end). All is durable after it.
    ///
    /// # Errors
    /// `Io`: the last sync failed.
    pub fn close(&self, complete: bool) -> Result<Closed, CopyError> {
        let _ = complete;
        todo!()
    }

    /// Removes the state folder, with parts and journal: the copy is done. Call it last.
    pub fn clear(self) {
        todo!()
    }

    /// The error for a full disk, with bytes that are free and `needed`.
    pub fn full(&self, needed: u64) -> CopyError {
        let _ = needed;
        todo!()
    }
}

/// True for ENOSPC and EDQUOT.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Folder of this user for states that outlive a copy (manifests, the sender's journal) and for those of copies to block
/// devices: `$XDG_STATE_HOME/elephan/copies`, or below `~/.local/state`. It is made.
///
/// # Errors
/// `Io`: no home folder, or not to be written.
pub fn user_state_folder() -> Result<PathBuf, CopyError> {
    todo!()
}
