//! A destination, opened and locked, and where entries go in it.

use super::deferred::{Deferred, Step};
use super::durable::Durable;
use super::metadata::Rules;
use super::part::Home;
use super::paths::path_hash;
use super::place::Place;
use super::state::{mount_of, user_state_folder, State};
use crate::beneath::{is_name, Beneath};
use crate::error::{CopyError, EntryFault, ErrorKind};
use crate::exclude::Exclude;
use crate::names::{fault, io_error, words, STATE_NAME};
use copy::{plural, CopyOptions, Entry, FaultKind, SourcesShape};
use rustix::fs::{openat, Mode, OFlags, CWD};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder, file name or block device that a copy goes to. All methods may be called by many threads at once.
pub struct Destination {
    pub(super) place: Place,
    pub(super) state: State,
    pub(super) durable: Durable,
    pub(super) rules: Rules,
    pub(super) shape: SourcesShape,
    pub(super) checksum: bool,
    pub(super) exclude: Exclude,
    /// The older version.
    pub(super) older: Option<Beneath>,
    /// For `mirror`: hashes of the entries' paths.
    pub(super) expected: Option<Mutex<Vec<u64>>>,
    /// `mirror`: most entries that are removed; absent: as many as the sources have.
    pub(super) max_removals: Option<u64>,
    /// See [`Destination::with_sources`].
    pub(super) sources: Vec<(u64, u64)>,
    /// Folders of which the sources left out the content.
    pub(super) left_out: Mutex<BTreeSet<Vec<Vec<u8>>>>,
    /// `mirror`: hashes of paths of entries that the sources have and do not copy.
    pub(super) uncopied: Mutex<BTreeSet<u64>>,
    /// Paths of sources that are symbolic links: no folder gives way to them.
    pub(super) source_links: Mutex<BTreeSet<Vec<Vec<u8>>>>,
    /// Entries that get their name when `mirror` has removed the folder that has it.
    pub(super) deferred: Mutex<Vec<Deferred>>,
    /// Files with several names, of which one stays as the file of an entry ([`Destination::adopt`]).
    pub(super) adopted: Mutex<BTreeSet<(u64, u64)>>,
    /// Folders on other mounts than the state folder, with parts beside their files.
    pub(super) beside_folders: Mutex<BTreeSet<Vec<Vec<u8>>>>,
    /// Folders that get their metadata at the end.
    pub(super) folders: Mutex<Vec<Entry>>,
    /// As the user wrote it.
    pub(super) shown: String,
}

impl Destination {
    /// Opens the destination, makes its folder (the last component alone) and the state folder, and locks this copy
    /// against other processes.
    ///
    /// # Errors
    /// `Busy`: another process runs this copy. `Input`: the destination is no folder, or a device that is in use. `Io`.
    pub fn open(
        destination: &str,
        shape: SourcesShape,
        options: &CopyOptions,
        copy: &str,
    ) -> Result<Destination, CopyError> {
        let place = Place::find(destination, shape)?;
        let older = options.link_to.as_deref().map(open_older).transpose()?;
        let exclude = Exclude::of_removal(options)?;
        let state = match &place {
            Place::Folder { root, path, .. } => {
                let above = root.listed(&[]).map_err(|error| io_error(destination, &error))?;
                State::open(above, path, copy)?
            }
            Place::Device { .. } => {
                let path = user_state_folder()?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let above = openat(CWD, &path, flags, Mode::empty());
                State::open(above.map_err(|error| io_error(destination, &error.into()))?, &path, copy)?
            }
        };
        let durable = Durable::new(state.folder());
        let mirror = options.mirror && shape == SourcesShape::Tree;
        Ok(Destination {
            place,
            state,
            durable,
            rules: Rules::new(options),
            shape,
            checksum: options.checksum,
            exclude,
            older,
            expected: mirror.then(Mutex::default),
            max_removals: options.max_removals,
            sources: vec![],
            left_out: Mutex::default(),
            uncopied: Mutex::default(),
            source_links: Mutex::default(),
            deferred: Mutex::default(),
            adopted: Mutex::default(),
            beside_folders: Mutex::default(),
            folders: Mutex::default(),
            shown: destination.to_owned(),
        })
    }

    /// Returns the errors of [`Destination::open`] that can be known without making anything.
    ///
    /// # Errors
    /// `Input`, `Io`.
    pub(crate) fn check(destination: &str, shape: SourcesShape, options: &CopyOptions) -> Result<(), CopyError> {
        Place::check(destination, shape)?;
        options.link_to.as_deref().map(open_older).transpose()?;
        Exclude::of_removal(options).map(drop)
    }

    /// Device and inode of folders of this host that are read by this copy: `mirror` leaves them.
    pub(crate) fn with_sources(self, sources: Vec<(u64, u64)>) -> Destination {
        Destination { sources, ..self }
    }

    /// Parts and the receiver's journal are here, on the destination's file system.
    pub fn state_folder(&self) -> &Path {
        self.state.path()
    }

    /// Removes the state folder, with parts and journal: the copy is done. Call it last. Returns the bytes of disk that
    /// are free after it.
    pub fn clear(self) -> u64 {
        self.remove_beside() + self.state.remove()
    }

    /// The error for a full disk, with bytes that are free and those that are `needed` still.
    pub fn full(&self, needed: u64) -> CopyError {
        let free = rustix::fs::fstatvfs(self.state.folder()).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        let free = free.map_or_else(|_| "unknown".to_owned(), |bytes| bytes.to_string());
        let text = format!(
            "the disk of {} is full: {} more needed, {free} free; the same command goes on",
            self.shown,
            plural(needed, "byte")
        );
        CopyError { kind: ErrorKind::Full, text }
    }

    /// Path of an entry below the destination.
    pub(super) fn path_of(&self, entry: &Entry) -> Result<Vec<Vec<u8>>, EntryFault> {
        let refused = entry.path.iter().find(|name| !is_name(name) || name.as_slice() == STATE_NAME.as_bytes());
        if let Some(name) = refused {
            let reason = format!("a name {:?} is not written", String::from_utf8_lossy(name));
            return Err(fault(&entry.path, FaultKind::Unwritable, reason).into());
        }
        match &self.place {
            Place::Folder { .. } if self.shape != SourcesShape::Tree && entry.path.len() != 1 => {
                Err(fault(&entry.path, FaultKind::Unwritable, "the sender spoke of one file").into())
            }
            Place::Folder { name: Some(name), .. } => Ok(vec![name.clone()]),
            _ => Ok(entry.path.clone()),
        }
    }

    /// Place of parts whose files go to `folder`, and that place opened.
    pub(super) fn home(&self, folder: &[Vec<u8>]) -> io::Result<(Home, OwnedFd)> {
        let Place::Folder { root, .. } = &self.place else { return Err(io::ErrorKind::InvalidInput.into()) };
        let fd = root.folder(folder)?;
        match mount_of(fd.as_fd())? == self.state.mount() {
            true => Ok((Home::State, self.state.folder().try_clone_to_owned()?)),
            false => Ok((Home::Beside, fd)),
        }
    }

    /// The same, before a part is made there.
    pub(super) fn home_to_write(&self, folder: &[Vec<u8>]) -> io::Result<(Home, OwnedFd)> {
        let (home, fd) = self.home(folder)?;
        if home == Home::Beside {
            self.note_beside(folder)?;
        }
        Ok((home, fd))
    }

    /// Notes for `mirror` that the sources left out the content of this folder.
    pub fn leave_content(&self, entry: &Entry) {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.path.clone());
    }

    /// Notes for `mirror` that the sources have entries which are not copied, by the hashes of their paths.
    pub(crate) fn leave_out(&self, paths: Vec<u64>) {
        if self.expected.is_some() {
            self.uncopied.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
        }
    }

    /// Notes that an entry is a source itself, and a symbolic link: a folder of its name stays.
    pub(crate) fn leave_folder(&self, entry: &Entry) {
        if let Ok(path) = self.path_of(entry) {
            self.source_links.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        }
    }

    /// Notes for `mirror` that the sources have this path.
    pub(super) fn expect(&self, path: &[Vec<u8>]) {
        if let Some(expected) = &self.expected {
            expected.lock().unwrap_or_else(PoisonError::into_inner).push(path_hash(path));
        }
    }

    fn deferred(&self) -> MutexGuard<'_, Vec<Deferred>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn defer(&self, entry: &Entry, path: &[Vec<u8>], step: Step) {
        self.deferred().push(Deferred { entry: entry.clone(), path: path.to_vec(), step });
    }

    /// True if the entry of this path waits.
    pub(super) fn is_deferred(&self, path: &[Vec<u8>]) -> bool {
        self.deferred().iter().any(|deferred| deferred.path == path)
    }

    /// Names of parts that wait.
    pub(super) fn deferred_parts(&self) -> Vec<Vec<u8>> {
        let name = |deferred: &Deferred| match &deferred.step {
            Step::Rename(name) => Some(name.clone()),
            _ => None,
        };
        self.deferred().iter().filter_map(name).collect()
    }

    pub(super) fn take_deferred(&self) -> Vec<Deferred> {
        std::mem::take(&mut *self.deferred())
    }
}

fn open_older(path: &str) -> Result<Beneath, CopyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => Ok(Beneath::new(fd)),
        Err(error) => Err(CopyError {
            kind: ErrorKind::Input,
            text: format!("link_to {path:?}: {}; it is the folder of an older version", words(&error.into())),
        }),
    }
}
