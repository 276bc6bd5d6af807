//! Reservations: RESERVE and RELEASE (SPC-2, 5.5), persistent reservations (SPC-4, 5.12) and reports of them.

use super::cdb::Cdb;
use super::command::CommandResult;
use super::nexus::Nexus;
use super::opcodes::OpcodeClass;
use super::sense::{status, Sense};

/// Most registrations; beyond that there is no room (SPC-4, 5.12.7).
pub(super) const MAX_REGISTRATIONS: usize = 128;

/// Types of persistent reservations (SPC-4, table 72).
pub(super) mod kind {
    pub const WRITE_EXCLUSIVE: u8 = 1;
    pub const EXCLUSIVE_ACCESS: u8 = 3;
    pub const WRITE_EXCLUSIVE_REGISTRANTS: u8 = 5;
    pub const EXCLUSIVE_ACCESS_REGISTRANTS: u8 = 6;
    pub const WRITE_EXCLUSIVE_ALL: u8 = 7;
    pub const EXCLUSIVE_ACCESS_ALL: u8 = 8;

    /// Returns whether there is such a type.
    pub fn known(kind: u8) -> bool {
        matches!(kind, 1 | 3 | 5..=8)
    }

    /// Returns whether every registrant holds it.
    pub fn held_by_all(kind: u8) -> bool {
        kind >= WRITE_EXCLUSIVE_ALL
    }

    pub(super) fn lets_read(kind: u8) -> bool {
        matches!(kind, WRITE_EXCLUSIVE | WRITE_EXCLUSIVE_REGISTRANTS | WRITE_EXCLUSIVE_ALL)
    }

    pub(super) fn for_registrants(kind: u8) -> bool {
        kind >= WRITE_EXCLUSIVE_REGISTRANTS
    }

    /// PERSISTENT RESERVATION TYPE MASK of REPORT CAPABILITIES: all of the six.
    pub const MASK: [u8; 2] = [0xea, 0x01];
    const _: () = assert!(EXCLUSIVE_ACCESS == 3 && EXCLUSIVE_ACCESS_REGISTRANTS == 6 && EXCLUSIVE_ACCESS_ALL == 8);
}

/// A registered initiator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Registration {
    pub nexus: Nexus,
    pub key: u64,
}

/// A persistent reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PersistentReservation {
    pub kind: u8,
    /// Its holder; every registrant holds those of the all-registrants types.
    pub by: Nexus,
}

/// All reservations of a unit.
#[derive(Clone, Debug, Default)]
pub(super) struct Reservations {
    simple: Option<Nexus>,
    pub registrations: Vec<Registration>,
    pub held: Option<PersistentReservation>,
    /// PRGENERATION; wraps, as the standard lets it.
    pub generation: u32,
}

impl Reservations {
    pub(super) fn key_of(&self, nexus: &Nexus) -> Option<u64> {
        self.registrations.iter().find(|registration| registration.nexus == *nexus).map(|r| r.key)
    }

    pub(super) fn holds(&self, nexus: &Nexus) -> bool {
        self.held
            .as_ref()
            .is_some_and(|held| held.by == *nexus || kind::held_by_all(held.kind) && self.key_of(nexus).is_some())
    }

    /// Returns whether a command has to wait for another's reservation.
    pub(super) fn conflict(&self, nexus: &Nexus, cdb: &Cdb, class: OpcodeClass) -> bool {
        if self.simple.as_ref().is_some_and(|holder| holder != nexus) {
            // SPC-2, table 10: RELEASE is no conflict, RESERVE and PERSISTENT RESERVE are; so is TEST UNIT READY.
            let free = matches!(cdb[0], 0x03 | 0x12 | 0x17 | 0x57 | 0xa0) || cdb[0] == 0x1e && cdb[4] & 3 == 0;
            return !free;
        }
        let Some(held) = &self.held else { return false };
        if self.holds(nexus) || kind::for_registrants(held.kind) && self.key_of(nexus).is_some() {
            return false;
        }
        match class {
            OpcodeClass::Free => false,
            OpcodeClass::Read => !(kind::lets_read(held.kind) || cdb[0] == 0x1e && cdb[4] & 3 == 0),
            OpcodeClass::Write => true,
        }
    }

    /// RESERVE and RELEASE: the status.
    pub(super) fn simple(&mut self, nexus: &Nexus, cdb: &Cdb) -> u8 {
        let reserve = matches!(cdb[0], 0x16 | 0x56);
        if !self.registrations.is_empty() {
            // One of the two ways at a time (SPC-4, 5.12.3, without CRH).
            return status::RESERVATION_CONFLICT;
        }
        if reserve {
            self.simple = Some(nexus.clone());
        } else if self.simple.as_ref() == Some(nexus) {
            self.simple = None;
        }
        status::GOOD
    }

    pub(super) fn is_simple(&self) -> bool {
        self.simple.is_some()
    }

    pub(super) fn forget_simple(&mut self) {
        self.simple = None;
    }

    pub(super) fn forget_nexus(&mut self, nexus: &Nexus) {
        if self.simple.as_ref() == Some(nexus) {
            self.simple = None;
        }
    }

    /// PERSISTENT RESERVE IN.
    pub(super) fn report(&self, cdb: &Cdb) -> CommandResult {
        if self.is_simple() {
            // The holder itself comes here: everyone else was stopped before.
            return Err(Sense::cdb(1));
        }
        let mut data = Vec::new();
        match cdb[1] & 0x1f {
            0 => self.registrations.iter().for_each(|r| data.extend_from_slice(&r.key.to_be_bytes())),
            1 => {
                if let Some(held) = &self.held {
                    let key = if kind::held_by_all(held.kind) { 0 } else { self.key_of(&held.by).unwrap_or(0) };
                    data.extend_from_slice(&key.to_be_bytes());
                    data.extend_from_slice(&[0, 0, 0, 0, 0, held.kind, 0, 0]);
                }
            }
            // Target port of the initiator alone, no persistence through power loss; TMV: the mask of types is right.
            2 => return Ok(vec![0, 8, 0, 0x80, kind::MASK[0], kind::MASK[1], 0, 0]),
            _ => self.registrations.iter().for_each(|r| self.full_status(r, &mut data)),
        }
        let length = (data.len() as u32).to_be_bytes();
        Ok([self.generation.to_be_bytes().to_vec(), length.to_vec(), data].concat())
    }

    fn full_status(&self, registration: &Registration, data: &mut Vec<u8>) {
        let holds = self.holds(&registration.nexus);
        let kind = self.held.as_ref().filter(|_| holds).map_or(0, |held| held.kind);
        data.extend_from_slice(&registration.key.to_be_bytes());
        data.extend_from_slice(&[0, 0, 0, 0, u8::from(holds), kind, 0, 0, 0, 0, 0, 1]);
        // TransportID of an iSCSI initiator port (SPC-4, 7.6.4.6): name, separator and session identifier, zero,
        // padding.
        let mut name = registration.nexus.as_bytes().to_vec();
        name.push(0);
        name.resize(name.len().next_multiple_of(4).max(20), 0);
        data.extend_from_slice(&(4 + name.len() as u32).to_be_bytes());
        let length = (name.len() as u16).to_be_bytes();
        data.extend_from_slice(&[0x45, 0, length[0], length[1]]);
        data.extend_from_slice(&name);
    }
}
