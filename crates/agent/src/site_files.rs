//! Files of programs' ends: written, and their data compared by digests afterwards.

use crate::error::{AgentError, Kind};
use crate::site::Site;
use rustix::fs::{fadvise, Advice, Mode};
use serde::Deserialize;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rights of folders: see `site`.
const PASSABLE: u32 = 0o711;
const READABLE: u32 = 0o755;
const WRITABLE: u32 = 0o777;

/// Bytes of data that are drawn, or read, at once.
const PIECE: usize = 1 << 20;

/// Keys of the request `prepare`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    ends: Vec<EndFiles>,
}

/// Files of a server or a client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndFiles {
    folder: PathBuf,
    files: Vec<Text>,
    #[serde(default)]
    data: Option<Data>,
}

/// A file, or a folder where the name ends in a slash.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    name: String,
    text: String,
    mode: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Data {
    folder: PathBuf,
    sizes: Vec<u64>,
    kind: DataKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DataKind {
    /// To send: holes in files.
    Holes,
    /// To send: random data, on the disk.
    Random,
    /// To receive: a folder, over which something may be mounted.
    Folder,
}

/// Keys of the request `digest`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DigestKeys {
    files: Vec<PathBuf>,
}

impl Prepare {
    /// Writes all, unless `stop` is set.
    ///
    /// # Errors
    /// A path is not the site's, or cannot be written.
    pub fn execute(&self, site: &Site, stop: &AtomicBool) -> Result<Value, AgentError> {
        for end in &self.ends {
            site.require(&end.folder)?;
            make_all(&end.folder, PASSABLE)?;
            for file in &end.files {
                let path = end.folder.join(file.name.trim_end_matches('/'));
                site.require(&path)?;
                let written =
                    if file.name.ends_with('/') { make(&path, file.mode) } else { write(&path, &file.text, file.mode) };
                written.map_err(|error| failed(&path, &error))?;
            }
            if let Some(data) = &end.data {
                site.require(&data.folder)?;
                data.write(stop)?;
            }
        }
        Ok(json!({}))
    }
}

impl Data {
    fn write(&self, stop: &AtomicBool) -> Result<(), AgentError> {
        let parent = self.folder.parent().unwrap_or(&self.folder);
        make_all(parent, PASSABLE)?;
        if self.kind == DataKind::Folder {
            // A server may refuse to give its users a root that they can write to: the folder in it is what they write
            // to.
            make(parent, READABLE).map_err(|error| failed(parent, &error))?;
            return make(&self.folder, WRITABLE).map_err(|error| failed(&self.folder, &error));
        }
        make(&self.folder, READABLE).map_err(|error| failed(&self.folder, &error))?;
        for (number, &size) in self.sizes.iter().enumerate() {
            let path = self.folder.join(format!("file{number}"));
            let written = if self.kind == DataKind::Holes { hole(&path, size) } else { random(&path, size, stop) };
            written.map_err(|error| failed(&path, &error))?;
            if stop.load(Ordering::Relaxed) {
                return Err(stopped());
            }
        }
        Ok(())
    }
}

impl DigestKeys {
    /// Returns the SHA-256 of each file, null where there is none, unless `stop` is set.
    ///
    /// # Errors
    /// A path is not the site's, or cannot be read.
    pub fn execute(&self, site: &Site, stop: &AtomicBool) -> Result<Value, AgentError> {
        let mut found = vec![];
        for path in &self.files {
            site.require(path)?;
            found.push(match digest(path, stop) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Value::Null,
                Err(error) => return Err(failed(path, &error)),
                Ok((bytes, hex)) => json!({"bytes": bytes, "sha256": hex}),
            });
            if stop.load(Ordering::Relaxed) {
                return Err(stopped());
            }
        }
        Ok(json!({"files": found}))
    }
}

fn stopped() -> AgentError {
    AgentError::new(Kind::Stopped, "it was stopped")
}

fn failed(path: &Path, error: &io::Error) -> AgentError {
    AgentError::kernel(&path.display().to_string(), error)
}

/// Makes a folder and those above it that are not there.
fn make_all(folder: &Path, mode: u32) -> Result<(), AgentError> {
    let missing: Vec<_> = folder.ancestors().take_while(|above| !above.is_dir()).collect();
    missing.into_iter().rev().try_for_each(|above| make(above, mode).map_err(|error| failed(above, &error)))
}

fn make(folder: &Path, mode: u32) -> io::Result<()> {
    if !folder.is_dir() {
        fs::create_dir(folder)?;
    }
    Ok(rustix::fs::chmod(folder, Mode::from_raw_mode(mode))?)
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    Ok(file)
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    create(path, mode)?.write_all(text.as_bytes())
}

fn hole(path: &Path, size: u64) -> io::Result<()> {
    create(path, 0o644)?.set_len(size)
}

/// Random bytes on the disk, dropped from the page cache, so that reading them is reading the disk.
fn random(path: &Path, size: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut file = create(path, 0o644)?;
    let mut source = File::open("/dev/urandom")?;
    let mut piece = vec![0; PIECE];
    let mut left = size;
    while left > 0 && !stop.load(Ordering::Relaxed) {
        let length = left.min(PIECE as u64) as usize;
        source.read_exact(&mut piece[..length])?;
        file.write_all(&piece[..length])?;
        left -= length as u64;
    }
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Bytes of a file, and its SHA-256 as hexadecimal digits.
fn digest(path: &Path, stop: &AtomicBool) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    while !stop.load(Ordering::Relaxed) {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        hash.update(&piece[..length]);
        bytes += length as u64;
    }
    Ok((bytes, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}
