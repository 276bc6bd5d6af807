//! Hashes from the last manifest of a copy: a file of the same path, size and time is not read again for its hash.

use copy::{hex, show_path, unhex, Entry, EntryKind};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// See the module: 48 bytes per file.
#[derive(Default)]
pub(crate) struct KnownHashes(Vec<([u8; 16], [u8; 32])>);

impl KnownHashes {
    /// Of the last manifest in the folder; none if there is none, or if it is not what its name says.
    pub fn read(folder: &Path) -> KnownHashes {
        let Some(last) = manifests(folder).pop() else { return KnownHashes::default() };
        read(&last).unwrap_or_default()
    }

    /// Hash of an entry's content, if its size and time are those of the manifest.
    pub fn get(&self, entry: &Entry) -> Option<[u8; 32]> {
        let EntryKind::File { size, .. } = entry.kind else { return None };
        if self.0.is_empty() {
            return None;
        }
        let time = format!("{}.{:09}", entry.modified.seconds, entry.modified.nanoseconds);
        let key = key(&show_path(&entry.path), &size.to_string(), &time);
        let at = self.0.binary_search_by_key(&key, |&(known, _)| known).ok()?;
        Some(self.0[at].1)
    }
}

fn key(path: &str, size: &str, time: &str) -> [u8; 16] {
    let hash = blake3::hash(format!("{path}\t{size}\t{time}").as_bytes());
    let mut key = [0; 16];
    key.copy_from_slice(&hash.as_bytes()[..16]);
    key
}

fn read(path: &Path) -> Option<KnownHashes> {
    let mut reader = BufReader::new(File::open(path).ok()?);
    let mut hasher = blake3::Hasher::new();
    let mut known = vec![];
    let mut row = String::new();
    while reader.read_line(&mut row).ok()? > 0 {
        hasher.update(row.as_bytes());
        let fields: Vec<&str> = row.trim_end_matches('\n').split('\t').collect();
        if let [path, size, hash, "file", _, _, _, time, ..] = fields[..] {
            if let Some(hash) = unhex(hash).and_then(|hash| <[u8; 32]>::try_from(hash).ok()) {
                known.push((key(path, size, time), hash));
            }
        }
        row.clear();
    }
    known.sort_unstable();
    let root = hex(hasher.finalize().as_bytes());
    (path.file_name()?.to_str()? == root).then_some(KnownHashes(known))
}

/// Manifests of a folder, the last one at the end. Their names are their roots.
pub(crate) fn manifests(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().len() == 64)
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), entry.path()))
        })
        .collect();
    all.sort();
    all.into_iter().map(|(_, _, path)| path).collect()
}
