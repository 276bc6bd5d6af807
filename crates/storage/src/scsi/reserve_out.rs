//! PERSISTENT RESERVE OUT (SPC-4, 6.16).

use super::cdb::{be32, be64, Cdb};
use super::lun::Lun;
use super::nexus::Nexus;
use super::reserve::{kind, PersistentReservation, Registration, MAX_REGISTRATIONS};
use super::sense::{status, Sense};

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;

const RESERVATIONS_PREEMPTED: (u8, u8) = (0x2a, 0x03);
const RESERVATIONS_RELEASED: (u8, u8) = (0x2a, 0x04);
const REGISTRATIONS_PREEMPTED: (u8, u8) = (0x2a, 0x05);

/// Performs it; the status.
pub(super) fn perform(lun: &mut Lun, nexus: &Nexus, cdb: &Cdb, list: &[u8]) -> Result<u8, Sense> {
    let action = cdb[1] & 0x1f;
    if lun.reservations.is_simple() {
        return Ok(status::RESERVATION_CONFLICT);
    }
    // Without SPEC_I_PT the list has exactly 24 bytes.
    if be32(cdb, 5) != 24 || list.len() != 24 {
        return Err(Sense::LIST_LENGTH);
    }
    let (key, action_key, flags) = (be64(list, 0), be64(list, 8), list[20]);
    // SPEC_I_PT, ALL_TG_PT and APTPL are not known here, as REPORT CAPABILITIES says.
    if flags & 0x0d != 0 {
        return Err(Sense::parameter(20));
    }
    let registered = lun.reservations.key_of(nexus);
    let registers = matches!(action, REGISTER | REGISTER_AND_IGNORE);
    if !registers && registered != Some(key) {
        return Ok(status::RESERVATION_CONFLICT);
    }
    let (scope, wanted) = (cdb[2] >> 4, cdb[2] & 0x0f);
    if matches!(action, RESERVE | PREEMPT | PREEMPT_AND_ABORT) && (scope != 0 || !kind::known(wanted)) {
        return Err(Sense::cdb(2));
    }
    match action {
        REGISTER if registered.unwrap_or(0) != key => Ok(status::RESERVATION_CONFLICT),
        REGISTER | REGISTER_AND_IGNORE => register(lun, nexus, action_key),
        RESERVE => Ok(reserve(lun, nexus, wanted)),
        RELEASE => release(lun, nexus, scope, wanted),
        CLEAR => {
            let others: Vec<Nexus> = lun.reservations.registrations.drain(..).map(|r| r.nexus).collect();
            lun.reservations.held = None;
            lun.reservations.generation = lun.reservations.generation.wrapping_add(1);
            raise_attention(lun, nexus, &others, RESERVATIONS_PREEMPTED);
            Ok(status::GOOD)
        }
        PREEMPT | PREEMPT_AND_ABORT => preempt(lun, nexus, action_key, wanted),
        _ => Err(Sense::cdb(1)),
    }
}

fn raise_attention(lun: &mut Lun, but: &Nexus, whom: &[Nexus], code: (u8, u8)) {
    whom.iter().filter(|nexus| *nexus != but).for_each(|nexus| lun.raise_attention_for(nexus, code));
}

fn register(lun: &mut Lun, nexus: &Nexus, key: u64) -> Result<u8, Sense> {
    let reservations = &mut lun.reservations;
    let at = reservations.registrations.iter().position(|registration| registration.nexus == *nexus);
    match (at, key) {
        (None, 0) => {}
        (None, _) if reservations.registrations.len() == MAX_REGISTRATIONS => return Err(Sense::NO_REGISTRATION),
        (None, _) => reservations.registrations.push(Registration { nexus: nexus.clone(), key }),
        (Some(at), 0) => unregister(lun, nexus, at),
        (Some(at), _) => reservations.registrations[at].key = key,
    }
    lun.reservations.generation = lun.reservations.generation.wrapping_add(1);
    Ok(status::GOOD)
}

/// An initiator leaves: its reservation goes, unless others hold it too (SPC-4, 5.12.11.2.3).
fn unregister(lun: &mut Lun, nexus: &Nexus, at: usize) {
    let reservations = &mut lun.reservations;
    reservations.registrations.remove(at);
    let Some(held) = reservations.held.clone() else { return };
    let last = reservations.registrations.is_empty();
    if kind::held_by_all(held.kind) {
        if last {
            reservations.held = None;
        }
    } else if held.by == *nexus {
        reservations.held = None;
        if matches!(held.kind, kind::WRITE_EXCLUSIVE_REGISTRANTS | kind::EXCLUSIVE_ACCESS_REGISTRANTS) {
            let others: Vec<Nexus> = reservations.registrations.iter().map(|r| r.nexus.clone()).collect();
            raise_attention(lun, nexus, &others, RESERVATIONS_RELEASED);
        }
    }
}

fn reserve(lun: &mut Lun, nexus: &Nexus, wanted: u8) -> u8 {
    let reservations = &mut lun.reservations;
    match &reservations.held {
        None => {
            reservations.held = Some(PersistentReservation { kind: wanted, by: nexus.clone() });
            status::GOOD
        }
        Some(held) if held.kind == wanted && reservations.holds(nexus) => status::GOOD,
        Some(_) => status::RESERVATION_CONFLICT,
    }
}

fn release(lun: &mut Lun, nexus: &Nexus, scope: u8, wanted: u8) -> Result<u8, Sense> {
    let reservations = &mut lun.reservations;
    let Some(held) = reservations.held.clone().filter(|_| reservations.holds(nexus)) else {
        return Ok(status::GOOD);
    };
    if scope != 0 || held.kind != wanted {
        return Err(Sense::INVALID_RELEASE);
    }
    reservations.held = None;
    if held.kind >= kind::WRITE_EXCLUSIVE_REGISTRANTS {
        let others: Vec<Nexus> = reservations.registrations.iter().map(|r| r.nexus.clone()).collect();
        raise_attention(lun, nexus, &others, RESERVATIONS_RELEASED);
    }
    Ok(status::GOOD)
}

/// PREEMPT, and with ABORT: commands in progress of those preempted end by themselves here, since a command that
/// reached the medium cannot be called back.
fn preempt(lun: &mut Lun, nexus: &Nexus, key: u64, wanted: u8) -> Result<u8, Sense> {
    let reservations = &mut lun.reservations;
    let held = reservations.held.clone();
    let by_all = held.as_ref().is_some_and(|held| kind::held_by_all(held.kind));
    let holder_key = held.as_ref().filter(|_| !by_all).and_then(|held| reservations.key_of(&held.by));
    let takes_over = if by_all { key == 0 } else { held.is_some() && holder_key == Some(key) };
    if key == 0 && !takes_over {
        return Err(Sense::parameter(8));
    }
    let goes = |r: &Registration| r.nexus != *nexus && (r.key == key || by_all && key == 0);
    let gone: Vec<Nexus> = reservations.registrations.iter().filter(|r| goes(r)).map(|r| r.nexus.clone()).collect();
    if gone.is_empty() && !takes_over {
        return Ok(status::RESERVATION_CONFLICT);
    }
    reservations.registrations.retain(|r| !goes(r));
    reservations.generation = reservations.generation.wrapping_add(1);
    let mut left = Vec::new();
    if takes_over {
        reservations.held = Some(PersistentReservation { kind: wanted, by: nexus.clone() });
        if held.is_some_and(|held| held.kind != wanted) {
            left = reservations.registrations.iter().map(|r| r.nexus.clone()).collect();
        }
    }
    raise_attention(lun, nexus, &gone, REGISTRATIONS_PREEMPTED);
    raise_attention(lun, nexus, &left, RESERVATIONS_RELEASED);
    Ok(status::GOOD)
}
