//! Commands: their begin, their turn, their reply.

use super::engine::Target;
use super::exchange::{Answer, Exchange, Key, Stage, Work, WorkOrigin};
use crate::fc::fcp::frames::DataOrder;
use crate::scsi::{status, Attribute, Reply, Request, Sense, Step, MAX_TRANSFER_BYTES};
use wire::fc::fcp::{Command, Residual, Response, TaskAttribute};
use wire::fc::{Frame, UNASSIGNED};
use wire::iscsi::{Payload, Rope};

/// Response code: a field of the command is not right (FCP-3, table 29).
const FIELDS_INVALID: u8 = 0x02;

/// The end of a command that the transport, not the unit, finds at fault.
pub(super) fn refusal(sense: Sense) -> Reply {
    Reply { status: status::CHECK_CONDITION, sense: sense.bytes(false), data: Payload::default() }
}

impl Target {
    /// Takes a command.
    pub(super) fn command(&mut self, key: Key, frame: &Frame, now_ns: u64) {
        let reused = self.qualifiers.get(&key).is_some_and(|until_ns| *until_ns > now_ns);
        if reused || self.exchanges.contains_key(&key) {
            // A late command of an aborted exchange, or one that came twice.
            self.counters.stale += 1;
            return;
        }
        self.qualifiers.remove(&key);
        let Some(rx_id) = self.free_rx_id() else { return };
        let Ok(command) = Command::parse(&frame.payload.to_bytes()) else {
            self.counters.malformed += 1;
            let response =
                Response { status: 0, residual: Residual::None, code: Some(FIELDS_INVALID), sense: Default::default() };
            let refused = self.side(key, rx_id).response(0, response.to_bytes());
            self.control.push_back(refused);
            return;
        };
        self.counters.commands += 1;
        if let Some(management) = command.management {
            return self.manage(key, rx_id, &command, management);
        }
        let Some(initiator) = self.initiators.get_mut(&key.0) else { return };
        let full = initiator.commands >= self.settings.commands_max;
        initiator.commands += 1;
        let mut cdb = [0; 16];
        cdb.copy_from_slice(&command.cdb[..16]);
        let lun = u64::from_be_bytes(command.lun);
        let offered = if command.write { command.data_bytes } else { 0 };
        let takes = self.device.data_out_bytes(lun, &cdb);
        // A command that takes more than any may is refused by the unit: its data need not come.
        let takes = if takes > u64::from(MAX_TRANSFER_BYTES) { 0 } else { takes as u32 };
        let wanted = offered.min(takes);
        let back = if command.read { command.data_bytes.min(MAX_TRANSFER_BYTES) } else { 0 };
        let attribute = match command.attribute {
            TaskAttribute::Simple => Ok(Attribute::Simple),
            TaskAttribute::HeadOfQueue => Ok(Attribute::HeadOfQueue),
            TaskAttribute::Ordered => Ok(Attribute::Ordered),
            // INQUIRY's NORMACA is 0 (SAM-5, 8.6.5).
            TaskAttribute::Aca => Err(Sense::INVALID_MESSAGE),
        };
        // Commands of more than 16 bytes, and those that read and write, are none of a disk here.
        let odd = command.cdb.len() > 16 || command.read && command.write;
        let serial = self.serial();
        let exchange = Exchange {
            serial,
            rx_id,
            command,
            cdb,
            stage: Stage::Waiting,
            wanted,
            asked_to: 0,
            data: Rope::default(),
            order: DataOrder::default(),
            sent: 0,
            claim: u64::from(wanted.max(back)),
            held: 0,
            next_seq_id: 0,
        };
        self.rx_ids.insert(rx_id);
        self.exchanges.insert(key, exchange);
        if full {
            self.counters.task_set_full += 1;
            let reply = Reply { status: status::TASK_SET_FULL, sense: Vec::new(), data: Payload::default() };
            return self.finish(key, serial, reply);
        }
        let attribute = match attribute {
            _ if odd => return self.finish(key, serial, refusal(Sense::OPERATION_CODE)),
            Err(sense) => return self.finish(key, serial, refusal(sense)),
            Ok(attribute) => attribute,
        };
        if let Some(unit) = self.device.index(lun) {
            self.order.enter(unit, serial, attribute, key);
        }
        self.waiting.push_back((key, serial));
    }

    /// A responder's number that is not in use; None when all are.
    fn free_rx_id(&mut self) -> Option<u16> {
        for _ in 0..UNASSIGNED {
            let rx_id = self.next_rx_id;
            self.next_rx_id = (self.next_rx_id + 1) % UNASSIGNED;
            if !self.rx_ids.contains(&rx_id) {
                return Some(rx_id);
            }
        }
        None
    }

    /// Lets commands go on that may: those that wait for memory, and those whose turn has come.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some((key, serial)) = self.beginning.pop_front() {
                if self.is_current(key, serial, &Stage::Collecting) {
                    self.perform(key);
                }
                continue;
            }
            let Some(&(key, serial)) = self.waiting.front() else { return };
            let current = self.is_current(key, serial, &Stage::Waiting);
            let claim = self.exchanges.get(&key).filter(|_| current).map(|exchange| exchange.claim);
            if let Some(claim) = claim {
                if self.claimed > 0 && self.claimed + claim > self.settings.data_bytes_max {
                    return;
                }
                self.claimed += claim;
                if let Some(exchange) = self.exchanges.get_mut(&key) {
                    exchange.stage = Stage::Collecting;
                    exchange.held = claim;
                }
            }
            self.waiting.pop_front();
            if current {
                self.advance(key);
            }
        }
    }

    fn is_current(&self, key: Key, serial: u64, stage: &Stage) -> bool {
        self.exchanges.get(&key).is_some_and(|exchange| exchange.serial == serial && exchange.stage == *stage)
    }

    /// Asks for the data that is missing, or performs the command when there is none.
    pub(super) fn advance(&mut self, key: Key) {
        let burst = self.settings.burst_bytes.max(1);
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let received = exchange.data.len() as u32;
        if received < exchange.asked_to {
            return;
        }
        if received == exchange.wanted {
            let serial = exchange.serial;
            if self.order.may_begin(serial) {
                self.perform(key);
            }
            return;
        }
        let bytes = (exchange.wanted - received).min(burst);
        exchange.asked_to += bytes;
        let (rx_id, seq_id) = (exchange.rx_id, exchange.seq_id());
        let ready = wire::fc::fcp::TransferReady { offset: received, bytes };
        let frame = self.side(key, rx_id).ready(seq_id, ready.to_bytes());
        self.control.push_back(frame);
    }

    fn perform(&mut self, key: Key) {
        let Some(exchange) = self.exchanges.get_mut(&key) else { return };
        let Some(initiator) = self.initiators.get(&key.0) else { return };
        exchange.stage = Stage::Working;
        let (serial, data) = (exchange.serial, std::mem::take(&mut exchange.data));
        let offered = if exchange.command.write { exchange.command.data_bytes } else { 0 };
        let lun = u64::from_be_bytes(exchange.command.lun);
        let request = Request { lun, nexus: &initiator.nexus, cdb: &exchange.cdb, offered };
        match self.device.begin(request, data) {
            (Step::Done(reply), _) => self.finish(key, serial, reply),
            (Step::Work(op, then), lun) => {
                let id = self.serial();
                self.origins.insert(id, WorkOrigin { key, serial, lun, then, claim: 0 });
                self.work.push_back(Work { id, initiator: key.0, ox_id: key.1, lun, op });
            }
        }
    }

    /// A command has its reply: data and response go out.
    pub(super) fn finish(&mut self, key: Key, serial: u64, reply: Reply) {
        let free = self.order.leave(serial);
        self.beginning.extend(free);
        let Some(exchange) = self.exchanges.get_mut(&key).filter(|exchange| exchange.serial == serial) else { return };
        exchange.stage = Stage::Answering;
        let command = &exchange.command;
        let expected = u64::from(command.data_bytes);
        let lun = u64::from_be_bytes(command.lun);
        let good = reply.status == status::GOOD;
        let moved = match (command.write, good) {
            (true, true) => self.device.data_out_bytes(lun, &exchange.cdb),
            (true, false) => u64::from(exchange.wanted),
            (false, _) => reply.data.len() as u64,
        };
        let difference = u32::try_from(expected.abs_diff(moved)).unwrap_or(u32::MAX);
        let residual = match moved.cmp(&expected) {
            std::cmp::Ordering::Less => Residual::Under(difference),
            std::cmp::Ordering::Equal => Residual::None,
            std::cmp::Ordering::Greater => Residual::Over(difference),
        };
        let data = if command.read { reply.data.slice(0, command.data_bytes as usize) } else { Payload::default() };
        let response = Response { status: reply.status, residual, code: None, sense: reply.sense.into() };
        let seq_id = exchange.seq_id();
        self.answers.push_back(Answer { key, data, offset: 0, seq_id, seq_cnt: 0, response });
    }
}
