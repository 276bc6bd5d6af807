//! PDUs other than SCSI commands: pings, texts, logout, task management, rejects.

use super::connection_id::ConnectionId;
use super::session::{EarlyCommand, PendingTaskManagement, Stage};
use super::Target;
use crate::scsi::Nexus;
use wire::iscsi::{
    reject, serial_before, task, task_response, Header, LogoutRequest, LogoutResponse, NopIn, NopOut, Payload, Pdu,
    Reject, TaskRequest, TaskResponse, Text, TextRequest, TextResponse, NO_TAG,
};

/// Task management functions of a session that wait for the medium at a time.
const MAX_WAITING: usize = 64;
/// Texts of a session that go on in further PDUs at a time.
const MAX_TEXTS: usize = 4;

impl Target {
    /// Says that a PDU was not taken.
    pub(super) fn reject(&mut self, id: ConnectionId, reason: u8, header: &Header) {
        let bytes = header.emit().to_vec();
        self.send(id, Pdu::with(Reject { reason, ..Reject::default() }, bytes.into()));
    }

    /// Says so and ends the connection.
    pub(super) fn violated(&mut self, id: ConnectionId, reason: u8, header: &Header, right: &str) {
        self.reject(id, reason, header);
        self.fail(id, format!("{}: {right}", header.name()));
    }

    pub(super) fn nop_out(&mut self, id: ConnectionId, header: &NopOut, data: Payload) {
        // Without a tag it answers a ping of this side, and that it came was noted.
        if header.itt != NO_TAG {
            let most = self.connections.get(&id).map_or(0, |connection| connection.negotiated.max_send_bytes);
            let data = data.slice(0, most as usize);
            if let Some(session) = self.tsih_of(id).and_then(|tsih| self.sessions.get_mut(&tsih)) {
                session.unsolicited += data.len() as u64;
            }
            self.send(id, Pdu::with(NopIn { itt: header.itt, ttt: NO_TAG, lun: header.lun, ..NopIn::default() }, data));
        }
    }

    pub(super) fn text(&mut self, id: ConnectionId, tsih: u16, header: &TextRequest, data: &Payload) {
        let Some(connection) = self.connections.get(&id) else { return };
        let most = connection.negotiated.max_send_bytes as usize;
        let Some(session) = self.sessions.get_mut(&tsih) else { return };
        let left = if header.ttt != NO_TAG {
            match session.texts.remove(&header.ttt) {
                Some(left) => left,
                None => return self.reject(id, reject::INVALID_FIELD, &Header::TextRequest(*header)),
            }
        } else if header.cont || session.texts.len() >= MAX_TEXTS {
            // Nothing that is asked for here is longer than a PDU.
            return self.reject(id, reject::LONG_OPERATION, &Header::TextRequest(*header));
        } else {
            match Text::parse(&data.to_bytes()) {
                Ok(text) => self.text_answer(id, tsih, &text).emit().to_bytes().to_vec(),
                Err(_) => return self.reject(id, reject::PROTOCOL, &Header::TextRequest(*header)),
            }
        };
        let mut answer = TextResponse { itt: header.itt, ttt: NO_TAG, lun: header.lun, ..TextResponse::default() };
        let (now, later) = left.split_at(left.len().min(most));
        answer.last = later.is_empty();
        answer.cont = !answer.last;
        if !answer.last {
            answer.ttt = (self.serial() as u32) & 0x7fff_ffff;
            if let Some(session) = self.sessions.get_mut(&tsih) {
                session.texts.insert(answer.ttt, later.to_vec());
            }
        }
        self.send(id, Pdu::with(answer, now.to_vec().into()));
    }

    fn text_answer(&self, id: ConnectionId, tsih: u16, text: &Text) -> Text {
        let mut answer = Text::default();
        let discovery = self.sessions.get(&tsih).is_some_and(|session| session.discovery);
        for (key, value) in text.pairs() {
            match (key, value) {
                // All: in discovery only. Empty: the target of this session (RFC 7143, appendix C).
                ("SendTargets", "All") if !discovery => answer.push(key, "Reject"),
                ("SendTargets", "") if discovery => answer.push(key, "Reject"),
                ("SendTargets", wanted) => {
                    if matches!(wanted, "All" | "") || wanted.eq_ignore_ascii_case(&self.config.name) {
                        answer.push("TargetName", &self.config.name);
                        let own = self.connections.get(&id).map(|connection| connection.portal.clone());
                        let portals = if self.config.portals.is_empty() {
                            own.into_iter().collect()
                        } else {
                            self.config.portals.clone()
                        };
                        portals.iter().for_each(|portal| answer.push("TargetAddress", &format!("{portal},1")));
                    }
                }
                _ => answer.push(key, "NotUnderstood"),
            }
        }
        answer
    }

    pub(super) fn logout(&mut self, id: ConnectionId, tsih: u16, header: &LogoutRequest) {
        let Some(session) = self.sessions.get(&tsih) else { return };
        let other = session.connections.get(&header.cid).copied();
        let mut response = LogoutResponse { itt: header.itt, ..LogoutResponse::default() };
        match (header.reason, other) {
            (0, _) => {
                self.end_session(tsih, Some(id), "the initiator logged out");
                self.send(id, Pdu::new(response));
                self.fail(id, "the initiator logged out".to_owned());
            }
            (1, Some(other)) => {
                self.send(id, Pdu::new(response));
                if other != id {
                    self.leave_session(tsih, other);
                }
                self.fail(other, "the initiator logged the connection out".to_owned());
            }
            // Removal for recovery belongs to levels above 0.
            (reason, _) => {
                response.response = if reason == 2 { 2 } else { 1 };
                self.send(id, Pdu::new(response));
            }
        }
    }

    pub(super) fn task_management(&mut self, id: ConnectionId, tsih: u16, header: &TaskRequest) {
        let answer = |target: &mut Target, response: u8| {
            target.send(id, Pdu::new(TaskResponse { itt: header.itt, response, ..TaskResponse::default() }));
        };
        if self.sessions.get(&tsih).is_some_and(|session| session.waiting.len() >= MAX_WAITING) {
            return answer(self, task_response::REJECTED);
        }
        let lun = self.device.index(header.lun);
        let of_lun = matches!(header.function, task::ABORT_TASK_SET..=task::LOGICAL_UNIT_RESET);
        if of_lun && lun.is_none() {
            return answer(self, task_response::NO_LUN);
        }
        match header.function {
            task::ABORT_TASK => {
                let Some(session) = self.sessions.get_mut(&tsih) else { return };
                if !session.tasks.contains_key(&header.referenced_tag) {
                    // A command that is still to come counts as received: should it come, it is a duplicate (RFC 7143,
                    // 11.6.1).
                    let (expected, most, number) = (session.exp_cmd_sn, session.max_cmd_sn, header.ref_cmd_sn);
                    let outside = serial_before(number, expected) || serial_before(most, number);
                    if outside || !serial_before(number, header.cmd_sn) {
                        return answer(self, task_response::NO_TASK);
                    }
                    session.early.insert(number, EarlyCommand::nothing(id));
                    self.deliver_early(tsih);
                    return answer(self, task_response::COMPLETE);
                }
                self.abort(id, tsih, header, |of, itt, _| of == tsih && itt == header.referenced_tag);
            }
            task::ABORT_TASK_SET => {
                self.abort(id, tsih, header, |of, _, unit| of == tsih && unit == lun);
            }
            task::CLEAR_TASK_SET => {
                for nexus in self.abort(id, tsih, header, |_, _, unit| unit == lun) {
                    // They hear of it, since TAS is 0 and no status comes (SAM-5, 5.14.2): COMMANDS CLEARED BY ANOTHER
                    // INITIATOR.
                    self.device.raise_attention(lun, &nexus, (0x2f, 0x00));
                }
            }
            task::LOGICAL_UNIT_RESET => {
                self.device.reset(lun);
                self.abort(id, tsih, header, |_, _, unit| unit == lun);
            }
            task::TARGET_WARM_RESET | task::TARGET_COLD_RESET => {
                self.device.reset(None);
                self.abort(id, tsih, header, |_, _, _| true);
                if header.function == task::TARGET_COLD_RESET {
                    let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
                    all.into_iter().for_each(|id| self.fail(id, "a cold reset was asked for".to_owned()));
                }
            }
            task::TASK_REASSIGN => answer(self, task_response::NO_REASSIGNMENT),
            _ => answer(self, task_response::NOT_SUPPORTED),
        }
    }

    /// Aborts the tasks that `chosen` names by session, tag and unit; the answer goes when the medium is done with
    /// them. Who of the other initiators had some.
    fn abort(
        &mut self,
        id: ConnectionId,
        tsih: u16,
        header: &TaskRequest,
        chosen: impl Fn(u16, u32, Option<usize>) -> bool,
    ) -> Vec<Nexus> {
        let (mut found, mut serials, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (of, session) in &mut self.sessions {
            for (tag, task) in &mut session.tasks {
                if chosen(*of, *tag, self.device.index(task.command.lun)) {
                    // None of them begins because another has gone.
                    task.aborted = true;
                    found.push((*of, *tag));
                    if task.stage == Stage::Working {
                        serials.push(task.serial);
                    }
                    if *of != tsih && others.last() != Some(&session.nexus) {
                        others.push(session.nexus.clone());
                    }
                }
            }
        }
        for (of, tag) in found {
            self.drop_task(of, tag);
        }
        if let Some(session) = self.sessions.get_mut(&tsih) {
            // Those that wait for their turn and were sent before the function are meant as well (RFC 7143, 4.2.3.3).
            for (number, early) in &mut session.early {
                let Header::ScsiCommand(command) = &early.pdu.header else { continue };
                let unit = self.device.index(command.lun);
                if serial_before(*number, header.cmd_sn) && chosen(tsih, command.itt, unit) {
                    *early = EarlyCommand::nothing(early.connection);
                }
            }
            session.waiting.push(PendingTaskManagement { connection: id, itt: header.itt, serials });
        }
        self.task_left_medium(0);
        others
    }

    /// Answers functions whose last task left the medium.
    pub(super) fn task_left_medium(&mut self, serial: u64) {
        let mut answers = Vec::new();
        for session in self.sessions.values_mut() {
            session.waiting.retain_mut(|waiting| {
                waiting.serials.retain(|waited| *waited != serial);
                if waiting.serials.is_empty() {
                    answers.push((waiting.connection, waiting.itt));
                }
                !waiting.serials.is_empty()
            });
        }
        for (id, itt) in answers {
            let response = task_response::COMPLETE;
            self.send(id, Pdu::new(TaskResponse { itt, response, ..TaskResponse::default() }));
        }
    }
}
