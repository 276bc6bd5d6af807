//! The end of a copy: `mirror` removes, folders get their metadata, all is durable.

use super::deferred::{Deferred, Renamed, Step, ELSEWHERE, MOUNT_POINT, NOT_EMPTY, NO_REMOVAL};
use super::part::Home;
use super::paths::path_hash;
use super::place::Place;
use super::removal::{Removal, Scope};
use super::state::{mount_at, mount_of};
use super::target::Destination;
use crate::beneath::Beneath;
use crate::error::{CopyError, EntryFault};
use crate::names::{fault, io_error, unwritable, unwritable_path, words};
use copy::{plural, show_path, Entry, FaultKind};
use rustix::fs::{statat, AtFlags, FileType};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::PoisonError;

/// The result of [`Destination::close`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// Entries that `mirror` removed.
    pub removed: u64,
    /// Their paths, the first 10,000.
    pub removals: Vec<String>,
    /// Entries that `mirror` leaves, a line for each folder.
    pub notes: Vec<String>,
    /// Folders whose metadata could not be set, entries that could not be removed, or that wait for a removal.
    pub faults: Vec<EntryFault>,
}

impl Destination {
    /// Removes what the sources do not have if `mirror` was requested and `complete` (no fault, sources read to their
    /// end), sets times and modes of the folders, deepest first. All is durable after it.
    ///
    /// # Errors
    /// `Io`: the last sync failed.
    pub fn close(&self, complete: bool) -> Result<Closed, CopyError> {
        let Place::Folder { root, .. } = &self.place else { return Ok(Closed::default()) };
        let mut folders = std::mem::take(&mut *self.folders.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closed = Closed::default();
        self.mirror(root, &folders, complete, &mut closed);
        // A part whose name a folder keeps is beside it: its removal changes the time of the folder above.
        self.remove_beside();
        folders.sort_by_key(|entry| std::cmp::Reverse(entry.path.len()));
        for entry in &folders {
            if let Err(reason) = self.set_by_name(entry, &entry.path) {
                closed.faults.push(fault(&entry.path, FaultKind::Metadata, reason).into());
            }
            // Their own times and modes are in their inodes.
            let elsewhere = self.home(&entry.path).is_ok_and(|(home, _)| home == Home::Beside);
            self.durable.changed(&entry.path, elsewhere);
        }
        let order = self.durable.ordered();
        self.durable.flush_all(root, &order).map_err(|error| io_error(&self.shown, &error))?;
        Ok(closed)
    }

    /// Removes folders that have the name of an entry, and names that the sources do not have, in the folders that
    /// they have: all of these or none.
    fn mirror(&self, root: &Beneath, folders: &[Entry], complete: bool, closed: &mut Closed) {
        let mut deferred = self.take_deferred();
        let Some(expected) = &self.expected else { return };
        let mut expected = expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.sort_unstable();
        expected.dedup();
        let uncopied = self.uncopied.lock().unwrap_or_else(PoisonError::into_inner);
        let is_expected = |path: &[Vec<u8>]| {
            let hash = path_hash(path);
            expected.binary_search(&hash).is_ok() || uncopied.contains(&hash)
        };
        // The destination itself is none.
        let entries = expected.len() as u64 - u64::from(is_expected(&[]));
        if !complete {
            closed.faults.extend(deferred.iter().map(|one| in_the_way(one, NO_REMOVAL)));
            return;
        }
        let left_out = self.left_out.lock().unwrap_or_else(PoisonError::into_inner);
        // Several sources may have the same folder.
        let folders: BTreeSet<_> = folders.iter().map(|folder| &folder.path).collect();
        let folders: Vec<_> = folders.into_iter().filter(|path| !left_out.contains(*path)).collect();
        let scope = Scope { root, exclude: &self.exclude, sources: &self.sources };
        let mut count = Removal::count(scope);
        deferred.retain(|deferred| {
            let reason = self.why_it_stays(root, &mut count, &deferred.path);
            closed.faults.extend(reason.iter().map(|reason| in_the_way(deferred, reason)));
            reason.is_none()
        });
        folders.iter().for_each(|path| count.folder(path, &is_expected));
        let limit = self.max_removals.unwrap_or(entries);
        let is_refused = count.removed > limit;
        if is_refused {
            let than = match self.max_removals {
                Some(limit) => format!("{limit} (--max-removals)"),
                None => format!("the {entries} that the sources have"),
            };
            let reason = format!(
                "mirror: {} would be removed, more than {than}: none was; --max-removals {} allows it",
                plural(count.removed, "entry"),
                count.removed
            );
            closed.faults.push(fault(&[], FaultKind::Unwritable, reason).into());
        }
        // Nothing is removed.
        if is_refused || !closed.faults.is_empty() {
            closed.faults.extend(deferred.iter().map(|one| in_the_way(one, NO_REMOVAL)));
            return;
        }
        let changed = |folder: BorrowedFd<'_>, path: &[Vec<u8>]| self.note_changed(folder, path);
        let mut removal = Removal::of(scope, count.removed, &changed);
        for deferred in &deferred {
            let result = match self.is_in_the_way(&deferred.path) {
                false => Ok(()),
                true => self.parent(&deferred.path).map_err(|error| unwritable_path(&deferred.path, &error)).and_then(
                    |parent| match removal.tree(parent.as_fd(), &deferred.path, true) {
                        true => Ok(()),
                        false => Err(in_the_way(deferred, NOT_EMPTY)),
                    },
                ),
            };
            closed.faults.extend(result.and_then(|()| self.finish_deferred(deferred)).err());
        }
        if closed.faults.is_empty() {
            folders.iter().for_each(|path| removal.folder(path, &is_expected));
        }
        closed.removed = removal.removed;
        closed.removals = removal.paths;
        closed.notes = removal.notes;
        closed.faults.append(&mut removal.faults);
    }

    /// Counts the removal of a folder that has the name of an entry; returns the reason if it stays.
    fn why_it_stays(&self, root: &Beneath, count: &mut Removal<'_>, path: &[Vec<u8>]) -> Option<String> {
        if !self.is_in_the_way(path) {
            return None;
        }
        let parent = match self.parent(path) {
            Ok(parent) => parent,
            Err(error) => return Some(words(&error)),
        };
        let mount = mount_of(parent.as_fd()).ok();
        if path.last().is_some_and(|name| mount_at(parent.as_fd(), name).ok() != mount) {
            return Some(MOUNT_POINT.into());
        }
        // As in folders of the sources, nothing is removed on other mounts.
        if mount != mount_of(root.root()).ok() {
            return Some(ELSEWHERE.into());
        }
        let known = count.faults.len();
        if count.tree(parent.as_fd(), path, true) {
            return None;
        }
        Some(match count.faults.get(known) {
            Some(fault) => format!("a folder has its name, in which {} stays: {}", fault.path, fault.reason),
            None => "a folder has its name, in which excluded entries stay".into(),
        })
    }

    /// True if a folder has this name.
    fn is_in_the_way(&self, path: &[Vec<u8>]) -> bool {
        let stat = |folder: OwnedFd| statat(folder, path.last()?.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok();
        let found = self.parent(path).ok().and_then(stat);
        found.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    fn parent(&self, path: &[Vec<u8>]) -> io::Result<OwnedFd> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        root.folder(super::paths::parent_of(path))
    }

    /// Opens a folder below the destination to list it.
    pub(super) fn listed(&self, path: &[Vec<u8>]) -> io::Result<OwnedFd> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        root.listed(path)
    }

    /// Notes that names of an open folder have changed.
    fn note_changed(&self, folder: BorrowedFd<'_>, path: &[Vec<u8>]) {
        let elsewhere = mount_of(folder).is_ok_and(|mount| mount != self.state.mount());
        self.durable.changed(path, elsewhere);
    }

    /// Gives an entry its name, once the folder is removed.
    fn finish_deferred(&self, deferred: &Deferred) -> Result<(), EntryFault> {
        match &deferred.step {
            Step::Rename(name) => match self.rename(name, &deferred.path) {
                Ok(Renamed::Done) => {}
                Ok(Renamed::Blocked) => return Err(in_the_way(deferred, NOT_EMPTY)),
                Err(error) => return Err(unwritable(&deferred.entry, &error)),
            },
            Step::Make(first) => self.make(&deferred.entry, first.as_deref())?.map_or(Ok(()), Err)?,
            Step::LinkOlder => self.link_older(&deferred.entry)?,
        }
        // Another process may have put a folder there again.
        match self.is_deferred(&deferred.path) {
            true => Err(in_the_way(deferred, NOT_EMPTY)),
            false => Ok(()),
        }
    }
}

/// The fault of an entry whose name a folder has that stays, or of a hard link to one.
fn in_the_way(deferred: &Deferred, reason: &str) -> EntryFault {
    let reason = match &deferred.step {
        Step::Make(Some(first)) => format!("a hard link to {}, which is not copied", show_path(first)),
        _ => reason.to_owned(),
    };
    fault(&deferred.entry.path, FaultKind::Unwritable, reason).into()
}
