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
mod pdu;
mod serial;
mod text;

#[cfg(test)]
mod tests;

pub use error::IscsiError;
pub use field::BHS_BYTES;
pub use frame::{Framing, Received, MAX_AHS_BYTES};
pub use header::*;
pub use names::*;
pub use outgoing::Outgoing;
pub use payload::{Payload, Rope};
pub use pdu::{Ahs, Pdu};
pub use serial::serial_before;
pub use text::{Text, MAX_KEY_BYTES, MAX_TEXT_BYTES};
