//! iSNS, the name service of IP storage (RFC 4171), as bytes: PDUs, the messages that they carry in pieces, and the
//! attributes of iFCP in them.
//!
//! Authentication blocks are not read: they are for multicast and broadcast (section 5.5), which elephan does not take.
//!
//! **Invariant: any bytes give a value or an error; what is emitted parses back to the same value.**

mod attribute;
mod function;
mod message;
mod pdu;
mod tag;

pub use attribute::{Attribute, IpAddress};
pub use function::{Function, Status};
pub use message::{Assembler, Message, MESSAGE_BYTES_MAX};
pub use pdu::{flags, Pdu, PDU_HEADER_BYTES, PDU_PAYLOAD_BYTES_MAX};
pub use tag::{port_role, scn_bitmap, Tag};

/// TCP and UDP port that IANA gave to iSNS servers.
pub const PORT: u16 = 3205;
/// Entity protocol: iFCP (section 6.2.2).
pub const PROTOCOL_IFCP: u32 = 3;
