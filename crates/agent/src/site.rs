//! The place of a run's programs on this host: private folders and ports, until the next one or the session's end.

use crate::check;
use crate::error::AgentError;
use crate::folder;
use crate::guard::Guard;
use crate::journal::Journal;
use crate::ports::{Ports, Wanted};
use crate::rights;
use serde::Deserialize;
use serde_json::{json, Value};
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

/// Rights of a folder that a server which is not root passes through and cannot read: keys in it are root's alone.
const PASSABLE: u32 = 0o711;

/// Rights where all that runs is one user's.
const PRIVATE: u32 = 0o700;

/// Keys of the request `place`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceKeys {
    local: IpAddr,
    #[serde(default)]
    ports: [u16; 2],
    #[serde(default)]
    servers: Vec<Wanted>,
    /// Some data is to be on the disk.
    #[serde(default)]
    disk: bool,
}

/// Folders and ports; dropping it removes all.
pub struct Site {
    folder: PathBuf,
    disk: Option<PathBuf>,
    ports: Ports,
    // In this order: the guard waits for the journal's lock.
    #[allow(dead_code, reason = "it removes the folders when it is dropped")]
    journal: Journal,
    #[allow(dead_code, reason = "it watches while it lives")]
    guard: Guard,
}

impl Site {
    /// Makes one.
    ///
    /// # Errors
    /// No port is free; a folder or the journal cannot be written.
    pub fn make(keys: &PlaceKeys) -> Result<Site, AgentError> {
        let ports = Ports::find(keys.local, keys.ports, &keys.servers)?;
        let mut journal = Journal::begin()?;
        let guard = Guard::start(journal.path())?;
        let mode = if rights::may_mount() { PASSABLE } else { PRIVATE };
        let mut made = |parent: &str| {
            let path = folder::name(parent);
            journal.note_folder(&path)?;
            let failed = |error| AgentError::kernel(&format!("{}", path.display()), error);
            folder::make(&path, mode).map_err(failed)?;
            Ok(path)
        };
        let folder = made("/tmp")?;
        let disk = keys.disk.then(|| made(check::DISK)).transpose()?;
        Ok(Site { folder, disk, ports, journal, guard })
    }

    /// The answer to `place`.
    pub fn answer(&self) -> Value {
        let mut answer = json!({
            "folder": self.folder,
            "ports": self.ports.ranges,
            "uid": rustix::process::geteuid().as_raw(),
            "gid": rustix::process::getegid().as_raw(),
        });
        if let Some(disk) = &self.disk {
            answer["disk"] = json!(disk);
        }
        answer
    }

    /// The range of ports that is left for other listeners; zeroes: the kernel chooses.
    pub fn ports_left(&self) -> [u16; 2] {
        self.ports.rest
    }

    /// Checks that a path lies in one of its folders.
    ///
    /// # Errors
    /// It does not.
    pub fn require(&self, path: &Path) -> Result<(), AgentError> {
        let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let within = path.starts_with(&self.folder) || self.disk.as_ref().is_some_and(|disk| path.starts_with(disk));
        if plain && within {
            return Ok(());
        }
        Err(AgentError::input(format_args!("{}: a path in a folder that place gave", path.display())))
    }
}
