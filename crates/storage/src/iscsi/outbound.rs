//! A PDU on its way out, of either side.

use wire::iscsi::{Framing, Pdu};

/// A PDU to send, and how it is framed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbound {
    /// The PDU.
    pub pdu: Pdu,
    /// Its framing.
    pub framing: Framing,
}
