//! Data of writes: what may come unsolicited, and what is asked for (RFC 7143, 4.2.5 and 11.7, 11.8).

use super::command::{is_unsolicited, refusal};
use super::connection_id::ConnectionId;
use super::session::{OutstandingR2t, Stage, Task};
use super::Target;
use crate::scsi::Sense;
use wire::iscsi::{reject, DataOut, Header, Payload, Pdu, ReadyToTransfer, NO_TAG};

/// Bytes of data for each PDU of it, below which a peer that sends data for a command that is not in its turn is not
/// kept; the first such PDUs may have less.
const EARLY_DATA: usize = 512;
const EARLY_PDUS: usize = 16;

impl Task {
    /// Takes data in its order; how much of it is kept, bytes: not what is beyond what the command takes.
    pub(super) fn take(&mut self, mut data: Payload) -> u64 {
        let length = data.len() as u32;
        let room = self.wanted.saturating_sub(self.received);
        let kept = data.split_to(room as usize);
        let bytes = kept.len() as u64;
        self.data.push(kept);
        self.received += length;
        self.asked_to = self.asked_to.max(self.received);
        bytes
    }

    /// Returns whether data that was asked for is still to come, and no more is to be asked for before.
    fn waits(&self, max_outstanding_r2t: u32) -> bool {
        !self.asked.is_empty() && (self.asked.len() >= max_outstanding_r2t as usize || self.asked_to >= self.wanted)
    }

    /// Checks a Data-Out against what is expected. One that is not ends its command (RFC 7143, 7.9 and 11.4.7.2).
    fn check(&mut self, header: &DataOut, length: u32, first_burst: u32) -> Result<(), Sense> {
        if header.ttt == NO_TAG {
            if !self.unsolicited {
                return Err(Sense::UNEXPECTED_DATA);
            }
            let most = first_burst.min(self.command.expected_length);
            if header.data_sn != self.next_data_sn || header.buffer_offset != self.received {
                return Err(Sense::DATA_PHASE);
            }
            if length > most - self.received.min(most) {
                return Err(Sense::UNEXPECTED_DATA);
            }
            self.next_data_sn += 1;
            self.unsolicited = !header.last && self.received + length < most;
            return Ok(());
        }
        let Some(asked) = self.asked.front_mut().filter(|asked| asked.ttt == header.ttt) else {
            return Err(Sense::DATA_PHASE);
        };
        let offset = asked.offset + asked.received;
        if header.data_sn != asked.data_sn || header.buffer_offset != offset {
            return Err(Sense::DATA_PHASE);
        }
        let left = asked.length - asked.received;
        if length > left || header.last && length < left {
            return Err(Sense::AMOUNT_OF_DATA);
        }
        asked.data_sn += 1;
        asked.received += length;
        if asked.received == asked.length {
            self.asked.pop_front();
        }
        Ok(())
    }
}

impl Target {
    /// Asks for data as far as the rules of the session let.
    pub(super) fn ask(&mut self, tsih: u16, itt: u32) {
        loop {
            let ttt = (self.serial() as u32) & 0x7fff_ffff;
            let Some(session) = self.sessions.get_mut(&tsih) else { return };
            let Some(task) = session.tasks.get_mut(&itt) else { return };
            let Some(connection) = self.connections.get(&task.connection) else { return };
            let full = task.asked.len() >= session.negotiated.max_outstanding_r2t as usize;
            if !task.admitted || task.aborted || task.unsolicited || full || task.asked_to >= task.wanted {
                return;
            }
            let length = (task.wanted - task.asked_to).min(connection.negotiated.max_burst_bytes);
            let r2t = ReadyToTransfer {
                lun: task.command.lun,
                itt,
                ttt,
                r2t_sn: task.next_r2t_sn,
                buffer_offset: task.asked_to,
                desired_length: length,
                ..ReadyToTransfer::default()
            };
            task.asked.push_back(OutstandingR2t { ttt, offset: task.asked_to, length, received: 0, data_sn: 0 });
            task.next_r2t_sn += 1;
            task.asked_to += length;
            let id = task.connection;
            self.send(id, Pdu::new(r2t));
        }
    }

    /// The header of a PDU came whose `bytes` of data are still on their way: whether there is to be memory for them,
    /// or they may be thrown away with their header. For segments that the caller does not keep anyway; before
    /// [`Target::handle_pdu`] with all of it.
    ///
    /// # Errors
    /// Why the connection is to be closed: nobody asked for so much.
    pub fn handle_head(&mut self, id: ConnectionId, header: &Header, bytes: u32) -> Result<bool, String> {
        let Some(tsih) = self.tsih_of(id).filter(|_| !self.memory.is_unlimited()) else { return Ok(true) };
        if let Header::DataOut(data) = header {
            let session = self.sessions.get(&tsih);
            let task = session.and_then(|session| session.tasks.get(&data.itt)).filter(|task| task.connection == id);
            let is_early =
                session.is_some_and(|session| session.early.values().any(|early| early.brings(id, data.itt)));
            if !is_unsolicited(header) {
                let Some(task) = task.filter(|task| task.stage == Stage::Collecting) else { return Ok(false) };
                let left =
                    task.asked.front().filter(|asked| asked.ttt == data.ttt).map(|asked| asked.length - asked.received);
                let sense = match left {
                    Some(left) if bytes <= left => return Ok(true),
                    Some(_) => Sense::AMOUNT_OF_DATA,
                    None => Sense::DATA_PHASE,
                };
                let serial = task.serial;
                self.finish(tsih, data.itt, serial, refusal(sense));
                self.settle();
                return Ok(false);
            }
            if task.is_none() && !is_early {
                return Ok(false);
            }
        }
        if !self.has_unsolicited_room(tsih, u64::from(bytes)) {
            return Err(format!("{} with {bytes} bytes: more than a session may send unasked", header.name()));
        }
        self.note_incoming(id, u64::from(bytes));
        Ok(true)
    }

    /// Unasked data is on its way, or has come (0).
    pub(super) fn note_incoming(&mut self, id: ConnectionId, bytes: u64) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let before = std::mem::replace(&mut connection.incoming, bytes);
        if before == bytes {
            return;
        }
        if let Some(session) = self.tsih_of(id).and_then(|tsih| self.sessions.get_mut(&tsih)) {
            session.unsolicited = (session.unsolicited + bytes).saturating_sub(before);
        }
    }

    pub(super) fn data_out(&mut self, id: ConnectionId, tsih: u16, header: &DataOut, data: Payload) {
        if header.ttt == NO_TAG && self.keep_early(id, tsih, header, &data, true) {
            return;
        }
        self.take_data(id, tsih, header, data, false);
    }

    fn take_data(&mut self, id: ConnectionId, tsih: u16, header: &DataOut, data: Payload, damaged: bool) {
        let Some(connection) = self.connections.get(&id) else { return };
        let first_burst = connection.negotiated.first_burst_bytes;
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        // Data of a task that ended is dropped.
        let Some(task) = session.tasks.get_mut(&header.itt) else { return };
        if task.connection != id || task.stage != Stage::Collecting {
            return;
        }
        if let Err(sense) = task.check(header, data.len() as u32, first_burst) {
            let serial = task.serial;
            return self.finish(tsih, header.itt, serial, refusal(sense));
        }
        task.damaged |= damaged;
        let kept = task.take(data);
        if header.ttt == NO_TAG {
            task.held.unsolicited += kept;
            session.unsolicited += kept;
        }
        if task.waits(session.negotiated.max_outstanding_r2t) {
            // The number that `ask` takes for a tag, whether it asks or not.
            self.serial();
        } else {
            self.advance(tsih, header.itt);
        }
    }

    /// Data whose digest did not match: its place is taken, and the command fails when the rest is there.
    pub(super) fn damaged_data(&mut self, id: ConnectionId, tsih: u16, header: &DataOut, length: u32) {
        if header.ttt == NO_TAG && self.keep_early(id, tsih, header, &Payload::Zeros(length), false) {
            return;
        }
        self.take_data(id, tsih, header, Payload::Zeros(length), true);
    }

    /// Keeps unsolicited data whose command came, and waits for those before it on other connections of the session;
    /// false: there is no such command.
    fn keep_early(&mut self, id: ConnectionId, tsih: u16, header: &DataOut, data: &Payload, intact: bool) -> bool {
        let Some(first_burst) = self.connections.get(&id).map(|c| c.negotiated.first_burst_bytes as usize) else {
            return false;
        };
        let Some(session) = self.sessions.get_mut(&tsih) else { return false };
        let Some(early) = session.early.values_mut().find(|early| early.brings(id, header.itt)) else { return false };
        early.bytes += data.len();
        if early.bytes > first_burst || early.data.len() > EARLY_PDUS + early.bytes / EARLY_DATA {
            self.violated(id, reject::PROTOCOL, &Header::DataOut(*header), "more than FirstBurstLength unasked");
            return true;
        }
        early.data.push((*header, data.clone(), intact));
        true
    }
}
