//! Sources of a copy, counted: nothing is read but metadata.

use crate::error::{CopyError, ErrorKind};
use crate::removals::SourcePaths;
use crate::source::SourceTree;
use copy::{CopyOptions, EntryKind, FileFault, SourcesShape};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// Faults that are listed; further ones are counted.
const LISTED: usize = 10_000;

/// Sources to count.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScanSpec {
    /// As `EndSpec::sources`.
    pub sources: Vec<String>,
    /// As `EndSpec::options`.
    #[serde(default)]
    pub options: CopyOptions,
    /// The answer has the paths, for [`crate::removals()`].
    #[serde(default)]
    pub paths: bool,
}

/// Numbers of entries, files and bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scanned {
    /// Entries of all kinds.
    pub entries: u64,
    /// Regular files, and devices that are read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries that cannot be looked at.
    pub faults: Vec<FileFault>,
    /// Those beyond the first 10,000, which alone are listed.
    pub faults_more: u64,
    /// Entries that the copy leaves out and that are no faults.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Shape of the sources together.
    pub shape: SourcesShape,
    /// Hashes of the paths, if they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<SourcePaths>,
}

/// Counts what the sources have, until `stop`.
///
/// # Errors
/// `Input`: a source is not there. `Stopped`.
pub fn scan(spec: &ScanSpec, stop: &AtomicBool) -> Result<Scanned, CopyError> {
    let mut tree = SourceTree::open(&spec.sources, &spec.options)?;
    let mut found = Scanned {
        entries: 0,
        files: 0,
        bytes: 0,
        faults: vec![],
        faults_more: 0,
        notes: vec![],
        shape: tree.shape(),
        paths: spec.paths.then(SourcePaths::default),
    };
    loop {
        let next = tree.next();
        found.notes.append(&mut tree.take_notes());
        let left_out = tree.take_left_out();
        if let Some(paths) = &mut found.paths {
            left_out.iter().for_each(|path| paths.leave_out(path));
        }
        let Some(entry) = next else { break };
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
        }
        match entry {
            Ok((_, entry)) => {
                found.entries += 1;
                if let Some(paths) = &mut found.paths {
                    paths.add(&entry, tree.content_left_out(), tree.is_source_link());
                }
                if let EntryKind::File { size, .. } = entry.kind {
                    found.files += 1;
                    found.bytes += size;
                }
            }
            Err(fault) if found.faults.len() < LISTED => found.faults.push(fault),
            Err(_) => found.faults_more += 1,
        }
    }
    found.notes.append(&mut tree.left_out_notes());
    Ok(found)
}
