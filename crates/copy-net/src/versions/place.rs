//! Destination of versions and the folder of their markers, open.

use crate::error::{CopyError, ErrorKind};
use rustix::fs::{
    flock, fstat, fsync, openat, readlinkat, statat, AtFlags, FileType, FlockOperation, Mode, OFlags, CWD,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Folder of the markers, in the destination.
pub(super) const MARKERS: &str = ".elephan-backup";
/// Link to the newest version, in the destination.
pub(super) const LATEST: &str = "latest";
/// File in the folder of the markers that a request locks while it changes something.
const LOCK: &str = "lock";
pub(super) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(super) fn input(text: impl Into<String>) -> CopyError {
    CopyError { kind: ErrorKind::Input, text: text.into() }
}

pub(super) fn refused(path: &Path) -> impl Fn(Errno) -> CopyError + '_ {
    move |error| {
        let full = error == Errno::NOSPC || error == Errno::DQUOT;
        let kind = if full { ErrorKind::Full } else { ErrorKind::Io };
        CopyError { kind, text: format!("{}: {}", path.display(), std::io::Error::from(error)) }
    }
}

pub(super) fn refused_io(path: &Path) -> impl Fn(std::io::Error) -> CopyError + '_ {
    move |error| match error.raw_os_error() {
        Some(number) => refused(path)(Errno::from_raw_os_error(number)),
        None => CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) },
    }
}

/// Checks a name: `version-YYYYMMDDThhmmssZ`, so that the order of names is that of times.
pub(super) fn named(version: &str) -> Result<&str, CopyError> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = version.len() == 24
        && version.is_ascii()
        && version.starts_with("version-")
        && digits(&version[8..16])
        && &version[16..17] == "T"
        && digits(&version[17..23])
        && version.ends_with('Z');
    if fits {
        return Ok(version);
    }
    Err(input(format!("{version:?} is no version's name, such as version-20261126T060000Z")))
}

/// Destination of versions, open.
pub(super) struct Place {
    pub path: PathBuf,
    pub folder: OwnedFd,
}

impl Place {
    /// Opens it; None where there is none.
    pub fn open(destination: &str) -> Result<Option<Place>, CopyError> {
        let path = std::path::absolute(destination).map_err(refused_io(Path::new(destination)))?;
        match openat(CWD, &path, FOLDER, Mode::empty()) {
            Ok(folder) => Ok(Some(Place { path, folder })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) => Err(input(format!("{}: versions need a folder, and it is none", path.display()))),
            Err(error) => Err(refused(&path)(error)),
        }
    }

    pub fn must(destination: &str) -> Result<Place, CopyError> {
        Place::open(destination)?.ok_or_else(|| input(format!("{destination}: there is no such folder")))
    }

    /// Opens the folder of the markers, which this user owns; None where there is none.
    pub fn markers(&self) -> Result<Option<Markers>, CopyError> {
        let path = self.path.join(MARKERS);
        match openat(&self.folder, MARKERS, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => {
                let owner = fstat(&folder).map_err(refused(&path))?.st_uid;
                if owner != rustix::process::geteuid().as_raw() {
                    return Err(input(format!("{}: it is of user {owner}: another user's backup", path.display())));
                }
                Ok(Some(Markers { path, folder }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(refused(&path)(error)),
        }
    }

    pub fn must_have_markers(&self) -> Result<Markers, CopyError> {
        let none = || input(format!("{}: no backup has kept versions there", self.path.display()));
        self.markers()?.ok_or_else(none)
    }

    /// The version that `latest` points to.
    pub fn latest(&self) -> Option<String> {
        let target = readlinkat(&self.folder, LATEST, Vec::new()).ok()?;
        let target = target.to_str().ok()?;
        named(target).ok().map(str::to_owned)
    }

    pub fn has(&self, version: &str) -> bool {
        let found = statat(&self.folder, version, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    pub fn sync(&self) -> Result<(), CopyError> {
        fsync(&self.folder).map_err(refused(&self.path))
    }
}

/// Folder of the markers, open.
pub(super) struct Markers {
    pub path: PathBuf,
    pub folder: OwnedFd,
}

impl Markers {
    /// Locks the markers, for as long as the file is open: two requests change nothing at once. File systems without
    /// locks do without.
    pub fn lock(&self) -> Result<OwnedFd, CopyError> {
        let path = self.path.join(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(refused(&path))?;
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) | Err(Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK) => Ok(file),
            Err(error) => Err(refused(&path)(error)),
        }
    }
}
