//! States of earlier mount points below a folder.

use super::place::{input, refused, refused_io, Place};
use crate::beneath::Beneath;
use crate::error::CopyError;
use crate::source::is_mount_root;
use rustix::fs::{fstat, statat, AtFlags, Dir, FileType};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::AsFd;

/// Returns the state of each path:
///
/// * "mounted": a file system of its own;
/// * "empty", "unmounted": a folder of the file system above, without or with entries;
/// * "removed": the folder above is there, without a folder of this name;
/// * "gone": the folder above is not there either;
/// * "unknown": this user may not look.
pub(super) fn states<'a>(place: &Place, paths: &'a [String]) -> Result<BTreeMap<&'a String, &'static str>, CopyError> {
    let root = Beneath::new(place.folder.try_clone().map_err(refused_io(&place.path))?);
    let state = |shown: &'a String| {
        let path = copy::parse_shown_path(shown).filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| input(format!("{shown:?}: a path below the folder, as a receipt shows it")))?;
        Ok((shown, state(&root, &path).or_else(unknown).map_err(refused(&place.path))?))
    };
    paths.iter().map(state).collect()
}

fn unknown(error: Errno) -> Result<&'static str, Errno> {
    if matches!(error, Errno::ACCESS | Errno::PERM) {
        return Ok("unknown");
    }
    Err(error)
}

fn state(root: &Beneath, path: &[Vec<u8>]) -> Result<&'static str, Errno> {
    let Some((name, parents)) = path.split_last() else { return Err(Errno::INVAL) };
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let parent = match root.folder(parents) {
        Ok(parent) => parent,
        Err(error) if is_absent(&error) => return Ok("gone"),
        Err(error) => return Err(errno(error)),
    };
    let stat = match statat(&parent, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => stat,
        Ok(_) | Err(Errno::NOENT) => return Ok("removed"),
        Err(error) => return Err(error),
    };
    if stat.st_dev != fstat(&parent)?.st_dev || is_mount_root(root.folder(path).map_err(errno)?) {
        return Ok("mounted");
    }
    Ok(if is_empty(root.listed(path).map_err(errno)?)? { "empty" } else { "unmounted" })
}

fn is_absent(error: &std::io::Error) -> bool {
    // A link in place of a folder is not walked either.
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// True if a folder has no entry but a file system's own `lost+found`.
pub(super) fn is_empty(folder: impl AsFd) -> Result<bool, Errno> {
    for entry in Dir::read_from(folder)? {
        if ![c".", c"..", c"lost+found"].contains(&entry?.file_name()) {
            return Ok(false);
        }
    }
    Ok(true)
}
