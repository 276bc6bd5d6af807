//! Task sets: which command of a unit may begin when (SAM-5, 8.6 and 8.7).
//!
//! All initiators share the task set of a unit (TST is 0 in the control mode page). A command is in it from its turn
//! in the order of command numbers until the medium is done with it: what is still on its way to the initiator by then
//! has been read already, and changes nothing for those that wait.

use crate::scsi::Sense;
use std::collections::{BTreeMap, BTreeSet};

/// When a command may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attribute {
    /// When no older one is ordered or head of queue.
    Simple,
    /// When no older one is left.
    Ordered,
    /// At once.
    HeadOfQueue,
}

impl Attribute {
    /// Of the ATTR field (RFC 7143, 11.3.1). Untagged commands are simple ones. There is no ACA condition, since
    /// INQUIRY's NORMACA is 0: a command with that attribute is refused (SAM-5, 8.6.5), as one with a reserved value.
    pub fn of(field: u8) -> Result<Attribute, Sense> {
        match field {
            0 | 1 => Ok(Attribute::Simple),
            2 => Ok(Attribute::Ordered),
            3 => Ok(Attribute::HeadOfQueue),
            _ => Err(Sense::INVALID_MESSAGE),
        }
    }
}

/// The place of a command.
#[derive(Clone, Copy, Debug)]
struct TaskLocation {
    unit: usize,
    attribute: Attribute,
    tsih: u16,
    itt: u32,
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

/// The task sets of all units. A command costs a few steps in trees of those under way.
#[derive(Debug, Default)]
pub(super) struct TaskSets {
    members: BTreeMap<u64, TaskLocation>,
    units: BTreeMap<usize, LunOrder>,
}

impl TaskSets {
    /// A command is taken.
    pub fn enter(&mut self, unit: usize, serial: u64, attribute: Attribute, tsih: u16, itt: u32) {
        self.members.insert(serial, TaskLocation { unit, attribute, tsih, itt });
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

    /// A command is done, or will not be done. Session, tag and serial number of those that may begin now, the oldest
    /// first.
    pub fn leave(&mut self, serial: u64) -> Vec<(u16, u32, u64)> {
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
            free.push((member.tsih, member.itt, first));
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
