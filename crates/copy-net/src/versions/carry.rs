//! Entries that could not be copied, linked from the newest older version that has them.
//!
//! Names are opened one by one below the two versions, never through a link and never across a mount. An entry of the
//! new version is never replaced. The records are durable before the first link: the next attempt of a run that was
//! killed begins with `undo`.

use super::carried::{at_or_above, below, Record, Records};
use super::marker::{Marker, Owner, State};
use super::place::{input, refused, refused_io, Markers, Place, FOLDER};
use crate::error::CopyError;
use crate::listing::list;
use crate::names::is_full;
use crate::xattr::{self, Of};
use rustix::fs::{
    fchmod, fchown, fstat, futimens, linkat, mkdirat, openat, statat, syncfs, unlinkat, AtFlags, FileType, Gid, Mode,
    OFlags, Stat, Timespec, Timestamps, Uid,
};
use rustix::io::Errno;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// An older version with its records.
struct Older {
    version: String,
    root: OwnedFd,
    records: Records,
}

impl Older {
    /// True if it has a copy of an entry. A folder that could not be listed then either is there, and is no copy.
    fn has_copy(&self, shown: &str, names: &[Vec<u8>]) -> bool {
        has(&self.root, names) && !at_or_above(&self.records, shown).any(|record| record.from.is_none())
    }
}

/// Older versions of the same job, newest first.
fn older_versions(
    place: &Place,
    markers: &Markers,
    version: &str,
    owner: Option<&Owner>,
) -> Result<Vec<Older>, CopyError> {
    let all = markers.all()?;
    let fits = |one: &&Marker| one.version.as_str() < version && one.has_ended() && one.is_of(owner);
    let mut found = vec![];
    for marker in all.values().filter(fits).rev() {
        match openat(&place.folder, &marker.version, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(root) => {
                let records = markers.records(&marker.version)?;
                found.push(Older { version: marker.version.clone(), root, records });
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(refused(&place.path.join(&marker.version))(error)),
        }
    }
    Ok(found)
}

/// Links what is at `paths` from the newest older version that has it, and records it.
pub(super) fn carry(
    destination: &str,
    version: &str,
    paths: &[String],
    owner: Option<&Owner>,
    stop: &AtomicBool,
) -> Result<serde_json::Value, CopyError> {
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    let _lock = markers.lock()?;
    match markers.read(version)? {
        Some(marker) if marker.state == State::Begun && marker.is_of(owner) => {}
        _ => return Err(input(format!("{version} of {} was not begun", place.path.display()))),
    }
    let path = place.path.join(version);
    let new = openat(&place.folder, version, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(refused(&path))?;
    let device = fstat(&new).map_err(refused(&path))?.st_dev;
    let older = older_versions(&place, &markers, version, owner)?;
    let mut carrier = Carrier { device, stop, path: &path };
    let mut plan = vec![];
    let mut known = vec![];
    for shown in paths {
        let parsed = copy::parse_shown_path(shown);
        let mut records = vec![Record { path: shown.clone(), from: None, failed: None }];
        if parsed.as_ref().is_some_and(|names| is_own(&new, names, &older)) {
            records[0].from = Some(version.to_owned());
        } else if let Some(from) = parsed.as_ref().and_then(|names| older.iter().find(|one| one.has_copy(shown, names)))
        {
            records = inherited(shown, from);
        }
        plan.extend(records);
        known.push(parsed);
    }
    markers.add_records(version, &plan)?;
    let mut failed = vec![];
    for (shown, parsed) in paths.iter().zip(known) {
        let Some(names) = parsed else { continue };
        let mut reason = None;
        let mut done = None;
        for one in older.iter().filter(|one| one.has_copy(shown, &names)) {
            match carrier.carry(&one.root, &new, &names) {
                Ok(()) => {
                    done = Some(one);
                    break;
                }
                Err(error) if is_full(&error) => return Err(refused_io_at(&path, error)),
                Err(error) if stop.load(Ordering::Relaxed) => return Err(stopped(&error)),
                // An older folder that its owner may not list: the version before may be readable.
                Err(error) => reason = reason.or(Some(error.to_string())),
            }
        }
        match (done, reason) {
            (Some(one), Some(_)) => failed.extend(inherited(shown, one)),
            (None, Some(reason)) => failed.push(Record { path: shown.clone(), from: None, failed: Some(reason) }),
            _ => {}
        }
    }
    markers.add_records(version, &failed)?;
    // One call for all links: a sync of each folder took most of the time.
    syncfs(&place.folder).map_err(refused(&path))?;
    Ok(serde_json::json!({}))
}

fn refused_io_at(path: &Path, error: io::Error) -> CopyError {
    refused_io(path)(error)
}

fn stopped(error: &io::Error) -> CopyError {
    CopyError { kind: crate::error::ErrorKind::Stopped, text: error.to_string() }
}

/// Records of a path that is carried over from a version: entries that were carried over into that version already
/// keep the version that their data is of.
fn inherited(shown: &str, from: &Older) -> Vec<Record> {
    let origin = at_or_above(&from.records, shown).find_map(|one| one.from.clone());
    let origin = origin.unwrap_or_else(|| from.version.clone());
    let mut found = vec![Record { path: shown.to_owned(), from: Some(origin), failed: None }];
    found.extend(below(&from.records, shown).cloned());
    found
}

/// True if the new version has an entry there that is no folder and no older version's: an earlier attempt of the run
/// has copied it.
fn is_own(new: &OwnedFd, names: &[Vec<u8>], older: &[Older]) -> bool {
    let Some(own) = stat_of(new, names).filter(|stat| !is_folder(stat)) else { return false };
    !older.iter().any(|one| stat_of(&one.root, names).is_some_and(|stat| is_same(&stat, &own)))
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn has(root: &OwnedFd, names: &[Vec<u8>]) -> bool {
    stat_of(root, names).is_some()
}

/// Status of an entry below a folder; no link is followed.
fn stat_of(root: &OwnedFd, names: &[Vec<u8>]) -> Option<Stat> {
    let Some((last, parents)) = names.split_last() else { return fstat(root).ok() };
    let folder = walk(root, parents).ok()?;
    let from = folder.as_ref().unwrap_or(root);
    statat(from, last.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// Opens a folder below another, for names in it; `None`: `names` is empty.
fn walk(root: &OwnedFd, names: &[Vec<u8>]) -> io::Result<Option<OwnedFd>> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder: Option<OwnedFd> = None;
    for name in names {
        folder = Some(openat(folder.as_ref().unwrap_or(root), name.as_slice(), step, Mode::empty())?);
    }
    Ok(folder)
}

/// Opens a folder of the new version to list it; a mode that denies it to the owner is changed.
fn open_own(parent: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    match openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        found => return Ok(found?),
    }
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(parent, name, step, Mode::empty())?;
    // By its descriptor: chmod(2) by name follows a link.
    let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::fs::chmod(path, Mode::RWXU)?;
    Ok(openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
}

struct Carrier<'a> {
    device: u64,
    stop: &'a AtomicBool,
    path: &'a Path,
}

impl Carrier<'_> {
    /// Carries what is at `names` of the folder `old` to the folder `new`.
    fn carry(&mut self, old: &OwnedFd, new: &OwnedFd, names: &[Vec<u8>]) -> io::Result<()> {
        let before = fstat(new)?;
        let result = match names {
            [] => self.all(old, new),
            [name, rest @ ..] => writable(new, &before).and_then(|()| self.step(old, new, name, rest)),
        };
        let restored = if names.is_empty() { like(old, new) } else { restore(new, &before) };
        result?;
        restored
    }

    /// Carries one entry of a folder, or what is at `rest` below it.
    fn step(&mut self, old: &OwnedFd, new: &OwnedFd, name: &[u8], rest: &[Vec<u8>]) -> io::Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other(format!("{}: stopped", self.path.display())));
        }
        let there = statat(old, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !is_folder(&there) {
            return match linkat(old, name, new, name, AtFlags::empty()) {
                Ok(()) => Ok(()),
                // An entry of the new version stays; a folder is no newer copy of a file.
                Err(Errno::EXIST) if !is_folder(&statat(new, name, AtFlags::SYMLINK_NOFOLLOW)?) => Ok(()),
                Err(Errno::EXIST) => Err(io::Error::other("the version has a folder of its name")),
                Err(error) => Err(error.into()),
            };
        }
        if there.st_dev != self.device {
            return Err(io::Error::other("another file system is mounted in the older version"));
        }
        let from = openat(old, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        let is_new = match mkdirat(new, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let to = match open_own(new, name) {
            Ok(to) => to,
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)) => {
                return Err(io::Error::other("the version has something else under the name of the folder"));
            }
            Err(error) => return Err(error),
        };
        if fstat(&to)?.st_dev != self.device {
            return Err(io::Error::other("another file system is mounted in the version"));
        }
        self.carry(&from, &to, rest)?;
        if is_new {
            like(&from, &to)?;
        }
        Ok(())
    }

    fn all(&mut self, old: &OwnedFd, new: &OwnedFd) -> io::Result<()> {
        writable(new, &fstat(new)?)?;
        let mut first = None;
        for name in names_of(old)? {
            // One entry that cannot be linked leaves out no other one.
            match self.step(old, new, &name, &[]) {
                Ok(()) => {}
                Err(error) if is_full(&error) || self.stop.load(Ordering::Relaxed) => return Err(error),
                Err(error) => {
                    first.get_or_insert(error);
                }
            }
        }
        first.map_or(Ok(()), Err)
    }
}

fn names_of(folder: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = vec![];
    list(folder, |one| {
        names.push(one.name.to_bytes().to_vec());
        Ok(())
    })?;
    Ok(names)
}

/// Gives the owner of a folder the right to add names.
fn writable(folder: &OwnedFd, stat: &Stat) -> io::Result<()> {
    if stat.st_mode & 0o700 != 0o700 {
        fchmod(folder, Mode::from_raw_mode(stat.st_mode & 0o7777) | Mode::RWXU)?;
    }
    Ok(())
}

/// Gives a folder the mode and times that it had.
fn restore(folder: &OwnedFd, stat: &Stat) -> io::Result<()> {
    if stat.st_mode & 0o700 != 0o700 {
        fchmod(folder, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    }
    set_times(folder, stat)
}

fn set_times(folder: &OwnedFd, stat: &Stat) -> io::Result<()> {
    #[allow(clippy::useless_conversion, reason = "the type differs per target")]
    let time = |seconds, nanoseconds: u64| Timespec { tv_sec: seconds, tv_nsec: nanoseconds as _ };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec as _),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec as _),
    };
    Ok(futimens(folder, &times)?)
}

/// Gives a folder the metadata of the older one. A folder that cannot be listed may have a mode that denies it, under
/// which root alone could restore the carried entries.
fn like(old: &OwnedFd, new: &OwnedFd) -> io::Result<()> {
    let stat = fstat(old)?;
    let own = fstat(new)?;
    if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
        let set = fchown(new, Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)));
        if rustix::process::geteuid().is_root() {
            set?;
        }
    }
    let attributes = xattr::read(Of::Fd(borrow(old)))?;
    xattr::write(Of::Fd(borrow(new)), &attributes).map_err(|(_, error)| error)?;
    fchmod(new, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    set_times(new, &stat)
}

fn borrow(folder: &OwnedFd) -> BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(folder)
}

/// Takes back what an attempt carried over that ended before the version was complete: the next one may find the
/// entries readable, or gone at the source.
pub(super) fn undo(place: &Place, markers: &Markers, version: &str, owner: Option<&Owner>) -> Result<(), CopyError> {
    let records = markers.records(version)?;
    if records.is_empty() {
        return markers.remove_records(version);
    }
    let path = place.path.join(version);
    let new = match openat(&place.folder, version, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(new) => new,
        Err(Errno::NOENT) => return markers.remove_records(version),
        Err(error) => return Err(refused(&path)(error)),
    };
    let older = older_versions(place, markers, version, owner)?;
    for names in records.keys().filter_map(|shown| copy::parse_shown_path(shown)) {
        for one in &older {
            take_back(&one.root, &new, &names).map_err(|error| refused_io_at(&path, error))?;
        }
    }
    markers.remove_records(version)
}

fn take_back(old: &OwnedFd, new: &OwnedFd, names: &[Vec<u8>]) -> io::Result<()> {
    let [name, rest @ ..] = names else {
        for name in names_of(old)? {
            take_back(old, new, &[name])?;
        }
        return Ok(());
    };
    let (Ok(there), Ok(own)) = (
        statat(old, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW),
        statat(new, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW),
    ) else {
        return Ok(());
    };
    if !is_folder(&there) {
        if is_same(&there, &own) {
            writable(new, &fstat(new)?)?;
            unlinkat(new, name.as_slice(), AtFlags::empty())?;
        }
        return Ok(());
    }
    if !is_folder(&own) {
        return Ok(());
    }
    // An older folder that its owner may not list had nothing linked from it.
    let Ok(from) = openat(old, name.as_slice(), FOLDER | OFlags::NOFOLLOW, Mode::empty()) else { return Ok(()) };
    let to = open_own(new, name)?;
    take_back(&from, &to, rest)?;
    drop(to);
    // A folder that is not empty stays, and the copy makes one again that the source has.
    let name = CString::new(name.as_slice())?;
    match unlinkat(new, &name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS | Errno::PERM | Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
