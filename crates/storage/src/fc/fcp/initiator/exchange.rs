//! A command at the initiator, and its exchange.

use crate::fc::fcp::command::{Command, Data};
use crate::fc::fcp::frames::DataOrder;
use wire::fc::FcId;
use wire::iscsi::{Payload, Rope};

/// Progress of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The command is under way.
    Active,
    /// An abort is under way.
    Aborting {
        /// Aborts that were sent.
        sent: u32,
        /// Time of the next, ns.
        deadline_ns: u64,
    },
}

/// An exchange.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Number of the command.
    pub command: u64,
    pub target: FcId,
    /// The responder's number, once it is known.
    pub rx_id: Option<u16>,
    pub stage: Stage,
    pub received: Rope,
    pub order: DataOrder,
    /// End of the data that the target asked for.
    pub ready_to: u32,
    /// Data that has left, bytes.
    pub sent: u32,
    /// Sequence of the data that is being sent.
    pub seq_id: u8,
    pub seq_cnt: u16,
    /// Time at which the command took too long, ns.
    pub deadline_ns: u64,
    /// Time at which the target is asked for the exchange's state, ns.
    pub rec_ns: u64,
    /// REC is under way, by its key.
    pub rec_key: Option<u64>,
}

impl Exchange {
    /// Time of the next time-out.
    pub fn due_ns(&self) -> u64 {
        match self.stage {
            Stage::Active => self.deadline_ns.min(self.rec_ns),
            Stage::Aborting { deadline_ns, .. } => deadline_ns,
        }
    }
}

/// A command.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub command: Command,
    /// Times that it was sent.
    pub attempts: u32,
    /// Its exchange, while it has one.
    pub ox_id: Option<u16>,
}

impl Task {
    /// Data of a write.
    pub fn outgoing(&self) -> Payload {
        match &self.command.data {
            Data::Write(data) => data.clone(),
            _ => Payload::default(),
        }
    }

    /// True for a command that does the same when it is done twice.
    pub fn may_repeat(&self) -> bool {
        const PERSISTENT_RESERVE_OUT: u8 = 0x5f;
        const COMPARE_AND_WRITE: u8 = 0x89;
        !matches!(self.command.cdb[0], PERSISTENT_RESERVE_OUT | COMPARE_AND_WRITE)
    }
}

/// A target.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetPort {
    /// Longest payload to send it, bytes; None while it is not logged in.
    pub receive_bytes: Option<u16>,
    /// Time at which waiting commands fail, ns, while it is not logged in.
    pub lost_ns: u64,
    /// Commands that wait, the oldest first.
    pub waiting: std::collections::VecDeque<u64>,
    /// Exchanges under way, those that are aborted included.
    pub outstanding: usize,
}
