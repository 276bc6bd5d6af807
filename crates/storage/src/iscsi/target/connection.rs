//! The state of one connection: its phase, and the PDUs and data that wait to be sent.

use super::config::TargetConfig;
use super::login_state::Login;
use super::memory::{ClaimedBytes, PeerProgress, PendingRelease};
use crate::iscsi::chap::ENTROPY_BYTES;
use crate::iscsi::settings::{Negotiated, Negotiation};
use core::net::IpAddr;
use std::collections::VecDeque;
use units::Time;
use wire::iscsi::{Framing, Header, Payload, Pdu};

#[derive(Debug)]
pub(super) enum Phase {
    Login(Box<Login>),
    Full { tsih: u16 },
}

/// The data of a read on its way out.
#[derive(Debug)]
pub(super) struct ReadTransfer {
    pub itt: u32,
    /// The rest.
    pub data: Payload,
    pub offset: u32,
    pub data_sn: u32,
    /// Bytes of the sequence that may still go before its F bit.
    pub burst: u32,
    /// Of the status that rides on the last PDU.
    pub overflow: bool,
    pub underflow: bool,
    pub residual: u32,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub phase: Phase,
    pub portal: String,
    /// Address of the initiator, where it is known.
    pub peer: Option<IpAddr>,
    pub framing_in: Framing,
    pub framing_out: Framing,
    pub negotiated: Negotiated,
    pub cid: u16,
    pub stat_sn: u32,
    /// Whole PDUs, but for their numbers.
    pub ready: VecDeque<Pdu>,
    pub sending: VecDeque<ReadTransfer>,
    /// Bytes of data that commands under way hold or will.
    pub committed: u64,
    /// Of the target's memory, bytes.
    pub claimed: ClaimedBytes,
    /// Bytes of PDUs that were polled, and of them those that were sent.
    pub polled: u64,
    pub sent: u64,
    /// In the order of their places.
    pub pending_releases: VecDeque<PendingRelease>,
    pub progress: PeerProgress,
    /// Unasked data of a PDU that is on its way here, bytes.
    pub incoming: u64,
    /// Since when commands wait for memory.
    pub waiting_since: Option<Time>,
    /// Commands that wait for others to give back their share.
    pub waiting: VecDeque<u32>,
    pub opened: Time,
    pub last_heard: Time,
    pub ping_sent: Option<Time>,
    pub closing: Option<String>,
    /// To be closed at once, without what is queued.
    pub is_aborted: bool,
    pub entropy: [u8; ENTROPY_BYTES],
}

pub(super) enum Due {
    Nothing,
    Ping,
    Close(&'static str),
}

impl Connection {
    pub(super) fn new(now: Time, portal: &str, entropy: [u8; ENTROPY_BYTES]) -> Connection {
        let login = Login::default();
        Connection {
            negotiated: Negotiation::new(Default::default(), false).negotiated(),
            phase: Phase::Login(Box::new(login)),
            portal: portal.to_owned(),
            peer: None,
            framing_in: Framing::LOGIN,
            framing_out: Framing::LOGIN,
            cid: 0,
            stat_sn: 0,
            ready: VecDeque::new(),
            sending: VecDeque::new(),
            committed: 0,
            claimed: ClaimedBytes::default(),
            polled: 0,
            sent: 0,
            pending_releases: VecDeque::new(),
            progress: PeerProgress::new(now),
            incoming: 0,
            waiting_since: None,
            waiting: VecDeque::new(),
            opened: now,
            last_heard: now,
            ping_sent: None,
            closing: None,
            is_aborted: false,
            entropy,
        }
    }

    /// Unasked data of answers that have not been sent and of what is on its way here, bytes.
    pub(super) fn unsolicited_answers(&self) -> u64 {
        let queued = self.ready.iter().filter(|pdu| matches!(pdu.header, Header::NopIn(_)));
        let pending_releases = self.pending_releases.iter().map(|pending_releases| pending_releases.held.unsolicited);
        queued.map(|pdu| pdu.data.len() as u64).chain(pending_releases).sum::<u64>() + self.incoming
    }

    pub(super) fn deadline(&self, config: &TargetConfig) -> Option<Time> {
        if self.closing.is_some() {
            return None;
        }
        Some(match (&self.phase, self.ping_sent) {
            (Phase::Login(_), _) => self.opened + config.login_timeout,
            (_, Some(sent)) => sent + config.ping_timeout,
            (_, None) => self.last_heard + config.ping_after,
        })
    }

    pub(super) fn due(&self, now: Time, config: &TargetConfig) -> Due {
        match self.deadline(config) {
            Some(deadline) if now >= deadline => {}
            _ => return Due::Nothing,
        }
        match (&self.phase, self.ping_sent) {
            (Phase::Login(_), _) => Due::Close("the login took too long"),
            (_, Some(_)) => Due::Close("no answer to a ping"),
            (_, None) => Due::Ping,
        }
    }
}
