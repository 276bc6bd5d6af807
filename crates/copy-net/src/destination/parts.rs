//! Parts from their beginning to their name: begun, sealed, synced, finished.

use super::deferred::{Renamed, Step};
use super::metadata;
use super::part::{Base, Home, Part};
use super::paths::{parent_of, size_of};
use super::place::Place;
use super::target::Destination;
use crate::error::EntryFault;
use crate::identity::identity;
use crate::names::{fault, unwritable};
use crate::xattr::Of;
use copy::{plural, Entry, FaultKind, Identity};
use rustix::fs::{openat, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

impl Destination {
    /// A part of an earlier attempt for this entry, bytes of its length. For a device: its size, since it is written in
    /// place.
    pub fn part_size(&self, entry: &Entry) -> Option<u64> {
        match &self.place {
            Place::Device { bytes, .. } => Some(*bytes),
            Place::Folder { .. } => {
                let path = self.path_of(entry).ok()?;
                let (home, folder) = self.home(path.split_last()?.1).ok()?;
                let name = self.part_name(&path, home, "part");
                let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                regular.then(|| u64::try_from(stat.st_size).unwrap_or_default())
            }
        }
    }

    /// Begins the part of a file; its folder was made before. `Base::Resume` opens the part of an earlier attempt.
    ///
    /// # Errors
    /// `Unwritable`; also if there is no part to resume: a new one lacks the chunks that a journal has of the old one.
    /// [`EntryFault::is_full`] is true for a full disk; [`crate::is_full`] for errors of the part's methods.
    pub fn begin(&self, number: u64, entry: &Entry, from: Base) -> Result<Part, EntryFault> {
        let path = self.path_of(entry)?;
        self.begin_part(number, entry, path, from).map_err(|error| unwritable(entry, &error))
    }

    fn begin_part(&self, number: u64, entry: &Entry, path: Vec<Vec<u8>>, from: Base) -> io::Result<Part> {
        let new = |file: File, home: Home, name: Vec<u8>| Part {
            number,
            file,
            home,
            name,
            path: path.clone(),
            resumed: false,
            base: None,
            cloned: false,
            took: AtomicBool::new(false),
            named: AtomicBool::new(false),
            sealed: AtomicBool::new(false),
        };
        if let Place::Device { device, bytes } = &self.place {
            let need = size_of(entry);
            if *bytes < need {
                return Err(io::Error::other(format!("the device has {}, {need} are needed", plural(*bytes, "byte"))));
            }
            let part = new(device.try_clone()?, Home::Device, vec![]);
            return Ok(Part { resumed: from == Base::Resume, ..part });
        }
        let (home, folder) = self.home_to_write(path.split_last().ok_or(io::ErrorKind::InvalidInput)?.1)?;
        let name = self.part_name(&path, home, "part");
        if from == Base::Resume {
            if let Some(file) = open_part(&folder, &name)? {
                let base = self.open_base(&path, Base::Existing).or_else(|_| self.open_base(&path, Base::Older)).ok();
                return Ok(Part { resumed: true, base, ..new(file, home, name) });
            }
            return Err(io::ErrorKind::NotFound.into());
        }
        let base = match from {
            Base::Nothing | Base::Resume => None,
            Base::Existing | Base::Older => match self.open_base(&path, from) {
                Ok(base) => Some(base),
                // Nothing is taken over from a file that could not be compared.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
                Err(error) => return Err(error),
            },
        };
        let file = new_part(&folder, &name)?;
        let cloned = base.as_ref().is_some_and(|base| rustix::fs::ioctl_ficlone(&file, base).is_ok());
        if size_of(entry) > SHORT_BYTES {
            // XFS allocates ahead of a write that extends a file, also where holes are to be.
            rustix::fs::ftruncate(&file, size_of(entry))?;
        }
        Ok(Part { base, cloned, ..new(file, home, name) })
    }

    /// Gives a whole part the entry's size and metadata; [`Destination::sync`] after it makes both durable. Metadata
    /// that may not be set is returned as a fault of kind `Metadata`.
    ///
    /// # Errors
    /// `Unwritable`: the size cannot be set.
    pub fn seal(&self, part: &Part, entry: &Entry) -> Result<Option<EntryFault>, EntryFault> {
        part.set_len(size_of(entry)).map_err(|error| unwritable(entry, &error))?;
        if part.home == Home::Device {
            return Ok(None);
        }
        let of = Of::Fd(part.file.as_fd());
        if part.resumed {
            self.rules.reset(of);
        }
        let set = self.rules.set(entry, of);
        part.sealed.store(true, Ordering::Release);
        Ok(set.err().map(|reason| fault(&entry.path, FaultKind::Metadata, reason).into()))
    }

    /// Makes all that was written to these parts durable, with their names in the state folder: fdatasync of few,
    /// syncfs of many. After an error nothing written since the last sync may count as durable.
    ///
    /// # Errors
    /// Those of fsync(2) and syncfs(2): give the attempt up.
    pub fn sync(&self, parts: &[&Part]) -> io::Result<()> {
        let at_home = |part: &&&Part| part.home == Home::State;
        if self.durable.at_once(parts.iter().filter(at_home).count()) {
            let _order = self.durable.ordered();
            rustix::fs::syncfs(self.state.folder())?;
            parts.iter().filter(at_home).for_each(|part| part.named.store(true, Ordering::Release));
        } else {
            parts.iter().filter(at_home).try_for_each(|part| part.sync())?;
            if parts.iter().filter(at_home).any(|part| !part.named.load(Ordering::Acquire)) {
                let _order = self.durable.ordered();
                rustix::fs::fsync(self.state.folder())?;
                parts.iter().filter(at_home).for_each(|part| part.named.store(true, Ordering::Release));
            }
        }
        for part in parts.iter().filter(|part| part.home != Home::State) {
            part.sync()?;
            if let (Place::Folder { root, .. }, Home::Beside) = (&self.place, part.home) {
                if !part.named.swap(true, Ordering::AcqRel) {
                    rustix::fs::fsync(root.listed(parent_of(&part.path))?)?;
                }
            }
        }
        Ok(())
    }

    /// Gives sealed and synced parts their names, and makes the names durable. Many at once cost one sync per folder.
    /// After a fault the part is still there for another attempt. With `mirror` a folder that has the name is removed
    /// in the end ([`Destination::close`]).
    pub fn finish(&self, parts: Vec<(Part, &Entry)>) -> Vec<Result<(), EntryFault>> {
        let Place::Folder { root, .. } = &self.place else {
            return parts.iter().map(|_| Ok(())).collect();
        };
        let order = self.durable.ordered();
        let mut done: Vec<_> = parts
            .iter()
            .map(|(part, entry)| {
                let target = self.path_of(entry)?;
                match self.rename(&part.name, &target) {
                    Ok(Renamed::Done) => {}
                    Ok(Renamed::Blocked) => self.defer(entry, &target, Step::Rename(part.name.clone())),
                    Err(error) => return Err(unwritable(entry, &error)),
                }
                Ok(())
            })
            .collect();
        let folders = parts.iter().map(|(part, _)| parent_of(&part.path));
        if let Err(error) = self.durable.flush(root, folders, &order) {
            for (result, (_, entry)) in done.iter_mut().zip(&parts) {
                *result = Err(unwritable(entry, &error));
            }
        }
        done
    }

    /// Throws a part away: its source has gone or has changed.
    pub fn discard(&self, part: Part) {
        if part.home == Home::Device {
            return;
        }
        if let Ok((_, folder)) = self.home(parent_of(&part.path)) {
            // It stays until the state folder goes, if it cannot be removed.
            let _ = rustix::fs::unlinkat(&folder, part.name.as_slice(), AtFlags::empty());
        }
    }

    /// Opens the file at the entry's name, its older version, or the device, to hash its chunks for a delta; with its
    /// identity before the first read.
    ///
    /// # Errors
    /// `Unwritable`: it is gone or may not be read.
    pub fn base(&self, entry: &Entry, from: Base) -> Result<(File, Identity), EntryFault> {
        let open = || match &self.place {
            Place::Device { device, .. } => device.try_clone(),
            Place::Folder { .. } => self.open_base(&self.path_of(entry).map_err(|f| io::Error::other(f.reason))?, from),
        };
        let file = open().map_err(|error| unwritable(entry, &error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| unwritable(entry, &error.into()))?;
        Ok((file, identity(&stat)))
    }

    fn open_base(&self, path: &[Vec<u8>], from: Base) -> io::Result<File> {
        let root = match (from, &self.place, &self.older) {
            (Base::Existing, Place::Folder { root, .. }, _) => root,
            (Base::Older, _, Some(older)) => older,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let fd = root.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no file any more"));
        }
        Ok(File::from(fd))
    }
}

/// Shorter files have no hole that is worth a system call more.
const SHORT_BYTES: u64 = 64 * 1024;

const PART: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

/// Opens the part of an earlier attempt.
fn open_part(folder: &OwnedFd, name: &[u8]) -> io::Result<Option<File>> {
    let open = || openat(folder, name, PART, Mode::empty());
    let fd = match open() {
        // It was sealed, with a mode that does not let its owner write.
        Err(Errno::ACCESS) => {
            metadata::chmod(Of::Name(folder.as_fd(), name), 0o600)?;
            open()
        }
        other => other,
    };
    match fd {
        Ok(fd) if FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) == FileType::RegularFile => {
            Ok(Some(File::from(fd)))
        }
        Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes a part anew. It is for its owner alone until it is sealed.
fn new_part(folder: &OwnedFd, name: &[u8]) -> io::Result<File> {
    let open = || openat(folder, name, PART | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR);
    let fd = match open() {
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            open()
        }
        other => other,
    };
    Ok(File::from(fd?))
}
