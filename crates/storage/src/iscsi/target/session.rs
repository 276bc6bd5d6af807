//! The state of a session: connections, the window of command numbers, tasks.

use super::connection_id::ConnectionId;
use super::memory::TaskMemory;
use crate::iscsi::settings::Negotiated;
use crate::scsi::Nexus;
use std::collections::{BTreeMap, VecDeque};
use wire::iscsi::{DataOut, Header, NopOut, Payload, Pdu, Rope, ScsiCommand, NO_TAG};

/// A request for data under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutstandingR2t {
    pub ttt: u32,
    pub offset: u32,
    pub length: u32,
    pub received: u32,
    pub data_sn: u32,
}

/// Progress of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Data is to come.
    Collecting,
    /// The medium is at it.
    Working,
    /// Data and status go out.
    Answering,
}

/// A SCSI command under way.
#[derive(Debug)]
pub(super) struct Task {
    pub serial: u64,
    pub connection: ConnectionId,
    pub command: ScsiCommand,
    pub stage: Stage,
    /// Bytes of data-out that the command takes and the initiator offers.
    pub wanted: u32,
    /// Bytes that came, beyond `wanted` too.
    pub received: u32,
    pub data: Rope,
    /// Unsolicited data is still to come.
    pub unsolicited: bool,
    pub next_data_sn: u32,
    /// Bytes received or asked for.
    pub asked_to: u32,
    pub asked: VecDeque<OutstandingR2t>,
    pub next_r2t_sn: u32,
    /// Its memory, now or once it is admitted; unsolicited data counts on arrival.
    pub held: TaskMemory,
    pub admitted: bool,
    /// Data came damaged: the task ends when it is complete.
    pub damaged: bool,
    /// To be ended without an answer: at once, or when the medium is done with it.
    pub aborted: bool,
}

/// A command that arrived before one with a smaller CmdSN, with the unsolicited data behind it on its connection.
#[derive(Debug)]
pub(super) struct EarlyCommand {
    pub connection: ConnectionId,
    pub pdu: Pdu,
    /// With whether it is intact.
    pub data: Vec<(DataOut, Payload, bool)>,
    /// Of the data.
    pub bytes: usize,
}

impl EarlyCommand {
    /// A placeholder for a CmdSN without a command to execute.
    pub fn nothing(connection: ConnectionId) -> EarlyCommand {
        let pdu = Pdu::new(NopOut { itt: NO_TAG, ttt: NO_TAG, ..NopOut::default() });
        EarlyCommand { connection, pdu, data: Vec::new(), bytes: 0 }
    }

    /// Returns whether it is the command of unsolicited data that comes on a connection with a tag.
    pub fn brings(&self, id: ConnectionId, itt: u32) -> bool {
        matches!(&self.pdu.header, Header::ScsiCommand(command) if self.connection == id && command.itt == itt)
    }

    fn unsolicited(&self) -> u64 {
        (self.pdu.data.len() + self.bytes) as u64
    }
}

/// A task management function that waits for tasks at the medium.
#[derive(Clone, Debug)]
pub(super) struct PendingTaskManagement {
    pub connection: ConnectionId,
    pub itt: u32,
    pub serials: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub nexus: Nexus,
    pub initiator: String,
    pub isid: [u8; 6],
    pub discovery: bool,
    pub negotiated: Negotiated,
    /// By connection identifier.
    pub connections: BTreeMap<u16, ConnectionId>,
    pub exp_cmd_sn: u32,
    pub max_cmd_sn: u32,
    /// Commands that came before those with smaller numbers.
    pub early: BTreeMap<u32, EarlyCommand>,
    /// Boxed: a task has some 300 bytes, which a tree would move with its neighbours.
    pub tasks: BTreeMap<u32, Box<Task>>,
    pub waiting: Vec<PendingTaskManagement>,
    /// The rest of a text that did not fit one PDU, by transfer tag.
    pub texts: BTreeMap<u32, Vec<u8>>,
    /// Commands that it may have under way.
    pub window: u32,
    /// Memory reserved for unsolicited data, bytes.
    pub reserved: u64,
    /// Unasked data of tasks and of answers that have not been sent, bytes.
    pub unsolicited: u64,
}

impl Session {
    /// Unasked data that is held, bytes.
    pub(super) fn all_unsolicited(&self) -> u64 {
        self.unsolicited + self.early.values().map(EarlyCommand::unsolicited).sum::<u64>()
    }
}
