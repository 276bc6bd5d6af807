//! The commands there are, and REPORT SUPPORTED OPERATION CODES about them (SPC-4, 6.35).

use super::cdb::{be16, be32, Cdb};
use super::sense::Sense;

/// Class of a command for reservations and unit state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OpcodeClass {
    /// Allowed whoever holds a reservation (SPC-4, table 13).
    Free,
    /// Looks at the medium or its settings.
    Read,
    /// Changes the medium or its settings.
    Write,
}

/// A command.
pub(super) struct Command {
    pub opcode: u8,
    /// Service action, of operation codes that have them.
    pub action: Option<u8>,
    pub class: OpcodeClass,
    /// It needs a unit that was started.
    pub medium: bool,
    /// Bits of the CDB that are looked at, from byte 1 on; its length gives the CDB's.
    usage: &'static [u8],
}

const fn command(opcode: u8, action: Option<u8>, class: OpcodeClass, medium: bool, usage: &'static [u8]) -> Command {
    Command { opcode, action, class, medium, usage }
}

const RW10: &[u8] = &[0xf8, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07];
const RW12: &[u8] = &[0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x07];
const RW16: &[u8] = &[0xf8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x1f, 0x07];
const VERIFY10: &[u8] = &[0xf6, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07];
const VERIFY12: &[u8] = &[0xf6, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x07];
const VERIFY16: &[u8] = &[0xf6, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x1f, 0x07];
const RESERVE_OUT: &[u8] = &[0x1f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x07];
const RESERVE_IN: &[u8] = &[0x1f, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07];

use OpcodeClass::{Free, Read, Write};

/// In the order of codes and actions.
pub(super) const COMMANDS: &[Command] = &[
    command(0x00, None, Free, true, &[0, 0, 0, 0, 0x07]),
    command(0x03, None, Free, false, &[0x01, 0, 0, 0xff, 0x07]),
    command(0x08, None, Read, true, &[0x1f, 0xff, 0xff, 0xff, 0x07]),
    command(0x0a, None, Write, true, &[0x1f, 0xff, 0xff, 0xff, 0x07]),
    command(0x12, None, Free, false, &[0x01, 0xff, 0xff, 0xff, 0x07]),
    command(0x15, None, Write, false, &[0x11, 0, 0, 0xff, 0x07]),
    command(0x16, None, Free, false, &[0, 0, 0, 0, 0x07]),
    command(0x17, None, Free, false, &[0, 0, 0, 0, 0x07]),
    command(0x1a, None, Read, false, &[0x08, 0xff, 0xff, 0xff, 0x07]),
    command(0x1b, None, Write, false, &[0x01, 0, 0x0f, 0xf7, 0x07]),
    command(0x1e, None, Read, false, &[0, 0, 0, 0x03, 0x07]),
    command(0x25, None, Free, true, &[0, 0, 0, 0, 0, 0, 0, 0, 0x07]),
    command(0x28, None, Read, true, RW10),
    command(0x2a, None, Write, true, RW10),
    command(0x2e, None, Write, true, VERIFY10),
    command(0x2f, None, Read, true, VERIFY10),
    command(0x34, None, Read, true, &[0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07]),
    command(0x35, None, Write, true, &[0x02, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07]),
    command(0x41, None, Write, true, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x07]),
    command(0x42, None, Write, true, &[0, 0, 0, 0, 0, 0x1f, 0xff, 0xff, 0x07]),
    command(0x55, None, Write, false, &[0x11, 0, 0, 0, 0, 0, 0xff, 0xff, 0x07]),
    command(0x56, None, Free, false, &[0, 0, 0, 0, 0, 0, 0, 0, 0x07]),
    command(0x57, None, Free, false, &[0, 0, 0, 0, 0, 0, 0, 0, 0x07]),
    command(0x5a, None, Read, false, &[0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, 0x07]),
    command(0x5e, Some(0), Free, false, RESERVE_IN),
    command(0x5e, Some(1), Free, false, RESERVE_IN),
    command(0x5e, Some(2), Free, false, RESERVE_IN),
    command(0x5e, Some(3), Free, false, RESERVE_IN),
    command(0x5f, Some(0), Free, false, RESERVE_OUT),
    command(0x5f, Some(1), Free, false, RESERVE_OUT),
    command(0x5f, Some(2), Free, false, RESERVE_OUT),
    command(0x5f, Some(3), Free, false, RESERVE_OUT),
    command(0x5f, Some(4), Free, false, RESERVE_OUT),
    command(0x5f, Some(5), Free, false, RESERVE_OUT),
    command(0x5f, Some(6), Free, false, RESERVE_OUT),
    command(0x88, None, Read, true, RW16),
    command(0x89, None, Write, true, &[0xf8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0xff, 0x1f, 0x07]),
    command(0x8a, None, Write, true, RW16),
    command(0x8b, None, Write, true, RW16),
    command(0x8e, None, Write, true, VERIFY16),
    command(0x8f, None, Read, true, VERIFY16),
    command(0x90, None, Read, true, &[0x02, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x1f, 0x07]),
    command(0x91, None, Write, true, &[0x02, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x1f, 0x07]),
    command(0x93, None, Write, true, &[0xf9, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x1f, 0x07]),
    command(0x9e, Some(0x10), Free, true, &[0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0x07]),
    command(0x9e, Some(0x12), Read, true, &[0x1f, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0x07]),
    command(0xa0, None, Free, false, &[0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0x07]),
    command(0xa3, Some(0x0c), Free, false, &[0x1f, 0x87, 255, 255, 255, 255, 255, 255, 255, 0, 0x07]),
    command(0xa8, None, Read, true, RW12),
    command(0xaa, None, Write, true, RW12),
    command(0xae, None, Write, true, VERIFY12),
    command(0xaf, None, Read, true, VERIFY12),
];

/// The command of a CDB.
pub(super) fn find(cdb: &Cdb) -> Result<&'static Command, Sense> {
    let mut known = false;
    for command in COMMANDS.iter().filter(|command| command.opcode == cdb[0]) {
        known = true;
        if command.action.is_none() || command.action == Some(cdb[1] & 0x1f) {
            return Ok(command);
        }
    }
    Err(if known { Sense::cdb(1) } else { Sense::OPERATION_CODE })
}

/// No timeouts are recommended: a descriptor of zeros says so.
const TIMEOUTS: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The parameter data.
pub(super) fn report(cdb: &Cdb) -> Result<Vec<u8>, Sense> {
    let timeouts = cdb[2] & 0x80 != 0;
    let (opcode, action) = (cdb[3], be16(cdb, 4));
    let mut data = Vec::new();
    let wanted = match cdb[2] & 7 {
        0 => {
            data.extend_from_slice(&[0; 4]);
            for command in COMMANDS {
                let action = u16::from(command.action.unwrap_or(0)).to_be_bytes();
                let flags = u8::from(command.action.is_some()) | if timeouts { 2 } else { 0 };
                let length = (command.usage.len() as u16 + 1).to_be_bytes();
                data.extend_from_slice(&[command.opcode, 0, action[0], action[1], 0, flags, length[0], length[1]]);
                if timeouts {
                    data.extend_from_slice(&TIMEOUTS);
                }
            }
            let length = data.len() as u32 - 4;
            data[..4].copy_from_slice(&length.to_be_bytes());
            return Ok(data);
        }
        format @ 1..=3 => {
            let mut of_code = COMMANDS.iter().filter(|command| command.opcode == opcode).peekable();
            let with_actions = of_code.peek().is_some_and(|command| command.action.is_some());
            // 1: of codes without actions, 2: of codes with them, 3: of either.
            match (format, of_code.peek().is_some(), with_actions) {
                (1, true, true) => return Err(Sense::cdb(2)),
                (2, true, false) => return Err(Sense::cdb(2)),
                _ => of_code
                    .find(|command| command.action.map_or(action == 0 || format == 1, |a| u16::from(a) == action)),
            }
        }
        _ => return Err(Sense::cdb(2)),
    };
    match wanted {
        Some(command) => {
            let length = (command.usage.len() as u16 + 1).to_be_bytes();
            data.extend_from_slice(&[0, if timeouts { 0x83 } else { 3 }, length[0], length[1], opcode]);
            data.extend_from_slice(command.usage);
            // The usage has the value of the action, not a mask.
            if let Some(action) = command.action {
                data[5] = data[5] & !0x1f | action;
            }
            if timeouts {
                data.extend_from_slice(&TIMEOUTS);
            }
        }
        None => data.extend_from_slice(&[0, 1, 0, 0]),
    }
    Ok(data)
}

/// Allocation length of REPORT SUPPORTED OPERATION CODES.
pub(super) fn report_allocation(cdb: &Cdb) -> usize {
    be32(cdb, 6) as usize
}
