//! One connection of the initiator.

use super::login::Login;
use super::{Initiator, InitiatorConfig, Outbound};
use crate::iscsi::{Negotiated, Negotiation, Settings};
use std::collections::VecDeque;
use units::Time;
use wire::iscsi::{DataOut, Framing, Header, Pdu, NO_TAG};

#[derive(Debug, PartialEq)]
pub(super) enum Phase {
    Down,
    /// The caller is to make it.
    Wanted,
    Login(Box<Login>),
    Up,
    /// The caller is to close it.
    Closing(String),
}

/// A queued PDU.
#[derive(Debug)]
pub(super) enum QueuedPdu {
    Pdu(Pdu),
    /// Data of a write, cut into PDUs when they are polled.
    Data {
        id: u64,
        ttt: u32,
        offset: u32,
        length: u32,
        data_sn: u32,
    },
}

#[derive(Debug)]
pub(super) struct ConnectionState {
    pub phase: Phase,
    pub framing_in: Framing,
    pub framing_out: Framing,
    pub negotiated: Negotiated,
    pub exp_stat_sn: u32,
    pub out: VecDeque<QueuedPdu>,
    /// Commands under way.
    pub outstanding: u32,
    pub since: Time,
    pub ping_sent: Option<Time>,
    /// Answers to the target's pings that have not gone.
    pub pings: u32,
}

impl Default for ConnectionState {
    fn default() -> ConnectionState {
        ConnectionState {
            phase: Phase::Down,
            framing_in: Framing::LOGIN,
            framing_out: Framing::LOGIN,
            negotiated: Negotiation::new(Settings::default(), false).negotiated(),
            exp_stat_sn: 0,
            out: VecDeque::new(),
            outstanding: 0,
            since: Time(0),
            ping_sent: None,
            pings: 0,
        }
    }
}

impl ConnectionState {
    pub(super) fn is_up(&self) -> bool {
        self.phase == Phase::Up
    }

    pub(super) fn deadline(&self, config: &InitiatorConfig) -> Option<Time> {
        match (&self.phase, self.ping_sent) {
            (Phase::Login(_), _) => Some(self.since + config.login_timeout),
            (Phase::Up, Some(sent)) => Some(sent + config.ping_timeout),
            (Phase::Up, None) => Some(self.since + config.ping_after),
            _ => None,
        }
    }
}

impl Initiator {
    /// The next PDU of a connection.
    pub fn poll_pdu(&mut self, index: usize) -> Option<Outbound> {
        let link = &mut self.connections[index];
        if !matches!(link.phase, Phase::Login(_) | Phase::Up) {
            return None;
        }
        let framing = link.framing_out;
        let mut pdu = loop {
            match link.out.pop_front()? {
                QueuedPdu::Pdu(pdu) => break pdu,
                QueuedPdu::Data { id, ttt, offset, length, data_sn } => {
                    // A command that ended before its data was asked for more than it has.
                    let Some(task) = self.tasks.get_mut(&id) else { continue };
                    let now = length.min(link.negotiated.max_send_bytes);
                    let left = length - now;
                    if left > 0 {
                        let (offset, data_sn) = (offset + now, data_sn + 1);
                        link.out.push_front(QueuedPdu::Data { id, ttt, offset, length: left, data_sn });
                    } else if ttt != NO_TAG {
                        task.asked -= 1;
                    }
                    let data = task.outgoing().slice(offset as usize, now as usize);
                    let header = DataOut {
                        last: left == 0,
                        lun: task.command.lun,
                        itt: task.tag,
                        ttt,
                        data_sn,
                        buffer_offset: offset,
                        ..DataOut::default()
                    };
                    break Pdu::with(header, data);
                }
            }
        };
        let expected = link.exp_stat_sn;
        match &mut pdu.header {
            Header::NopOut(h) => {
                h.exp_stat_sn = expected;
                link.pings -= u32::from(h.ttt != NO_TAG);
            }
            Header::ScsiCommand(h) => h.exp_stat_sn = expected,
            Header::TaskRequest(h) => h.exp_stat_sn = expected,
            Header::LoginRequest(h) => h.exp_stat_sn = expected,
            Header::TextRequest(h) => h.exp_stat_sn = expected,
            Header::LogoutRequest(h) => h.exp_stat_sn = expected,
            Header::DataOut(h) => h.exp_stat_sn = expected,
            _ => {}
        }
        Some(Outbound { pdu, framing })
    }
}
