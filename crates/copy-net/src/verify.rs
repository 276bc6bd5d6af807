//! A side of a finished copy, checked again: each row of its manifest against the file that is there now.

use crate::error::{CopyError, ErrorKind};
use crate::keys::hex;
use rustix::fs::{fadvise, Advice};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

/// Differences that are listed; further ones are counted.
const LISTED: usize = 10_000;
/// Bytes read at once.
const PIECE: usize = 1 << 20;
/// Most threads that read and hash.
const THREADS: usize = 8;

/// What is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifySpec {
    /// File with the rows "path\tsize\thash" (`EndReport::manifest`) at this host.
    pub manifest: String,
    /// BLAKE3 of that file, 64 hex digits, as the receipt has it: another file is refused.
    #[serde(default)]
    pub manifest_blake3: Option<String>,
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

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Rows of the manifest.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
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

/// A row of a manifest.
struct Row {
    path: Vec<u8>,
    text: String,
    size: u64,
    hash: String,
}

/// BLAKE3 of a file, hex digits.
///
/// # Errors
/// It cannot be read.
pub fn file_blake3(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hex(hasher.finalize().as_bytes()))
}

/// Checks each file of a manifest. Returns early, with `ErrorKind::Stopped`, once `stop` is set.
///
/// # Errors
/// The manifest cannot be read, is another one, or is none.
pub fn verify(spec: &VerifySpec, stop: &AtomicBool) -> Result<Verified, CopyError> {
    let rows = rows(spec)?;
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
        files: rows.len() as u64,
        bytes: bytes.into_inner().expect("no thread panics with it"),
        differences: differences.into_iter().map(|(_, difference)| difference).collect(),
        differences_more: more,
    })
}

fn rows(spec: &VerifySpec) -> Result<Vec<Row>, CopyError> {
    let refused = |text: String| CopyError { kind: ErrorKind::Input, text: format!("{}: {text}", spec.manifest) };
    let content = fs::read(&spec.manifest).map_err(|error| refused(format!("manifest of the copy: {error}")))?;
    if let Some(wanted) = &spec.manifest_blake3 {
        let found = hex(blake3::hash(&content).as_bytes());
        if found != *wanted {
            return Err(refused(format!("is not the manifest of this receipt: BLAKE3 {found}, not {wanted}")));
        }
    }
    let lines = content.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(|(number, line)| row(line).ok_or_else(|| refused(format!("line {}: no row", number + 1)))).collect()
}

fn row(line: &[u8]) -> Option<Row> {
    let mut columns = line.rsplitn(3, |byte| *byte == b'\t');
    let (hash, size, path) = (columns.next()?, columns.next()?, columns.next()?);
    let text = String::from_utf8_lossy(path).into_owned();
    Some(Row {
        path: unescaped(path),
        text,
        size: std::str::from_utf8(size).ok()?.parse().ok()?,
        hash: std::str::from_utf8(hash).ok()?.to_owned(),
    })
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
        return Some(if path.is_empty() { destination.into() } else { destination.join(below) });
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

/// Reads a file; the error is the reason that it differs.
fn look(spec: &VerifySpec, row: &Row, buffer: &mut [u8], stop: &AtomicBool) -> Result<u64, String> {
    let Some(path) = file_of(spec, &row.path) else { return Err("belongs to no source of the copy".into()) };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "is not there".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    // The destination itself may be reached through a link; nothing in it is followed.
    let follow = if row.path.is_empty() { 0 } else { libc::O_NOFOLLOW };
    let mut file =
        OpenOptions::new().read(true).custom_flags(follow | libc::O_NONBLOCK | libc::O_CLOEXEC).open(&path).map_err(
            |error| if error.raw_os_error() == Some(libc::ELOOP) { "is a link".into() } else { unreadable(error) },
        )?;
    let metadata = file.metadata().map_err(unreadable)?;
    let is_device = metadata.file_type().is_block_device();
    if !is_device && !metadata.is_file() {
        return Err("is no file".into());
    }
    if !is_device && metadata.len() != row.size {
        return Err(format!("has {} bytes, not {}", metadata.len(), row.size));
    }
    if spec.from_disk {
        // Pages that are dirty stay: they are written first (posix_fadvise(2)).
        let _ = file.sync_all();
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
    let mut hasher = blake3::Hasher::new();
    let mut left = row.size;
    while left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Err("stopped".into());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match file.read(&mut buffer[..most]) {
            Ok(0) => return Err(format!("has {} bytes, not {}", row.size - left, row.size)),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                left -= read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    if hex(hasher.finalize().as_bytes()) != row.hash {
        return Err("its content is another one".into());
    }
    Ok(row.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_at_the_last_tabs_and_bytes_come_back() {
        let row = row(b"a\\xff\tb\t12\tabcd").unwrap();
        assert_eq!((row.path.as_slice(), row.size, row.hash.as_str()), (&b"a\xff\tb"[..], 12, "abcd"));
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
            manifest += &format!("tree/{name}\t{}\t{}\n", text.len(), blake3::hash(text.as_bytes()).to_hex());
        }
        fs::write(folder.join("manifest"), &manifest).unwrap();
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let mut spec = VerifySpec {
            manifest: at("manifest"),
            manifest_blake3: Some(blake3::hash(manifest.as_bytes()).to_hex().to_string()),
            sources: vec![at("tree")],
            destination: None,
            from_disk: true,
        };
        let stop = AtomicBool::new(false);
        let good = verify(&spec, &stop).unwrap();
        assert_eq!((good.files, good.bytes, good.differences.len()), (4, 17, 0));
        fs::write(folder.join("tree/b"), "fliq").unwrap();
        fs::write(folder.join("tree/c"), "shor").unwrap();
        fs::remove_file(folder.join("tree/d")).unwrap();
        (spec.sources, spec.destination) = (vec![], Some(at("")));
        let bad = verify(&spec, &stop).unwrap();
        let said: Vec<_> = bad.differences.iter().map(|one| (one.path.as_str(), one.reason.as_str())).collect();
        let expected =
            [("tree/b", "its content is another one"), ("tree/c", "has 4 bytes, not 5"), ("tree/d", "is not there")];
        assert_eq!(said, expected);
        spec.manifest_blake3 = Some("00".repeat(32));
        assert!(verify(&spec, &stop).unwrap_err().text.contains("not the manifest of this receipt"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
