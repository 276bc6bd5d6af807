//! Markers of versions; a write replaces the complete file.

use super::carried::Carried;
use super::place::{input, named, refused, refused_io, Markers};
use crate::error::CopyError;
use crate::listing::list;
use rustix::fs::{fsync, openat, renameat, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};

/// Largest marker that is read, bytes: it holds the front's facts about a version and its receipt.
const MARKER_MAX: u64 = 1 << 20;

/// Progress of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// A run copies into it.
    Begun,
    /// Every entry of the sources was copied.
    Complete,
    /// Its run has ended, and some entries of the sources could not be copied: see `Marker::carried`.
    Partial,
    /// Its removal has begun.
    Removing,
}

/// The job that makes the versions of a destination.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Name of the backup.
    pub backup: String,
    /// Name of the job.
    pub job: String,
    /// Identity of the store and machine that run the job; absent in markers of earlier releases.
    #[serde(default)]
    pub store: Option<String>,
    /// Name of that machine, for messages.
    #[serde(default)]
    pub host: Option<String>,
}

impl Owner {
    /// True if this job may use a version whose marker names `other`. A marker of an earlier release names no store.
    fn owns(&self, other: &Owner) -> bool {
        let same_store = match (&self.store, &other.store) {
            (Some(own), Some(store)) => own == store,
            _ => true,
        };
        self.backup == other.backup && self.job == other.job && same_store
    }

    /// The owner in one line.
    pub(super) fn text(&self) -> String {
        let mut text = format!("backup {:?}, job {:?}", self.backup, self.job);
        if let Some(store) = &self.store {
            text.push_str(&format!(", store {store}"));
        }
        if let Some(host) = &self.host {
            text.push_str(&format!(" of host {host:?}"));
        }
        text
    }
}

/// Record of a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Marker {
    pub version: String,
    pub state: State,
    #[serde(default)]
    pub owner: Option<Owner>,
    #[serde(default)]
    pub carried: Option<Carried>,
    #[serde(default)]
    pub facts: Value,
}

impl Marker {
    /// Owner; markers of earlier releases name backup and job among the facts.
    pub fn owner(&self) -> Option<Owner> {
        let fact = |name| self.facts.get(name).and_then(Value::as_str).map(str::to_owned);
        self.owner
            .clone()
            .or_else(|| Some(Owner { backup: fact("backup")?, job: fact("job")?, store: None, host: None }))
    }

    /// True if it is a version of `owner`; `None`: the caller has no owner.
    pub fn is_of(&self, owner: Option<&Owner>) -> bool {
        owner.is_none_or(|owner| self.owner().is_some_and(|of| owner.owns(&of)))
    }

    /// The marker as this release writes it: in earlier ones a version with faults was complete.
    fn upgraded(mut self) -> Marker {
        let faults = self.facts.get("faults").and_then(Value::as_u64).unwrap_or(0);
        if self.state == State::Complete && self.owner.is_none() && faults > 0 {
            self.state = State::Partial;
            self.carried = Some(Carried::unknown(faults));
        }
        self
    }

    /// True if its run has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Complete | State::Partial)
    }

    /// True if no older version holds the newest copy of any entry: what was not copied was carried over, or no older
    /// version has it.
    pub fn covers_older(&self) -> bool {
        match (self.state, &self.carried) {
            (State::Complete, _) => true,
            (State::Partial, Some(carried)) => carried.failed == 0,
            _ => false,
        }
    }
}

impl Markers {
    pub fn read(&self, version: &str) -> Result<Option<Marker>, CopyError> {
        let name = format!("{version}.json");
        let path = self.path.join(&name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refused(&path)(error)),
        };
        let mut text = String::new();
        let wrong = || input(format!("{}: it is no marker of a backup's version", path.display()));
        file.take(MARKER_MAX).read_to_string(&mut text).map_err(|_| wrong())?;
        let marker: Marker = serde_json::from_str(&text).map_err(|_| wrong())?;
        if marker.version == version {
            Ok(Some(marker.upgraded()))
        } else {
            Err(wrong())
        }
    }

    /// All, by name; what is no marker is left out.
    pub fn all(&self) -> Result<BTreeMap<String, Marker>, CopyError> {
        let mut versions = vec![];
        let listed = list(&self.folder, |one| {
            let version = one.name.to_str().ok().and_then(|name| name.strip_suffix(".json"));
            versions.extend(version.filter(|version| named(version).is_ok()).map(str::to_owned));
            Ok(())
        });
        listed.map_err(refused_io(&self.path))?;
        let read = |version: String| self.read(&version).ok().flatten().map(|marker| (version, marker));
        Ok(versions.into_iter().filter_map(read).collect())
    }

    /// Replaces a marker atomically and durably.
    pub fn write(&self, marker: &Marker) -> Result<(), CopyError> {
        let (name, new) = (format!("{}.json", marker.version), format!("{}.new", marker.version));
        let path = self.path.join(&name);
        let text = serde_json::to_vec(marker).map_err(|error| input(error.to_string()))?;
        if text.len() as u64 > MARKER_MAX {
            return Err(input(format!(
                "{}: a marker of {} bytes; {MARKER_MAX} are the most",
                path.display(),
                text.len()
            )));
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &new, flags, Mode::RUSR | Mode::WUSR).map_err(refused(&path))?;
        let mut file = File::from(file);
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(refused_io(&path))?;
        renameat(&self.folder, &new, &self.folder, &name).map_err(refused(&path))?;
        fsync(&self.folder).map_err(refused(&self.path))
    }
}
