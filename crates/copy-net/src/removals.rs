//! Removals of a copy with `mirror`, listed: nothing is changed.

use crate::beneath::Beneath;
use crate::destination::{path_hash, Destination, Removal, Scope};
use crate::error::{CopyError, EntryFault, ErrorKind};
use crate::exclude::Exclude;
use crate::names::{io_error, STATE_NAME};
use crate::own_sources;
use copy::{CopyOptions, Entry, EntryKind, SourcesShape};
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Digits of a path's hash in [`SourcePaths`].
const DIGITS: usize = 16;
/// Entries in the notes that would be faults of the removal.
const FAULTS_SHOWN: usize = 20;

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
    /// Entries of kinds that are not copied.
    #[serde(default)]
    pub left_out: String,
    /// Sources that are symbolic links: no folder gives way to them. They are among `others` too.
    #[serde(default)]
    pub source_links: String,
}

impl SourcePaths {
    pub(crate) fn leave_out(&mut self, path: &[Vec<u8>]) {
        self.left_out.push_str(&digits(path));
    }

    pub(crate) fn add(&mut self, entry: &Entry, content_left_out: bool, is_source_link: bool) {
        if is_source_link {
            self.source_links.push_str(&digits(&entry.path));
        }
        let list = match entry.kind {
            EntryKind::Folder if content_left_out => &mut self.closed_folders,
            EntryKind::Folder => &mut self.folders,
            _ => &mut self.others,
        };
        list.push_str(&digits(&entry.path));
    }
}

/// A destination, and the paths that its sources have.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovalsSpec {
    /// As `EndSpec::destination`.
    pub destination: String,
    /// From [`crate::scan`].
    pub shape: SourcesShape,
    /// As `EndSpec::options`.
    #[serde(default)]
    pub options: CopyOptions,
    /// From [`crate::scan`], with `mirror`.
    #[serde(default)]
    pub paths: SourcePaths,
    /// As `EndSpec::sources`, if they are on this host.
    #[serde(default)]
    pub sources: Vec<String>,
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

/// Checks the destination as the copy does, and lists what `mirror` would remove, if all else went well, until `stop`.
///
/// # Errors
/// `Input`: paths that are none, a destination that the copy refuses. `Io`: the destination cannot be read. `Stopped`.
pub fn removals(spec: &RemovalsSpec, stop: &AtomicBool) -> Result<Removals, CopyError> {
    let failed = |error: std::io::Error| io_error(&spec.destination, &error);
    if spec.options.mirror {
        own_sources::check(&spec.sources, spec.options.link_to.as_deref(), &spec.destination)?;
    }
    Destination::check(&spec.destination, spec.shape, &spec.options)?;
    // One file or device has nothing beside it that a mirror removes.
    if !spec.options.mirror || spec.shape != SourcesShape::Tree {
        return Ok(Removals::default());
    }
    let paths = &spec.paths;
    let (folders, closed, others) = (hashes(&paths.folders)?, hashes(&paths.closed_folders)?, hashes(&paths.others)?);
    let (left_out, links) = (hashes(&paths.left_out)?, hashes(&paths.source_links)?);
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
    let exclude = Exclude::of_removal(&spec.options)?;
    let sources = own_sources::identities(&spec.sources);
    let scope = Scope { root: &root, exclude: &exclude, sources: &sources };
    let mut count = Removal::count(scope);
    let mut waiting = vec![vec![]];
    while let Some(mut path) = waiting.pop() {
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
        }
        let is_of_sources = has(&folders, &path);
        let (folder, names, is_elsewhere) = match scope.list(&path) {
            Ok(listed) => listed,
            // While a copy runs, its user has the right.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                let path = copy::show_path(&path);
                count.notes.push(format!("{path}: cannot be listed: removals from it are not in this list"));
                continue;
            }
            Err(error) => return Err(failed(error)),
        };
        if is_elsewhere {
            let all = [&folders, &closed, &others, &left_out];
            count.folder(&path, &|path| all.iter().any(|list| has(list, path)));
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
                if is_folder && (has(&links, &path) || !count.tree(folder.as_fd(), &path, true)) {
                    let path = copy::show_path(&path);
                    count.notes.push(format!("{path}: a folder of which something stays: nothing would be removed"));
                }
            } else if is_of_sources && !has(&closed, &path) && !has(&left_out, &path) {
                count.tree(folder.as_fd(), &path, is_folder);
            }
            path.pop();
        }
    }
    let stays = |fault: EntryFault| format!("{}: {}", fault.path, fault.reason);
    count.notes.extend(count.faults.into_iter().take(FAULTS_SHOWN).map(stays));
    Ok(Removals { count: count.removed, paths: count.paths, limit, notes: count.notes })
}

fn digits(path: &[Vec<u8>]) -> String {
    format!("{:0DIGITS$x}", path_hash(path))
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
