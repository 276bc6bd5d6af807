//! A command: its request, its steps, its reply.

use super::cdb::Cdb;
use super::medium::Op;
use super::nexus::Nexus;
use super::sense::Sense;
use wire::iscsi::Payload;

/// A command on its way: which unit, which initiator, which CDB.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The eight bytes of the LUN.
    pub lun: u64,
    /// The initiator port.
    pub nexus: &'a Nexus,
    /// The command.
    pub cdb: &'a Cdb,
    /// Bytes of data that the initiator offers, taken or not.
    pub offered: u32,
}

/// The end of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// SCSI status.
    pub status: u8,
    /// Sense data.
    pub sense: Vec<u8>,
    /// Data for the initiator, cut to the allocation length.
    pub data: Payload,
}

/// The next step of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It is done.
    Done(Reply),
    /// It waits for the medium; hand `Continuation` to [`super::Lun::finish`] with the outcome.
    Work(Op, Continuation),
}

/// The rest of a command after the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Continuation {
    /// Data or nothing.
    Plain,
    /// GET LBA STATUS with this allocation length.
    LbaStatus(u32),
    /// CONDITION MET.
    Prefetch,
}

/// The result of a command without medium access: data, or sense data.
pub(super) type CommandResult = Result<Vec<u8>, Sense>;
