//! A command at the target.

use crate::fc::fcp::frames::DataOrder;
use crate::scsi::{Continuation, Nexus, Op};
use wire::fc::fcp::{Command, Response};
use wire::fc::FcId;
use wire::iscsi::{Payload, Rope};

/// Name of an exchange at a target: its originator and the number that the originator gave it.
pub(super) type Key = (FcId, u16);

/// Progress of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Waits for memory.
    Waiting,
    /// Data is on its way; also of a command that has it all and waits for others of its unit.
    Collecting,
    /// The medium is at it.
    Working,
    /// Data and response are on their way.
    Answering,
}

/// A command.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub serial: u64,
    pub rx_id: u16,
    pub command: Command,
    pub cdb: [u8; 16],
    pub stage: Stage,
    /// Data that the unit takes of the initiator, bytes.
    pub wanted: u32,
    /// End of the data that was asked for.
    pub asked_to: u32,
    pub data: Rope,
    pub order: DataOrder,
    /// Data for the initiator, bytes, that has left.
    pub sent: u32,
    /// Memory that the command needs, bytes.
    pub claim: u64,
    /// Memory that it has: nothing before its turn, then all of it.
    pub held: u64,
    pub next_seq_id: u8,
}

impl Exchange {
    /// The number of the next sequence of the target's side.
    pub fn seq_id(&mut self) -> u8 {
        self.next_seq_id = self.next_seq_id.wrapping_add(1);
        self.next_seq_id.wrapping_sub(1)
    }
}

/// An answer on its way: data first, then the response.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub key: Key,
    pub data: Payload,
    pub offset: u32,
    pub seq_id: u8,
    pub seq_cnt: u16,
    pub response: Response,
}

/// An operation on the medium of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// For [`super::Target::handle_work`].
    pub id: u64,
    /// Address of the initiator.
    pub initiator: FcId,
    /// The exchange, as the initiator numbers it.
    pub ox_id: u16,
    /// Number of the logical unit.
    pub lun: usize,
    /// The operation.
    pub op: Op,
}

/// The command that an operation belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkOrigin {
    pub key: Key,
    /// Tells the command from a later one with the same numbers.
    pub serial: u64,
    pub lun: usize,
    pub then: Continuation,
    /// Memory that is given back with the end of the operation, of a command that was aborted; else 0.
    pub claim: u64,
}

/// A task management function that waits until the medium is done with the commands that it ended.
#[derive(Clone, Debug)]
pub(super) struct PendingManagement {
    pub key: Key,
    pub rx_id: u16,
    pub serials: Vec<u64>,
}

/// An initiator that is logged in.
#[derive(Clone, Debug)]
pub(super) struct InitiatorPort {
    pub nexus: Nexus,
    pub receive_bytes: u16,
    pub commands: usize,
}
