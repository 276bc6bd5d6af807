//! The end of exchanges before their time: aborts, task management, initiators that are gone.

use super::engine::Target;
use super::exchange::{Key, PendingManagement, Stage};
use wire::fc::fcp::{Command, Residual, Response, TaskManagement};
use wire::fc::{routing, BasicAccept, FrameHeader};

/// Response code: done (FCP-3, table 29).
const COMPLETE: u8 = 0x00;
/// Response code: the function is not supported.
const NOT_SUPPORTED: u8 = 0x04;
/// Response code: there is no such unit.
const NO_LUN: u8 = 0x09;
/// Functions that may wait for the medium at once; more are refused.
const MANAGEMENT_MAX: usize = 64;
/// Response code: not done.
const FAILED: u8 = 0x05;

impl Target {
    /// Takes an ABTS: the exchange ends without an answer of its own. Its numbers are remembered until the initiator
    /// gives them back or `until_ns`: what is late of it must not begin a new one (FC-FS-2, 12.3.3).
    pub(super) fn abort(&mut self, header: &FrameHeader, until_ns: u64) {
        let key = (header.s_id, header.ox_id);
        let found = self.exchanges.get(&key).map(|exchange| exchange.rx_id);
        if found.is_some() {
            self.counters.aborted += 1;
            self.drop_exchange(key);
        }
        // A command that the abort overtook, or that was lost, is remembered as well.
        self.remember(key, until_ns);
        self.management.retain(|pending| pending.key != key);
        let accept = BasicAccept {
            seq_id: None,
            ox_id: header.ox_id,
            rx_id: found.unwrap_or(header.rx_id),
            low_seq_cnt: 0,
            high_seq_cnt: u16::MAX,
        };
        let side = self.side(key, accept.rx_id);
        let payload = bytes::Bytes::copy_from_slice(&accept.to_bytes());
        self.control.push_back(side.basic(routing::BASIC_ACCEPT, header.seq_id, payload));
    }

    fn remember(&mut self, key: Key, until_ns: u64) {
        self.qualifiers.insert(key, until_ns);
        let own = self.qualifiers.range((key.0, 0)..=(key.0, u16::MAX));
        if own.clone().count() > self.settings.qualifiers_max {
            // The one that ends first is the oldest.
            if let Some(oldest) = own.min_by_key(|(_, until_ns)| **until_ns).map(|(key, _)| *key) {
                self.qualifiers.remove(&oldest);
            }
        }
    }

    /// Ends an exchange without a word. An operation that the medium is at goes on: what follows at its unit waits for
    /// it, so that a stale write never falls on a later one.
    pub(super) fn drop_exchange(&mut self, key: Key) {
        let Some(exchange) = self.exchanges.remove(&key) else { return };
        self.rx_ids.remove(&exchange.rx_id);
        if let Some(initiator) = self.initiators.get_mut(&key.0) {
            initiator.commands -= 1;
        }
        if exchange.stage == Stage::Working {
            self.order.abandon(exchange.serial);
            if let Some(origin) = self.origins.values_mut().find(|origin| origin.serial == exchange.serial) {
                origin.claim = exchange.held;
                self.forget_frames(key);
                return;
            }
        }
        self.claimed -= exchange.held;
        let free = self.order.leave(exchange.serial);
        self.beginning.extend(free);
        self.forget_frames(key);
    }

    /// Frames of an exchange that have not left.
    fn forget_frames(&mut self, key: Key) {
        self.answers.retain(|answer| answer.key != key);
        self.control.retain(|frame| {
            (frame.header.d_id, frame.header.ox_id) != key || frame.header.r_ctl != routing::DATA_DESCRIPTOR
        });
    }

    /// Does a task management function.
    pub(super) fn manage(&mut self, key: Key, rx_id: u16, command: &Command, function: TaskManagement) {
        let lun = self.device.index(u64::from_be_bytes(command.lun));
        if function != TaskManagement::TargetReset && lun.is_none() {
            return self.managed(key, rx_id, NO_LUN);
        }
        if self.management.len() >= MANAGEMENT_MAX {
            return self.managed(key, rx_id, FAILED);
        }
        let (own, unit) = match function {
            // There is no such condition (NORMACA is 0).
            TaskManagement::ClearAca => return self.managed(key, rx_id, NOT_SUPPORTED),
            TaskManagement::AbortTaskSet => (true, lun),
            TaskManagement::ClearTaskSet | TaskManagement::LunReset => (false, lun),
            TaskManagement::TargetReset => (false, None),
        };
        let chosen: Vec<Key> = self
            .exchanges
            .iter()
            .filter(|(of, exchange)| {
                let at = self.device.index(u64::from_be_bytes(exchange.command.lun));
                (!own || of.0 == key.0) && (unit.is_none() || at == unit)
            })
            .map(|(of, _)| *of)
            .collect();
        let mut serials = Vec::new();
        for of in chosen {
            if let Some(exchange) = self.exchanges.get(&of).filter(|exchange| exchange.stage == Stage::Working) {
                serials.push(exchange.serial);
            }
            if function == TaskManagement::ClearTaskSet && of.0 != key.0 {
                // They hear of it, since TAS is 0 and no status comes: COMMANDS CLEARED BY ANOTHER INITIATOR.
                if let Some(port) = self.initiators.get(&of.0) {
                    self.device.raise_attention(unit, &port.nexus, (0x2f, 0x00));
                }
            }
            self.drop_exchange(of);
        }
        if matches!(function, TaskManagement::LunReset | TaskManagement::TargetReset) {
            self.device.reset(unit);
        }
        self.management.push(PendingManagement { key, rx_id, serials });
        self.left_medium(0);
    }

    /// Answers functions whose last command left the medium.
    pub(super) fn left_medium(&mut self, serial: u64) {
        for pending in &mut self.management {
            pending.serials.retain(|waited| *waited != serial);
        }
        while let Some(at) = self.management.iter().position(|pending| pending.serials.is_empty()) {
            let pending = self.management.remove(at);
            self.managed(pending.key, pending.rx_id, COMPLETE);
        }
    }

    fn managed(&mut self, key: Key, rx_id: u16, code: u8) {
        let response = Response { status: 0, residual: Residual::None, code: Some(code), sense: bytes::Bytes::new() };
        let frame = self.side(key, rx_id).response(0, response.to_bytes());
        self.control.push_back(frame);
    }
}
