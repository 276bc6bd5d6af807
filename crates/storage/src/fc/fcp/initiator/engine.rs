//! The initiator: commands in, frames out, completions out.

use super::exchange::{Exchange, Stage, TargetPort, Task};
use super::numbers::Numbers;
use super::settings::Settings;
use crate::fc::fcp::command::{Command, Data, Ended, Failure};
use crate::fc::fcp::frames::{DataOrder, Side};
use crate::fc::nport::PeerInfo;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::fc::els::ExchangeName;
use wire::fc::fcp::{self, TaskAttribute};
use wire::fc::{FcId, Frame, UNASSIGNED};
use wire::iscsi::Rope;

/// Counters of an initiator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Exchanges begun.
    pub exchanges: u64,
    /// Commands that ended with an answer.
    pub completed: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Exchanges in which a gap or a wrong length was seen.
    pub broken: u64,
    /// Aborts sent.
    pub aborts: u64,
    /// Commands sent again.
    pub retries: u64,
    /// Commands that took too long.
    pub timeouts: u64,
    /// Frames of no exchange: late, or to nothing.
    pub stale: u64,
    /// Frames that are not as FCP-3 has them.
    pub malformed: u64,
}

/// A link service that the port is asked to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// REC of an exchange, with a key for [`Initiator::handle_status`].
    Status(FcId, ExchangeName, u64),
    /// RRQ of an exchange, with a key for [`Initiator::handle_reinstated`].
    Reinstate(FcId, ExchangeName, u64),
    /// The login with a target is to be made anew: it does not answer aborts.
    Renew(FcId),
}

/// An FCP initiator.
#[derive(Debug)]
pub struct Initiator {
    pub(super) settings: Settings,
    /// Own address.
    pub(super) id: FcId,
    pub(super) tasks: BTreeMap<u64, Task>,
    pub(super) exchanges: BTreeMap<u16, Exchange>,
    pub(super) targets: BTreeMap<FcId, TargetPort>,
    pub(super) numbers: Numbers,
    /// Time-outs of exchanges, by time.
    pub(super) timers: BTreeSet<(u64, u16)>,
    /// Targets that may have room for a command.
    pub(super) ready: BTreeSet<FcId>,
    pub(super) control: VecDeque<Frame>,
    /// Exchanges whose data may leave, in order.
    pub(super) sending: VecDeque<u16>,
    pub(super) ended: VecDeque<Ended>,
    pub(super) asked: VecDeque<Asked>,
    pub(super) counters: Counters,
    pub(super) r_a_tov_ns: u64,
    pub(super) next_key: u64,
    next_command: u64,
}

impl Initiator {
    /// An initiator without targets.
    pub fn new(settings: Settings) -> Initiator {
        Initiator {
            numbers: Numbers::new(settings.exchanges),
            settings: Settings {
                queue_depth: settings.queue_depth.max(1),
                attempts: settings.attempts.max(1),
                ..settings
            },
            id: FcId::NONE,
            tasks: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            targets: BTreeMap::new(),
            timers: BTreeSet::new(),
            ready: BTreeSet::new(),
            control: VecDeque::new(),
            sending: VecDeque::new(),
            ended: VecDeque::new(),
            asked: VecDeque::new(),
            counters: Counters::default(),
            r_a_tov_ns: 10_000_000_000,
            next_key: 0,
            next_command: 0,
        }
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Commands that have not ended.
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// The command of an exchange that is under way.
    pub fn command_of(&self, ox_id: u16) -> Option<u64> {
        self.exchanges.get(&ox_id).map(|exchange| exchange.command)
    }

    /// Exchanges under way at a target, those that are aborted included.
    pub fn outstanding_at(&self, target: FcId) -> usize {
        self.targets.get(&target).map_or(0, |port| port.outstanding)
    }

    /// Commands, exchanges, numbers that rest, and targets known: what the initiator keeps.
    pub fn kept(&self) -> (usize, usize, usize, usize) {
        (self.tasks.len(), self.exchanges.len(), self.numbers.resting(), self.targets.len())
    }

    /// A target is logged in; `own` is this port's address.
    pub fn attach(&mut self, own: FcId, peer: &PeerInfo, r_a_tov_ns: u64, now_ns: u64) {
        self.detach(peer.id, now_ns);
        (self.id, self.r_a_tov_ns) = (own, r_a_tov_ns);
        let target = self.targets.entry(peer.id).or_default();
        target.receive_bytes = Some(peer.receive_bytes.max(256));
        self.ready.insert(peer.id);
    }

    /// Hands in a command at `now_ns`, and returns its number. It waits for its turn, and for its target.
    pub fn submit(&mut self, command: Command, now_ns: u64) -> u64 {
        self.next_command += 1;
        let lost_ns = now_ns + self.settings.target_loss_ns;
        let target =
            self.targets.entry(command.target).or_insert_with(|| TargetPort { lost_ns, ..TargetPort::default() });
        target.waiting.push_back(self.next_command);
        self.ready.insert(command.target);
        self.tasks.insert(self.next_command, Task { command, attempts: 0, ox_id: None });
        self.next_command
    }

    /// The next command that ended.
    pub fn poll_completion(&mut self) -> Option<Ended> {
        self.ended.pop_front()
    }

    /// The next link service that the port is to do.
    pub fn poll_asked(&mut self) -> Option<Asked> {
        self.asked.pop_front()
    }

    /// The next frame that leaves at `now_ns`: aborts first, then commands, then data. A command that waited for all
    /// data that may leave would leave the path idle for a round trip.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<Frame> {
        if let Some(frame) = self.control.pop_front() {
            return Some(frame);
        }
        if let Some(frame) = self.next_command(now_ns) {
            return Some(frame);
        }
        self.next_data(now_ns)
    }

    /// A frame of data that a target asked for.
    fn next_data(&mut self, now_ns: u64) -> Option<Frame> {
        loop {
            let ox_id = *self.sending.front()?;
            let found = self.exchanges.get_mut(&ox_id).filter(|e| e.stage == Stage::Active && e.sent < e.ready_to);
            let Some(exchange) = found else {
                self.sending.pop_front();
                continue;
            };
            let Some(task) = self.tasks.get(&exchange.command) else {
                self.sending.pop_front();
                continue;
            };
            let most = self.targets.get(&exchange.target).and_then(|target| target.receive_bytes).unwrap_or(256);
            let bytes = (exchange.ready_to - exchange.sent).min(u32::from(most / 4 * 4));
            let last = exchange.sent + bytes == exchange.ready_to;
            let data = task.outgoing().slice(exchange.sent as usize, bytes as usize);
            let (seq_id, seq_cnt, offset) = (exchange.seq_id, exchange.seq_cnt, exchange.sent);
            exchange.sent += bytes;
            exchange.seq_cnt = exchange.seq_cnt.wrapping_add(1);
            if last {
                exchange.seq_id = exchange.seq_id.wrapping_add(1);
                exchange.seq_cnt = 0;
                self.sending.pop_front();
            }
            let rx_id = exchange.rx_id.unwrap_or(UNASSIGNED);
            let side = Side { from: self.id, to: exchange.target, ox_id, rx_id, responder: false };
            self.touch(ox_id, now_ns);
            return Some(side.data(seq_id, seq_cnt, offset, data, last, true));
        }
    }

    /// The frame of a command whose turn it is.
    fn next_command(&mut self, now_ns: u64) -> Option<Frame> {
        loop {
            let at = *self.ready.first()?;
            let settings = self.settings;
            let target = self.targets.get_mut(&at).filter(|target| {
                target.receive_bytes.is_some()
                    && target.outstanding < settings.queue_depth
                    && !target.waiting.is_empty()
            });
            let Some(target) = target else {
                self.ready.pop_first();
                continue;
            };
            // Without a number all wait, until an exchange ends or the rest of a number is over.
            let exchanges = &self.exchanges;
            let ox_id = self.numbers.take(exchanges.len(), |number| exchanges.contains_key(&number))?;
            let id = target.waiting.pop_front()?;
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            target.outstanding += 1;
            task.attempts += 1;
            task.ox_id = Some(ox_id);
            self.counters.exchanges += 1;
            self.counters.retries += u64::from(task.attempts > 1);
            let exchange = Exchange {
                command: id,
                target: at,
                rx_id: None,
                stage: Stage::Active,
                received: Rope::default(),
                order: DataOrder::default(),
                ready_to: 0,
                sent: 0,
                seq_id: 1,
                seq_cnt: 0,
                deadline_ns: now_ns + settings.command_timeout_ns,
                rec_ns: now_ns + settings.rec_timeout_ns,
                rec_key: None,
            };
            self.timers.insert((exchange.due_ns(), ox_id));
            self.exchanges.insert(ox_id, exchange);
            let (read, write, data_bytes) = match &task.command.data {
                Data::None => (false, false, 0),
                Data::Read(bytes) => (true, false, *bytes),
                Data::Write(data) => (false, true, data.len() as u32),
            };
            let unit = fcp::Command {
                lun: task.command.lun.to_be_bytes(),
                reference: 0,
                priority: 0,
                attribute: TaskAttribute::Simple,
                management: None,
                read,
                write,
                cdb: bytes::Bytes::copy_from_slice(&task.command.cdb),
                data_bytes,
            };
            let side = Side { from: self.id, to: at, ox_id, rx_id: UNASSIGNED, responder: false };
            return Some(side.command(unit.to_bytes()));
        }
    }

    /// Something of an exchange moved: its silence begins anew, and a REC under way tells of a state that is past.
    pub(super) fn touch(&mut self, ox_id: u16, now_ns: u64) {
        let rec_ns = now_ns + self.settings.rec_timeout_ns.max(1);
        self.retime(ox_id, |exchange| (exchange.rec_ns, exchange.rec_key) = (rec_ns, None));
    }

    /// Changes an exchange and its time-out.
    pub(super) fn retime(&mut self, ox_id: u16, change: impl FnOnce(&mut Exchange)) {
        let Some(exchange) = self.exchanges.get_mut(&ox_id) else { return };
        self.timers.remove(&(exchange.due_ns(), ox_id));
        change(exchange);
        self.timers.insert((exchange.due_ns(), ox_id));
    }

    /// Ends an exchange and returns it. Its number is free, unless the caller lets it rest.
    pub(super) fn remove(&mut self, ox_id: u16) -> Option<Exchange> {
        let exchange = self.exchanges.remove(&ox_id)?;
        self.timers.remove(&(exchange.due_ns(), ox_id));
        if let Some(task) = self.tasks.get_mut(&exchange.command) {
            task.ox_id = None;
        }
        if let Some(target) = self.targets.get_mut(&exchange.target) {
            target.outstanding -= 1;
        }
        self.ready.insert(exchange.target);
        Some(exchange)
    }

    /// Ends a command without an answer.
    pub(super) fn fail(&mut self, id: u64, failure: Failure) {
        if self.tasks.remove(&id).is_some() {
            self.counters.failed += 1;
            self.ended.push_back((id, Err(failure)));
        }
    }
}
