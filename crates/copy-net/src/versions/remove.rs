//! Removal of versions.

use super::marker::{Marker, Owner, State};
use super::place::{input, refused, refused_io, Place, FOLDER};
use crate::error::{CopyError, ErrorKind};
use crate::listing::list;
use rustix::fs::{
    fchmod, fstat, fsync, openat, renameat, renameat_with, statat, unlinkat, AtFlags, Mode, OFlags, RenameFlags,
};
use rustix::io::Errno;
use serde_json::{json, Value};
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Deepest tree that is removed; PATH_MAX bounds what any program could have made by path at 2048 levels.
const DEPTH_MAX: u32 = 4096;

/// Removes a version, if a newer one has all that it has; `stop` ends it, and the same request continues.
pub(super) fn remove(
    destination: &str,
    version: &str,
    owner: Option<&Owner>,
    stop: &AtomicBool,
) -> Result<Value, CopyError> {
    let place = Place::must(destination)?;
    let markers = place.must_have_markers()?;
    let lock = markers.lock()?;
    let all = markers.all()?;
    let Some(marker) = all.get(version) else {
        return Err(input(format!("{}: no backup made it: it stays", place.path.join(version).display())));
    };
    let stays = |reason: &str| Err(input(format!("{}: {reason}: it stays", place.path.join(version).display())));
    if !marker.is_of(owner) {
        return stays("it is of another job");
    }
    let own = || all.values().filter(|one| one.is_of(owner) && place.has(&one.version));
    let newer = own().any(|one| one.version.as_str() > version && one.covers_older());
    if !newer || place.latest().as_deref() == Some(version) {
        return stays("no newer version is complete");
    }
    let newest = own().rfind(|one| one.state == State::Complete);
    if newest.is_some_and(|newest| newest.version == version) {
        return stays("no newer version is without faults");
    }
    markers.write(&Marker { state: State::Removing, ..marker.clone() })?;
    let path = place.path.join(version);
    // Rename it first: a partly removed version must not have a version's name.
    match renameat_with(&place.folder, version, &markers.folder, version, RenameFlags::NOREPLACE) {
        Ok(()) => place.sync()?,
        Err(Errno::NOENT) => {}
        // File systems without the flag: nothing else makes such a name in the folder of the markers.
        Err(Errno::INVAL | Errno::NOSYS) => {
            renameat(&place.folder, version, &markers.folder, version).map_err(refused(&path))?;
        }
        Err(error) => return Err(refused(&path)(error)),
    }
    drop(lock);
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
    markers.remove_records(version)?;
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
        let listed = list(&folder, |one| {
            names.push((one.name.to_owned(), one.is_folder(&folder)?));
            Ok(())
        });
        listed.map_err(refused_io(self.path))?;
        for (name, is_folder) in names {
            if self.stop.load(Ordering::Relaxed) {
                return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
            }
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
