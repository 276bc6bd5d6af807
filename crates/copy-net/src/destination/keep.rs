//! Files that stay at their name, since all of their content is that of the entry.

use super::compare::find;
use super::paths::size_of;
use super::place::Place;
use super::target::Destination;
use crate::identity::identity;
use copy::{Entry, Identity};
use rustix::fs::{FileType, Stat};
use std::sync::PoisonError;

/// The result of [`Destination::keep`].
pub(crate) enum Kept {
    /// It stays, with the reason if some of its metadata could not be set.
    Yes(Option<String>),
    /// A new part replaces it.
    No,
}

impl Destination {
    /// Leaves a file at the entry's name, whose chunks have the entry's hashes, and sets its metadata. `hashed`: the
    /// file's identity before its first chunk was read. A longer file, one that has changed since, and one whose
    /// metadata belong to other names too is replaced by a new part.
    pub(crate) fn keep(&self, entry: &Entry, hashed: Identity) -> Kept {
        let Place::Folder { root, .. } = &self.place else { return Kept::Yes(None) };
        let Ok(path) = self.path_of(entry) else { return Kept::No };
        let Ok(Some(found)) = find(root, &path) else { return Kept::No };
        let is_hashed = found.kind() == FileType::RegularFile && identity(&found.stat) == hashed;
        if !is_hashed || hashed.size != size_of(entry) {
            return Kept::No;
        }
        if self.rules.same(entry, &found.stat, found.of()) {
            return if self.adopt(&found.stat) { Kept::Yes(None) } else { Kept::No };
        }
        match found.stat.st_nlink {
            1 => Kept::Yes(self.adjust(entry).err().map(|fault| fault.reason)),
            _ => Kept::No,
        }
    }

    /// Takes a file as that of one entry, with all of its hard links. False: another entry has it already, since
    /// the destination links names that the sources do not link.
    pub(super) fn adopt(&self, stat: &Stat) -> bool {
        if stat.st_nlink == 1 {
            return true;
        }
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner).insert((stat.st_dev, stat.st_ino))
    }
}
