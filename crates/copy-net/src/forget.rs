//! Removal of a copy that is given up, at one end: journals and parts.

use crate::destination::{user_state_folder, Destination};
use crate::error::{CopyError, ErrorKind};
use copy::{CopyOptions, SourcesShape};
use std::fs;
use std::io;
use std::path::Path;

/// Folder of the manifests of finished copies, below that of the copy.
const MANIFESTS: &str = "manifests";

/// Removes what copy `copy` has left at this end, below its destination too where that is here. Returns the bytes.
///
/// # Errors
/// `Busy`: it runs. `Input`: no name of a copy. `Io`.
pub fn forget(copy: &str, destination: Option<&str>) -> Result<u64, CopyError> {
    if copy.len() != 32 || !copy.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(CopyError { kind: ErrorKind::Input, text: format!("{copy}: a copy's name has 32 hex digits") });
    }
    let mut bytes = 0;
    // A destination that is not there has nothing of it, and is not to be made.
    if let Some(path) = destination.filter(|path| Path::new(path).exists()) {
        let is_folder = Path::new(path).is_dir();
        let shape = if is_folder { SourcesShape::Tree } else { SourcesShape::OneFile };
        let destination = Destination::open(path, shape, &CopyOptions::default(), copy)?;
        bytes += size_of(destination.state_folder());
        destination.clear();
    }
    let own = user_state_folder()?.join(copy);
    for entry in fs::read_dir(&own).into_iter().flatten().flatten() {
        // Receipts of earlier copies are checked against these.
        if entry.file_name() == MANIFESTS {
            continue;
        }
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        bytes += if is_folder { size_of(&path) } else { entry.metadata().map_or(0, |metadata| metadata.len()) };
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

/// Bytes of the files in a folder; what cannot be looked at counts nothing.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
