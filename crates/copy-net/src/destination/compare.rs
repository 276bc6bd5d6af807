//! Comparison of an entry with its name at the destination.

use super::durable::gone;
use super::metadata::stamp;
use super::paths::size_of;
use super::place::Place;
use super::target::Destination;
use crate::beneath::Beneath;
use crate::error::EntryFault;
use crate::names::unwritable;
use crate::xattr::Of;
use copy::{Entry, EntryKind, SourcesShape};
use rustix::fs::{statat, AtFlags, FileType, Stat};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Result of a look at an entry's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing, or something of another kind, which [`Destination::finish`] and [`Destination::make`] replace.
    Absent,
    /// The same, by size and time, with the same metadata: nothing is to be done (but [`Destination::make`] for each
    /// folder).
    Same,
    /// The same content, by size and time, with other metadata: [`Destination::adjust`].
    SameContent,
    /// A file of `size` bytes with another content, or one that has to be compared (`checksum`): `Base::Existing`.
    Differs {
        /// Bytes.
        size: u64,
    },
    /// Not there, but the older version (`link_to`) has the same content and metadata: [`Destination::link_older`].
    Linkable,
    /// Not there, but the older version has the name with `size` bytes: `Base::Older`.
    Older {
        /// Bytes.
        size: u64,
    },
}

/// An entry below a folder: its parent, opened, and itself.
pub(super) struct Found {
    folder: OwnedFd,
    name: Vec<u8>,
    pub(super) stat: Stat,
}

pub(super) fn find(root: &Beneath, path: &[Vec<u8>]) -> io::Result<Option<Found>> {
    let (name, folder) = match path.split_last() {
        Some((name, parents)) => (name.clone(), root.folder(parents)),
        None => (b".".to_vec(), root.folder(&[])),
    };
    let folder = match folder {
        Ok(folder) => folder,
        // Something that is no folder stands where one will be made.
        Err(error) if gone(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    match statat(&folder, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Found { folder, name, stat })),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Found {
    pub(super) fn of(&self) -> Of<'_> {
        Of::Name(self.folder.as_fd(), &self.name)
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }
}

impl Destination {
    /// Looks at the entry's name. Call it for each entry of the sources: `mirror` keeps those alone. `first`: path
    /// of the entry that a hard link leads to; ask for a link when that entry is finished.
    ///
    /// # Errors
    /// `Unwritable`: no path that may be written (a component is ".."), or it cannot be looked at.
    pub fn look(&self, entry: &Entry, first: Option<&[Vec<u8>]>) -> Result<Existing, EntryFault> {
        let path = self.path_of(entry)?;
        self.expect(&path);
        let found = match &self.place {
            Place::Device { bytes, .. } => return Ok(Existing::Differs { size: *bytes }),
            Place::Folder { root, .. } => {
                self.compare(root, entry, &path, first).and_then(|existing| match (existing, &self.older) {
                    (Existing::Absent, Some(older)) if matches!(entry.kind, EntryKind::File { .. }) => {
                        self.compare_older(older, entry, &path)
                    }
                    (existing, _) => Ok(existing),
                })
            }
        };
        found.map_err(|error| unwritable(entry, &error))
    }

    /// True if a file has the entry's content, as far as size and time tell. A source device's time tells nothing.
    fn same_content(&self, entry: &Entry, found: &Found) -> bool {
        let told = !self.checksum && self.shape != SourcesShape::OneDevice;
        told && found.bytes() == size_of(entry) && stamp(&found.stat) == entry.modified
    }

    fn compare(
        &self,
        root: &Beneath,
        entry: &Entry,
        path: &[Vec<u8>],
        first: Option<&[Vec<u8>]>,
    ) -> io::Result<Existing> {
        let Some(found) = find(root, path)? else { return Ok(Existing::Absent) };
        let same = match (&entry.kind, found.kind()) {
            (EntryKind::File { .. }, FileType::RegularFile) => {
                if !self.same_content(entry, &found) {
                    return Ok(Existing::Differs { size: found.bytes() });
                }
                let is_same = self.rules.same(entry, &found.stat, found.of());
                // Its other names may be of other entries, of an older version or of other people: they keep their
                // metadata.
                return Ok(match is_same {
                    true if self.adopt(&found.stat) => Existing::Same,
                    false if found.stat.st_nlink == 1 => Existing::SameContent,
                    _ => Existing::Differs { size: found.bytes() },
                });
            }
            (EntryKind::HardLink { .. }, FileType::RegularFile) => {
                let first = first.map(|first| find(root, &self.link_path(first))).transpose()?.flatten();
                let key = |stat: &Stat| (stat.st_dev, stat.st_ino);
                return match first.is_some_and(|first| key(&first.stat) == key(&found.stat)) {
                    true => Ok(Existing::Same),
                    false => Ok(Existing::Absent),
                };
            }
            (EntryKind::Folder, FileType::Directory) | (EntryKind::Fifo, FileType::Fifo) => true,
            (EntryKind::Symlink { target }, FileType::Symlink) => {
                rustix::fs::readlinkat(&found.folder, found.name.as_slice(), vec![])?.as_bytes() == target.as_slice()
            }
            (&EntryKind::Device { block, major, minor }, kind) => {
                let want = if block { FileType::BlockDevice } else { FileType::CharacterDevice };
                kind == want && found.stat.st_rdev == rustix::fs::makedev(major, minor)
            }
            _ => false,
        };
        Ok(match (same, self.rules.same(entry, &found.stat, found.of())) {
            (false, _) => Existing::Absent,
            (true, true) => Existing::Same,
            (true, false) => Existing::SameContent,
        })
    }

    fn compare_older(&self, older: &Beneath, entry: &Entry, path: &[Vec<u8>]) -> io::Result<Existing> {
        let found = match find(older, path) {
            Ok(Some(found)) if found.kind() == FileType::RegularFile => found,
            // An older version that cannot be read is as none.
            _ => return Ok(Existing::Absent),
        };
        let same = self.same_content(entry, &found) && self.rules.same(entry, &found.stat, found.of());
        Ok(if same && self.adopt(&found.stat) { Existing::Linkable } else { Existing::Older { size: found.bytes() } })
    }

    /// Path below the destination of the entry that a hard link leads to.
    pub(super) fn link_path(&self, first: &[Vec<u8>]) -> Vec<Vec<u8>> {
        match &self.place {
            Place::Folder { name: Some(name), .. } => vec![name.clone()],
            _ => first.to_vec(),
        }
    }
}
