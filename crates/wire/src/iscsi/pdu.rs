//! A protocol data unit as a plain value.

use super::header::Header;
use super::payload::Payload;

/// An additional header segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ahs {
    /// 1: the rest of a CDB longer than 16 bytes. 2: length of the read of a bidirectional command.
    pub kind: u8,
    /// From the byte after the type on: the AHS-specific byte, then the content.
    pub bytes: Vec<u8>,
}

/// A protocol data unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pdu {
    /// The basic header segment.
    pub header: Header,
    /// Additional header segments; empty but for CDBs beyond 16 bytes and bidirectional commands.
    pub ahs: Vec<Ahs>,
    /// The data segment.
    pub data: Payload,
}

impl Pdu {
    /// A PDU without data.
    pub fn new(header: impl Into<Header>) -> Pdu {
        Pdu { header: header.into(), ahs: Vec::new(), data: Payload::default() }
    }

    /// A PDU with data.
    pub fn with(header: impl Into<Header>, data: Payload) -> Pdu {
        Pdu { header: header.into(), ahs: Vec::new(), data }
    }
}
