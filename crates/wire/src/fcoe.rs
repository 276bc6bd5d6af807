//! Fibre Channel over Ethernet (FC-BB-5, clause 7): one FC frame in one Ethernet frame.

use crate::error::{require, WireError};
use crate::ethernet::{EthernetHeader, ETHERTYPE_FCOE};
use crate::fc::{Eof, FcId, Frame, Sof};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of version, reserved fields and SOF before the FC frame.
pub const FCOE_HEADER_BYTES: usize = 14;
/// Bytes of EOF and reserved fields behind it.
pub const FCOE_TRAILER_BYTES: usize = 4;
/// Upper half of the addresses that a fabric gives, unless it is set otherwise (FC-MAP).
pub const DEFAULT_FC_MAP: u32 = 0x0e_fc00;

/// Ethernet address that a fabric with `fc_map` gives to the port with an FC address (FPMA).
pub fn fabric_provided_mac(fc_map: u32, id: FcId) -> [u8; 6] {
    let [_, a, b, c] = fc_map.to_be_bytes();
    let [d, e, f] = id.to_bytes();
    [a, b, c, d, e, f]
}

/// Appends an Ethernet frame with an FC frame in it. It is padded to no least length: drivers do so.
pub fn encode(ethernet: &EthernetHeader, frame: &Frame, into: &mut BytesMut) {
    ethernet.encode(ETHERTYPE_FCOE, into);
    into.put_bytes(0, FCOE_HEADER_BYTES - 1);
    into.put_u8(frame.sof.code());
    frame.encode_content(into);
    into.put_u8(frame.eof.code());
    into.put_bytes(0, FCOE_TRAILER_BYTES - 1);
}

/// Reads what follows the Ethernet header. Padding behind the trailer cannot be told from content, so that `bytes`
/// ends with the trailer: frames without payload are longer than Ethernet's least.
///
/// # Errors
/// Bytes are missing, the version is not 0, delimiters are unknown, or the FC frame is damaged.
pub fn decode(bytes: &Bytes) -> Result<Frame, WireError> {
    require(bytes, FCOE_HEADER_BYTES + FCOE_TRAILER_BYTES, "FCoE frame")?;
    if bytes[0] >> 4 != 0 {
        return Err(WireError::Malformed { field: "FCoE version", value: u64::from(bytes[0] >> 4) });
    }
    let end = bytes.len() - FCOE_TRAILER_BYTES;
    let sof = Sof::from_code(bytes[FCOE_HEADER_BYTES - 1])?;
    let eof = Eof::from_code(bytes[end])?;
    Frame::decode_content(sof, &bytes.slice(FCOE_HEADER_BYTES..end), eof)
}
