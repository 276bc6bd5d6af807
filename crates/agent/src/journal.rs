//! An agent's changes of its host, written down before it does, so that it can be undone by whoever survives.
//!
//! A journal is a file of JSON lines in a folder of this user's. Its agent holds a lock on it (flock(2)), by which the
//! living are told from the dead.

use crate::error::AgentError;
use crate::folder;
use crate::sysctl;
use rustix::fs::{FlockOperation, Mode};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A line of a journal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    /// The first: boot and network namespace that the others are of.
    Place { boot: String, namespace: u64 },
    /// A sysctl: its value before and after.
    Sysctl { name: String, old: String, new: String },
    /// A congestion control that does not end with its process.
    Control { name: String },
    /// A folder with all that is in it.
    Folder { path: PathBuf },
}

/// The journal of this agent; dropping it undoes what it has.
pub struct Journal {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
}

/// Changes that were undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// Sysctls that have their former values again.
    pub restored: Vec<String>,
    /// Sysctls that somebody else has changed since, and that keep their values.
    pub changed_since: Vec<String>,
    /// Congestion controls that were unregistered.
    pub unregistered: Vec<String>,
    /// Folders that were removed.
    pub removed: Vec<PathBuf>,
    /// Reasons that something could not be undone.
    pub failed: Vec<String>,
}

/// The folder of this user's journals: one that a reboot empties, where there is one.
fn home() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/run/elephan");
    }
    match (variable("XDG_RUNTIME_DIR"), variable("HOME")) {
        (Some(folder), _) => folder.join("elephan"),
        (None, Some(home)) => home.join(".cache/elephan/journals"),
        (None, None) => std::env::temp_dir().join(format!("elephan-{}", rustix::process::geteuid().as_raw())),
    }
}

/// This boot and this network namespace.
fn here() -> Entry {
    let boot = folder::boot();
    Entry::Place { boot, namespace: rustix::fs::stat("/proc/self/ns/net").map_or(0, |about| about.st_ino) }
}

impl Journal {
    /// Begins one. Undoes those of dead agents first: their values are not the host's.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin() -> Result<Journal, AgentError> {
        clean();
        let folder = home();
        let failed = |error: io::Error| AgentError::kernel(&format!("the journal in {}", folder.display()), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        // Others read nothing there.
        let _ = rustix::fs::chmod(&folder, Mode::RWXU);
        let path = folder.join(format!("{}-{}.journal", std::process::id(), kernel::monotonic_ns()));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| failed(error.into()))?;
        file.set_len(0).map_err(failed)?;
        let mut journal = Journal { path, file, entries: vec![] };
        journal.note(here())?;
        Ok(journal)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn note(&mut self, entry: Entry) -> Result<(), AgentError> {
        let mut line = serde_json::to_vec(&entry).expect("an entry is plain text");
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_all());
        written.map_err(|error| AgentError::kernel("writing the journal", error))?;
        self.entries.push(entry);
        Ok(())
    }

    /// Sets a sysctl until the journal ends.
    ///
    /// # Errors
    /// It is none of the network's, another run has set it, or the kernel refuses.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), AgentError> {
        if let Some(other) = holder(name, &self.path) {
            return Err(AgentError::busy(format_args!("{name} is set for another run (process {other})")));
        }
        let old = sysctl::read(name)?;
        let new = sysctl::normal(value);
        if old == new {
            return Ok(());
        }
        self.note(Entry::Sysctl { name: name.to_owned(), old, new: new.clone() })?;
        sysctl::write(name, &new)
    }

    /// A congestion control is about to be registered that does not end with this process.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_control(&mut self, name: &str) -> Result<(), AgentError> {
        self.note(Entry::Control { name: name.to_owned() })
    }

    /// A folder is about to be made, which goes with all that is in it.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_folder(&mut self, path: &Path) -> Result<(), AgentError> {
        self.note(Entry::Folder { path: path.to_owned() })
    }

    /// Undoes everything, the last first, and ends.
    pub fn undo(mut self) -> Undone {
        self.undo_all()
    }

    fn undo_all(&mut self) -> Undone {
        let undone = undo(&self.entries);
        self.entries.clear();
        let _ = fs::remove_file(&self.path);
        undone
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            for reason in self.undo_all().failed {
                eprintln!("elephan-agent: {reason}");
            }
        }
    }
}

fn undo(entries: &[Entry]) -> Undone {
    let mut undone = Undone::default();
    for entry in entries.iter().rev() {
        match entry {
            Entry::Place { .. } => {}
            Entry::Sysctl { name, old, new } => match restore(name, old, new) {
                Ok(true) => undone.restored.push(name.clone()),
                Ok(false) => undone.changed_since.push(name.clone()),
                Err(error) => undone.failed.push(format!("{name} = {old} was not restored: {}", error.text)),
            },
            Entry::Control { name } => match unregister(name) {
                Ok(true) => undone.unregistered.push(name.clone()),
                Ok(false) => {}
                Err(error) => undone.failed.push(format!("{name} is still registered: {error}")),
            },
            Entry::Folder { path } => match folder::remove(path) {
                Ok(true) => undone.removed.push(path.clone()),
                Ok(false) => {}
                Err(error) => undone.failed.push(format!("{} was not removed: {error}", path.display())),
            },
        }
    }
    undone
}

/// False when somebody else has set it since.
fn restore(name: &str, old: &str, new: &str) -> Result<bool, AgentError> {
    let now = sysctl::read(name)?;
    // Died between the note and the change: it has its old value.
    if now != *new {
        return Ok(now == old);
    }
    sysctl::write(name, old).map(|()| true)
}

fn unregister(name: &str) -> bpf::Result<bool> {
    let found: Vec<_> = bpf::registered(name)?.into_iter().filter(|one| one.name == *name).collect();
    found.iter().try_for_each(|one| bpf::unregister(one.map_id))?;
    Ok(!found.is_empty())
}

/// All journals, with their files.
fn journals() -> Vec<(PathBuf, File)> {
    let Ok(listed) = fs::read_dir(home()) else { return vec![] };
    let paths =
        listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "journal"));
    paths.filter_map(|path| File::open(&path).ok().map(|file| (path, file))).collect()
}

fn entries_of(file: &File) -> Vec<Entry> {
    // A last line that is cut was not followed by a change.
    BufReader::new(file).lines().map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok()).collect()
}

/// Process of the living agent, other than that of `own`, that has set a sysctl of this namespace.
fn holder(name: &str, own: &Path) -> Option<String> {
    journals().into_iter().filter(|(path, _)| path != own).find_map(|(path, file)| {
        let entries = entries_of(&file);
        let sets = entries.iter().any(|entry| matches!(entry, Entry::Sysctl { name: set, .. } if set == name));
        let process = path.file_stem()?.to_string_lossy().split('-').next()?.to_owned();
        (sets && entries.first() == Some(&here()) && !is_free(&file)).then_some(process)
    })
}

/// Takes the lock of a journal; false while its agent lives.
fn is_free(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Undoes what agents have left that have died, in this network namespace.
pub fn clean() -> Undone {
    let mut undone = Undone::default();
    for (path, file) in journals() {
        if is_free(&file) {
            finish(&path, &file, &mut undone);
        }
    }
    undone.removed.extend(folder::remove_those_of_other_boots());
    undone
}

/// Undoes the journal at `path`, whose lock is held. One of another namespace stays for an agent there.
fn finish(path: &Path, file: &File, undone: &mut Undone) {
    let entries = entries_of(file);
    let (Entry::Place { boot, namespace }, Some(Entry::Place { boot: then, namespace: there })) =
        (here(), entries.first())
    else {
        // Nothing was changed yet.
        let _ = fs::remove_file(path);
        return;
    };
    if *then != boot {
        // A reboot has undone it.
        let _ = fs::remove_file(path);
        return;
    }
    if *there != namespace {
        return;
    }
    let of_it = undo(&entries);
    if of_it.failed.is_empty() {
        let _ = fs::remove_file(path);
    }
    undone.restored.extend(of_it.restored);
    undone.changed_since.extend(of_it.changed_since);
    undone.unregistered.extend(of_it.unregistered);
    undone.removed.extend(of_it.removed);
    undone.failed.extend(of_it.failed);
}

/// Waits until the agent of the journal at `path` has ended, and undoes what it has not.
pub fn undo_after_death(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    if rustix::fs::flock(&file, FlockOperation::LockExclusive).is_err() || !path.exists() {
        return;
    }
    let mut undone = Undone::default();
    finish(path, &file, &mut undone);
    for reason in undone.failed {
        eprintln!("elephan-agent: {reason}");
    }
}
