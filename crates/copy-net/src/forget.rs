//! Removal of a copy that is given up, at one end: journals and parts.

use crate::destination::{user_state_folder, Destination};
use crate::error::{CopyError, ErrorKind};
use crate::names::STATE_NAME;
use copy::{CopyOptions, SourcesShape};
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Folder of the manifests of finished copies, below that of the copy.
const MANIFESTS: &str = "manifests";

/// Removes what copy `copy` has left at this end, below its destination too where that is here. Returns the bytes of
/// disk that are free after it.
///
/// # Errors
/// `Busy`: it runs. `Input`: no name of a copy. `Io`.
pub fn forget(copy: &str, destination: Option<&str>) -> Result<u64, CopyError> {
    if copy.len() != 32 || !copy.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(CopyError { kind: ErrorKind::Input, text: format!("{copy}: a copy's name has 32 hex digits") });
    }
    let mut bytes = 0;
    // A destination without a state has nothing of it, and is not to be made.
    if let Some((path, shape)) = destination.and_then(|path| Some((path, shape_of(path, copy)?))) {
        bytes += Destination::open(path, shape, &CopyOptions::default(), copy)?.clear();
    }
    let own = user_state_folder()?.join(copy);
    for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
        // Receipts of earlier copies are checked against these.
        if entry.file_name() == MANIFESTS {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        bytes += if is_folder { size_of(&path) } else { entry.metadata().map_or(0, |found| disk_bytes(&found)) };
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", path.display()) }),
        })?;
    }
    // Not empty where there are manifests.
    let _ = fs::remove_dir(&own);
    Ok(bytes)
}

/// The shape of sources for which a destination has a state of the copy; `None`: it has none.
fn shape_of(destination: &str, copy: &str) -> Option<SourcesShape> {
    let path = Path::new(destination);
    let found = fs::metadata(path);
    if found.as_ref().is_ok_and(|found| found.file_type().is_block_device()) {
        return Some(SourcesShape::OneFile);
    }
    let has_state = |folder: &Path| folder.join(STATE_NAME).join(copy).is_dir();
    if found.is_ok_and(|found| found.is_dir()) {
        return has_state(path).then_some(SourcesShape::Tree);
    }
    // The name of one file, which may not be there yet.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    has_state(parent).then_some(SourcesShape::OneFile)
}

/// Bytes of disk of the files in a folder; what cannot be looked at counts nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        found => found.map_or(0, |found| disk_bytes(&found)),
    };
    entries.flatten().map(size).sum()
}

/// Bytes of disk of a file that are free when its name is removed.
fn disk_bytes(found: &fs::Metadata) -> u64 {
    if found.nlink() > 1 {
        0
    } else {
        found.blocks().saturating_mul(512)
    }
}
