//! The end of a copy: what the sources do not have goes, folders get their metadata, all is durable.

use super::part::Home;
use super::part_names::path_hash;
use super::place::Place;
use super::state::mount_of;
use super::target::Destination;
use crate::error::CopyError;
use crate::names::{fault, io_error, words, STATE_NAME};
use copy::{Entry, FaultKind, FileFault};
use rustix::fs::{statat, unlinkat, AtFlags, FileType, RawDir};
use rustix::io::Errno;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::PoisonError;

/// The result of [`Destination::close`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Entries that `mirror` removed.
    pub removed: u64,
    /// Folders whose metadata could not be set, entries that could not be removed.
    pub faults: Vec<FileFault>,
}

impl Destination {
    /// Sets times and modes of the folders, deepest first, and removes what the sources do not have if `mirror` was
    /// asked for and `complete` (no fault, sources seen to their end). All is durable after it.
    ///
    /// # Errors
    /// `Io`: the last sync failed.
    pub fn close(&self, complete: bool) -> Result<Closed, CopyError> {
        let Place::Folder { root, .. } = &self.place else { return Ok(Closed::default()) };
        let mut folders = std::mem::take(&mut *self.folders.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closed = Closed::default();
        if complete {
            self.mirror(&folders, &mut closed);
        }
        folders.sort_by_key(|entry| std::cmp::Reverse(entry.path.len()));
        for entry in &folders {
            if let Err(reason) = self.set_by_name(entry, &entry.path) {
                closed.faults.push(fault(&entry.path, FaultKind::Metadata, reason));
            }
            // Their own times and modes are in their inodes.
            let elsewhere = self.home(&entry.path).is_ok_and(|(home, _)| home == Home::Beside);
            self.durable.changed(&entry.path, elsewhere);
        }
        let order = self.durable.ordered();
        self.durable.flush_all(root, &order).map_err(|error| io_error(&self.shown, &error))?;
        Ok(closed)
    }

    /// Removes names that the sources do not have, in the folders that they have.
    fn mirror(&self, folders: &[Entry], closed: &mut Closed) {
        let Some(expected) = &self.expected else { return };
        let mut expected = expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.sort_unstable();
        for folder in folders {
            let names = match self.names(&folder.path) {
                Ok(names) => names,
                Err(error) => {
                    closed.faults.push(fault(&folder.path, FaultKind::Unwritable, words(&error)));
                    continue;
                }
            };
            let mut path = folder.path.clone();
            for (name, is_folder) in names {
                path.push(name);
                let keep =
                    expected.binary_search(&path_hash(&path)).is_ok() || self.exclude.leaves_out(&path, is_folder);
                if !keep {
                    match self.remove_tree(&path) {
                        Ok(count) => closed.removed += count,
                        Err(error) => closed.faults.push(fault(&path, FaultKind::Unwritable, words(&error))),
                    }
                }
                path.pop();
            }
        }
    }

    /// Names in a folder, with true for folders; not the states of copies.
    fn names(&self, folder: &[Vec<u8>]) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let Place::Folder { root, .. } = &self.place else { return Ok(vec![]) };
        let folder = root.listed(folder)?;
        let mut buffer = [MaybeUninit::uninit(); 32_768];
        let mut entries = RawDir::new(&folder, &mut buffer);
        let mut names = vec![];
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && name != STATE_NAME.as_bytes() {
                names.push((name.to_vec(), entry.file_type()));
            }
        }
        let kind = |name: &[u8], kind| match kind {
            // Some file systems do not tell it in the list (readdir(3)).
            FileType::Unknown => statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory),
            kind => kind == FileType::Directory,
        };
        Ok(names
            .into_iter()
            .map(|(name, told)| (kind(&name, told), name))
            .map(|(folder, name)| (name, folder))
            .collect())
    }

    /// Removes an entry with all below it; returns how many went. What `exclude` protects stays, and the folders above.
    pub(super) fn remove_tree(&self, path: &[Vec<u8>]) -> io::Result<u64> {
        let Place::Folder { root, .. } = &self.place else { return Ok(0) };
        let (own, parents) = path.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = root.folder(parents)?;
        match unlinkat(&parent, own.as_slice(), AtFlags::empty()) {
            Ok(()) => {
                self.durable.changed(parents, mount_of(parent.as_fd())? != self.state.mount());
                return Ok(1);
            }
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(Errno::NOENT) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        drop(parent);
        let mut removed = 0;
        let mut below = path.to_vec();
        let mut kept = false;
        for (name, is_folder) in self.names(path)? {
            below.push(name);
            if self.exclude.leaves_out(&below, is_folder) {
                kept = true;
            } else {
                removed += self.remove_tree(&below)?;
            }
            below.pop();
        }
        match unlinkat(root.folder(parents)?, own.as_slice(), AtFlags::REMOVEDIR) {
            Ok(()) => {
                self.durable.changed(parents, false);
                Ok(removed + 1)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) if kept || removed > 0 => Ok(removed),
            Err(error) => Err(error.into()),
        }
    }
}
