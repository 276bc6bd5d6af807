//! Versions that backups keep in a folder of the receiving host: begun, ended, and removed.
//!
//! A version is a folder `version-20261126T060000Z` in the destination, with the time in UTC at which its copy began.
//! Beside them are the symbolic link `latest` to the newest one, and the folder `.elephan-backup` with a marker for
//! each. All are of one job. Nothing is removed but a folder of such a name with a marker that this user wrote for this
//! job, and only while a newer version has all that it has: the newest version without faults always stays.

mod carried;
mod carry;
mod marker;
mod mounts;
mod place;
mod remove;

use crate::error::CopyError;
use crate::source::is_mount_root;
use carried::Carried;
use marker::{Marker, Owner, State};
use place::{input, named, refused, refused_io, Place, LATEST, MARKERS};
use rustix::fs::{mkdirat, renameat, statat, statvfs, symlinkat, unlinkat, AtFlags, FileType, Mode, CWD};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path};
use std::sync::atomic::AtomicBool;

/// A question or a change.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum VersionsRequest {
    /// Tells the versions, and the kinds of some entries.
    Look {
        /// Folder of the versions.
        destination: String,
        /// Paths below it; the answer has the kind of each.
        #[serde(default)]
        names: Vec<String>,
        /// Earlier mount points below it, as [`copy::show_path`] has them, each of which the answer gives the state of.
        #[serde(default)]
        mounts: Vec<String>,
        /// Version whose entries that could not be copied are listed; of the others they are counted.
        #[serde(default)]
        list: Option<String>,
        /// The job that asks; absent: any.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// Makes a version's folder and its marker, or continues one that was begun. A destination with versions of another
    /// job is refused.
    Begin {
        /// See `Look`; it is made, its parent is not.
        destination: String,
        /// Name of the version.
        version: String,
        /// Facts for the front, which `Look` returns.
        #[serde(default)]
        facts: Value,
        /// The job that asks; absent: any.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// Links entries that could not be copied from the newest older version that has them.
    Carry {
        /// See `Look`.
        destination: String,
        /// Name of the version.
        version: String,
        /// Paths below it, as faults show them; of a folder all that is below it in the older version is linked.
        paths: Vec<String>,
        /// The job that asks; absent: any.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// Marks a version complete, or partial if some entries could not be copied, and has `latest` point to it.
    Complete {
        /// See `Look`.
        destination: String,
        /// Name of the version.
        version: String,
        /// See `Begin`.
        #[serde(default)]
        facts: Value,
        /// Entries that could not be copied and are in no `Carry`.
        #[serde(default)]
        unlisted: u64,
        /// The job that asks; absent: any.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// Removes a version, if a newer one has all that it has.
    Remove {
        /// See `Look`.
        destination: String,
        /// Name of the version.
        version: String,
        /// The job that asks; absent: any.
        #[serde(default)]
        owner: Option<Owner>,
    },
    /// Makes all versions those of another job.
    Adopt {
        /// See `Look`.
        destination: String,
        /// The job.
        owner: Owner,
    },
}

impl VersionsRequest {
    /// Executes the request; `stop` ends a removal, which the same request continues.
    ///
    /// # Errors
    /// The request is wrong; a version may not be removed; this host refuses something; it was stopped.
    pub fn execute(&self, stop: &AtomicBool) -> Result<Value, CopyError> {
        match self {
            VersionsRequest::Look { destination, names, mounts, list, owner } => {
                look(destination, names, mounts, list.as_deref(), owner.as_ref())
            }
            VersionsRequest::Begin { destination, version, facts, owner } => {
                begin(destination, named(version)?, facts, owner.as_ref())
            }
            VersionsRequest::Carry { destination, version, paths, owner } => {
                carry::carry(destination, named(version)?, paths, owner.as_ref(), stop)
            }
            VersionsRequest::Complete { destination, version, facts, unlisted, owner } => {
                complete(destination, named(version)?, facts, *unlisted, owner.as_ref())
            }
            VersionsRequest::Remove { destination, version, owner } => {
                remove::remove(destination, named(version)?, owner.as_ref(), stop)
            }
            VersionsRequest::Adopt { destination, owner } => adopt(destination, owner),
        }
    }
}

fn look(
    destination: &str,
    names: &[String],
    mounts: &[String],
    list: Option<&str>,
    owner: Option<&Owner>,
) -> Result<Value, CopyError> {
    let Some(place) = Place::open(destination)? else {
        let path = std::path::absolute(destination).map_err(refused_io(Path::new(destination)))?;
        return Ok(json!({
            "path": path, "exists": false, "is_empty": true, "versions": [], "latest": null, "kinds": {},
            "is_mount": false, "mounts": {},
        }));
    };
    let markers = place.markers()?.map(|markers| markers.all()).transpose()?.unwrap_or_default();
    // An answer has a bound, and there may be many versions.
    let carried = |one: &Marker| {
        let listed = list == Some(one.version.as_str());
        one.carried.clone().map(|carried| if listed { carried } else { Carried { list: vec![], ..carried } })
    };
    let versions: Vec<Value> = markers
        .values()
        .map(|one| {
            json!({
                "version": one.version, "state": one.state, "facts": one.facts, "exists": place.has(&one.version),
                "carried": carried(one), "own": one.is_of(owner), "owner": one.owner(),
            })
        })
        .collect();
    let mut kinds = BTreeMap::new();
    for name in names {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(input(format!("{name:?}: a path below the destination, without \"..\"")));
        }
        kinds.insert(name, kind_of(&place, name)?);
    }
    let mounts = mounts::states(&place, mounts)?;
    let is_empty = mounts::is_empty(&place.folder).map_err(refused(&place.path))?;
    let free = statvfs(&place.path).map(|found| found.f_bavail * found.f_frsize).map_err(refused(&place.path))?;
    let latest = place.latest();
    let path = &place.path;
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    Ok(json!({
        "path": path, "exists": true, "is_link": is_link, "is_empty": is_empty, "versions": versions, "latest": latest,
        "kinds": kinds, "free_bytes": free, "is_mount": is_mount_root(&place.folder), "mounts": mounts,
    }))
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

fn begin(destination: &str, version: &str, facts: &Value, owner: Option<&Owner>) -> Result<Value, CopyError> {
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
    let _lock = markers.lock()?;
    if let Some(other) = markers.all()?.values().find(|one| !one.is_of(owner)) {
        let of = other.owner().map_or_else(|| "another backup".to_owned(), |of| of.text());
        return Err(input(format!(
            "{}: it has versions of {of}; each job needs a destination of its own, and `elephan \
             backup FILE adopt JOB` makes these versions the job's",
            place.path.display()
        )));
    }
    match markers.read(version)? {
        Some(marker) if marker.state == State::Begun => carry::undo(&place, &markers, version, owner)?,
        Some(_) => return Err(input(format!("{version} of {} is complete already", place.path.display()))),
        None => {
            if place.has(version) {
                return Err(input(format!("{}: no backup made it: it stays", place.path.join(version).display())));
            }
            // Of a version of this name that was removed.
            markers.remove_records(version)?;
            let owner = owner.cloned();
            let facts = facts.clone();
            markers.write(&Marker { version: version.into(), state: State::Begun, owner, carried: None, facts })?;
        }
    }
    made(place.folder.as_fd(), Path::new(version), Mode::RWXU, &place.path.join(version))?;
    place.sync()?;
    Ok(json!({"path": place.path.join(version)}))
}

fn complete(
    destination: &str,
    version: &str,
    facts: &Value,
    unlisted: u64,
    owner: Option<&Owner>,
) -> Result<Value, CopyError> {
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    let _lock = markers.lock()?;
    match markers.read(version)? {
        Some(marker) if marker.state != State::Removing && marker.is_of(owner) && place.has(version) => {}
        _ => return Err(input(format!("{version} of {} was not begun", place.path.display()))),
    }
    let records = markers.records(version)?;
    let is_whole = records.is_empty() && unlisted == 0;
    let carried = (!is_whole).then(|| Carried::of(version, &records, unlisted));
    let state = if is_whole { State::Complete } else { State::Partial };
    let marker = Marker {
        version: version.into(),
        state,
        owner: owner.cloned(),
        carried: carried.clone(),
        facts: facts.clone(),
    };
    markers.write(&marker)?;
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
    Ok(json!({"state": state, "carried": carried}))
}

fn adopt(destination: &str, owner: &Owner) -> Result<Value, CopyError> {
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    let _lock = markers.lock()?;
    let mut adopted = 0;
    for marker in markers.all()?.into_values() {
        markers.write(&Marker { owner: Some(owner.clone()), ..marker })?;
        adopted += 1;
    }
    Ok(json!({"adopted": adopted}))
}
