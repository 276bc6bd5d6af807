//! Names of parts, and the removal of parts that no entry needs.

use super::part::Home;
use super::removal::names;
use super::target::Destination;
use crate::names::STATE_NAME;
use copy::Entry;
use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags};
use std::collections::BTreeSet;

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

    /// Removes parts beside the files of a folder, which this copy needs no more.
    pub(super) fn remove_stale_parts(&self, folder: &[Vec<u8>]) {
        let lead = self.beside();
        let Ok(listed) = self.listed(folder) else { return };
        for (name, _) in names(&listed).unwrap_or_default() {
            if name.starts_with(lead.as_bytes()) {
                let _ = unlinkat(&listed, name.as_slice(), AtFlags::empty());
            }
        }
    }

    /// Removes parts in the state folder but for those of `entries`, which the copy works on; returns how many. The
    /// sources may not have the entries of the others any more.
    pub(crate) fn make_room<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> u64 {
        let name = |entry: &Entry| Some(self.part_name(&self.path_of(entry).ok()?, Home::State, "part"));
        let mut needed: BTreeSet<Vec<u8>> = entries.filter_map(name).collect();
        needed.extend(self.deferred_parts());
        let Ok(folder) =
            openat(self.state.folder(), ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        else {
            return 0;
        };
        let is_stale = |name: &Vec<u8>| name.ends_with(b".part") && !needed.contains(name);
        let stale = names(&folder).unwrap_or_default().into_iter().map(|(name, _)| name).filter(is_stale);
        stale.filter(|name| unlinkat(&folder, name.as_slice(), AtFlags::empty()).is_ok()).count() as u64
    }
}
