//! SCSI's information units: command, transfer ready, response (FCP-3, clause 9).

use crate::error::{require, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of a command with a CDB of 16 bytes.
pub const COMMAND_BYTES: usize = 32;
/// Bytes of transfer ready.
pub const TRANSFER_READY_BYTES: usize = 12;
/// Bytes of a response before response information and sense data.
pub const RESPONSE_BYTES: usize = 24;
const CDB_BYTES: usize = 16;

/// Order of a command among those of its unit (FCP-3, 9.1.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskAttribute {
    /// Any.
    Simple = 0,
    /// Before all others.
    HeadOfQueue = 1,
    /// As sent.
    Ordered = 2,
    /// Of an auto contingent allegiance.
    Aca = 4,
}

/// Task management that a command asks for instead of a CDB (FCP-3, 9.1.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TaskManagement {
    /// Clear the auto contingent allegiance.
    ClearAca = 0x40,
    /// Reset the target.
    TargetReset = 0x20,
    /// Reset the logical unit.
    LunReset = 0x10,
    /// Clear everybody's tasks.
    ClearTaskSet = 0x04,
    /// Abort the sender's tasks.
    AbortTaskSet = 0x02,
}

/// A command (FCP_CMND).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Logical unit, as SAM writes it in 8 bytes.
    pub lun: [u8; 8],
    /// Number of the command, for ordered delivery; 0 = none.
    pub reference: u8,
    /// Priority, 0 to 15.
    pub priority: u8,
    /// Order.
    pub attribute: TaskAttribute,
    /// Task management instead of a command.
    pub management: Option<TaskManagement>,
    /// The command reads.
    pub read: bool,
    /// The command writes.
    pub write: bool,
    /// Descriptor block: 16 bytes, or longer by a multiple of 4 up to 268.
    pub cdb: Bytes,
    /// Data, bytes.
    pub data_bytes: u32,
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// Bytes are missing, or attribute or task management are none of FCP-3.
    pub fn parse(bytes: &Bytes) -> Result<Command, WireError> {
        require(bytes, COMMAND_BYTES, "FCP_CMND")?;
        let more = usize::from(bytes[11] >> 2) * 4;
        require(bytes, COMMAND_BYTES + more, "FCP_CMND")?;
        let mut lun = [0; 8];
        lun.copy_from_slice(&bytes[..8]);
        let attribute = match bytes[9] & 7 {
            0 => TaskAttribute::Simple,
            1 => TaskAttribute::HeadOfQueue,
            2 => TaskAttribute::Ordered,
            4 => TaskAttribute::Aca,
            value => return Err(WireError::Malformed { field: "FCP task attribute", value: u64::from(value) }),
        };
        let management = match bytes[10] {
            0 => None,
            0x40 => Some(TaskManagement::ClearAca),
            0x20 => Some(TaskManagement::TargetReset),
            0x10 => Some(TaskManagement::LunReset),
            0x04 => Some(TaskManagement::ClearTaskSet),
            0x02 => Some(TaskManagement::AbortTaskSet),
            value => return Err(WireError::Malformed { field: "FCP task management", value: u64::from(value) }),
        };
        let end = 12 + CDB_BYTES + more;
        Ok(Command {
            lun,
            reference: bytes[8],
            priority: bytes[9] >> 3 & 0x0f,
            attribute,
            management,
            read: bytes[11] & 2 != 0,
            write: bytes[11] & 1 != 0,
            cdb: bytes.slice(12..end),
            data_bytes: u32::from_be_bytes([bytes[end], bytes[end + 1], bytes[end + 2], bytes[end + 3]]),
        })
    }

    /// The command's bytes. A CDB of another length than FCP-3 allows is padded with zeros.
    pub fn to_bytes(&self) -> Bytes {
        let cdb = &self.cdb[..self.cdb.len().min(CDB_BYTES + 63 * 4)];
        let more = cdb.len().saturating_sub(CDB_BYTES).div_ceil(4);
        let mut bytes = BytesMut::with_capacity(COMMAND_BYTES + more * 4);
        bytes.put_slice(&self.lun);
        bytes.put_u8(self.reference);
        bytes.put_u8((self.priority & 0x0f) << 3 | self.attribute as u8);
        bytes.put_u8(self.management.map_or(0, |management| management as u8));
        bytes.put_u8((more as u8) << 2 | u8::from(self.read) << 1 | u8::from(self.write));
        bytes.put_slice(cdb);
        bytes.put_bytes(0, CDB_BYTES + more * 4 - cdb.len());
        bytes.put_u32(self.data_bytes);
        bytes.freeze()
    }
}

/// The target has room for data (FCP_XFER_RDY).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferReady {
    /// Place of the data in the command's, bytes.
    pub offset: u32,
    /// Bytes to send.
    pub bytes: u32,
}

impl TransferReady {
    /// Reads it.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(bytes: &[u8]) -> Result<TransferReady, WireError> {
        require(bytes, TRANSFER_READY_BYTES, "FCP_XFER_RDY")?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Ok(TransferReady { offset: word(0), bytes: word(4) })
    }

    /// Its bytes.
    pub fn to_bytes(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(TRANSFER_READY_BYTES);
        bytes.put_u32(self.offset);
        bytes.put_u32(self.bytes);
        bytes.put_u32(0);
        bytes.freeze()
    }
}

/// Data that was asked for and is not there, or is there and was not asked for (FCP-3, 9.4.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residual {
    /// As much as asked for.
    None,
    /// So many bytes fewer.
    Under(u32),
    /// So many bytes more.
    Over(u32),
}

/// End of a command (FCP_RSP).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// SCSI status.
    pub status: u8,
    /// Difference of the data's length.
    pub residual: Residual,
    /// Code of the response information: 0 = task management done; None = there is no such information.
    pub code: Option<u8>,
    /// Sense data; empty = none.
    pub sense: Bytes,
}

impl Response {
    const RESPONSE_LENGTH_VALID: u8 = 0x01;
    const SENSE_LENGTH_VALID: u8 = 0x02;
    const OVER: u8 = 0x04;
    const UNDER: u8 = 0x08;
    const INFORMATION_BYTES: u32 = 8;

    /// Reads a response. One of 12 bytes, without lengths, is taken as FCP-3, 9.4 asks.
    ///
    /// # Errors
    /// Bytes are missing.
    pub fn parse(bytes: &Bytes) -> Result<Response, WireError> {
        require(bytes, 12, "FCP_RSP")?;
        let flags = bytes[10];
        let mut response = Response { status: bytes[11], residual: Residual::None, code: None, sense: Bytes::new() };
        if flags & 0x0f == 0 {
            return Ok(response);
        }
        require(bytes, RESPONSE_BYTES, "FCP_RSP")?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        response.residual = match flags & (Response::UNDER | Response::OVER) {
            Response::UNDER => Residual::Under(word(12)),
            Response::OVER => Residual::Over(word(12)),
            _ => Residual::None,
        };
        let mut at = RESPONSE_BYTES;
        if flags & Response::RESPONSE_LENGTH_VALID != 0 {
            let length = word(20) as usize;
            if length != 4 && length != 8 {
                return Err(WireError::Malformed { field: "FCP_RSP_LEN", value: length as u64 });
            }
            require(bytes, at + length, "FCP_RSP")?;
            response.code = Some(bytes[at + 3]);
            at += length;
        }
        if flags & Response::SENSE_LENGTH_VALID != 0 {
            let length = word(16) as usize;
            if length > bytes.len() - at {
                let needed = at.saturating_add(length);
                return Err(WireError::Truncated { part: "FCP_RSP", needed, available: bytes.len() });
            }
            response.sense = bytes.slice(at..at + length);
        }
        Ok(response)
    }

    /// The response's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(RESPONSE_BYTES + 8 + self.sense.len());
        let (flag, residual) = match self.residual {
            Residual::None => (0, 0),
            Residual::Under(bytes) => (Response::UNDER, bytes),
            Residual::Over(bytes) => (Response::OVER, bytes),
        };
        let code = if self.code.is_some() { Response::RESPONSE_LENGTH_VALID } else { 0 };
        let sense = if self.sense.is_empty() { 0 } else { Response::SENSE_LENGTH_VALID };
        bytes.put_bytes(0, 10);
        bytes.put_u8(flag | code | sense);
        bytes.put_u8(self.status);
        bytes.put_u32(residual);
        bytes.put_u32(self.sense.len() as u32);
        bytes.put_u32(if self.code.is_some() { Response::INFORMATION_BYTES } else { 0 });
        if let Some(code) = self.code {
            bytes.put_slice(&[0, 0, 0, code, 0, 0, 0, 0]);
        }
        bytes.put_slice(&self.sense);
        bytes.freeze()
    }
}
