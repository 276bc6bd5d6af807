//! A side of a finished copy, checked again: each row of its manifest against the file that is there now.

use crate::error::{CopyError, ErrorKind};
use copy::{hex, plural};
use rustix::fs::{fadvise, Advice};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Differences that are listed; further ones are counted.
const LISTED: usize = 10_000;
/// Stands in place of a hash that is not known.
const NO_HASH: &str = "-";
/// Bytes read at once.
const PIECE: usize = 1 << 20;
/// Most threads that read and hash.
const THREADS: usize = 8;

/// A side to check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySpec {
    /// File of `EndReport::manifest` at this host: rows of path, size, hash, kind and more, separated by tabs.
    pub manifest: String,
    /// Root of the copy, which is the BLAKE3 of that file, 64 hex digits: another file is refused.
    pub root: String,
    /// The sources as the copy had them (`EndSpec::sources`); empty: the destination is checked.
    #[serde(default)]
    pub sources: Vec<String>,
    /// The destination as the copy had it.
    #[serde(default)]
    pub destination: Option<String>,
    /// Each file's pages are dropped first, so that the disk is read and not the page cache.
    #[serde(default)]
    pub from_disk: bool,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Rows of the manifest: files, folders, links and others.
    pub entries: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Files that the copy left as they were, unread, because size and time were the same: no hash is known of them.
    pub without_hash: u64,
    /// Files that are not as the manifest has them, in its order.
    pub differences: Vec<Difference>,
    /// Differences beyond the first 10,000, which alone are listed.
    pub differences_more: u64,
}

/// One file that is not as the manifest has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Difference {
    /// Path in the manifest.
    pub path: String,
    /// Reason, in one line.
    pub reason: String,
}

/// A row of a manifest that has content or a target.
struct Row {
    path: Vec<u8>,
    text: String,
    what: What,
}

enum What {
    File {
        size: u64,
        hash: Option<String>,
    },
    Symlink {
        target: Vec<u8>,
    },
    HardLink {
        first: Vec<u8>,
    },
    Folder,
    /// Device nodes and FIFOs: that something is there.
    Other,
}

/// Checks each file of a manifest. Returns early, with `ErrorKind::Stopped`, once `stop` is set.
///
/// # Errors
/// The manifest cannot be read, is another one, or is none.
pub fn verify(spec: &VerifySpec, stop: &AtomicBool) -> Result<Verified, CopyError> {
    let rows = rows(spec, stop)?;
    let (next, found, bytes) = (AtomicUsize::new(0), Mutex::new(vec![]), Mutex::new(0u64));
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut buffer = vec![0; PIECE];
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(row) = rows.get(number) else { return };
                    match look(spec, row, &mut buffer, stop) {
                        Ok(read) => *bytes.lock().expect("no thread panics with it") += read,
                        Err(reason) => found
                            .lock()
                            .expect("no thread panics with it")
                            .push((number, Difference { path: row.text.clone(), reason })),
                    }
                }
            });
        }
    });
    if stop.load(Ordering::Relaxed) {
        return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
    }
    let mut differences = found.into_inner().expect("no thread panics with it");
    differences.sort();
    let more = differences.len().saturating_sub(LISTED) as u64;
    differences.truncate(LISTED);
    Ok(Verified {
        entries: rows.len() as u64,
        bytes: bytes.into_inner().expect("no thread panics with it"),
        without_hash: rows.iter().filter(|row| matches!(row.what, What::File { hash: None, .. })).count() as u64,
        differences: differences.into_iter().map(|(_, difference)| difference).collect(),
        differences_more: more,
    })
}

fn rows(spec: &VerifySpec, stop: &AtomicBool) -> Result<Vec<Row>, CopyError> {
    let refused = |text: String| CopyError { kind: ErrorKind::Input, text: format!("{}: {text}", spec.manifest) };
    let unreadable = |error: io::Error| refused(format!("manifest of the copy: {error}"));
    let mut file = user_files::open(Path::new(&spec.manifest)).map_err(unreadable)?;
    // In memory only once it is the receipt's: another file may have any size.
    let found = hex(hash_of(&mut file, stop, unreadable)?.as_bytes());
    if found != spec.root {
        return Err(refused(format!(
            "is another one than that of this receipt, as after a later run of the same copy: root {found}, not {}",
            spec.root
        )));
    }
    let mut content = vec![];
    file.rewind().and_then(|()| file.read_to_end(&mut content)).map_err(unreadable)?;
    let lines = content.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(number, line)| row(line).ok_or_else(|| refused(format!("line {}: no row", number + 1)))).collect()
}

fn hash_of(
    file: &mut File,
    stop: &AtomicBool,
    unreadable: impl Fn(io::Error) -> CopyError,
) -> Result<blake3::Hash, CopyError> {
    let (mut hasher, mut block) = (blake3::Hasher::new(), vec![0; 1 << 20]);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(CopyError { kind: ErrorKind::Stopped, text: "stopped".into() });
        }
        match file.read(&mut block).map_err(&unreadable)? {
            0 => return Ok(hasher.finalize()),
            bytes => hasher.update(&block[..bytes]),
        };
    }
}

fn row(line: &[u8]) -> Option<Row> {
    let columns: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let [path, size, hash, kind, .., target] = columns[..] else { return None };
    let what = match kind {
        b"symlink" => What::Symlink { target: unescaped(target) },
        b"link" => What::HardLink { first: unescaped(target) },
        b"folder" => What::Folder,
        b"fifo" | b"block" | b"char" => What::Other,
        _ => What::File {
            size: std::str::from_utf8(size).ok()?.parse().ok()?,
            hash: Some(std::str::from_utf8(hash).ok()?).filter(|hash| *hash != NO_HASH).map(str::to_owned),
        },
    };
    // The destination itself.
    let path = if path == b"." { b"" } else { path };
    Some(Row { path: unescaped(path), text: String::from_utf8_lossy(columns[0]).into_owned(), what })
}

/// A path with `\xNN` as the byte that it stands for.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&first, after)) = rest.split_first() {
        let byte = match after {
            [b'x', high, low, ..] if first == b'\\' => {
                std::str::from_utf8(&[*high, *low]).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok())
            }
            _ => None,
        };
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// The file of a path of the manifest.
fn file_of(spec: &VerifySpec, path: &[u8]) -> Option<PathBuf> {
    let below = Path::new(OsStr::from_bytes(path));
    if spec.sources.is_empty() {
        let destination = Path::new(spec.destination.as_deref()?);
        // One file may have taken the destination as its name.
        let is_name = path.is_empty() || (!destination.is_dir() && below.components().count() == 1);
        return Some(if is_name { destination.into() } else { destination.join(below) });
    }
    let first = below.components().next().map(|component| component.as_os_str());
    let mut contents = vec![];
    for source in &spec.sources {
        let root = Path::new(source);
        if source.ends_with('/') {
            contents.push(root.join(below));
        } else if path.is_empty() {
            return Some(root.into());
        } else if root.file_name() == first {
            return Some(root.parent().unwrap_or(Path::new("")).join(below));
        }
    }
    // Of folders that stand for what is in them the first that has it, as when they were read.
    let there = contents.iter().position(|file| file.symlink_metadata().is_ok()).unwrap_or(0);
    (there < contents.len()).then(|| contents.swap_remove(there))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be read: {error}"),
    }
}

/// Reads a file; the error is the reason that it differs.
fn look(spec: &VerifySpec, row: &Row, buffer: &mut [u8], stop: &AtomicBool) -> Result<u64, String> {
    let Some(path) = file_of(spec, &row.path) else { return Err("belongs to no source of the copy".into()) };
    let (size, hash) = match &row.what {
        What::File { size, hash } => (*size, hash.as_deref()),
        What::Symlink { target } => {
            let found = fs::read_link(&path).map_err(|error| reason(&error))?;
            let is_same = found.as_os_str().as_bytes() == target;
            return if is_same { Ok(0) } else { Err(format!("points to {}", found.display())) };
        }
        What::HardLink { first } => {
            let first = file_of(spec, first).ok_or("is a hard link to no entry")?;
            let [one, other] = [&path, &first].map(|path| fs::symlink_metadata(path).map_err(|error| reason(&error)));
            let (one, other) = (one?, other?);
            let is_same = (one.dev(), one.ino()) == (other.dev(), other.ino());
            return if is_same { Ok(0) } else { Err(format!("is no hard link to {}", first.display())) };
        }
        What::Folder => {
            let is_folder = fs::metadata(&path).map_err(|error| reason(&error))?.is_dir();
            return if is_folder { Ok(0) } else { Err("is no folder".into()) };
        }
        What::Other => return fs::symlink_metadata(&path).map(|_| 0).map_err(|error| reason(&error)),
    };
    // The destination itself may be reached through a link; nothing in it is followed.
    let follow = if row.path.is_empty() { 0 } else { libc::O_NOFOLLOW };
    let mut file =
        OpenOptions::new().read(true).custom_flags(follow | libc::O_NONBLOCK | libc::O_CLOEXEC).open(&path).map_err(
            |error| if error.raw_os_error() == Some(libc::ELOOP) { "is a link".into() } else { reason(&error) },
        )?;
    let metadata = file.metadata().map_err(|error| reason(&error))?;
    let is_device = metadata.file_type().is_block_device();
    if !is_device && !metadata.is_file() {
        return Err("is no file".into());
    }
    if !is_device && metadata.len() != size {
        return Err(format!("has {}, not {size}", plural(metadata.len(), "byte")));
    }
    let Some(hash) = hash else { return Ok(0) };
    if spec.from_disk {
        // Pages that are dirty stay: they are written first (posix_fadvise(2)).
        let _ = file.sync_all();
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
    let mut hasher = blake3::Hasher::new();
    let mut left = size;
    while left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Err("stopped".into());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match file.read(&mut buffer[..most]) {
            Ok(0) => return Err(format!("has {}, not {size}", plural(size - left, "byte"))),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                left -= read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(reason(&error)),
        }
    }
    if hex(hasher.finalize().as_bytes()) != hash {
        return Err("its content is another one".into());
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_bytes_in_place_of_escapes_and_no_hash_for_a_dash() {
        let found = row(b"a\\xff\\x09b\t12\tabcd\tfile\t644\t0\t0\t1.0\t").unwrap();
        assert_eq!(found.path, b"a\xff\tb");
        assert!(matches!(found.what, What::File { size: 12, hash: Some(hash) } if hash == "abcd"));
        let unread = row(b"a\t12\t-\tfile\t-").unwrap();
        assert!(matches!(unread.what, What::File { size: 12, hash: None }));
        assert!(row(b"a\tmany\tabcd\tfile\t-").is_none() && row(b"a\t1").is_none());
        assert_eq!(unescaped(b"\\x4"), b"\\x4");
        assert_eq!(unescaped(b"plain\\xzz"), b"plain\\xzz");
    }

    #[test]
    fn a_flipped_byte_a_shorter_and_a_missing_file_are_found_at_both_sides() {
        let folder = std::env::temp_dir().join(format!("elephan-verify-{}", std::process::id()));
        fs::create_dir_all(folder.join("tree")).unwrap();
        let whole = [("a", "same"), ("b", "flip"), ("c", "short"), ("d", "gone")];
        let mut manifest = String::new();
        for (name, text) in whole {
            fs::write(folder.join("tree").join(name), text).unwrap();
            manifest += &format!("tree/{name}\t{}\t{}\tfile\t-\n", text.len(), blake3::hash(text.as_bytes()).to_hex());
        }
        fs::write(folder.join("manifest"), &manifest).unwrap();
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let mut spec = VerifySpec {
            manifest: at("manifest"),
            root: blake3::hash(manifest.as_bytes()).to_hex().to_string(),
            sources: vec![at("tree")],
            destination: None,
            from_disk: true,
        };
        let stop = AtomicBool::new(false);
        let good = verify(&spec, &stop).unwrap();
        assert_eq!((good.entries, good.bytes, good.differences.len()), (4, 17, 0));
        fs::write(folder.join("tree/b"), "fliq").unwrap();
        fs::write(folder.join("tree/c"), "shor").unwrap();
        fs::remove_file(folder.join("tree/d")).unwrap();
        (spec.sources, spec.destination) = (vec![], Some(at("")));
        let bad = verify(&spec, &stop).unwrap();
        let said: Vec<_> = bad.differences.iter().map(|one| (one.path.as_str(), one.reason.as_str())).collect();
        let expected =
            [("tree/b", "its content is another one"), ("tree/c", "has 4 bytes, not 5"), ("tree/d", "is not there")];
        assert_eq!(said, expected);
        spec.root = "00".repeat(32);
        assert!(verify(&spec, &stop).unwrap_err().text.contains("another one than that of this receipt"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
