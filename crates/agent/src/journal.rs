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
    /// A sysctl that had the right value already, on which a run relies.
    Hold { name: String, value: String },
    /// A congestion control that does not end with its process.
    Control { name: String },
    /// A folder with all that is in it.
    Folder { path: PathBuf },
}

impl Entry {
    /// The sysctl that its run relies on, and the value.
    fn relies_on(&self) -> Option<(&str, &str)> {
        match self {
            Entry::Sysctl { name, new, .. } => Some((name, new)),
            Entry::Hold { name, value } => Some((name, value)),
            _ => None,
        }
    }
}

/// The journal of this agent; dropping it undoes what it has.
pub struct Journal {
    path: PathBuf,
    file: File,
    is_over: bool,
}

/// Changes that a living agent has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Its process.
    pub process: String,
    /// Sysctls and congestion controls.
    pub changes: Vec<String>,
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
    /// Changes of living agents, which stay.
    pub held: Vec<Held>,
}

impl Undone {
    fn add(&mut self, more: Undone) {
        self.restored.extend(more.restored);
        self.changed_since.extend(more.changed_since);
        self.unregistered.extend(more.unregistered);
        self.removed.extend(more.removed);
        self.failed.extend(more.failed);
    }
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

/// The folder of journals, locked: no agent of this user begins, changes, undoes or cleans meanwhile.
struct Locked {
    folder: PathBuf,
    /// The folder itself, so that no file stays.
    _lock: File,
}

impl Locked {
    /// Makes the folder where there is none, and waits for its lock.
    fn take() -> io::Result<Locked> {
        let folder = home();
        fs::create_dir_all(&folder)?;
        // Others read nothing there.
        let _ = rustix::fs::chmod(&folder, Mode::RWXU);
        let lock = File::open(&folder)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        Ok(Locked { folder, _lock: lock })
    }

    /// All journals, with their files.
    fn journals(&self) -> Vec<(PathBuf, File)> {
        let Ok(listed) = fs::read_dir(&self.folder) else { return vec![] };
        let paths =
            listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "journal"));
        paths.filter_map(|path| File::open(&path).ok().map(|file| (path, file))).collect()
    }

    /// Journals of living agents in this network namespace, but for the one at `own`.
    fn living(&self, own: &Path) -> Vec<Living> {
        let others = self.journals().into_iter().filter(|(path, file)| path != own && !is_free(file));
        others
            .filter_map(|(path, file)| {
                let entries = entries_of(&file);
                let process = path.file_stem()?.to_string_lossy().split('-').next()?.to_owned();
                (entries.first() == Some(&here())).then_some(Living { path, process, entries })
            })
            .collect()
    }

    /// Undoes `entries` of the journal at `own`, the last first. A sysctl that another living agent relies on is handed
    /// over to that one's journal.
    fn undo(&self, own: &Path, entries: &[Entry]) -> Undone {
        let mut undone = Undone::default();
        let living = self.living(own);
        for entry in entries.iter().rev() {
            match entry {
                Entry::Place { .. } | Entry::Hold { .. } => {}
                Entry::Sysctl { name, old, new } => {
                    let heir = living.iter().find(|one| one.wants(name).is_some());
                    let restored = match heir {
                        Some(heir) => heir.inherit(entry).map(|()| None),
                        None => restore(name, old, new).map(Some),
                    };
                    match restored {
                        Ok(None) => {}
                        Ok(Some(true)) => undone.restored.push(name.clone()),
                        Ok(Some(false)) => undone.changed_since.push(name.clone()),
                        Err(error) => undone.failed.push(format!("{name} = {old} was not restored: {}", error.text)),
                    }
                }
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

    /// Undoes the journal at `path`, whose lock is held. One of another namespace stays for an agent there, and so does
    /// one that could not be undone as a whole.
    fn finish(&self, path: &Path, file: &File, undone: &mut Undone) {
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
        let of_it = self.undo(path, &entries);
        if of_it.failed.is_empty() {
            let _ = fs::remove_file(path);
        }
        undone.add(of_it);
    }
}

/// The journal of an agent that lives.
struct Living {
    path: PathBuf,
    process: String,
    entries: Vec<Entry>,
}

impl Living {
    /// Value of a sysctl that its run relies on.
    fn wants(&self, name: &str) -> Option<&str> {
        self.entries.iter().rev().filter_map(Entry::relies_on).find(|(held, _)| *held == name).map(|(_, value)| value)
    }

    /// Takes over a change, to undo it in place of its author.
    fn inherit(&self, entry: &Entry) -> Result<(), AgentError> {
        let file = OpenOptions::new().append(true).open(&self.path);
        let appended = file.and_then(|mut file| append(&mut file, entry));
        appended.map_err(|error| AgentError::kernel("handing over a change", error))
    }
}

fn append(file: &mut File, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry).expect("an entry is plain text");
    line.push(b'\n');
    file.write_all(&line).and_then(|()| file.sync_all())
}

impl Journal {
    /// Begins one. Undoes those of dead agents first: their values are not the host's.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin() -> Result<Journal, AgentError> {
        let failed = |error: io::Error| AgentError::kernel(&format!("the journal in {}", home().display()), error);
        let locked = Locked::take().map_err(failed)?;
        clean_locked(&locked, &mut Undone::default());
        let path = locked.folder.join(format!("{}-{}.journal", std::process::id(), kernel::monotonic_ns()));
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(failed)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| failed(error.into()))?;
        append(&mut file, &here()).map_err(failed)?;
        Ok(Journal { path, file, is_over: false })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn note(&mut self, entry: &Entry) -> Result<(), AgentError> {
        append(&mut self.file, entry).map_err(|error| AgentError::kernel("writing the journal", error))
    }

    /// Sets a sysctl until the journal ends; one that has the value already is held, so that no other run changes it.
    ///
    /// # Errors
    /// It is none of the network's, another run relies on another value, or the kernel refuses.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), AgentError> {
        let new = sysctl::normal(value);
        let locked = Locked::take().map_err(|error| AgentError::kernel("the folder of journals", error))?;
        for other in locked.living(&self.path) {
            if let Some(theirs) = other.wants(name).filter(|theirs| *theirs != new) {
                let process = &other.process;
                return Err(AgentError::busy(format_args!(
                    "{name} = {theirs} is needed by another run (process {process}), and {new} by this one"
                )));
            }
        }
        let old = sysctl::read(name)?;
        if old == new {
            return self.note(&Entry::Hold { name: name.to_owned(), value: new });
        }
        self.note(&Entry::Sysctl { name: name.to_owned(), old, new: new.clone() })?;
        sysctl::write(name, &new)
    }

    /// Sysctls that somebody else has changed since they were set or held, as name and value.
    pub fn changed(&self) -> Vec<(String, String)> {
        let entries = File::open(&self.path).map(|file| entries_of(&file)).unwrap_or_default();
        let held = entries.iter().filter_map(Entry::relies_on);
        held.filter_map(|(name, wanted)| {
            let value = sysctl::read(name).ok().filter(|value| value != wanted)?;
            Some((name.to_owned(), value))
        })
        .collect()
    }

    /// A congestion control is about to be registered that does not end with this process.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_control(&mut self, name: &str) -> Result<(), AgentError> {
        self.note(&Entry::Control { name: name.to_owned() })
    }

    /// A folder is about to be made, which goes with all that is in it.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note_folder(&mut self, path: &Path) -> Result<(), AgentError> {
        self.note(&Entry::Folder { path: path.to_owned() })
    }

    /// Undoes everything, the last first, and ends.
    pub fn undo(mut self) -> Undone {
        self.undo_all()
    }

    fn undo_all(&mut self) -> Undone {
        self.is_over = true;
        let mut undone = Undone::default();
        // Without the lock, as where the folder has gone, nobody else can be warned either.
        match (Locked::take(), File::open(&self.path)) {
            // The file, not what this agent remembers: another may have handed a change over.
            (Ok(locked), Ok(file)) => locked.finish(&self.path, &file, &mut undone),
            (Err(error), _) | (_, Err(error)) => {
                undone.failed.push(format!("the journal {}: {error}", self.path.display()));
            }
        }
        undone
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.is_over {
            for reason in self.undo_all().failed {
                eprintln!("elephan-agent: {reason}");
            }
        }
    }
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

fn entries_of(file: &File) -> Vec<Entry> {
    // A last line that is cut was not followed by a change.
    BufReader::new(file).lines().map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok()).collect()
}

/// Takes the lock of a journal; false while its agent lives.
fn is_free(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Undoes what agents have left that have died, in this network namespace, and tells what living ones hold.
pub fn clean() -> Undone {
    let mut undone = Undone::default();
    // No folder that could be made: nobody has left anything.
    if let Ok(locked) = Locked::take() {
        clean_locked(&locked, &mut undone);
        for living in locked.living(Path::new("")) {
            let changes = living.entries.iter().filter_map(|entry| match entry {
                Entry::Sysctl { name, .. } | Entry::Control { name } => Some(name.clone()),
                Entry::Place { .. } | Entry::Hold { .. } | Entry::Folder { .. } => None,
            });
            let (process, changes) = (living.process.clone(), changes.collect::<Vec<_>>());
            if !changes.is_empty() {
                undone.held.push(Held { process, changes });
            }
        }
    }
    undone.removed.extend(folder::remove_those_of_other_boots());
    undone
}

fn clean_locked(locked: &Locked, undone: &mut Undone) {
    for (path, file) in locked.journals() {
        if is_free(&file) {
            locked.finish(&path, &file, undone);
        }
    }
}

/// Waits until the agent of the journal at `path` has ended, and undoes what it has not.
pub fn undo_after_death(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    if rustix::fs::flock(&file, FlockOperation::LockExclusive).is_err() {
        return;
    }
    let Ok(locked) = Locked::take() else { return };
    // Somebody else may have undone it, and another journal may have its name: names are of process and time.
    if !path.exists() {
        return;
    }
    let mut undone = Undone::default();
    locked.finish(path, &file, &mut undone);
    for reason in undone.failed {
        eprintln!("elephan-agent: {reason}");
    }
}
