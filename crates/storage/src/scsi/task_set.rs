//! Task sets: which command of a unit may begin when (SAM-5, 8.6 and 8.7).
//!
//! All initiators share the task set of a unit (TST is 0 in the control mode page). A command is in it from its turn
//! in the order of command numbers until the medium is done with it: what is still on its way to the initiator by then
//! has been read already, and changes nothing for those that wait.

use std::collections::{BTreeMap, BTreeSet};

/// Commands that have to be done before one begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attribute {
    /// Older ones that are ordered or head of queue.
    Simple,
    /// All older ones.
    Ordered,
    /// None.
    HeadOfQueue,
}

/// The place of a command.
#[derive(Clone, Copy, Debug)]
struct TaskLocation<K> {
    unit: usize,
    attribute: Attribute,
    key: K,
}

/// Serial numbers of a unit's commands; a smaller one is older.
#[derive(Debug, Default)]
struct LunOrder {
    all: BTreeSet<u64>,
    /// Ordered, head of queue and abandoned.
    barriers: BTreeSet<u64>,
    /// Have their data and wait for older ones.
    dormant: BTreeSet<u64>,
}

/// The task sets of all units, with the transport's key of each command. A command costs a few steps in trees of those
/// under way.
#[derive(Debug)]
pub struct TaskSets<K> {
    members: BTreeMap<u64, TaskLocation<K>>,
    units: BTreeMap<usize, LunOrder>,
}

impl<K> Default for TaskSets<K> {
    fn default() -> TaskSets<K> {
        TaskSets { members: BTreeMap::new(), units: BTreeMap::new() }
    }
}

impl<K: Copy> TaskSets<K> {
    /// A command is taken.
    pub fn enter(&mut self, unit: usize, serial: u64, attribute: Attribute, key: K) {
        self.members.insert(serial, TaskLocation { unit, attribute, key });
        let unit = self.units.entry(unit).or_default();
        unit.all.insert(serial);
        if attribute != Attribute::Simple {
            unit.barriers.insert(serial);
        }
    }

    /// Returns whether a command that has its data may begin; if not, [`TaskSets::leave`] tells when.
    pub fn may_begin(&mut self, serial: u64) -> bool {
        // A command for no unit waits for no other.
        let Some(member) = self.members.get(&serial) else { return true };
        let Some(unit) = self.units.get_mut(&member.unit) else { return true };
        let free = unit.lets(serial, member.attribute);
        if !free {
            unit.dormant.insert(serial);
        }
        free
    }

    /// Nobody waits for a command any more that the medium is at: those behind it wait until it is done. Else what is
    /// left of a write could fall on a later one, which the initiator sent over a new connection and holds for done.
    pub fn abandon(&mut self, serial: u64) {
        let Some(member) = self.members.get(&serial) else { return };
        if let Some(unit) = self.units.get_mut(&member.unit) {
            unit.barriers.insert(serial);
        }
    }

    /// A command is done, or will not be done. Key and serial number of those that may begin now, the oldest first.
    pub fn leave(&mut self, serial: u64) -> Vec<(K, u64)> {
        let mut free = Vec::new();
        let Some(member) = self.members.remove(&serial) else { return free };
        let Some(unit) = self.units.get_mut(&member.unit) else { return free };
        unit.all.remove(&serial);
        unit.barriers.remove(&serial);
        unit.dormant.remove(&serial);
        while let Some(&first) = unit.dormant.first() {
            let Some(member) = self.members.get(&first) else { break };
            // Those behind one that waits wait as well: it is a barrier, or a barrier older than both holds it up.
            if !unit.lets(first, member.attribute) {
                break;
            }
            unit.dormant.pop_first();
            free.push((member.key, first));
        }
        free
    }
}

impl LunOrder {
    fn lets(&self, serial: u64, attribute: Attribute) -> bool {
        let older = |set: &BTreeSet<u64>| set.first().is_some_and(|&first| first < serial);
        match attribute {
            Attribute::Simple => !older(&self.barriers),
            Attribute::Ordered => !older(&self.all),
            Attribute::HeadOfQueue => true,
        }
    }
}
