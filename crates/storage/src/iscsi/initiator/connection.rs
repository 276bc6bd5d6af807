//! The state of one connection of the initiator.

use super::config::InitiatorConfig;
use super::login_state::Login;
use crate::iscsi::settings::{Negotiated, Negotiation, Settings};
use std::collections::VecDeque;
use units::Time;
use wire::iscsi::{Framing, Pdu};

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
