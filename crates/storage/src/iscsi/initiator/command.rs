//! A command and its end.

use wire::iscsi::{Payload, Rope};

/// Data of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// None.
    None,
    /// At most so many bytes come.
    Read(u32),
    /// These go.
    Write(Payload),
}

/// A command for a logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The eight bytes of the LUN: its number shifted left by 48.
    pub lun: u64,
    /// Filled up with zeros.
    pub cdb: [u8; 16],
    /// Its data.
    pub data: Data,
}

/// The end of a command at the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// SCSI status.
    pub status: u8,
    /// Sense data.
    pub sense: Vec<u8>,
    /// Data that came.
    pub data: Rope,
    /// Bytes that were expected and not moved.
    pub underflow: u32,
    /// Bytes that there was no room for.
    pub overflow: u32,
    /// The connection that it went over.
    pub connection: usize,
}
