//! Sources that lie where a copy with `mirror` removes.

use crate::error::{CopyError, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Refuses sources of this host, and an older version, that lie in a folder that is made equal to a source: the copy
/// would remove them.
///
/// # Errors
/// `Input`.
pub(crate) fn check(sources: &[String], link_to: Option<&str>, destination: &str) -> Result<(), CopyError> {
    let Ok(root) = std::fs::canonicalize(destination) else { return Ok(()) };
    for source in sources.iter().filter(|source| Path::new(source).is_dir()) {
        let path = Path::new(source);
        let folder = match (source.ends_with('/'), path.file_name()) {
            (false, Some(name)) => root.join(name),
            _ => root.clone(),
        };
        let sources = sources.iter().map(|source| ("source", source.as_str()));
        for (what, other) in sources.chain(link_to.map(|older| ("link_to", older))) {
            let real = std::fs::canonicalize(other).unwrap_or_else(|_| other.into());
            if real != folder && real.starts_with(&folder) {
                let text = format!(
                    "{what} {other:?}: it lies in {:?}, which the copy makes equal to {source:?}, so that it would be \
                     removed: leave out mirror, or choose another destination",
                    folder.display().to_string()
                );
                return Err(CopyError { kind: ErrorKind::Input, text });
            }
        }
    }
    Ok(())
}

/// Device and inode of each source that is a folder of this host.
pub(crate) fn identities(sources: &[String]) -> Vec<(u64, u64)> {
    let folders = sources.iter().filter_map(|source| std::fs::metadata(source).ok()).filter(|found| found.is_dir());
    folders.map(|found| (found.dev(), found.ino())).collect()
}
