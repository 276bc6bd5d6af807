//! TLVs behind STAMP's base packets (RFC 8972, 4), and control of the replies' length (RFC 10052, 3).

use crate::stamp::{Key, HMAC_BYTES};

/// Octets before a TLV's value: flags, type, length.
pub const HEADER_BYTES: usize = 4;
/// The receiver does not know the type (RFC 8972, 4). Set by senders, cleared by a reflector that knows it.
pub const UNRECOGNIZED: u8 = 0x80;
/// The length is wrong.
pub const MALFORMED: u8 = 0x40;
/// The HMAC TLV was wrong or missing.
pub const INTEGRITY: u8 = 0x20;
/// The reply is not as it was asked for (RFC 10052, 3).
pub const NOT_CONFORMANT: u8 = 0x10;

/// Extra Padding (RFC 8972, 4.1).
pub const EXTRA_PADDING: u8 = 1;
/// Timestamp Information (RFC 8972, 4.3).
pub const TIMESTAMP_INFORMATION: u8 = 3;
/// Class of Service (RFC 8972, 4.4).
pub const CLASS_OF_SERVICE: u8 = 4;
/// HMAC of the TLVs (RFC 8972, 4.8).
pub const HMAC: u8 = 8;
/// Reflected Test Packet Control (RFC 10052, 3).
pub const REPLY_CONTROL: u8 = 12;
/// Octets of its value: two of length, two of count, four of interval, and the least sub-TLV.
pub const REPLY_CONTROL_BYTES: usize = 12;

/// Sources of a clock (RFC 8972, 4.3).
pub const SOURCE_NTP: u8 = 1;
/// A clock that nothing steers.
pub const SOURCE_LOCAL: u8 = 5;
/// Stamps of the adapter.
pub const METHOD_HARDWARE: u8 = 1;
/// Stamps of the operating system.
pub const METHOD_SOFTWARE: u8 = 2;

/// Place of a TLV in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its first octet, the flags.
    pub at: usize,
    /// Its type.
    pub kind: u8,
    /// Octets of its value.
    pub length: usize,
}

impl Place {
    /// The octet behind it.
    pub fn end(self) -> usize {
        self.at + HEADER_BYTES + self.length
    }
}

/// TLVs of a packet, in turn; the second member is false for one that does not fit, which is the last.
pub fn places(packet: &[u8], from: usize) -> impl Iterator<Item = (Place, bool)> + '_ {
    let mut at = from;
    core::iter::from_fn(move || {
        let header = packet.get(at..at + HEADER_BYTES)?;
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let place = Place { at, kind: header[1], length };
        let fits = place.end() <= packet.len();
        at = if fits { place.end() } else { packet.len() };
        Some((place, fits))
    })
}

/// Appends a TLV as a sender has it.
pub fn push(packet: &mut Vec<u8>, kind: u8, value: &[u8]) {
    packet.extend_from_slice(&[UNRECOGNIZED, kind]);
    packet.extend_from_slice(&(value.len() as u16).to_be_bytes());
    packet.extend_from_slice(value);
}

/// State of a packet's HMAC TLV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integrity {
    /// There is none, and none is needed.
    Absent,
    /// It is right, and begins here.
    Right(usize),
    /// It is wrong, out of place, or missing.
    Wrong,
}

/// Verifies the HMAC TLV of a packet whose TLVs begin at `from`. A packet with authentication needs one, unless it has
/// Extra Padding alone (RFC 8972, 4.8).
pub fn verify(packet: &[u8], from: usize, key: Option<&Key>, authenticated: bool) -> Integrity {
    let mut found = None;
    let mut count = 0;
    let mut has_others = false;
    for (place, fits) in places(packet, from) {
        count += 1;
        if !fits {
            break;
        }
        if found.is_some() && place.kind != EXTRA_PADDING {
            return Integrity::Wrong;
        }
        match place.kind {
            HMAC => found = Some(place),
            EXTRA_PADDING => {}
            _ => has_others = true,
        }
    }
    let Some(place) = found else {
        let needed = authenticated && (has_others || count > 1);
        return if needed { Integrity::Wrong } else { Integrity::Absent };
    };
    let Some(key) = key.filter(|_| place.length == HMAC_BYTES) else { return Integrity::Wrong };
    let value = &packet[place.at + HEADER_BYTES..place.end()];
    if key.verify(&[&packet[..4], &packet[from..place.at]], value) {
        Integrity::Right(place.at)
    } else {
        Integrity::Wrong
    }
}

/// Writes the HMAC TLV's value anew, for the packet's number and the TLVs before it.
pub fn sign(packet: &mut [u8], from: usize, at: usize, key: &Key) {
    let signed = key.sign(&[&packet[..4], &packet[from..at]]);
    packet[at + HEADER_BYTES..at + HEADER_BYTES + HMAC_BYTES].copy_from_slice(&signed);
}
