//! PDUs that a target or an initiator looks closer at: right in most fields, wrong in some.

use super::input::Input;
use wire::iscsi::{Header, Pdu};

/// Operation codes of a disk that do something, and some that are not there.
const CDBS: [u8; 40] = [
    0x00, 0x03, 0x04, 0x08, 0x0a, 0x12, 0x15, 0x16, 0x17, 0x1a, 0x1b, 0x1e, 0x25, 0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x35,
    0x41, 0x42, 0x55, 0x56, 0x57, 0x5a, 0x5e, 0x5f, 0x88, 0x89, 0x8a, 0x8b, 0x8e, 0x8f, 0x90, 0x91, 0x93, 0x9e, 0xa0,
    0xa3, 0xae,
];

/// The known state of the other side.
#[derive(Clone, Copy, Default)]
pub struct Known {
    /// The next command number, or the next status number.
    pub number: u32,
    /// A tag that is in use.
    pub itt: u32,
    /// A transfer tag that is in use, and what it asks for.
    pub ttt: u32,
    pub offset: u32,
    pub length: u32,
}

fn put(bytes: &mut [u8; 48], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// A CDB with small numbers in it: within the unit, at its end, beyond it.
fn cdb(input: &mut Input<'_>, into: &mut [u8]) {
    into[0] = if input.u8() & 15 == 0 { input.u8() } else { input.pick(&CDBS) };
    if input.u8() & 3 == 0 {
        let any = input.bytes(15);
        into[1..1 + any.len()].copy_from_slice(any);
        return;
    }
    let (lba, blocks, flags) = (input.u8(), input.u8(), input.u8());
    into[1] = flags;
    match into[0] >> 5 {
        0 => (into[3], into[4]) = (lba, blocks),
        1 | 2 => (into[5], into[8]) = (lba, blocks),
        4 => (into[9], into[13]) = (lba, blocks),
        _ => (into[5], into[9]) = (lba, blocks),
    }
}

/// A PDU of an initiator (`from_target` false) or of a target.
pub fn pdu(input: &mut Input<'_>, known: Known, from_target: bool) -> Pdu {
    let kinds: &[u8] = if from_target {
        &[0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x25, 0x26, 0x31, 0x31, 0x32, 0x3f]
    } else {
        &[0x00, 0x01, 0x01, 0x01, 0x01, 0x02, 0x03, 0x04, 0x05, 0x05, 0x05, 0x06, 0x10, 0x1c]
    };
    let mut bytes = [0_u8; 48];
    bytes[0] = input.pick(kinds);
    let shape = input.u8();
    if shape & 1 != 0 {
        bytes[0] |= 0x40;
    }
    // Final, read, write and task attribute, or what they are in others.
    bytes[1] = if shape & 2 != 0 { input.u8() } else { input.pick(&[0x80, 0xc1, 0xa1, 0xe1, 0xa2, 0xa3, 0x81, 0x87]) };
    let opcode = bytes[0] & 0x3f;
    if shape & 4 != 0 {
        bytes[9] = input.u8();
    }
    let itt = if shape & 8 != 0 { u32::from(input.u8()) } else { known.itt };
    put(&mut bytes, 16, itt);
    let word = match opcode {
        0x01 => u32::from(input.u8()) * 256,
        0x05 | 0x31 if shape & 16 == 0 => known.ttt,
        _ if shape & 16 == 0 => u32::MAX,
        _ => u32::from(input.u8()),
    };
    put(&mut bytes, 20, word);
    let number = if shape & 32 != 0 { known.number.wrapping_add(input.u8() as i8 as u32) } else { known.number };
    put(&mut bytes, 24, number);
    put(&mut bytes, 28, if shape & 32 != 0 { input.u32() } else { known.number });
    match opcode {
        0x01 => cdb(input, &mut bytes[32..48]),
        0x05 | 0x25 => {
            put(&mut bytes, 36, u32::from(if shape & 64 != 0 { input.u8() } else { 0 }));
            put(&mut bytes, 40, if shape & 64 != 0 { u32::from(input.u16()) } else { known.offset });
        }
        _ if shape & 64 != 0 => {
            let any = input.bytes(16);
            bytes[32..32 + any.len()].copy_from_slice(any);
        }
        // A window that is open.
        _ if from_target => put(&mut bytes, 32, known.number.wrapping_add(64)),
        _ => {}
    }
    let length = match shape & 128 {
        0 if opcode == 0x05 => known.length as usize,
        0 => 0,
        _ => usize::from(input.u16()) % 2048,
    };
    let mut data = input.bytes(length).to_vec();
    // Parameter lists are short, data may be long: it is filled up.
    if opcode == 0x05 || shape & 2 != 0 {
        data.resize(length.min(1 << 16), 0x5a);
    }
    Pdu { header: Header::parse(&bytes), ahs: Vec::new(), data: data.into() }
}
