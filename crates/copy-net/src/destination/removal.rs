//! Removal for `mirror`: entries that the sources do not have, counted first and removed after.
//!
//! **Invariant: no mount is crossed, no link is followed, and nothing that is excluded is removed.**

use super::metadata::{chmod, open_up};
use super::state::{mount_at, mount_of, Mount};
use crate::beneath::Beneath;
use crate::error::EntryFault;
use crate::exclude::Exclude;
use crate::listing::list;
use crate::names::{fault, unwritable_path, STATE_NAME};
use crate::xattr::Of;
use copy::{plural, show_path, FaultKind};
use rustix::fs::{fstat, openat, statat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Deepest tree that is removed: each level holds a descriptor. PATH_MAX bounds what a path can name at 2048 levels.
const DEPTH_MAX: usize = 2048;
/// Removed paths, and faults, that are listed.
const LISTED: usize = 10_000;
/// Notes, at most.
const NOTES_MAX: usize = 100;
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// The part of a destination from which entries may be removed.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) root: &'a Beneath,
    pub(crate) exclude: &'a Exclude,
    /// Device and inode of folders that stay: sources of the copy on this host, by whichever mount they are read.
    pub(crate) sources: &'a [(u64, u64)],
}

/// A removal, or the count of one.
pub(crate) struct Removal<'a> {
    scope: Scope<'a>,
    /// Called with each folder of which a name was removed, and its path; `None`: nothing is removed.
    changed: Option<&'a Changed<'a>>,
    /// Most entries that are removed.
    limit: u64,
    pub(crate) removed: u64,
    /// Paths of the first ones.
    pub(crate) paths: Vec<String>,
    pub(crate) faults: Vec<EntryFault>,
    /// Entries that stay and are no fault, a line for each folder.
    pub(crate) notes: Vec<String>,
}

/// Called with a folder and its path.
type Changed<'a> = dyn Fn(BorrowedFd<'_>, &[Vec<u8>]) + 'a;
/// Names in a folder, with true for folders.
type Names = Vec<(Vec<u8>, bool)>;

/// A folder below which entries are removed.
struct Level {
    folder: OwnedFd,
    names: <Names as IntoIterator>::IntoIter,
    /// All entries of the folder were removed.
    is_empty: bool,
    /// Its mode, which is restored where it stays.
    mode: u32,
}

impl Level {
    fn restore(&self) {
        let has_mode = |mode| fstat(&self.folder).is_ok_and(|stat| stat.st_mode & 0o7777 == mode);
        if !has_mode(self.mode) {
            let _ = chmod(Of::Fd(self.folder.as_fd()), self.mode);
        }
    }
}

enum Visit {
    /// True: the entry was removed.
    Done(bool),
    Enter(Level),
}

impl<'a> Removal<'a> {
    /// Counts what [`Removal::of`] would remove.
    pub(crate) fn count(scope: Scope<'a>) -> Removal<'a> {
        Removal { scope, changed: None, limit: u64::MAX, removed: 0, paths: vec![], faults: vec![], notes: vec![] }
    }

    /// Removes at most `limit` entries.
    pub(crate) fn of(scope: Scope<'a>, limit: u64, changed: &'a Changed<'a>) -> Removal<'a> {
        Removal { limit, changed: Some(changed), ..Removal::count(scope) }
    }

    /// Removes the entry at `path`, with all below it; its last component is a name in `folder`. False: something of
    /// it stays; the reason is a fault, but for excluded names.
    pub(crate) fn tree(&mut self, folder: BorrowedFd<'_>, path: &[Vec<u8>], is_folder: bool) -> bool {
        let mount = match mount_of(folder) {
            Ok(mount) => mount,
            Err(error) => return self.fault(unwritable_path(path, &error)),
        };
        let mut path = path.to_vec();
        let mut levels: Vec<Level> = vec![];
        let mut visit = self.visit(folder, mount, &path, is_folder, 0);
        loop {
            match visit {
                Visit::Enter(level) => levels.push(level),
                Visit::Done(is_removed) => {
                    path.pop();
                    match levels.last_mut() {
                        None => return is_removed,
                        Some(level) => level.is_empty &= is_removed,
                    }
                }
            }
            let depth = levels.len();
            let level = &mut levels[depth - 1];
            if let Some((name, is_folder)) = level.names.next() {
                path.push(name);
                visit = self.visit(level.folder.as_fd(), mount, &path, is_folder, depth);
                continue;
            }
            let is_empty = level.is_empty;
            let level = levels.pop();
            let parent = levels.last().map_or(folder, |level| level.folder.as_fd());
            let is_removed = is_empty && self.unlink(parent, &path, AtFlags::REMOVEDIR);
            if let Some(level) = level.filter(|_| self.changed.is_none() || !is_removed) {
                level.restore();
            }
            visit = Visit::Done(is_removed);
        }
    }

    fn visit(
        &mut self,
        folder: BorrowedFd<'_>,
        mount: Mount,
        path: &[Vec<u8>],
        is_folder: bool,
        depth: usize,
    ) -> Visit {
        let Some(name) = path.last() else { return Visit::Done(false) };
        if self.scope.exclude.leaves_out(path, is_folder) {
            return Visit::Done(false);
        }
        let stays = |reason: &str| fault(path, FaultKind::Unwritable, reason).into();
        if name.as_slice() == STATE_NAME.as_bytes() {
            let reason =
                "parts and journals of copies to its folder: it stays; the copies go on, or elephan copy forget";
            return Visit::Done(self.fault(stays(reason)));
        }
        match mount_at(folder, name) {
            Ok(own) if own == mount => {}
            Ok(_) => return Visit::Done(self.fault(stays("a mount point: it stays, with all that is mounted there"))),
            // It was removed by somebody else.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Visit::Done(true),
            Err(error) => return Visit::Done(self.fault(unwritable_path(path, &error))),
        }
        if !is_folder {
            return Visit::Done(self.unlink(folder, path, AtFlags::empty()));
        }
        if depth > DEPTH_MAX {
            return Visit::Done(self.fault(stays("deeper than 2048 folders: it stays")));
        }
        match self.enter(folder, name) {
            Ok(level) => Visit::Enter(level),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Visit::Done(true),
            Err(error) => Visit::Done(self.fault(unwritable_path(path, &error))),
        }
    }

    /// Opens and lists a folder, one of the user's own also where its mode forbids it.
    fn enter(&self, parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<Level> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if self.scope.sources.contains(&(stat.st_dev, stat.st_ino)) {
            return Err(io::Error::other("a source of this copy: it stays"));
        }
        open_up(parent, name, &stat);
        let folder = openat(parent, name, FOLDER, Mode::empty())?;
        let names = names(&folder)?.into_iter();
        Ok(Level { folder, names, is_empty: true, mode: stat.st_mode & 0o7777 })
    }

    fn unlink(&mut self, folder: BorrowedFd<'_>, path: &[Vec<u8>], flags: AtFlags) -> bool {
        let (Some(name), parents) = (path.last(), &path[..path.len() - 1]) else { return false };
        if self.removed >= self.limit {
            let reason = format!("more than {} to be removed: it stays", plural(self.limit, "entry"));
            return self.fault(fault(path, FaultKind::Unwritable, reason).into());
        }
        if let Some(changed) = self.changed {
            match unlinkat(folder, name.as_slice(), flags) {
                Ok(()) => changed(folder, parents),
                Err(Errno::NOENT) => return true,
                Err(error) => return self.fault(unwritable_path(path, &error.into())),
            }
        }
        self.removed += 1;
        if self.paths.len() < LISTED {
            self.paths.push(show_path(path));
        }
        true
    }

    /// Notes a fault; false, as the entry stays.
    fn fault(&mut self, fault: EntryFault) -> bool {
        if self.faults.len() < LISTED {
            self.faults.push(fault);
        }
        false
    }

    /// Removes the names that the sources do not have from one of their folders.
    pub(crate) fn folder(&mut self, path: &[Vec<u8>], is_expected: &dyn Fn(&[Vec<u8>]) -> bool) {
        let (folder, names, is_elsewhere) = match self.scope.list(path) {
            Ok(listed) => listed,
            Err(error) => {
                self.fault(unwritable_path(path, &error));
                return;
            }
        };
        let mut path = path.to_vec();
        let mut stay = 0;
        for (name, is_folder) in names {
            // The states of copies to this folder are no entries.
            if name != STATE_NAME.as_bytes() {
                path.push(name);
                if !is_expected(&path) {
                    match is_elsewhere {
                        true => stay += u64::from(!self.scope.exclude.leaves_out(&path, is_folder)),
                        false => drop(self.tree(folder.as_fd(), &path, is_folder)),
                    }
                }
                path.pop();
            }
        }
        if stay > 0 && self.notes.len() < NOTES_MAX {
            let path = show_path(&path);
            self.notes.push(format!("{path}: on another mount than the destination: mirror leaves {stay} there"));
        }
    }
}

impl Scope<'_> {
    /// Opens and lists a folder; true: it is on another mount than the destination.
    pub(crate) fn list(&self, path: &[Vec<u8>]) -> io::Result<(OwnedFd, Names, bool)> {
        let folder = self.root.listed(path)?;
        let is_elsewhere = mount_of(folder.as_fd())? != mount_of(self.root.root())?;
        let names = names(&folder)?;
        Ok((folder, names, is_elsewhere))
    }
}

/// Names in a folder, with true for folders, sorted.
pub(super) fn names(folder: &OwnedFd) -> io::Result<Names> {
    let mut names = vec![];
    list(folder, |one| {
        names.push((one.name.to_bytes().to_vec(), one.is_folder(folder).unwrap_or(false)));
        Ok(())
    })?;
    names.sort_unstable();
    Ok(names)
}
