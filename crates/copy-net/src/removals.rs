//! Removals of a copy with `mirror`, listed: nothing is changed.

use crate::beneath::Beneath;
use crate::destination::{path_hash, Removal, Scope};
use crate::error::{CopyError, ErrorKind};
use crate::exclude::Exclude;
use crate::names::{io_error, STATE_NAME};
use copy::{CopyOptions, Entry, EntryKind};
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Digits of a path's hash in [`SourcePaths`].
const DIGITS: usize = 16;

/// Hashes of the paths of the sources, 16 hex digits each, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourcePaths {
    /// Folders.
    pub folders: String,
    /// Folders whose content is left out.
    pub closed_folders: String,
    /// All other entries.
    pub others: String,
}

impl SourcePaths {
    pub(crate) fn add(&mut self, entry: &Entry, content_left_out: bool) {
        let list = match entry.kind {
            EntryKind::Folder if content_left_out => &mut self.closed_folders,
            EntryKind::Folder => &mut self.folders,
            _ => &mut self.others,
        };
        list.push_str(&format!("{:0DIGITS$x}", path_hash(&entry.path)));
    }
}

/// A destination, and the paths that its sources have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovalsSpec {
    /// As `EndSpec::destination`.
    pub destination: String,
    /// As `EndSpec::options`.
    #[serde(default)]
    pub options: CopyOptions,
    /// From [`crate::scan`].
    pub paths: SourcePaths,
}

/// Entries that the copy would remove.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removals {
    /// Their number.
    pub count: u64,
    /// Their paths, the first 10,000.
    pub paths: Vec<String>,
    /// Most entries that the copy removes; with more it removes none.
    pub limit: u64,
    /// Entries that stay, a line for each folder.
    pub notes: Vec<String>,
}

/// Lists what a copy with `mirror` would remove, if all else went well, until `stop`.
///
/// # Errors
/// `Input`: paths that are none. `Io`: the destination cannot be read. `Stopped`.
pub fn removals(spec: &RemovalsSpec, stop: &AtomicBool) -> Result<Removals, CopyError> {
    let failed = |error: std::io::Error| io_error(&spec.destination, &error);
    let [folders, closed, others] =
        [&spec.paths.folders, &spec.paths.closed_folders, &spec.paths.others].map(|digits| hashes(digits));
    let (folders, closed, others) = (folders?, closed?, others?);
    let has = |list: &[u64], path: &[Vec<u8>]| list.binary_search(&path_hash(path)).is_ok();
    let entries = (folders.len() + closed.len() + others.len()) as u64 - u64::from(has(&folders, &[]));
    let limit = spec.options.max_removals.unwrap_or(entries);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = match openat(CWD, &spec.destination, flags, Mode::empty()) {
        Ok(root) => Beneath::new(root),
        // The copy makes the folder, or it has a file there.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Removals { limit, ..Removals::default() }),
        Err(error) => return Err(failed(error.into())),
    };
    let exclude = Exclude::new(&spec.options.exclude)?;
    let scope = Scope { root: &root, exclude: &exclude, sources: &[] };
    let mut count = Removal::count(scope);
    let mut waiting = vec![vec![]];
    while let Some(mut path) = waiting.pop() {
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
        }
        let is_of_sources = has(&folders, &path);
        let (folder, names, is_elsewhere) = match scope.list(&path) {
            Ok(listed) => listed,
            // The copy gives its user the right for as long as it runs.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let path = copy::show_path(&path);
                count.notes.push(format!("{path}: cannot be listed: removals from it are not in this list"));
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        if is_elsewhere {
            count.folder(&path, &|path| has(&folders, path) || has(&closed, path) || has(&others, path));
            continue;
        }
        for (name, is_folder) in names {
            if name == STATE_NAME.as_bytes() {
                continue;
            }
            path.push(name);
            if has(&folders, &path) {
                if is_folder {
                    waiting.push(path.clone());
                }
            } else if has(&others, &path) {
                if is_folder && !count.tree(folder.as_fd(), &path, true) {
                    let path = copy::show_path(&path);
                    count.notes.push(format!("{path}: a folder of which something stays: nothing would be removed"));
                }
            } else if is_of_sources && !has(&closed, &path) {
                count.tree(folder.as_fd(), &path, is_folder);
            }
            path.pop();
        }
    }
    Ok(Removals { count: count.removed, paths: count.paths, limit, notes: count.notes })
}

fn hashes(digits: &str) -> Result<Vec<u64>, CopyError> {
    let wrong = || CopyError { kind: ErrorKind::Input, text: "paths: 16 hex digits for each are needed".into() };
    if !digits.is_ascii() || !digits.len().is_multiple_of(DIGITS) {
        return Err(wrong());
    }
    let each = (0..digits.len()).step_by(DIGITS).map(|at| u64::from_str_radix(&digits[at..at + DIGITS], 16));
    let mut hashes = each.collect::<Result<Vec<_>, _>>().map_err(|_| wrong())?;
    hashes.sort_unstable();
    hashes.dedup();
    Ok(hashes)
}
