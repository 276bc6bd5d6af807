//! Entries without content of their own are made, and names given to what was made in the state folder.

use super::deferred::{Renamed, Step, MOUNT_POINT, NOT_EMPTY, SOURCE_LINK};
use super::metadata;
use super::part::Home;
use super::paths::parent_of;
use super::place::Place;
use super::state::mount_of;
use super::target::Destination;
use crate::beneath::is_name;
use crate::error::EntryFault;
use crate::names::{fault, unwritable, words, STATE_NAME};
use crate::xattr::Of;
use copy::{Entry, EntryKind, FaultKind};
use rustix::fs::{linkat, mkdirat, mknodat, renameat, statat, symlinkat, unlinkat, AtFlags, FileType, Mode};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::PoisonError;

impl Destination {
    /// Makes a folder (call it for each), symbolic link, hard link (to the path `first`, which is finished), FIFO or
    /// device node; replaces what is of another kind, a folder with `mirror` in the end ([`Destination::close`]). A
    /// fault of kind `Metadata` is returned as `Ok(Some)`.
    ///
    /// # Errors
    /// `Unwritable`.
    pub fn make(&self, entry: &Entry, first: Option<&[Vec<u8>]>) -> Result<Option<EntryFault>, EntryFault> {
        let path = self.path_of(entry)?;
        self.make_entry(entry, &path, first).map_err(|error| unwritable(entry, &error))
    }

    fn make_entry(&self, entry: &Entry, path: &[Vec<u8>], first: Option<&[Vec<u8>]>) -> io::Result<Option<EntryFault>> {
        if entry.kind == EntryKind::Folder {
            self.make_folder(entry, path)?;
            self.folders.lock().unwrap_or_else(PoisonError::into_inner).push(entry.clone());
            return Ok(None);
        }
        let defer = || self.defer(entry, path, Step::Make(first.map(<[_]>::to_vec)));
        if first.is_some_and(|first| self.is_deferred(&self.link_path(first))) {
            defer();
            return Ok(None);
        }
        let (home, folder) = self.home_to_write(parent_of(path))?;
        let name = self.part_name(path, home, "new");
        let make = || match &entry.kind {
            EntryKind::Symlink { target } => Ok(symlinkat(target.as_slice(), &folder, name.as_slice())?),
            EntryKind::HardLink { .. } => self.link(first, &folder, &name),
            EntryKind::Fifo => Ok(mknodat(&folder, name.as_slice(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?),
            &EntryKind::Device { block, major, minor } => {
                let kind = if block { FileType::BlockDevice } else { FileType::CharacterDevice };
                let device = rustix::fs::makedev(major, minor);
                Ok(mknodat(&folder, name.as_slice(), kind, Mode::RUSR | Mode::WUSR, device)?)
            }
            EntryKind::File { .. } | EntryKind::Folder => Err(io::ErrorKind::InvalidInput.into()),
        };
        again_if_there(&folder, &name, make)?;
        let set = match entry.kind {
            // Its metadata are those of the first name.
            EntryKind::HardLink { .. } => Ok(()),
            _ => self.rules.set(entry, Of::Name(folder.as_fd(), &name)),
        };
        let renamed = self.rename(&name, path);
        // Renaming one name of a file to another name of it does nothing (rename(2)), and after an error it is of no
        // use.
        let _ = unlinkat(&folder, name.as_slice(), AtFlags::empty());
        if renamed? == Renamed::Blocked {
            defer();
            return Ok(None);
        }
        Ok(set.err().map(|reason| fault(&entry.path, FaultKind::Metadata, reason).into()))
    }

    fn make_folder(&self, entry: &Entry, path: &[Vec<u8>]) -> io::Result<()> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        let Some((name, parents)) = path.split_last() else { return Ok(()) };
        let parent = root.folder(parents)?;
        // Its own mode comes last: until then the user has to be able to write there.
        let mode = Mode::from_raw_mode(0o700 | (entry.mode & 0o777));
        match mkdirat(&parent, name.as_slice(), mode) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let stat = statat(&parent, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
                if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                    metadata::open_up(parent.as_fd(), name, &stat);
                    return Ok(());
                }
                unlinkat(&parent, name.as_slice(), AtFlags::empty())?;
                mkdirat(&parent, name.as_slice(), mode)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.durable.changed(parents, mount_of(parent.as_fd())? != self.state.mount());
        Ok(())
    }

    /// Makes `name` in `folder` another name of the file at the path `first`.
    fn link(&self, first: Option<&[Vec<u8>]>, folder: &OwnedFd, name: &[u8]) -> io::Result<()> {
        let first = self.link_path(first.ok_or(io::ErrorKind::InvalidInput)?);
        let (Some((own, parents)), Place::Folder { root, .. }) = (first.split_last(), &self.place) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        // Nothing of the state of this copy or of another gets a name outside.
        if !is_name(own) || first.iter().any(|name| name == STATE_NAME.as_bytes()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let from = root.folder(parents)?;
        let stat = statat(&from, own.as_slice(), AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("the file that it links to is not there"));
        }
        Ok(linkat(&from, own.as_slice(), folder, name, AtFlags::empty())?)
    }

    /// Makes the entry a hard link to its older version ([`super::Existing::Linkable`]).
    ///
    /// # Errors
    /// `Unwritable`.
    pub fn link_older(&self, entry: &Entry) -> Result<(), EntryFault> {
        let path = self.path_of(entry)?;
        match self.link_older_path(&path) {
            Ok(Renamed::Done) => {}
            Ok(Renamed::Blocked) => self.defer(entry, &path, Step::LinkOlder),
            Err(error) => return Err(unwritable(entry, &error)),
        }
        Ok(())
    }

    fn link_older_path(&self, path: &[Vec<u8>]) -> io::Result<Renamed> {
        let (Some(older), Some((own, parents))) = (&self.older, path.split_last()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let from = older.folder(parents)?;
        let (home, folder) = self.home_to_write(parents)?;
        let name = self.part_name(path, home, "new");
        let make = || Ok(linkat(&from, own.as_slice(), &folder, name.as_slice(), AtFlags::empty())?);
        again_if_there(&folder, &name, make)?;
        let renamed = self.rename(&name, path);
        let _ = unlinkat(&folder, name.as_slice(), AtFlags::empty());
        renamed
    }

    /// Sets metadata where the content is the same ([`super::Existing::SameContent`]).
    ///
    /// # Errors
    /// `Metadata`.
    pub fn adjust(&self, entry: &Entry) -> Result<(), EntryFault> {
        let path = self.path_of(entry)?;
        let Place::Folder { root, .. } = &self.place else { return Ok(()) };
        self.set_by_name(entry, &path).map_err(|reason| fault(&entry.path, FaultKind::Metadata, reason))?;
        let elsewhere = self.home(parent_of(&path)).is_ok_and(|(home, _)| home == Home::Beside);
        self.durable.adjusted(root, &path, elsewhere).map_err(|error| unwritable(entry, &error))
    }

    /// Sets metadata of what stands at `path`.
    pub(super) fn set_by_name(&self, entry: &Entry, path: &[Vec<u8>]) -> Result<(), String> {
        let Place::Folder { root, .. } = &self.place else { return Ok(()) };
        let folder = root.folder(parent_of(path)).map_err(|error| words(&error))?;
        let name = path.last().map_or(b".".as_slice(), Vec::as_slice);
        self.rules.set(entry, Of::Name(folder.as_fd(), name))
    }

    /// Gives what is called `name` at home its name at `path`, and notes that the folder has changed.
    pub(super) fn rename(&self, name: &[u8], path: &[Vec<u8>]) -> io::Result<Renamed> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (own, parents) = path.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        let to = root.folder(parents)?;
        let elsewhere = mount_of(to.as_fd())? != self.state.mount();
        let from = if elsewhere { to.as_fd() } else { self.state.folder() };
        match renameat(from, name, &to, own.as_slice()) {
            // A removal waits until all else is known to be copied.
            Err(Errno::ISDIR) if self.expected.is_some() && !self.is_source_link(path) => return Ok(Renamed::Blocked),
            Err(Errno::ISDIR) => {
                self.remove_empty(path)?;
                renameat(from, name, &to, own.as_slice())?;
            }
            other => other?,
        }
        self.durable.changed(parents, elsewhere);
        Ok(Renamed::Done)
    }

    fn is_source_link(&self, path: &[Vec<u8>]) -> bool {
        self.source_links.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// Removes an empty folder, for a file.
    fn remove_empty(&self, path: &[Vec<u8>]) -> io::Result<()> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        let (own, parents) = path.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        match unlinkat(root.folder(parents)?, own.as_slice(), AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.is_source_link(path) => Err(io::Error::other(SOURCE_LINK)),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(io::Error::other(NOT_EMPTY)),
            Err(Errno::BUSY) => Err(io::Error::other(MOUNT_POINT)),
            other => Ok(other?),
        }
    }
}

/// Calls `make` again if a name was left there by an earlier attempt.
fn again_if_there(folder: &OwnedFd, name: &[u8], make: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match make() {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
            unlinkat(folder, name, AtFlags::empty())?;
            make()
        }
        other => other,
    }
}
