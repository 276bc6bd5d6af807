//! Basic link services: the replies to an abort of a sequence (FC-FS-2, clause 13).

use crate::error::{require, WireError};

/// Reason: a field of the request contradicts what the receiver knows.
pub const BASIC_LOGICAL_ERROR: u8 = 0x03;
/// Reason: the receiver cannot do it.
pub const BASIC_UNABLE: u8 = 0x09;
/// Explanation: nobody has an exchange of that OX_ID and RX_ID.
pub const INVALID_OX_RX_ID: u8 = 0x03;

/// The sequences that an abort took away (BA_ACC), 12 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BasicAccept {
    /// Last sequence that was delivered, where the receiver says.
    pub seq_id: Option<u8>,
    /// Exchange, as its originator numbers it.
    pub ox_id: u16,
    /// Exchange, as its responder numbers it.
    pub rx_id: u16,
    /// Lowest count of the frames that are taken away.
    pub low_seq_cnt: u16,
    /// Highest count of the frames that are taken away.
    pub high_seq_cnt: u16,
}

impl BasicAccept {
    /// The payload's bytes.
    pub fn to_bytes(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        if let Some(seq_id) = self.seq_id {
            (bytes[0], bytes[1]) = (0x80, seq_id);
        }
        bytes[4..6].copy_from_slice(&self.ox_id.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.rx_id.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.low_seq_cnt.to_be_bytes());
        bytes[10..12].copy_from_slice(&self.high_seq_cnt.to_be_bytes());
        bytes
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(bytes: &[u8]) -> Result<BasicAccept, WireError> {
        require(bytes, 12, "BA_ACC")?;
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Ok(BasicAccept {
            seq_id: (bytes[0] & 0x80 != 0).then_some(bytes[1]),
            ox_id: half(4),
            rx_id: half(6),
            low_seq_cnt: half(8),
            high_seq_cnt: half(10),
        })
    }
}

/// An abort that was refused (BA_RJT), 4 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BasicReject {
    /// Reason, such as [`BASIC_LOGICAL_ERROR`].
    pub reason: u8,
    /// Explanation, such as [`INVALID_OX_RX_ID`].
    pub explanation: u8,
    /// The vendor's own code.
    pub vendor: u8,
}

impl BasicReject {
    /// The payload's bytes.
    pub fn to_bytes(&self) -> [u8; 4] {
        [0, self.reason, self.explanation, self.vendor]
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(bytes: &[u8]) -> Result<BasicReject, WireError> {
        require(bytes, 4, "BA_RJT")?;
        Ok(BasicReject { reason: bytes[1], explanation: bytes[2], vendor: bytes[3] })
    }
}
