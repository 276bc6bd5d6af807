//! Lost frames, silent and lost targets: REC, ABTS, RRQ, commands sent again.

use super::engine::{Asked, Initiator};
use super::exchange::{Exchange, Stage};
use super::numbers::Resting;
use crate::fc::fcp::command::{Data, Failure};
use crate::fc::fcp::frames::Side;
use crate::fc::nport::StatusAnswer;
use wire::fc::els::{ExchangeName, ExchangeStatus};
use wire::fc::{FcId, UNASSIGNED};

impl Initiator {
    /// Does what is due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        while let Some(&(at_ns, ox_id)) = self.timers.first() {
            if at_ns > now_ns {
                break;
            }
            self.overdue(ox_id, now_ns);
        }
        for (ox_id, resting) in self.numbers.take_due(now_ns) {
            let name = ExchangeName { originator: self.id, ox_id, rx_id: resting.rx_id };
            self.asked.push_back(Asked::Reinstate(resting.target, name, u64::from(ox_id)));
        }
        // Numbers that are free again may be what commands wait for.
        self.ready.extend(self.targets.iter().filter(|(_, port)| !port.waiting.is_empty()).map(|(id, _)| *id));
        let lost: Vec<FcId> = self
            .targets
            .iter()
            .filter(|(_, port)| port.receive_bytes.is_none() && port.lost_ns <= now_ns)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            if let Some(port) = self.targets.remove(&id) {
                port.waiting.into_iter().for_each(|command| self.fail(command, Failure::NoTarget));
            }
        }
    }

    /// Time at which [`Initiator::handle_timeout`] has something to do, ns.
    pub fn poll_timeout(&self) -> Option<u64> {
        let exchange = self.timers.first().map(|(at_ns, _)| *at_ns);
        let lost = self.targets.values().filter(|port| port.receive_bytes.is_none()).map(|port| port.lost_ns).min();
        [exchange, self.numbers.next_ns(), lost].into_iter().flatten().min()
    }

    fn overdue(&mut self, ox_id: u16, now_ns: u64) {
        let Some(exchange) = self.exchanges.get(&ox_id) else { return };
        match exchange.stage {
            Stage::Aborting { sent, .. } if sent < self.settings.aborts => self.send_abort(ox_id, now_ns),
            Stage::Aborting { .. } => {
                let target = exchange.target;
                self.asked.push_back(Asked::Renew(target));
                self.detach(target, now_ns);
            }
            Stage::Active if exchange.deadline_ns <= now_ns => {
                self.counters.timeouts += 1;
                self.send_abort(ox_id, now_ns);
            }
            Stage::Active => {
                self.next_key += 1;
                let key = self.next_key << 16 | u64::from(ox_id);
                let rx_id = exchange.rx_id.unwrap_or(UNASSIGNED);
                let name = ExchangeName { originator: self.id, ox_id, rx_id };
                self.asked.push_back(Asked::Status(exchange.target, name, key));
                self.touch(ox_id, now_ns);
                self.retime(ox_id, |exchange| exchange.rec_key = Some(key));
            }
        }
    }

    /// Takes the answer to a REC.
    pub fn handle_status(&mut self, key: u64, answer: &StatusAnswer, now_ns: u64) {
        let ox_id = key as u16;
        let Some(exchange) = self.exchanges.get(&ox_id).filter(|exchange| exchange.rec_key == Some(key)) else {
            return;
        };
        if exchange.stage != Stage::Active {
            return;
        }
        let lost = match answer {
            // REC or its answer was lost: it is asked again after the next silence.
            StatusAnswer::None => false,
            // The command or its response was lost.
            StatusAnswer::Rejected => true,
            StatusAnswer::Status(status) => self.is_lost(exchange, status),
        };
        if lost {
            self.counters.broken += 1;
            self.send_abort(ox_id, now_ns);
        }
    }

    /// True when the target's state shows that a frame was lost: since frames keep their order, all that it sent before
    /// its answer has come.
    fn is_lost(&self, exchange: &Exchange, status: &ExchangeStatus) -> bool {
        let target_has_initiative = status.status & ExchangeStatus::INITIATIVE != 0;
        let reads = self.tasks.get(&exchange.command).is_some_and(|task| matches!(task.command.data, Data::Read(_)));
        let missed_data = reads && (exchange.received.len() as u64) < u64::from(status.transferred);
        // The target waits for data, and this side has none to send: transfer ready or the data's end is gone.
        let both_wait = !target_has_initiative && exchange.sent >= exchange.ready_to;
        status.status & ExchangeStatus::COMPLETE != 0 || missed_data || both_wait
    }

    /// Aborts an exchange, or says so again.
    pub(super) fn send_abort(&mut self, ox_id: u16, now_ns: u64) {
        let deadline_ns = now_ns + self.settings.abort_timeout_ns.max(1);
        let Some(exchange) = self.exchanges.get(&ox_id) else { return };
        let sent = match exchange.stage {
            Stage::Aborting { sent, .. } => sent,
            Stage::Active => 0,
        };
        let rx_id = exchange.rx_id.unwrap_or(UNASSIGNED);
        let side = Side { from: self.id, to: exchange.target, ox_id, rx_id, responder: false };
        self.control.push_back(side.abort(exchange.seq_id.wrapping_add(1)));
        self.counters.aborts += 1;
        self.retime(ox_id, |exchange| exchange.stage = Stage::Aborting { sent: sent + 1, deadline_ns });
    }

    /// The target has ended an exchange: its numbers rest, and the command goes on.
    pub(super) fn aborted(&mut self, ox_id: u16, reinstates: bool, now_ns: u64) {
        if !self.exchanges.get(&ox_id).is_some_and(|exchange| matches!(exchange.stage, Stage::Aborting { .. })) {
            self.counters.stale += 1;
            return;
        }
        let Some(exchange) = self.remove(ox_id) else { return };
        self.let_rest(ox_id, &exchange, reinstates, now_ns);
        self.again_or_fail(exchange.command);
    }

    fn let_rest(&mut self, ox_id: u16, exchange: &Exchange, reinstates: bool, now_ns: u64) {
        let until_ns = now_ns + self.r_a_tov_ns;
        let rx_id = exchange.rx_id.unwrap_or(UNASSIGNED);
        self.numbers.rest(ox_id, Resting { target: exchange.target, rx_id, until_ns, asked: false, reinstates });
    }

    fn again_or_fail(&mut self, id: u64) {
        let Some(task) = self.tasks.get(&id) else { return };
        let attempts = task.attempts;
        if attempts >= self.settings.attempts || !task.may_repeat() {
            return self.fail(id, Failure::Aborted(attempts));
        }
        self.wait_again(id);
    }

    /// Puts a command before those that wait: it is older.
    pub(super) fn wait_again(&mut self, id: u64) {
        let Some(task) = self.tasks.get(&id) else { return };
        if let Some(target) = self.targets.get_mut(&task.command.target) {
            target.waiting.push_front(id);
            self.ready.insert(task.command.target);
        }
    }

    /// The end of an RRQ.
    pub fn handle_reinstated(&mut self, key: u64) {
        self.numbers.release(key as u16);
    }

    /// A target is not logged in any more: it has ended all exchanges. Their commands wait for it.
    pub fn detach(&mut self, id: FcId, now_ns: u64) {
        let Some(target) = self.targets.get_mut(&id) else { return };
        if target.receive_bytes.take().is_none() {
            return;
        }
        target.lost_ns = now_ns + self.settings.target_loss_ns;
        let own: Vec<u16> =
            self.exchanges.iter().filter(|(_, exchange)| exchange.target == id).map(|(ox_id, _)| *ox_id).collect();
        // The oldest command comes first again: each is put before the others.
        let mut commands = Vec::new();
        for ox_id in own {
            if let Some(exchange) = self.remove(ox_id) {
                self.let_rest(ox_id, &exchange, false, now_ns);
                commands.push(exchange.command);
            }
        }
        commands.sort_unstable();
        commands.into_iter().rev().for_each(|command| self.again_or_fail(command));
        self.control.retain(|frame| frame.header.d_id != id);
        self.numbers.forget(id);
    }
}
