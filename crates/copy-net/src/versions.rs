//! Versions that backups keep in a folder of the receiving host: begun, complete, and removed.
//!
//! A version is a folder `version-20261126T060000Z` in the destination, with the time in UTC at which its copy began.
//! Beside them are the symbolic link `latest` to the newest complete one, and the folder `.elephan-backup` with a
//! marker for each. Nothing is removed but a folder of such a name with a marker that this user wrote, and only while a
//! newer version is complete.

use crate::error::{CopyError, ErrorKind};
use rustix::fs::{
    fchmod, fstat, fsync, mkdirat, openat, readlinkat, renameat, renameat_with, statat, statvfs, symlinkat, unlinkat,
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, CWD,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Folder of the markers, in the destination.
const MARKERS: &str = ".elephan-backup";
/// Link to the newest complete version, in the destination.
const LATEST: &str = "latest";
/// Largest marker that is read, bytes: it holds what the front said of a version and its receipt.
const MARKER_MAX: u64 = 1 << 20;
/// Deepest tree that is removed; PATH_MAX bounds what any program could have made by path at 2048 levels.
const DEPTH_MAX: u32 = 4096;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A question or a change.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum VersionsRequest {
    /// Tells the versions, and the kinds of some entries.
    Look {
        /// Folder of the versions.
        destination: String,
        /// Paths below it, each of which the answer gives the kind of.
        #[serde(default)]
        names: Vec<String>,
    },
    /// Makes a version's folder and its marker; one that was begun before is gone on with.
    Begin {
        /// See `Look`; it is made, its parent is not.
        destination: String,
        /// Name of the version.
        version: String,
        /// Facts for the front, which `Look` gives back.
        #[serde(default)]
        facts: Value,
    },
    /// Marks a version complete and has `latest` point to it.
    Complete {
        /// See `Look`.
        destination: String,
        /// Name of the version.
        version: String,
        /// See `Begin`.
        #[serde(default)]
        facts: Value,
    },
    /// Removes a version, if a newer one is complete.
    Remove {
        /// See `Look`.
        destination: String,
        /// Name of the version.
        version: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Begun,
    Complete,
    Removing,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Marker {
    version: String,
    state: State,
    #[serde(default)]
    facts: Value,
}

impl VersionsRequest {
    /// Does it; `stop` ends a removal, which the same request goes on with.
    ///
    /// # Errors
    /// The request is wrong; a version may not be removed; this host refuses something; it was stopped.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, CopyError> {
        match self {
            VersionsRequest::Look { destination, names } => look(destination, names),
            VersionsRequest::Begin { destination, version, facts } => begin(destination, version, facts),
            VersionsRequest::Complete { destination, version, facts } => complete(destination, version, facts),
            VersionsRequest::Remove { destination, version } => remove(destination, version, stop),
        }
    }
}

fn input(text: impl Into<String>) -> CopyError {
    CopyError { kind: ErrorKind::Input, text: text.into() }
}

fn refused(path: &Path) -> impl Fn(Errno) -> CopyError + '_ {
    move |error| {
        let full = error == Errno::NOSPC || error == Errno::DQUOT;
        let kind = if full { ErrorKind::Full } else { ErrorKind::Io };
        CopyError { kind, text: format!("{}: {}", path.display(), std::io::Error::from(error)) }
    }
}

fn refused_io(path: &Path) -> impl Fn(std::io::Error) -> CopyError + '_ {
    move |error| match error.raw_os_error() {
        Some(number) => refused(path)(Errno::from_raw_os_error(number)),
        None => CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) },
    }
}

/// Checks a name: `version-YYYYMMDDThhmmssZ`, so that the order of names is that of times.
fn named(version: &str) -> Result<&str, CopyError> {
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
struct Place {
    path: PathBuf,
    folder: OwnedFd,
}

impl Place {
    /// Opens it; None where there is none.
    fn open(destination: &str) -> Result<Option<Place>, CopyError> {
        let path = std::path::absolute(destination).map_err(refused_io(Path::new(destination)))?;
        match openat(CWD, &path, FOLDER, Mode::empty()) {
            Ok(folder) => Ok(Some(Place { path, folder })),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::NOTDIR) => Err(input(format!("{}: versions need a folder, and it is none", path.display()))),
            Err(error) => Err(refused(&path)(error)),
        }
    }

    fn must(destination: &str) -> Result<Place, CopyError> {
        Place::open(destination)?.ok_or_else(|| input(format!("{destination}: there is no such folder")))
    }

    /// Opens the folder of the markers, which this user owns; None where there is none.
    fn markers(&self) -> Result<Option<Markers>, CopyError> {
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

    fn must_have_markers(&self) -> Result<Markers, CopyError> {
        let none = || input(format!("{}: no backup has kept versions there", self.path.display()));
        self.markers()?.ok_or_else(none)
    }

    /// The version that `latest` points to.
    fn latest(&self) -> Option<String> {
        let target = readlinkat(&self.folder, LATEST, Vec::new()).ok()?;
        let target = target.to_str().ok()?;
        named(target).ok().map(str::to_owned)
    }

    fn has(&self, version: &str) -> bool {
        let found = statat(&self.folder, version, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    fn sync(&self) -> Result<(), CopyError> {
        fsync(&self.folder).map_err(refused(&self.path))
    }
}

/// Folder of the markers, open.
struct Markers {
    path: PathBuf,
    folder: OwnedFd,
}

impl Markers {
    fn read(&self, version: &str) -> Result<Option<Marker>, CopyError> {
        let name = format!("{version}.json");
        let path = self.path.join(&name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused(&path)(error)),
        };
        let mut text = String::new();
        let wrong = || input(format!("{}: it is no marker of a backup's version", path.display()));
        file.take(MARKER_MAX).read_to_string(&mut text).map_err(|_| wrong())?;
        let marker: Marker = serde_json::from_str(&text).map_err(|_| wrong())?;
        if marker.version == version {
            Ok(Some(marker))
        } else {
            Err(wrong())
        }
    }

    /// All, by name; what is no marker is left out.
    fn all(&self) -> Result<BTreeMap<String, Marker>, CopyError> {
        let mut found = BTreeMap::new();
        for entry in Dir::read_from(&self.folder).map_err(refused(&self.path))? {
            let entry = entry.map_err(refused(&self.path))?;
            let name = entry.file_name().to_str().unwrap_or_default();
            let Some(version) = name.strip_suffix(".json").filter(|version| named(version).is_ok()) else { continue };
            if let Ok(Some(marker)) = self.read(version) {
                found.insert(version.to_owned(), marker);
            }
        }
        Ok(found)
    }

    /// Writes a marker, whole or not at all; it is on the disk afterwards.
    fn write(&self, marker: &Marker) -> Result<(), CopyError> {
        let (name, new) = (format!("{}.json", marker.version), format!("{}.new", marker.version));
        let path = self.path.join(&name);
        let text = serde_json::to_vec(marker).map_err(|error| input(error.to_string()))?;
        if text.len() as u64 > MARKER_MAX {
            return Err(input(format!(
                "{}: a marker of {} bytes; {MARKER_MAX} are the most",
                path.display(),
                text.len()
            )));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &new, flags, Mode::RUSR | Mode::WUSR).map_err(refused(&path))?;
        let mut file = File::from(file);
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(refused_io(&path))?;
        renameat(&self.folder, &new, &self.folder, &name).map_err(refused(&path))?;
        fsync(&self.folder).map_err(refused(&self.path))
    }
}

fn look(destination: &str, names: &[String]) -> Result<Value, CopyError> {
    let Some(place) = Place::open(destination)? else {
        let path = std::path::absolute(destination).map_err(refused_io(Path::new(destination)))?;
        return Ok(json!({
            "path": path, "exists": false, "is_empty": true, "versions": [], "latest": null, "kinds": {},
        }));
    };
    let markers = place.markers()?.map(|markers| markers.all()).transpose()?.unwrap_or_default();
    let versions: Vec<Value> = markers
        .values()
        .map(|one| {
            json!({"version": one.version, "state": one.state, "facts": one.facts, "exists": place.has(&one.version)})
        })
        .collect();
    let mut kinds = BTreeMap::new();
    for name in names {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(input(format!("{name:?}: a path below the destination, without \"..\"")));
        }
        kinds.insert(name, kind_of(&place, name)?);
    }
    let is_empty = is_empty(&place)?;
    let free = statvfs(&place.path).map(|found| found.f_bavail * found.f_frsize).map_err(refused(&place.path))?;
    let latest = place.latest();
    let path = &place.path;
    Ok(json!({
        "path": path, "exists": true, "is_empty": is_empty, "versions": versions, "latest": latest,
        "kinds": kinds, "free_bytes": free,
    }))
}

fn is_empty(place: &Place) -> Result<bool, CopyError> {
    for entry in Dir::read_from(&place.folder).map_err(refused(&place.path))? {
        let entry = entry.map_err(refused(&place.path))?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            return Ok(false);
        }
    }
    Ok(true)
}

fn kind_of(place: &Place, name: &str) -> Result<&'static str, CopyError> {
    match statat(&place.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => "folder",
            FileType::RegularFile => "file",
            FileType::Symlink => "link",
            FileType::BlockDevice => "device",
            _ => "other",
        }),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok("absent"),
        Err(error) => Err(refused(&place.path.join(name))(error)),
    }
}

/// Makes a folder where there is none.
fn made(parent: BorrowedFd<'_>, name: &Path, mode: Mode, path: &Path) -> Result<(), CopyError> {
    match mkdirat(parent, name, mode) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(refused(path)(error)),
    }
}

fn begin(destination: &str, version: &str, facts: &Value) -> Result<Value, CopyError> {
    let version = named(version)?;
    let path = std::path::absolute(destination).map_err(refused_io(Path::new(destination)))?;
    // Not its parents: where a disk is not mounted, a copy would fill the one below.
    match mkdirat(CWD, &path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(Errno::NOENT) => {
            let parent = path.parent().unwrap_or(&path).display().to_string();
            return Err(input(format!("{}: there is no folder {parent}: mount it or make it first", path.display())));
        }
        Err(error) => return Err(refused(&path)(error)),
    }
    let place = Place::must(destination)?;
    made(place.folder.as_fd(), Path::new(MARKERS), Mode::RWXU, &place.path.join(MARKERS))?;
    let markers = place.must_have_markers()?;
    match markers.read(version)? {
        Some(marker) if marker.state == State::Begun => {}
        Some(_) => return Err(input(format!("{version} of {} is complete already", place.path.display()))),
        None => {
            if place.has(version) {
                return Err(input(format!("{}: no backup made it: it stays", place.path.join(version).display())));
            }
            markers.write(&Marker { version: version.into(), state: State::Begun, facts: facts.clone() })?;
        }
    }
    made(place.folder.as_fd(), Path::new(version), Mode::RWXU, &place.path.join(version))?;
    place.sync()?;
    Ok(json!({"path": place.path.join(version)}))
}

fn complete(destination: &str, version: &str, facts: &Value) -> Result<Value, CopyError> {
    let version = named(version)?;
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    match markers.read(version)? {
        Some(marker) if marker.state != State::Removing && place.has(version) => {}
        _ => return Err(input(format!("{version} of {} was not begun", place.path.display()))),
    }
    markers.write(&Marker { version: version.into(), state: State::Complete, facts: facts.clone() })?;
    let path = place.path.join(LATEST);
    if place.latest().is_none_or(|latest| latest.as_str() < version) {
        let found = statat(&place.folder, LATEST, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::Symlink) {
            return Err(input(format!("{}: it is no link of a backup: it stays", path.display())));
        }
        let new = format!("{MARKERS}/{LATEST}.new");
        match unlinkat(&place.folder, &new, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(refused(&path)(error)),
        }
        symlinkat(version, &place.folder, &new).map_err(refused(&path))?;
        renameat(&place.folder, &new, &place.folder, LATEST).map_err(refused(&path))?;
    }
    place.sync()?;
    Ok(json!({}))
}

fn remove(destination: &str, version: &str, stop: &AtomicBool) -> Result<Value, CopyError> {
    let version = named(version)?;
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    let all = markers.all()?;
    let Some(marker) = all.get(version) else {
        return Err(input(format!("{}: no backup made it: it stays", place.path.join(version).display())));
    };
    let newer =
        |one: &Marker| one.version.as_str() > version && one.state == State::Complete && place.has(&one.version);
    if !all.values().any(newer) || place.latest().as_deref() == Some(version) {
        let path = place.path.join(version);
        return Err(input(format!("{}: no newer version is complete: it stays", path.display())));
    }
    markers.write(&Marker { state: State::Removing, ..marker.clone() })?;
    let path = place.path.join(version);
    // Out of sight at once, so that nobody takes a half of it for a version.
    match renameat_with(&place.folder, version, &markers.folder, version, RenameFlags::NOREPLACE) {
        Ok(()) => place.sync()?,
        Err(Errno::NOENT) => {}
        // File systems without the flag: nothing else makes such a name in the folder of the markers.
        Err(Errno::INVAL | Errno::NOSYS) => {
            renameat(&place.folder, version, &markers.folder, version).map_err(refused(&path))?;
        }
        Err(error) => return Err(refused(&path)(error)),
    }
    let mut removed = 0;
    let entry = CString::new(version).map_err(|_| input("a name without NUL"))?;
    match statat(&markers.folder, version, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => {
            let mut removal = Removal { device: found.st_dev, stop, removed: &mut removed, path: &path };
            removal.folder(markers.folder.as_fd(), &entry, 0)?;
        }
        Err(Errno::NOENT) => {}
        Err(error) => return Err(refused(&path)(error)),
    }
    unlinkat(&markers.folder, format!("{version}.json"), AtFlags::empty()).map_err(refused(&path))?;
    fsync(&markers.folder).map_err(refused(&markers.path))?;
    Ok(json!({"removed": removed}))
}

/// Removal of a tree: no link is followed, no other file system entered.
struct Removal<'a> {
    device: u64,
    stop: &'a AtomicBool,
    removed: &'a mut u64,
    path: &'a Path,
}

impl Removal<'_> {
    fn folder(&mut self, parent: BorrowedFd<'_>, name: &CStr, depth: u32) -> Result<(), CopyError> {
        let fault = refused(self.path);
        if depth > DEPTH_MAX {
            return Err(input(format!("{}: deeper than {DEPTH_MAX} folders", self.path.display())));
        }
        let folder = match openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(folder) => folder,
            // A folder that its owner may not read is copied like any other.
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty()).map_err(&fault)?;
                openat(parent, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(&fault)?
            }
            Err(error) => return Err(fault(error)),
        };
        let found = fstat(&folder).map_err(&fault)?;
        if found.st_dev != self.device {
            return Err(input(format!("{}: another file system is mounted in it: it stays", self.path.display())));
        }
        if found.st_mode & 0o700 != 0o700 {
            fchmod(&folder, Mode::RWXU).map_err(&fault)?;
        }
        // Names first: what readdir(3) returns is not said while entries go.
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder).map_err(&fault)? {
            let entry = entry.map_err(&fault)?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                names.push((entry.file_name().to_owned(), entry.file_type()));
            }
        }
        for (name, kind) in names {
            if self.stop.load(Ordering::Relaxed) {
                return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
            }
            let is_folder = match kind {
                FileType::Unknown => {
                    let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(&fault)?;
                    FileType::from_raw_mode(found.st_mode) == FileType::Directory
                }
                kind => kind == FileType::Directory,
            };
            if is_folder {
                self.folder(folder.as_fd(), &name, depth + 1)?;
            } else {
                unlinkat(&folder, &name, AtFlags::empty()).map_err(&fault)?;
                *self.removed += 1;
            }
        }
        unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(&fault)?;
        *self.removed += 1;
        Ok(())
    }
}
