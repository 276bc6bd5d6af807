//! Removal of a copy that is given up, at one end: journals, manifests and parts.

use crate::destination::{user_state_folder, Destination};
use crate::error::{CopyError, ErrorKind};
use copy::{CopyOptions, SourcesShape};
use std::fs;
use std::io;
use std::path::Path;

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
    bytes += size_of(&own);
    match fs::remove_dir_all(&own) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CopyError { kind: ErrorKind::Io, text: format!("{}: {error}", own.display()) })
        }
        _ => Ok(bytes),
    }
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
