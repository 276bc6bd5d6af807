//! Mode pages: what of a unit can be set (SPC-4, 7.5; SBC-3, 6.5).

use super::cdb::{be16, Cdb};
use super::command::{CommandResult, Continuation, Step};
use super::lun::Lun;
use super::medium::Op;
use super::nexus::Nexus;
use super::sense::Sense;
use super::settings::Modes;

const CURRENT: u8 = 0;
const CHANGEABLE: u8 = 1;
const DEFAULT: u8 = 2;

/// The pages in their order: error recovery, caching, control, informational exceptions.
fn pages(lun: &Lun, control: u8) -> Vec<Vec<u8>> {
    let modes = match control {
        CURRENT => lun.modes,
        DEFAULT => Modes { write_cache: lun.config.write_cache, ..Modes::default() },
        _ => Modes { write_cache: true, descriptor_sense: true, software_protected: true },
    };
    let bit = |value: bool, bit: u8| if value { bit } else { 0 };
    let mut recovery = vec![0x01, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut caching = vec![0; 20];
    (caching[0], caching[1], caching[2]) = (0x08, 18, bit(modes.write_cache, 0x04));
    let mut control_page = vec![0x0a, 10, bit(modes.descriptor_sense, 0x04), 0, bit(modes.software_protected, 0x08)];
    control_page.resize(12, 0);
    let exceptions = vec![0x1c, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    if control != CHANGEABLE {
        // Automatic write reallocation stands for what a file system does; restricted reordering is off.
        recovery[2] = 0x80;
        control_page[3] = 0x10;
    }
    vec![recovery, caching, control_page, exceptions]
}

fn wanted(lun: &Lun, cdb: &Cdb) -> CommandResult {
    let (control, page, subpage) = (cdb[2] >> 6, cdb[2] & 0x3f, cdb[3]);
    if control == 3 {
        return Err(Sense::NO_SAVING);
    }
    let chosen: Vec<u8> =
        pages(lun, control).into_iter().filter(|bytes| page == 0x3f || bytes[0] == page).flatten().collect();
    match subpage {
        _ if chosen.is_empty() => Err(Sense::cdb(2)),
        0 | 0xff => Ok(chosen),
        _ => Err(Sense::cdb(3)),
    }
}

/// Write protected, DPO and FUA known.
fn device_specific(lun: &Lun) -> u8 {
    0x10 | if lun.write_protection().is_some() { 0x80 } else { 0 }
}

fn descriptor(lun: &Lun, long: bool) -> Vec<u8> {
    let geometry = lun.config.geometry;
    if long {
        let mut bytes = geometry.blocks.to_be_bytes().to_vec();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&geometry.block_bytes.to_be_bytes());
        return bytes;
    }
    let mut bytes = u32::try_from(geometry.blocks).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    bytes.extend_from_slice(&geometry.block_bytes.to_be_bytes());
    bytes
}

pub(super) fn sense6(lun: &Lun, cdb: &Cdb) -> CommandResult {
    let pages = wanted(lun, cdb)?;
    let descriptor = if cdb[1] & 0x08 == 0 { descriptor(lun, false) } else { Vec::new() };
    let length = (3 + descriptor.len() + pages.len()) as u8;
    let header = vec![length, 0, device_specific(lun), descriptor.len() as u8];
    Ok([header, descriptor, pages].concat())
}

pub(super) fn sense10(lun: &Lun, cdb: &Cdb) -> CommandResult {
    let pages = wanted(lun, cdb)?;
    let long = cdb[1] & 0x10 != 0;
    let descriptor = if cdb[1] & 0x08 == 0 { descriptor(lun, long) } else { Vec::new() };
    let length = ((6 + descriptor.len() + pages.len()) as u16).to_be_bytes();
    let long_bit = u8::from(long && !descriptor.is_empty());
    let header = vec![length[0], length[1], 0, device_specific(lun), long_bit, 0, 0, descriptor.len() as u8];
    Ok([header, descriptor, pages].concat())
}

/// MODE SELECT(6) and (10): all of the list is right, or nothing changes.
pub(super) fn select(lun: &mut Lun, nexus: &Nexus, cdb: &Cdb, list: &[u8]) -> Result<Step, Sense> {
    // PF must be set, SP cannot: nothing is saved.
    if cdb[1] & 0x11 != 0x10 {
        return Err(Sense::cdb(1));
    }
    if list.is_empty() {
        return Ok(Lun::good());
    }
    let header = if cdb[0] == 0x15 { 4 } else { 8 };
    if list.len() < header {
        return Err(Sense::LIST_LENGTH);
    }
    let descriptors = if header == 4 { usize::from(list[3]) } else { usize::from(be16(list, 6)) };
    if list.len() < header + descriptors {
        return Err(Sense::LIST_LENGTH);
    }
    is_of_size(lun, list, header, descriptors)?;
    let mut modes = lun.modes;
    let (current, changeable) = (pages(lun, CURRENT), pages(lun, CHANGEABLE));
    let mut at = header + descriptors;
    while at < list.len() {
        let rest = &list[at..];
        let found = current.iter().position(|page| page[0] == rest[0] & 0x3f);
        let Some((now, may)) = found.map(|index| (&current[index], &changeable[index])) else {
            return Err(Sense::parameter(at as u16));
        };
        if rest.len() < now.len() {
            return Err(Sense::LIST_LENGTH);
        }
        if rest[1] != now[1] || rest[0] & 0x40 != 0 {
            return Err(Sense::parameter(at as u16 + 1));
        }
        for byte in 2..now.len() {
            if (rest[byte] ^ now[byte]) & !may[byte] != 0 {
                return Err(Sense::parameter((at + byte) as u16));
            }
        }
        match now[0] {
            0x08 => modes.write_cache = rest[2] & 0x04 != 0,
            0x0a => {
                modes.descriptor_sense = rest[2] & 0x04 != 0;
                modes.software_protected = rest[4] & 0x08 != 0;
            }
            _ => {}
        }
        at += now.len();
    }
    // With the cache off, what was acknowledged is on the medium: what came before as well.
    let emptied = lun.modes.write_cache && !modes.write_cache;
    if modes != lun.modes {
        lun.modes = modes;
        // MODE PARAMETERS CHANGED.
        lun.raise_attention(Some(nexus), (0x2a, 0x01));
    }
    Ok(if emptied { Step::Work(Op::Flush, Continuation::Plain) } else { Lun::good() })
}

/// Returns whether block descriptors, if there are any, say what is: a unit has the size of its file (SPC-4, 7.5.6).
fn is_of_size(lun: &Lun, list: &[u8], header: usize, descriptors: usize) -> Result<(), Sense> {
    if descriptors == 0 {
        return Ok(());
    }
    let is_long = header == 8 && list[4] & 1 != 0;
    let now = descriptor(lun, is_long);
    let given = &list[header..header + descriptors];
    if given.len() != now.len() {
        return Err(Sense::parameter(if header == 4 { 3 } else { 6 }));
    }
    // Of the number of blocks 0 means no change; the first byte of the short form's length is reserved.
    let (blocks, length) = if is_long { (0..8, 12..16) } else { (0..4, 5..8) };
    if given[blocks.clone()].iter().any(|&byte| byte != 0) && given[blocks.clone()] != now[blocks] {
        return Err(Sense::parameter(header as u16));
    }
    if given[length.clone()] != now[length.clone()] {
        return Err(Sense::parameter((header + length.start) as u16));
    }
    Ok(())
}
