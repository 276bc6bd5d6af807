//! Programs of this host, and where their data may be.

use super::disk;
use crate::apart;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Folder of data that is to be on a disk.
pub const DISK: &str = "/var/tmp";

/// Most bytes of what a program says of its version.
const MOST_SAID: usize = 1000;

/// Returns the commands of `wanted` that this host has, by name, with the words that they say to the argument that is
/// asked for; the rights of programs; the disk.
pub fn answer(wanted: &BTreeMap<String, Option<String>>) -> Value {
    let mut commands = Map::new();
    for (name, argument) in wanted {
        let Some(path) = find(name) else { continue };
        let says = argument.as_ref().map(|argument| said(&path, argument));
        commands.insert(name.clone(), json!({"path": path, "says": says}));
    }
    let (namespaces, why) = match apart::rights() {
        Ok(rights) => (Some(rights), None),
        Err(why) => (None, Some(why)),
    };
    let mut disk = disk::answer(DISK);
    if let (Value::Object(disk), Some((kind, source))) = (&mut disk, file_system_of(Path::new(DISK))) {
        disk.insert("file_system".to_owned(), kind.into());
        disk.insert("device".to_owned(), source.into());
    }
    json!({"commands": commands, "namespaces": namespaces, "why": why, "disk": disk})
}

fn find(name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let runs = |path: &PathBuf| fs::metadata(path).is_ok_and(|f| f.is_file() && f.permissions().mode() & 0o111 != 0);
    kernel::SEARCHED.split(':').map(|folder| Path::new(folder).join(name)).find(runs)
}

/// The words of a program on its standard input, output and error: vsftpd prints its version to the first.
fn said(path: &Path, argument: &str) -> String {
    let words = || {
        let memory = rustix::fs::memfd_create("elephan", rustix::fs::MemfdFlags::CLOEXEC)?;
        let file = fs::File::from(memory);
        let into = || file.try_clone().map(Stdio::from);
        Command::new(path).arg(argument).env_clear().stdin(into()?).stdout(into()?).stderr(into()?).status()?;
        let mut text = vec![0; MOST_SAID];
        let length = std::os::unix::fs::FileExt::read_at(&file, &mut text, 0)?;
        text.truncate(length);
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&text).into_owned())
    };
    words().unwrap_or_default()
}

/// Type and source of the file system on which a folder lies: of several mounts at one place the last is on top.
fn file_system_of(folder: &Path) -> Option<(String, String)> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut best: Option<(usize, String, String)> = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (Some(source), Some(at), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        if folder.starts_with(at) && best.as_ref().is_none_or(|(length, ..)| at.len() >= *length) {
            best = Some((at.len(), kind.to_owned(), source.to_owned()));
        }
    }
    best.map(|(_, kind, source)| (kind, source))
}
