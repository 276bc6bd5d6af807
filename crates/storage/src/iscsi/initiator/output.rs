//! PDUs that the initiator sends on a connection.

use super::connection::{Phase, QueuedPdu};
use super::Initiator;
use crate::iscsi::outbound::Outbound;
use wire::iscsi::{DataOut, Header, Pdu, NO_TAG};

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
