//! Addresses of ports by their names: a port that comes back has the address that it had.
//!
//! Hosts remember addresses. One that is given to another port makes a late LOGO or frame hit the wrong port, so that a
//! gateway stores the assignments and reads them again after a restart. Only when a domain is full does a new name take
//! an address: the one that was used least recently, of those that nobody has.

use super::settings::Settings;
use std::collections::BTreeMap;
use wire::fc::{FcId, Wwn};

/// An assigned address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Assigned {
    id: FcId,
    /// Number of its last use, in the order of uses.
    used: u64,
}

/// Addresses by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assignments {
    by_name: BTreeMap<Wwn, Assigned>,
    names: BTreeMap<FcId, Wwn>,
    by_use: BTreeMap<u64, Wwn>,
    uses: u64,
    next: u32,
}

impl Assignments {
    /// The assignments of a list, as [`Assignments::iter`] gives it. Of two names with one address, or two addresses of
    /// one name, the first counts.
    pub fn from_list(list: impl IntoIterator<Item = (Wwn, FcId)>) -> Assignments {
        let mut assignments = Assignments::default();
        for (name, id) in list {
            if !assignments.by_name.contains_key(&name) && !assignments.names.contains_key(&id) {
                assignments.assign(name, id);
            }
        }
        assignments
    }

    /// All of them, the least recently used first.
    pub fn iter(&self) -> impl Iterator<Item = (Wwn, FcId)> + '_ {
        self.by_use.values().filter_map(|name| self.by_name.get(name).map(|assigned| (*name, assigned.id)))
    }

    /// Those whose address the settings could have given.
    pub(super) fn of_domain(self, settings: &Settings) -> Assignments {
        Assignments::from_list(self.iter().filter(|(_, id)| settings.gives(*id)))
    }

    /// The address of a name: the one it had, or a new one; None when all of the domain are `in_use`.
    pub(super) fn of(&mut self, name: Wwn, settings: &Settings, in_use: impl Fn(FcId) -> bool) -> Option<FcId> {
        if let Some(assigned) = self.by_name.get(&name).copied() {
            self.forget(name);
            self.assign(name, assigned.id);
            return Some(assigned.id);
        }
        while let Some(id) = settings.address(self.next) {
            self.next += 1;
            if !self.names.contains_key(&id) {
                self.assign(name, id);
                return Some(id);
            }
        }
        let (old, id) = self.iter().find(|(_, id)| !in_use(*id))?;
        self.forget(old);
        self.assign(name, id);
        Some(id)
    }

    fn assign(&mut self, name: Wwn, id: FcId) {
        self.uses += 1;
        self.by_name.insert(name, Assigned { id, used: self.uses });
        self.by_use.insert(self.uses, name);
        self.names.insert(id, name);
    }

    fn forget(&mut self, name: Wwn) {
        if let Some(assigned) = self.by_name.remove(&name) {
            self.by_use.remove(&assigned.used);
            self.names.remove(&assigned.id);
        }
    }
}
