//! Records of the entries of a version that could not be copied: which older version each was carried over from.
//!
//! A file beside the marker has them, one JSON object in a line. The marker has their counts and the first ones.

use super::place::{input, refused, refused_io, Markers};
use crate::error::CopyError;
use rustix::fs::{fsync, openat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};

/// Bytes of records that a marker lists, about.
const LISTED_BYTES: usize = 64 << 10;
/// Records that a marker lists.
const LISTED: usize = 200;

/// An entry that could not be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Path below the version, as `copy::show_path` shows it. Of a folder that could not be listed all below it counts.
    pub path: String,
    /// Version whose run copied the entry, from which it was carried over; `None`: no older version has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Reason why an older copy is not in this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Summary of a version's records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Carried {
    /// Entries that were carried over.
    pub older: u64,
    /// Entries that no older version has.
    pub missing: u64,
    /// Entries that are missing while an older version has them, or may have them.
    pub failed: u64,
    /// Oldest version whose run copied an entry that was carried over.
    #[serde(default)]
    pub oldest: Option<String>,
    /// The first records, by path; the file has all.
    #[serde(default)]
    pub list: Vec<Record>,
}

impl Carried {
    /// Summary of a version of an earlier release, which carried nothing over and listed no faults.
    pub fn unknown(faults: u64) -> Carried {
        Carried { failed: faults, ..Carried::default() }
    }

    /// Summary of the records of a version. `unlisted`: further entries that could not be copied, without
    /// their paths.
    pub fn of(version: &str, records: &Records, unlisted: u64) -> Carried {
        let mut found = Carried { failed: unlisted, ..Carried::default() };
        let mut bytes = 0;
        // An entry that an earlier attempt of the version's run has copied is neither older nor missing.
        for record in records.values().filter(|record| record.from.as_deref() != Some(version)) {
            match (&record.failed, &record.from) {
                (Some(_), _) => found.failed += 1,
                (None, None) => found.missing += 1,
                (None, Some(from)) => {
                    found.older += 1;
                    if found.oldest.as_ref().is_none_or(|oldest| from < oldest) {
                        found.oldest = Some(from.clone());
                    }
                }
            }
            bytes += record.path.len() + 100;
            if found.list.len() < LISTED && bytes < LISTED_BYTES {
                found.list.push(record.clone());
            }
        }
        found
    }
}

/// Records of a version, by path.
pub(super) type Records = BTreeMap<String, Record>;

/// Records of a path and of the folders above it, the nearest first. Paths are in the form of [`copy::show_path`].
pub(super) fn at_or_above<'a>(records: &'a Records, path: &'a str) -> impl Iterator<Item = &'a Record> {
    let above = path.rmatch_indices('/').map(|(at, _)| &path[..at]);
    let top = (path != ".").then_some(".");
    std::iter::once(path).chain(above).chain(top).filter_map(|path| records.get(path))
}

/// Records of entries below a path.
pub(super) fn below<'a>(records: &'a Records, path: &str) -> impl Iterator<Item = &'a Record> {
    let is_top = path == ".";
    let lead = if is_top { String::new() } else { format!("{path}/") };
    let from = records.range(lead.clone()..).map(|(_, one)| one);
    from.take_while(move |one| one.path.starts_with(&lead)).filter(move |one| !is_top || one.path != ".")
}

fn name(version: &str) -> String {
    format!("{version}.carried")
}

impl Markers {
    /// The records of a version by path; a later line about a path replaces an earlier one. A line that a crash cut
    /// short is left out: its entry was not linked yet.
    pub fn records(&self, version: &str) -> Result<Records, CopyError> {
        let name = name(version);
        let path = self.path.join(&name);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(BTreeMap::new()),
            Err(error) => return Err(refused(&path)(error)),
        };
        let mut found = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(refused_io(&path))?;
            if let Ok(record) = serde_json::from_str::<Record>(&line) {
                found.insert(record.path.clone(), record);
            }
        }
        Ok(found)
    }

    /// Adds records of a version; they are on the disk afterwards.
    pub fn add_records(&self, version: &str, records: &[Record]) -> Result<(), CopyError> {
        if records.is_empty() {
            return Ok(());
        }
        let name = name(version);
        let path = self.path.join(&name);
        // A line of its own after one that a crash cut short.
        let mut text = vec![b'\n'];
        for record in records {
            serde_json::to_writer(&mut text, record).map_err(|error| input(error.to_string()))?;
            text.push(b'\n');
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR).map_err(refused(&path))?;
        let mut file = File::from(file);
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(refused_io(&path))?;
        fsync(&self.folder).map_err(refused(&self.path))
    }

    /// Removes the records of a version.
    pub fn remove_records(&self, version: &str) -> Result<(), CopyError> {
        match unlinkat(&self.folder, name(version), AtFlags::empty()) {
            Ok(()) => fsync(&self.folder).map_err(refused(&self.path)),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(refused(&self.path)(error)),
        }
    }
}
