//! Commands at the target: their order, their data, their end.

use super::connection::ReadTransfer;
use super::connection_id::ConnectionId;
use super::memory::{MemoryOwner, TaskMemory};
use super::session::{EarlyCommand, Stage, Task};
use super::work::{Work, WorkOrigin};
use super::Target;
use crate::scsi::{status, Attribute, Reply, Request, Sense, Step, MAX_TRANSFER_BYTES};
use std::collections::VecDeque;
use wire::iscsi::{reject, serial_before, Header, Payload, Pdu, Rope, ScsiCommand, ScsiResponse, NO_TAG};

/// The end of a command that the transport, not the unit, finds at fault.
pub(super) fn refusal(sense: Sense) -> Reply {
    Reply { status: status::CHECK_CONDITION, sense: sense.bytes(false), data: Payload::default() }
}

/// Command number and whether a PDU is for immediate delivery; None: it is not a command.
fn order(header: &Header) -> Option<(u32, bool)> {
    match header {
        Header::NopOut(h) => Some((h.cmd_sn, h.immediate)),
        Header::ScsiCommand(h) => Some((h.cmd_sn, h.immediate)),
        Header::TaskRequest(h) => Some((h.cmd_sn, h.immediate)),
        Header::TextRequest(h) => Some((h.cmd_sn, h.immediate)),
        Header::LogoutRequest(h) => Some((h.cmd_sn, h.immediate)),
        _ => None,
    }
}

/// The ATTR field of a command (RFC 7143, 11.3.1). Untagged commands are simple ones. There is no ACA condition, since
/// INQUIRY's NORMACA is 0: a command with that attribute is refused (SAM-5, 8.6.5), as one with a reserved value.
fn attribute_of(field: u8) -> Result<Attribute, Sense> {
    match field {
        0 | 1 => Ok(Attribute::Simple),
        2 => Ok(Attribute::Ordered),
        3 => Ok(Attribute::HeadOfQueue),
        _ => Err(Sense::INVALID_MESSAGE),
    }
}

/// Returns whether the data of a PDU was not asked for.
pub(super) fn is_unsolicited(header: &Header) -> bool {
    !matches!(header, Header::DataOut(h) if h.ttt != NO_TAG)
}

/// Event that gives back a task's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReleaseTime {
    Now,
    /// The end of sending all that was polled.
    WhenSent,
}

impl Target {
    /// A PDU of full feature phase.
    pub(super) fn full_feature(&mut self, id: ConnectionId, tsih: u16, pdu: Pdu) {
        if is_unsolicited(&pdu.header)
            && !pdu.data.is_empty()
            && !self.has_unsolicited_room(tsih, pdu.data.len() as u64)
        {
            return match order(&pdu.header) {
                // It may come again.
                Some((_, true)) => self.reject(id, reject::TOO_MANY_IMMEDIATE, &pdu.header),
                _ => self.violated(id, reject::PROTOCOL, &pdu.header, "more data than a session may send unasked"),
            };
        }
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        let Some((number, immediate)) = order(&pdu.header) else {
            return match &pdu.header {
                Header::DataOut(header) => self.data_out(id, tsih, header, pdu.data),
                Header::SnackRequest(_) => self.reject(id, reject::SNACK, &pdu.header),
                Header::LoginRequest(_) => self.violated(id, reject::PROTOCOL, &pdu.header, "login is done already"),
                _ => self.reject(id, reject::NOT_SUPPORTED, &pdu.header),
            };
        };
        if immediate {
            // One for each command of the window, so that pings and aborts always find room.
            return match &pdu.header {
                Header::ScsiCommand(_) if session.tasks.len() >= 2 * session.window as usize => {
                    self.reject(id, reject::TOO_MANY_IMMEDIATE, &pdu.header);
                }
                _ => self.deliver(id, tsih, pdu),
            };
        }
        let (expected, most) = (session.exp_cmd_sn, session.max_cmd_sn);
        // Commands outside of the window are ignored without a word, as duplicates are (RFC 7143, 4.2.2.1).
        if serial_before(number, expected) || serial_before(most, number) {
            return;
        }
        if number != expected {
            session.early.entry(number).or_insert(EarlyCommand { connection: id, pdu, data: Vec::new(), bytes: 0 });
            return;
        }
        session.exp_cmd_sn = expected.wrapping_add(1);
        self.deliver(id, tsih, pdu);
        self.deliver_early(tsih);
    }

    /// Delivers what came early and is in its turn now.
    pub(super) fn deliver_early(&mut self, tsih: u16) {
        while let Some(session) = self.sessions.get_mut(&tsih) {
            let expected = session.exp_cmd_sn;
            let Some(EarlyCommand { connection: id, pdu, data, .. }) = session.early.remove(&expected) else { break };
            session.exp_cmd_sn = expected.wrapping_add(1);
            self.ready.insert(id);
            self.deliver(id, tsih, pdu);
            for (header, data, intact) in data {
                if intact {
                    self.data_out(id, tsih, &header, data);
                } else {
                    self.damaged_data(id, tsih, &header, data.len() as u32);
                }
            }
        }
    }

    fn deliver(&mut self, id: ConnectionId, tsih: u16, pdu: Pdu) {
        let discovery = self.sessions.get(&tsih).is_some_and(|session| session.discovery);
        match &pdu.header {
            Header::TextRequest(header) => self.text(id, tsih, header, &pdu.data),
            Header::LogoutRequest(header) => self.logout(id, tsih, header),
            Header::NopOut(header) => self.nop_out(id, header, pdu.data),
            _ if discovery => self.reject(id, reject::NOT_SUPPORTED, &pdu.header),
            Header::ScsiCommand(_) => self.scsi_command(id, tsih, pdu),
            Header::TaskRequest(header) => self.task_management(id, tsih, header),
            _ => {}
        }
    }

    fn scsi_command(&mut self, id: ConnectionId, tsih: u16, pdu: Pdu) {
        let Header::ScsiCommand(command) = pdu.header else { return };
        let Some(connection) = self.connections.get(&id) else { return };
        let negotiated = connection.negotiated;
        let immediate = pdu.data.len() as u32;
        let bad = |what: &str| Some(what.to_owned());
        let violation = if !command.write && (immediate > 0 || !command.last) {
            bad("data or more to come with a command that does not write")
        } else if immediate > 0 && !negotiated.immediate_data {
            bad("immediate data, and ImmediateData=No was agreed on")
        } else if immediate > negotiated.first_burst_bytes.min(command.expected_length) {
            bad("more immediate data than FirstBurstLength or the command allow")
        } else if !command.last && negotiated.initial_r2t {
            bad("unsolicited data announced, and InitialR2T=Yes was agreed on")
        } else {
            None
        };
        if let Some(what) = violation {
            return self.violated(id, reject::PROTOCOL, &pdu.header, &what);
        }
        if self.sessions.get(&tsih).is_some_and(|session| session.tasks.contains_key(&command.itt)) {
            return self.reject(id, reject::TASK_IN_PROGRESS, &pdu.header);
        }
        let offered = if command.write { command.expected_length } else { 0 };
        let takes = self.device.data_out_bytes(command.lun, &command.cdb);
        // A command that takes more than any may is refused by the unit: its data need not come.
        let takes = if takes > u64::from(MAX_TRANSFER_BYTES) { 0 } else { takes as u32 };
        let wanted = offered.min(takes);
        let back = if command.read { command.expected_length.min(MAX_TRANSFER_BYTES) } else { 0 };
        // A unit takes data or gives some. What comes unsolicited has its room.
        let unsolicited = if command.last { immediate } else { negotiated.first_burst_bytes };
        let claim = u64::from(wanted.saturating_sub(unsolicited).max(back));
        let mut task = Task {
            serial: self.serial(),
            connection: id,
            command,
            stage: Stage::Collecting,
            wanted,
            received: 0,
            data: Rope::default(),
            unsolicited: !command.last && command.expected_length > immediate,
            next_data_sn: 0,
            asked_to: 0,
            asked: VecDeque::new(),
            next_r2t_sn: 0,
            held: TaskMemory { share: u64::from(wanted) + u64::from(back), claim, unsolicited: 0 },
            admitted: false,
            damaged: false,
            aborted: false,
        };
        task.held.unsolicited = task.take(pdu.data);
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        session.unsolicited += task.held.unsolicited;
        let serial = task.serial;
        session.tasks.insert(command.itt, Box::new(task));
        match (attribute_of(command.attribute), self.device.index(command.lun)) {
            (Err(sense), _) => return self.finish(tsih, command.itt, serial, refusal(sense)),
            (Ok(attribute), Some(unit)) => self.order.enter(unit, serial, attribute, (tsih, command.itt)),
            _ => {}
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.waiting.push_back(command.itt);
        }
        self.admit(id, tsih);
    }

    /// Lets waiting commands go on, in their order, as long as there is memory for their data.
    pub(super) fn admit(&mut self, id: ConnectionId, tsih: u16) {
        loop {
            let Some(connection) = self.connections.get_mut(&id) else { return };
            let Some(session) = self.sessions.get_mut(&tsih) else { return };
            let Some(&itt) = connection.waiting.front() else { return };
            let Some(task) = session.tasks.get_mut(&itt).filter(|task| task.connection == id && !task.admitted) else {
                connection.waiting.pop_front();
                continue;
            };
            let held = task.held;
            if connection.committed > 0 && connection.committed + held.share > self.config.max_data_bytes {
                return;
            }
            if !self.claim(id, held.claim) {
                return;
            }
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.committed += held.share;
                connection.waiting.pop_front();
            }
            if let Some(task) = self.sessions.get_mut(&tsih).and_then(|session| session.tasks.get_mut(&itt)) {
                task.admitted = true;
            }
            self.advance(tsih, itt);
        }
    }

    /// Asks for the data that is missing, or performs the command when there is none.
    pub(super) fn advance(&mut self, tsih: u16, itt: u32) {
        self.ask(tsih, itt);
        let Some(task) = self.sessions.get(&tsih).and_then(|session| session.tasks.get(&itt)) else { return };
        if task.aborted {
            return;
        }
        let complete = task.received >= task.wanted && !task.unsolicited && task.asked.is_empty();
        if task.admitted && task.stage == Stage::Collecting && complete && self.order.may_begin(task.serial) {
            self.perform(tsih, itt);
        }
    }

    /// A command is done at its unit: others may have waited for that. They begin in turn, not within each other,
    /// because a hundred may end at once.
    pub(super) fn leave_set(&mut self, serial: u64) {
        let free = self.order.leave(serial);
        let going = !self.beginning.is_empty();
        self.beginning.extend(free);
        if going {
            return;
        }
        while let Some(&((tsih, itt), serial)) = self.beginning.front() {
            // It may have been aborted meanwhile, and its tag be another's.
            let task = self.sessions.get(&tsih).and_then(|session| session.tasks.get(&itt));
            if task.is_some_and(|task| task.serial == serial && task.stage == Stage::Collecting && !task.aborted) {
                self.perform(tsih, itt);
            }
            self.beginning.pop_front();
        }
    }

    fn perform(&mut self, tsih: u16, itt: u32) {
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        let Some(task) = session.tasks.get_mut(&itt) else { return };
        task.stage = Stage::Working;
        let (serial, connection, command) = (task.serial, task.connection, task.command);
        let offered = if command.write { command.expected_length } else { 0 };
        let (data, held) = (std::mem::take(&mut task.data), task.held);
        if task.damaged {
            return self.finish(tsih, itt, serial, refusal(Sense::CRC));
        }
        let request = Request { lun: command.lun, nexus: &session.nexus, cdb: &command.cdb, offered };
        match self.device.begin(request, data) {
            (Step::Done(reply), _) => self.finish(tsih, itt, serial, reply),
            (Step::Work(op, then), lun) => {
                let id = self.serial();
                self.work_origins
                    .insert(id, WorkOrigin { tsih, itt, serial, lun, then, held, owner: MemoryOwner::Task });
                self.work.push_back(Work { id, connection, itt, lun, op });
                // The thread that let it begin may be another connection's, which takes no work.
                self.ready.insert(connection);
            }
        }
    }

    /// A command has its reply.
    pub(super) fn finish(&mut self, tsih: u16, itt: u32, serial: u64, reply: Reply) {
        self.leave_set(serial);
        self.task_left_medium(serial);
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        let Some(task) = session.tasks.get_mut(&itt).filter(|task| task.serial == serial) else { return };
        let (id, command) = (task.connection, task.command);
        if task.aborted {
            return self.end_task(id, itt, ReleaseTime::Now);
        }
        task.stage = Stage::Answering;
        let expected = command.expected_length;
        let moved =
            if command.write { self.device.data_out_bytes(command.lun, &command.cdb) } else { reply.data.len() as u64 };
        let residual = (u64::from(expected).abs_diff(moved)).min(u64::from(u32::MAX)) as u32;
        let (overflow, underflow) = (moved > u64::from(expected), moved < u64::from(expected));
        let Some(connection) = self.connections.get_mut(&id) else { return };
        self.ready.insert(id);
        if command.read && reply.status == status::GOOD && !reply.data.is_empty() && expected > 0 {
            let data = reply.data.slice(0, expected as usize);
            let burst = connection.negotiated.max_burst_bytes;
            connection.sending.push_back(ReadTransfer {
                itt,
                data,
                offset: 0,
                data_sn: 0,
                burst,
                overflow,
                underflow,
                residual,
            });
            return;
        }
        let r2ts = task.next_r2t_sn;
        self.respond(id, &command, &reply, r2ts, (overflow, underflow, residual));
        self.end_task(id, itt, ReleaseTime::Now);
    }

    fn respond(
        &mut self,
        id: ConnectionId,
        command: &ScsiCommand,
        reply: &Reply,
        exp_data_sn: u32,
        (overflow, underflow, residual): (bool, bool, u32),
    ) {
        let response = ScsiResponse {
            itt: command.itt,
            status: reply.status,
            exp_data_sn,
            overflow,
            underflow,
            residual,
            ..ScsiResponse::default()
        };
        let mut data = Vec::new();
        if !reply.sense.is_empty() {
            data.extend_from_slice(&(reply.sense.len() as u16).to_be_bytes());
            data.extend_from_slice(&reply.sense);
        }
        self.send(id, Pdu::with(response, data.into()));
    }

    /// A task is over: its number is free again, and the memory that it held, when it may be.
    pub(super) fn end_task(&mut self, id: ConnectionId, itt: u32, when: ReleaseTime) {
        let Some(tsih) = self.tsih_of(id) else { return };
        let Some(task) = self.sessions.get_mut(&tsih).and_then(|session| session.tasks.remove(&itt)) else { return };
        let unsolicited = task.held.unsolicited;
        let held = if task.admitted { task.held } else { TaskMemory { unsolicited, ..TaskMemory::default() } };
        match when {
            ReleaseTime::Now => self.release(task.connection, held),
            ReleaseTime::WhenSent => self.release_when_sent(task.connection, held),
        }
    }

    /// Ends a task without an answer. One at the medium stays until the medium is done with it.
    pub(super) fn drop_task(&mut self, tsih: u16, itt: u32) {
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        let Some(task) = session.tasks.get_mut(&itt) else { return };
        let id = task.connection;
        if task.stage == Stage::Working && self.connections.contains_key(&id) {
            task.aborted = true;
            return;
        }
        let (serial, working, held) = (task.serial, task.stage == Stage::Working, task.held);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.sending.retain(|sending| sending.itt != itt);
            // A part of its data may be on its way.
            self.end_task(id, itt, ReleaseTime::WhenSent);
        } else {
            session.tasks.remove(&itt);
            if working {
                self.orphan_work(tsih, serial);
            } else {
                session.unsolicited = session.unsolicited.saturating_sub(held.unsolicited);
            }
        }
        // A command at the medium leaves its set when the medium is done.
        if !working {
            self.leave_set(serial);
        }
    }
}
