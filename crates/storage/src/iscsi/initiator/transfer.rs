//! Commands of the initiator: when they are sent, their data, their end.

use super::command::{Completion, Data};
use super::config::Allegiance;
use super::connection::{Phase, QueuedPdu};
use super::task::Task;
use super::{Event, Initiator, SessionState};
use units::Time;
use wire::iscsi::{
    serial_before, AsyncMessage, DataIn, Header, NopIn, NopOut, Payload, Pdu, ReadyToTransfer, ScsiCommand,
    ScsiResponse, Text, TextResponse, MAX_TEXT_BYTES, NO_TAG,
};

/// Answers to pings that may wait for a target that does not read.
const MAX_PINGS: u32 = 64;

impl Initiator {
    fn choose(&mut self) -> Option<usize> {
        let count = self.connections.len();
        match self.config.allegiance {
            Allegiance::RoundRobin => {
                let index =
                    (0..count).map(|step| (self.next_link + step) % count).find(|&i| self.connections[i].is_up())?;
                self.next_link = (index + 1) % count;
                Some(index)
            }
            Allegiance::LeastOutstanding => {
                (0..count).filter(|&i| self.connections[i].is_up()).min_by_key(|&i| self.connections[i].outstanding)
            }
        }
    }

    /// Hands commands to connections as far as the window lets.
    pub(super) fn issue(&mut self) {
        while self.state == SessionState::Up && !serial_before(self.max_cmd_sn, self.cmd_sn) {
            let Some(&id) = self.queue.front() else { return };
            let Some(index) = self.choose() else { return };
            self.queue.pop_front();
            let tag = self.tag();
            self.send_command(id, index, tag);
        }
    }

    fn send_command(&mut self, id: u64, index: usize, itt: u32) {
        let negotiated = self.negotiated;
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let link = &mut self.connections[index];
        (task.sent, task.link, task.tag, task.cmd_sn) = (true, index, itt, self.cmd_sn);
        self.tags.insert(itt, id);
        let (read, write, length) = match &task.command.data {
            Data::None => (false, false, 0),
            Data::Read(length) => (*length > 0, false, *length),
            Data::Write(data) => (false, !data.is_empty(), data.len() as u32),
        };
        let first = if write { negotiated.first_burst_bytes.min(length) } else { 0 };
        let immediate = if negotiated.immediate_data { first.min(link.negotiated.max_send_bytes) } else { 0 };
        let unsolicited = if negotiated.initial_r2t { 0 } else { first - immediate };
        let header = ScsiCommand {
            last: unsolicited == 0,
            read,
            write,
            // Simple.
            attribute: 1,
            lun: task.command.lun,
            itt,
            expected_length: length,
            cmd_sn: self.cmd_sn,
            cdb: task.command.cdb,
            ..ScsiCommand::default()
        };
        let data = task.outgoing().slice(0, immediate as usize);
        link.out.push_back(QueuedPdu::Pdu(Pdu::with(header, data)));
        if unsolicited > 0 {
            link.out.push_back(QueuedPdu::Data { id, ttt: NO_TAG, offset: immediate, length: unsolicited, data_sn: 0 });
        }
        link.outstanding += 1;
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
    }

    /// A PDU came.
    pub fn handle_pdu(&mut self, now: Time, index: usize, pdu: Pdu) {
        let link = &mut self.connections[index];
        if let (Phase::Login(_), Header::LoginResponse(response)) = (&link.phase, &pdu.header) {
            return self.login_answered(now, index, response, &pdu.data);
        }
        if !link.is_up() {
            if matches!(link.phase, Phase::Login(_)) {
                self.lose(now, format!("{} during login: LoginResponse is needed", pdu.header.name()));
            }
            return;
        }
        (link.since, link.ping_sent) = (now, None);
        let numbers = match &pdu.header {
            Header::NopIn(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, h.itt != NO_TAG)),
            Header::ScsiResponse(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::TaskResponse(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::TextResponse(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::LogoutResponse(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::AsyncMessage(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::Reject(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, true)),
            Header::ReadyToTransfer(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, false)),
            Header::DataIn(h) => Some((h.stat_sn, h.exp_cmd_sn, h.max_cmd_sn, h.has_status)),
            _ => None,
        };
        if let Some((stat_sn, exp_cmd_sn, max_cmd_sn, counts)) = numbers {
            if counts {
                if stat_sn != link.exp_stat_sn {
                    // A status is missing, and level 0 has no way to ask for it again.
                    let why = format!("StatSN {stat_sn} where {} is next", link.exp_stat_sn);
                    return self.lose(now, why);
                }
                link.exp_stat_sn = stat_sn.wrapping_add(1);
            }
            self.note_window(exp_cmd_sn, max_cmd_sn);
        }
        let outcome = match &pdu.header {
            Header::DataIn(header) => self.data_in(header, pdu.data),
            Header::ScsiResponse(header) => self.response(header, &pdu.data),
            Header::ReadyToTransfer(header) => self.ready(index, header),
            Header::NopIn(header) => self.nop_in(index, header),
            Header::TaskResponse(header) => {
                self.events.push_back(Event::Managed(header.itt, header.response));
                Ok(())
            }
            Header::TextResponse(header) => self.text_answer(index, header, &pdu.data),
            Header::LogoutResponse(_) if self.state == SessionState::LoggingOut => {
                self.close_all("logged out");
                Ok(())
            }
            Header::LogoutResponse(_) => Err("a LogoutResponse that nobody asked for".to_owned()),
            Header::AsyncMessage(header) => async_message(header),
            Header::Reject(header) => Err(format!("the target rejected a PDU, reason {:#04x}", header.reason)),
            other => Err(format!("{} from a target", other.name())),
        };
        match outcome {
            Ok(()) => self.issue(),
            Err(why) => self.lose(now, why),
        }
    }

    fn task(&mut self, tag: u32) -> Result<(u64, &mut Task), String> {
        let id = self.command_of(tag).ok_or_else(|| format!("there is no command with tag {tag:#x}"))?;
        self.tasks
            .get_mut(&id)
            .map(|task| (id, &mut **task))
            .ok_or_else(|| format!("the command with tag {tag:#x} is over"))
    }

    fn data_in(&mut self, header: &DataIn, data: Payload) -> Result<(), String> {
        let (id, task) = self.task(header.itt)?;
        let expected = match task.command.data {
            Data::Read(expected) => expected as usize,
            _ => 0,
        };
        let offset = task.received.len();
        if header.buffer_offset as usize != offset || header.data_sn != task.next_data_sn {
            return Err(format!("Data-In: DataSN {}, offset {offset} would be right", task.next_data_sn));
        }
        if offset + data.len() > expected {
            return Err(format!("Data-In: {expected} bytes were asked for"));
        }
        task.next_data_sn += 1;
        task.received.push(data);
        if header.has_status {
            let residual = (header.overflow, header.underflow, header.residual);
            self.complete(id, header.status, Vec::new(), residual);
        }
        Ok(())
    }

    fn response(&mut self, header: &ScsiResponse, data: &Payload) -> Result<(), String> {
        let (id, _) = self.task(header.itt)?;
        if header.response != 0 {
            return Err(format!("a command ended in response {:#04x} of the target", header.response));
        }
        let bytes = data.to_bytes();
        let length = bytes.get(..2).map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])));
        let sense = bytes.get(2..2 + length).unwrap_or_default().to_vec();
        self.complete(id, header.status, sense, (header.overflow, header.underflow, header.residual));
        Ok(())
    }

    fn complete(&mut self, id: u64, status: u8, sense: Vec<u8>, (over, under, residual): (bool, bool, u32)) {
        let Some(task) = self.tasks.remove(&id) else { return };
        self.tags.remove(&task.tag);
        self.connections[task.link].outstanding -= 1;
        let (overflow, underflow) = (if over { residual } else { 0 }, if under { residual } else { 0 });
        let connection = task.link;
        let completion = Completion { status, sense, data: task.received, underflow, overflow, connection };
        self.events.push_back(Event::Done(id, completion));
    }

    fn ready(&mut self, index: usize, header: &ReadyToTransfer) -> Result<(), String> {
        let (most, outstanding) = (self.negotiated.max_burst_bytes, self.negotiated.max_outstanding_r2t);
        let (id, task) = self.task(header.itt)?;
        let length = task.outgoing().len() as u64;
        let end = u64::from(header.buffer_offset) + u64::from(header.desired_length);
        if header.r2t_sn != task.next_r2t_sn || end > length || !(1..=most).contains(&header.desired_length) {
            return Err(format!("R2T: R2TSN {}, 1 to {most} of {length} bytes would be right", task.next_r2t_sn));
        }
        if task.asked == outstanding {
            return Err(format!("R2T: MaxOutstandingR2T={outstanding} are under way"));
        }
        task.asked += 1;
        task.next_r2t_sn += 1;
        let (ttt, offset, length) = (header.ttt, header.buffer_offset, header.desired_length);
        self.connections[index].out.push_back(QueuedPdu::Data { id, ttt, offset, length, data_sn: 0 });
        Ok(())
    }

    fn nop_in(&mut self, index: usize, header: &NopIn) -> Result<(), String> {
        if header.ttt == NO_TAG {
            return Ok(());
        }
        let link = &mut self.connections[index];
        if link.pings == MAX_PINGS {
            return Err(format!("{MAX_PINGS} pings, and their answers were not read"));
        }
        link.pings += 1;
        let (lun, ttt, cmd_sn) = (header.lun, header.ttt, self.cmd_sn);
        let answer = NopOut { immediate: true, lun, itt: NO_TAG, ttt, cmd_sn, ..NopOut::default() };
        // Without data: a ping of the target has none (RFC 7143, 11.19).
        link.out.push_back(QueuedPdu::Pdu(Pdu::new(answer)));
        Ok(())
    }

    fn text_answer(&mut self, index: usize, header: &TextResponse, data: &Payload) -> Result<(), String> {
        if self.text.len() + data.len() > MAX_TEXT_BYTES {
            return Err(format!("a text of more than {MAX_TEXT_BYTES} bytes"));
        }
        self.text.extend_from_slice(&data.to_bytes());
        if header.ttt != NO_TAG {
            self.send_text(index, header.ttt, Payload::default());
            return Ok(());
        }
        let text = Text::parse(&std::mem::take(&mut self.text)).map_err(|error| error.to_string())?;
        let mut targets = Vec::new();
        let mut name = String::new();
        for (key, value) in text.pairs() {
            match key {
                "TargetName" => name = value.to_owned(),
                "TargetAddress" => targets.push((name.clone(), value.to_owned())),
                _ => {}
            }
        }
        self.events.push_back(Event::Targets(targets));
        Ok(())
    }
}

fn async_message(header: &AsyncMessage) -> Result<(), String> {
    match header.event {
        0 | 255 => Ok(()),
        1 => Err("the target asked for a logout".to_owned()),
        2 | 3 => Err("the target drops the connection".to_owned()),
        _ => Err("the target asked for a negotiation".to_owned()),
    }
}
