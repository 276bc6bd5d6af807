//! Service parameters of a login: FLOGI, FDISC, PLOGI and their accepts (FC-LS, tables 158 to 190).

use super::address::Wwn;
use super::command::Command;
use crate::error::{require, WireError};

/// Bytes of the payload, command included.
pub const LOGIN_BYTES: usize = 116;

/// Features of an FLOGI: the port takes several addresses.
const MULTIPLE_IDS: u16 = 0x8000;
/// Features of a PLOGI and its accept: relative offsets grow within an exchange's data.
const INCREASING_OFFSET: u16 = 0x8000;
/// Features of an FLOGI accept: the fabric gives further addresses (FDISC).
const MULTIPLE_IDS_GRANTED: u16 = 0x2000;
/// Features: a fabric port sent it.
const FABRIC_PORT: u16 = 0x1000;
/// Of a class: it is supported.
const CLASS_VALID: u16 = 0x8000;
/// Of a class: frames of an exchange come in the order in which they were sent.
const SEQUENTIAL_DELIVERY: u16 = 0x0800;
/// FC-PH version that everybody writes: lowest and highest 32 (FC-PH-3).
const VERSION: u8 = 0x20;

/// Payload of a login and of its accept. Parameters of classes 1, 2 and 4 are read over and sent as not supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Login {
    /// First byte: the request's command, or 2 for an accept.
    pub command: u8,
    /// Frames that the sender of the login has room for.
    pub buffer_credits: u16,
    /// Longest payload it takes on the link, bytes: 256 to 2112.
    pub receive_bytes: u16,
    /// A fabric port sent it.
    pub fabric_port: bool,
    /// The port wants, or the fabric gives, further addresses by FDISC. False in a PLOGI.
    pub further_addresses: bool,
    /// Time after which a frame that has not come will not come, ms (R_A_TOV); only in a fabric's accept.
    pub r_a_tov_ms: Option<u32>,
    /// Time after which a missing answer is an error, ms (E_D_TOV).
    pub e_d_tov_ms: u32,
    /// Name of the port.
    pub port: Wwn,
    /// Name of the node; in a fabric's accept, of the fabric.
    pub node: Wwn,
    /// Class 3 is supported.
    pub class3: bool,
    /// Frames of an exchange come in their order in class 3.
    pub sequential_delivery: bool,
}

impl Login {
    /// Reads a payload, of FLOGI, FDISC, PLOGI or an accept.
    ///
    /// # Errors
    /// Bytes are missing, or the size of the receive field is below 256 or above 2112.
    pub fn parse(bytes: &[u8]) -> Result<Login, WireError> {
        require(bytes, LOGIN_BYTES, "login")?;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let name = |at: usize| Wwn(u64::from(word(at)) << 32 | u64::from(word(at + 4)));
        let features = half(8);
        let fabric_port = features & FABRIC_PORT != 0;
        let receive_bytes = half(10) & 0x0fff;
        if !(256..=2112).contains(&receive_bytes) {
            return Err(WireError::Malformed { field: "receive data field size", value: u64::from(receive_bytes) });
        }
        let further_addresses = match Command(bytes[0]) {
            _ if fabric_port => features & MULTIPLE_IDS_GRANTED != 0,
            Command::FLOGI | Command::FDISC => features & MULTIPLE_IDS != 0,
            _ => false,
        };
        // Class 3 is the third block of 16 bytes after the names.
        let class = half(68);
        Ok(Login {
            command: bytes[0],
            buffer_credits: half(6),
            receive_bytes,
            fabric_port,
            further_addresses,
            r_a_tov_ms: fabric_port.then(|| word(12)),
            e_d_tov_ms: word(16),
            port: name(20),
            node: name(28),
            class3: class & CLASS_VALID != 0,
            sequential_delivery: class & SEQUENTIAL_DELIVERY != 0,
        })
    }

    /// The payload's bytes.
    pub fn to_bytes(&self) -> [u8; LOGIN_BYTES] {
        let mut bytes = [0; LOGIN_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let features = match Command(self.command) {
            _ if self.fabric_port => FABRIC_PORT | if self.further_addresses { MULTIPLE_IDS_GRANTED } else { 0 },
            Command::FLOGI | Command::FDISC if self.further_addresses => MULTIPLE_IDS,
            Command::FLOGI | Command::FDISC => 0,
            _ => INCREASING_OFFSET,
        };
        put(0, &[self.command]);
        put(4, &[VERSION, VERSION]);
        put(6, &self.buffer_credits.to_be_bytes());
        put(8, &features.to_be_bytes());
        put(10, &(self.receive_bytes & 0x0fff).to_be_bytes());
        match self.r_a_tov_ms {
            Some(ms) if self.fabric_port => put(12, &ms.to_be_bytes()),
            // Sequences at once, and that relative offsets are used in every category.
            _ => put(12, &[0x00, 0xff, 0x00, 0x1f]),
        }
        put(16, &self.e_d_tov_ms.to_be_bytes());
        put(20, &self.port.0.to_be_bytes());
        put(28, &self.node.0.to_be_bytes());
        let mut class = if self.class3 { CLASS_VALID } else { 0 };
        class |= if self.sequential_delivery { SEQUENTIAL_DELIVERY } else { 0 };
        put(68, &class.to_be_bytes());
        if !self.fabric_port {
            // Size of the field, sequences at once, sequences per exchange.
            put(74, &self.receive_bytes.to_be_bytes());
            put(76, &[0x00, 0xff]);
            put(81, &[0x01]);
        }
        bytes
    }
}
