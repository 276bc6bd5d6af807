//! Addresses of ports by their names, kept for good: a port that comes back has the address that it had.
//!
//! Hosts remember addresses. One that is given to another port makes a late LOGO or frame hit the wrong port, so that a
//! gateway stores the assignments and reads them again after a restart.

use super::settings::Settings;
use std::collections::{BTreeMap, BTreeSet};
use wire::fc::{FcId, Wwn};

/// Addresses by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Assignments {
    ids: BTreeMap<Wwn, FcId>,
    taken: BTreeSet<FcId>,
    next: u32,
}

impl Assignments {
    /// The assignments of a list, as [`Assignments::iter`] gives it. Of two names with one address the first keeps it.
    pub fn from_list(list: impl IntoIterator<Item = (Wwn, FcId)>) -> Assignments {
        let mut assignments = Assignments::default();
        for (name, id) in list {
            if assignments.taken.insert(id) {
                assignments.ids.insert(name, id);
            }
        }
        assignments
    }

    /// All of them, in order of names.
    pub fn iter(&self) -> impl Iterator<Item = (Wwn, FcId)> + '_ {
        self.ids.iter().map(|(name, id)| (*name, *id))
    }

    /// The address of a name: the one it had, or a new one; None when the domain is full.
    pub(super) fn of(&mut self, name: Wwn, settings: &Settings) -> Option<FcId> {
        if let Some(id) = self.ids.get(&name) {
            return Some(*id);
        }
        loop {
            let id = settings.address(self.next)?;
            self.next += 1;
            if self.taken.insert(id) {
                self.ids.insert(name, id);
                return Some(id);
            }
        }
    }
}
