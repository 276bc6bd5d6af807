//! A command under way at the initiator.

use super::command::{Command, Data};
use wire::iscsi::{Payload, Rope, NO_TAG};

/// A command under way.
#[derive(Debug)]
pub(super) struct Task {
    pub command: Command,
    pub sent: bool,
    pub link: usize,
    pub tag: u32,
    pub cmd_sn: u32,
    pub received: Rope,
    pub next_data_sn: u32,
    pub next_r2t_sn: u32,
    /// R2Ts whose data has not all gone.
    pub asked: u32,
}

impl Task {
    pub(super) fn new(command: Command) -> Task {
        let (sent, link, tag, cmd_sn) = (false, 0, NO_TAG, 0);
        Task { command, sent, link, tag, cmd_sn, received: Rope::default(), next_data_sn: 0, next_r2t_sn: 0, asked: 0 }
    }

    /// From the beginning.
    pub(super) fn restart(&mut self) {
        (self.sent, self.tag, self.received) = (false, NO_TAG, Rope::default());
        (self.next_data_sn, self.next_r2t_sn, self.asked) = (0, 0, 0);
    }

    /// Data of a write.
    pub(super) fn outgoing(&self) -> Payload {
        match &self.command.data {
            Data::Write(data) => data.clone(),
            _ => Payload::default(),
        }
    }
}
