//! One connection: its phase, what waits to be sent, and the numbers of what is sent.

use super::command::ReleaseTime;
use super::login::Login;
use super::memory::{ClaimedBytes, PeerProgress, PendingRelease, TaskMemory};
use super::{ConnectionId, Target, TargetConfig};
use crate::iscsi::chap::ENTROPY_BYTES;
use crate::iscsi::Negotiated;
use std::collections::VecDeque;
use units::Time;
use wire::iscsi::{DataIn, Framing, Header, NopIn, Payload, Pdu, NO_TAG};

/// A PDU to send, and how it is framed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbound {
    /// The PDU.
    pub pdu: Pdu,
    /// How.
    pub framing: Framing,
}

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
    /// How much of the sequence may still go before its F bit.
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
            negotiated: crate::iscsi::Negotiation::new(Default::default(), false).negotiated(),
            phase: Phase::Login(Box::new(login)),
            portal: portal.to_owned(),
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

impl Target {
    pub(super) fn ping(&mut self, now: Time, id: ConnectionId) {
        let ttt = (self.serial() as u32) & 0x7fff_ffff;
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.ping_sent = Some(now);
        }
        self.send(id, Pdu::new(NopIn { itt: NO_TAG, ttt, ..NopIn::default() }));
    }

    /// The next PDU of a connection.
    pub fn poll_pdu(&mut self, id: ConnectionId) -> Option<Outbound> {
        let connection = self.connections.get_mut(&id)?;
        let framing = connection.framing_out;
        if let Some(mut pdu) = connection.ready.pop_front() {
            let login_done = matches!(&pdu.header, Header::LoginResponse(r) if r.transit && r.nsg == 3);
            self.number(id, &mut pdu.header);
            let connection = self.connections.get_mut(&id)?;
            connection.polled += framing.length(&pdu) as u64;
            if login_done {
                // Digests begin behind the login's last PDU.
                connection.framing_out.header_digest = connection.negotiated.header_digest;
                connection.framing_out.data_digest = connection.negotiated.data_digest;
            }
            if matches!(pdu.header, Header::NopIn(_)) && !pdu.data.is_empty() {
                self.release_when_sent(id, TaskMemory { unsolicited: pdu.data.len() as u64, ..TaskMemory::default() });
                self.settle();
            }
            return Some(Outbound { pdu, framing });
        }
        let most = connection.negotiated.max_send_bytes;
        let burst = connection.negotiated.max_burst_bytes;
        let sending = connection.sending.front_mut()?;
        let length = most.min(sending.burst).min(u32::try_from(sending.data.len()).unwrap_or(u32::MAX));
        let data = sending.data.split_to(length as usize);
        let last = sending.data.is_empty();
        sending.burst -= length;
        let mut header = DataIn {
            last: last || sending.burst == 0,
            lun: 0,
            itt: sending.itt,
            ttt: NO_TAG,
            data_sn: sending.data_sn,
            buffer_offset: sending.offset,
            ..DataIn::default()
        };
        sending.offset += length;
        sending.data_sn += 1;
        if sending.burst == 0 {
            sending.burst = burst;
        }
        if last {
            header.has_status = true;
            (header.overflow, header.underflow) = (sending.overflow, sending.underflow);
            header.residual = sending.residual;
            connection.sending.pop_front();
        }
        let itt = header.itt;
        let mut pdu = Pdu::new(header);
        pdu.data = data;
        connection.polled += framing.length(&pdu) as u64;
        if last {
            // Its data is in memory until the last byte has been sent.
            self.end_task(id, itt, ReleaseTime::WhenSent);
        }
        self.number(id, &mut pdu.header);
        self.settle();
        Some(Outbound { pdu, framing })
    }

    /// Fills in StatSN, ExpCmdSN and MaxCmdSN.
    fn number(&mut self, id: ConnectionId, header: &mut Header) {
        let (expected, most) = self.window(id);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let (stat, exp, max, counts) = match header {
            Header::NopIn(h) => {
                let counts = h.itt != NO_TAG;
                (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, counts)
            }
            Header::ScsiResponse(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::TaskResponse(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::LoginResponse(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::TextResponse(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::LogoutResponse(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::AsyncMessage(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            Header::Reject(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true),
            // An R2T tells the next number and does not use it up.
            Header::ReadyToTransfer(h) => (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, false),
            Header::DataIn(h) => {
                let counts = h.has_status;
                if !counts {
                    (h.exp_cmd_sn, h.max_cmd_sn) = (expected, most);
                    return;
                }
                (&mut h.stat_sn, &mut h.exp_cmd_sn, &mut h.max_cmd_sn, true)
            }
            _ => return,
        };
        (*stat, *exp, *max) = (connection.stat_sn, expected, most);
        if counts {
            connection.stat_sn = connection.stat_sn.wrapping_add(1);
        }
    }
}
