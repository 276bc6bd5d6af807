//! Operations on the medium, and the commands that they belong to.

use super::connection_id::ConnectionId;
use super::memory::{MemoryOwner, TaskMemory};
use crate::scsi::{Continuation, Op};

/// An operation on the medium of a unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// For [`super::Target::handle_work`].
    pub id: u64,
    /// The connection that its command came on.
    pub connection: ConnectionId,
    /// Task tag of its command, which the initiator gave it.
    pub itt: u32,
    /// Number of the logical unit.
    pub lun: usize,
    /// The operation.
    pub op: Op,
}

/// The command that an operation belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkOrigin {
    pub tsih: u16,
    pub itt: u32,
    /// Tells the task from a later one with the same tag.
    pub serial: u64,
    pub lun: usize,
    pub then: Continuation,
    /// Memory of its command, and its account.
    pub held: TaskMemory,
    pub owner: MemoryOwner,
}
