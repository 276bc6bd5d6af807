//! iSCSI PDUs (RFC 7143, section 11): headers as plain values, frames with digests and padding, text of negotiations.
//!
//! A [`Pdu`] is a [`Header`], additional header segments and a [`Payload`]. A payload is either bytes or a length
//! alone: simulated connections carry lengths, real ones bytes, and the state machines above do not tell them apart.
//! [`Framing`] turns PDUs into bytes and back; [`Outgoing`] queues them for a socket without copying large payloads.
//!
//! Three promises of the decoder: any bytes give a PDU, a wish for more bytes, or an error that says what would be
//! right; what is emitted parses back to the same value; and nothing is kept before its length was found to be within
//! the limit.

mod error;
mod field;
mod frame;
mod header;
mod names;
mod outgoing;
mod payload;
mod text;

#[cfg(test)]
mod tests;

pub use error::IscsiError;
pub use frame::{Framing, Received, MAX_AHS_BYTES};
pub use header::*;
pub use names::*;
pub use outgoing::Outgoing;
pub use payload::{Payload, Rope};
pub use text::{Text, MAX_KEY_BYTES, MAX_TEXT_BYTES};

/// Bytes of a basic header segment.
pub const BHS_BYTES: usize = 48;
/// A task tag that stands for none.
pub const NO_TAG: u32 = 0xffff_ffff;
/// The port that IANA gave to iSCSI.
pub const PORT: u16 = 3260;

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

/// Whether `a` comes before `b` in serial number arithmetic (RFC 1982): numbers wrap at 2^32, and those at most 2^31 -
/// 1 ahead come later.
pub fn serial_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
