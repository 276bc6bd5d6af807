//! Names of parts, and the removal of parts that no entry needs.

use super::disk_bytes::remove_file;
use super::metadata;
use super::part::Home;
use super::removal::names;
use super::target::Destination;
use crate::names::STATE_NAME;
use crate::xattr::Of;
use copy::Entry;
use rustix::fs::{fstat, openat, unlinkat, AtFlags, Mode, OFlags};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::PoisonError;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// End of the names of notes in the state folder, each with the path of a folder on another mount.
const NOTE: &str = ".beside";

impl Destination {
    /// Name of what an entry has in the state folder, or beside its own name; the same in each attempt. `kind`: "part"
    /// for content, "new" for what is made with a system call.
    pub(super) fn part_name(&self, path: &[Vec<u8>], home: Home, kind: &str) -> Vec<u8> {
        let hash = blake3::hash(&path.join(&b'/')).to_hex();
        let lead = if home == Home::Beside { self.beside() } else { String::new() };
        format!("{lead}{}.{kind}", &hash[..32]).into_bytes()
    }

    /// First part of the names of parts beside their files: other copies to the same folder have another.
    fn beside(&self) -> String {
        format!("{STATE_NAME}.{}.", &self.state.name()[..16])
    }

    /// Notes in the state folder that there may be parts beside the files of a folder, before the first one is made.
    pub(super) fn note_beside(&self, folder: &[Vec<u8>]) -> io::Result<()> {
        let mut noted = self.beside_folders.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.contains(folder) {
            return Ok(());
        }
        let path = folder.join(&b'/');
        let name = format!("{}{NOTE}", &blake3::hash(&path).to_hex()[..32]);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(self.state.folder(), name, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(&path)?;
        file.sync_all()?;
        rustix::fs::fsync(self.state.folder())?;
        noted.insert(folder.to_vec());
        Ok(())
    }

    /// Removes parts beside files, of this attempt and of earlier ones: the copy has ended. Returns
    /// their bytes of disk.
    pub(super) fn remove_beside(&self) -> u64 {
        let lead = self.beside();
        let mut bytes = 0;
        let Ok(notes) = openat(self.state.folder(), ".", FOLDER, Mode::empty()) else { return bytes };
        for (name, _) in names(&notes).unwrap_or_default() {
            if !name.ends_with(NOTE.as_bytes()) {
                continue;
            }
            let mut path = vec![];
            let note = openat(&notes, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            if note.map_err(io::Error::from).and_then(|note| File::from(note).read_to_end(&mut path)).is_err() {
                continue;
            }
            let path: Vec<_> =
                path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[_]>::to_vec).collect();
            let Ok(folder) = self.listed(&path) else { continue };
            let before = fstat(&folder);
            let mut parts = names(&folder).unwrap_or_default();
            parts.retain(|(name, _)| name.starts_with(lead.as_bytes()));
            if parts.is_empty() {
                // Its time is durable: set again, it would not be.
                continue;
            }
            bytes += parts.iter().map(|(name, _)| remove_file(folder.as_fd(), name)).sum::<u64>();
            // The folder has got its time from the sources; that of a folder of others cannot be set.
            if let Ok(before) = before {
                let _ = metadata::set_time(Of::Fd(folder.as_fd()), metadata::stamp(&before));
            }
        }
        bytes
    }

    /// Removes parts in the state folder but for those of `entries`, which the copy works on; returns how many. The
    /// sources may not have the entries of the others any more.
    pub(crate) fn make_room<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> u64 {
        let name = |entry: &Entry| Some(self.part_name(&self.path_of(entry).ok()?, Home::State, "part"));
        let mut needed: BTreeSet<Vec<u8>> = entries.filter_map(name).collect();
        needed.extend(self.deferred_parts());
        let Ok(folder) = openat(self.state.folder(), ".", FOLDER, Mode::empty()) else {
            return 0;
        };
        let is_stale = |name: &Vec<u8>| name.ends_with(b".part") && !needed.contains(name);
        let stale = names(&folder).unwrap_or_default().into_iter().map(|(name, _)| name).filter(is_stale);
        stale.filter(|name| unlinkat(&folder, name.as_slice(), AtFlags::empty()).is_ok()).count() as u64
    }
}
