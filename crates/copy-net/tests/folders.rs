//! Folders of tests, and what is in a folder, as text that can be compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder that goes at the end.
pub struct Folder(PathBuf);

impl Folder {
    /// A new folder below the target's own temporary folder: a real file system, also where /tmp is memory.
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The path as text, as the front gives it.
    pub fn text(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned() + if name.is_empty() { "/" } else { "" }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One line per entry below `folder`, by path: kind, mode, owners, time, attributes, content. States of copies are left
/// out. Names of one file share their first name.
pub fn listing(folder: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut rows = BTreeMap::new();
    let mut names = BTreeMap::new();
    rows.insert(b".".to_vec(), describe(folder, b".", &mut names));
    list(folder, b"", &mut rows, &mut names);
    rows
}

fn list(folder: &Path, above: &[u8], rows: &mut BTreeMap<Vec<u8>, String>, names: &mut BTreeMap<(u64, u64), Vec<u8>>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    entries.sort();
    for name in entries.iter().filter(|name| *name != ".elephan-copy") {
        let path = [above, if above.is_empty() { b"" } else { b"/" }, name.as_bytes()].concat();
        let at = folder.join(name);
        rows.insert(path.clone(), describe(&at, &path, names));
        if fs::symlink_metadata(&at).unwrap().is_dir() {
            list(&at, &path, rows, names);
        }
    }
}

fn describe(at: &Path, path: &[u8], names: &mut BTreeMap<(u64, u64), Vec<u8>>) -> String {
    let metadata = fs::symlink_metadata(at).unwrap();
    let kind = metadata.file_type();
    let mut text = format!(
        "{:o} {}:{} {}.{:09}",
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.mtime(),
        metadata.mtime_nsec()
    );
    if kind.is_file() {
        let content = fs::read(at).unwrap();
        write!(text, " {} {}", content.len(), blake3::hash(&content).to_hex()).unwrap();
        if metadata.nlink() > 1 {
            let first = names.entry((metadata.dev(), metadata.ino())).or_insert_with(|| path.to_vec());
            write!(text, " = {}", String::from_utf8_lossy(first)).unwrap();
        }
    } else if kind.is_symlink() {
        write!(text, " -> {}", fs::read_link(at).unwrap().display()).unwrap();
    } else if kind.is_block_device() || kind.is_char_device() {
        write!(text, " {:x}", metadata.rdev()).unwrap();
    }
    let mut list = Vec::with_capacity(65_536);
    if rustix::fs::llistxattr(at, rustix::buffer::spare_capacity(&mut list)).is_ok() {
        let mut attributes: Vec<_> = list.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        attributes.sort_unstable();
        for name in attributes {
            let mut value = Vec::with_capacity(65_536);
            rustix::fs::lgetxattr(at, name, rustix::buffer::spare_capacity(&mut value)).unwrap();
            write!(text, " {}={value:?}", String::from_utf8_lossy(name)).unwrap();
        }
    }
    text
}
