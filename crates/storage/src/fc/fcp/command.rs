//! A command of the initiator, and its end.

use wire::fc::FcId;
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

/// A command for a unit of a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Address of the target.
    pub target: FcId,
    /// The eight bytes of the LUN: its number shifted left by 48.
    pub lun: u64,
    /// Filled up with zeros.
    pub cdb: [u8; 16],
    /// Its data.
    pub data: Data,
}

/// The answer of a target to a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// SCSI status.
    pub status: u8,
    /// Sense data.
    pub sense: Vec<u8>,
    /// Data that came, whole and in order.
    pub data: Rope,
    /// Bytes that were expected and not moved.
    pub underflow: u32,
    /// Bytes that there was no room for.
    pub overflow: u32,
    /// Times that the command was sent; above 1 after errors.
    pub attempts: u32,
}

/// Reason for which a command has no answer. The target may or may not have performed it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// Every attempt was aborted: frames were lost, or the target was silent.
    #[error("the command was sent {0} times, and every attempt was aborted")]
    Aborted(u32),
    /// The target was not logged in for too long.
    #[error("the target is not logged in")]
    NoTarget,
    /// The target says that the command's fields are not right.
    #[error("the target refused the command: response code {0:#04x}")]
    Refused(u8),
}

/// The end of a command, by its number.
pub type Ended = (u64, Result<Completion, Failure>);
