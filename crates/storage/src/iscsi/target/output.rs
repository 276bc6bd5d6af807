//! PDUs that the target sends on a connection, and their numbers.

use super::command::ReleaseTime;
use super::connection_id::ConnectionId;
use super::memory::TaskMemory;
use super::Target;
use crate::iscsi::outbound::Outbound;
use units::Time;
use wire::iscsi::{DataIn, Header, NopIn, Pdu, NO_TAG};

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
            self.end_before_answer(id, &pdu.header);
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

    /// Takes a connection that logs out from its session before the answer goes. The answer says that its commands have
    /// ended (RFC 7143, 11.15): whoever has it may count on a reservation's end.
    fn end_before_answer(&mut self, id: ConnectionId, header: &Header) {
        let is_closing = self.connections.get(&id).is_some_and(|connection| connection.closing.is_some());
        if let (true, Header::LogoutResponse(_), Some(tsih)) = (is_closing, header, self.tsih_of(id)) {
            self.leave_session(tsih, id);
        }
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
