//! The target: initiators, exchanges, what is due.

use super::exchange::{Answer, Exchange, InitiatorPort, Key, PendingManagement, Stage, Work, WorkOrigin};
use super::settings::Settings;
use crate::fc::fcp::frames::Side;
use crate::fc::nport::PeerInfo;
use crate::scsi::{Device, Outcome, TaskSets};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::fc::els::{ExchangeName, ExchangeStatus};
use wire::fc::{frame_control, routing, FcId, Frame, FrameType, UNASSIGNED};

/// Counters of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Commands taken.
    pub commands: u64,
    /// Commands refused with TASK SET FULL.
    pub task_set_full: u64,
    /// Commands that ended because their data had a gap.
    pub broken: u64,
    /// Exchanges that initiators aborted.
    pub aborted: u64,
    /// Frames of no exchange: late, or to nothing.
    pub stale: u64,
    /// Frames that are not as FCP-3 has them.
    pub malformed: u64,
}

/// An FCP target.
#[derive(Debug)]
pub struct Target {
    pub(super) settings: Settings,
    pub(super) device: Device,
    /// Own address.
    pub(super) id: FcId,
    pub(super) initiators: BTreeMap<FcId, InitiatorPort>,
    pub(super) exchanges: BTreeMap<Key, Exchange>,
    /// Responder's numbers in use.
    pub(super) rx_ids: BTreeSet<u16>,
    pub(super) next_rx_id: u16,
    pub(super) order: TaskSets<Key>,
    /// Commands that may begin, since others ended.
    pub(super) beginning: VecDeque<(Key, u64)>,
    /// Commands that wait for memory, the oldest first.
    pub(super) waiting: VecDeque<(Key, u64)>,
    pub(super) claimed: u64,
    pub(super) work: VecDeque<Work>,
    pub(super) origins: BTreeMap<u64, WorkOrigin>,
    pub(super) management: Vec<PendingManagement>,
    /// Numbers of aborted exchanges, with the time at which they are free again: what is late of them is thrown away.
    pub(super) qualifiers: BTreeMap<Key, u64>,
    pub(super) control: VecDeque<Frame>,
    pub(super) answers: VecDeque<Answer>,
    pub(super) counters: Counters,
    next_serial: u64,
}

impl Target {
    /// A target without initiators.
    pub fn new(settings: Settings, device: Device) -> Target {
        Target {
            settings,
            device,
            id: FcId::NONE,
            initiators: BTreeMap::new(),
            exchanges: BTreeMap::new(),
            rx_ids: BTreeSet::new(),
            next_rx_id: 0,
            order: TaskSets::default(),
            beginning: VecDeque::new(),
            waiting: VecDeque::new(),
            claimed: 0,
            work: VecDeque::new(),
            origins: BTreeMap::new(),
            management: Vec::new(),
            qualifiers: BTreeMap::new(),
            control: VecDeque::new(),
            answers: VecDeque::new(),
            counters: Counters::default(),
            next_serial: 0,
        }
    }

    /// The units behind.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Exchanges open, operations under way, numbers remembered of aborted exchanges, and bytes of data: what the
    /// target keeps.
    pub fn kept(&self) -> (usize, usize, usize, u64) {
        (self.exchanges.len(), self.origins.len(), self.qualifiers.len(), self.claimed)
    }

    /// An initiator is logged in; `own` is this port's address.
    pub fn attach(&mut self, own: FcId, peer: &PeerInfo) {
        self.detach(peer.id);
        self.id = own;
        let nexus = crate::scsi::Nexus::from(format!("fc,{}", peer.port));
        self.device.attach(&nexus);
        let port = InitiatorPort { nexus, receive_bytes: peer.receive_bytes.max(256), commands: 0 };
        self.initiators.insert(peer.id, port);
    }

    /// An initiator is gone, and its commands with it.
    pub fn detach(&mut self, id: FcId) {
        let keys: Vec<Key> = self.exchanges.range((id, 0)..=(id, u16::MAX)).map(|(key, _)| *key).collect();
        for key in keys {
            self.drop_exchange(key);
        }
        self.control.retain(|frame| frame.header.d_id != id);
        self.management.retain(|pending| pending.key.0 != id);
        self.qualifiers.retain(|key, _| key.0 != id);
        if let Some(port) = self.initiators.remove(&id) {
            self.device.detach(&port.nexus);
        }
        self.settle();
    }

    /// Takes a frame that an initiator sent at `now_ns`; `r_a_tov_ns` is the fabric's.
    pub fn handle_frame(&mut self, frame: Frame, now_ns: u64, r_a_tov_ns: u64) {
        let header = frame.header;
        let key = (header.s_id, header.ox_id);
        let known = self.initiators.contains_key(&header.s_id);
        if header.has(frame_control::EXCHANGE_RESPONDER) || !known || header.ox_id == UNASSIGNED {
            self.counters.stale += 1;
            return;
        }
        match (header.r_ctl, header.kind) {
            (routing::ABORT_SEQUENCE, FrameType::BASIC) => {
                // Numbers that an initiator never gave back are free by themselves.
                self.qualifiers.retain(|_, until_ns| *until_ns > now_ns);
                self.abort(&header, now_ns + 2 * r_a_tov_ns);
            }
            (routing::UNSOLICITED_COMMAND, FrameType::FCP) => self.command(key, &frame, now_ns),
            (routing::SOLICITED_DATA, FrameType::FCP) => self.data(key, frame),
            _ => self.counters.malformed += 1,
        }
        self.settle();
    }

    /// An operation came to its end.
    pub fn handle_work(&mut self, id: u64, outcome: Outcome) {
        let Some(origin) = self.origins.remove(&id) else { return };
        let reply = self.device.finish(origin.lun, origin.then, outcome);
        self.claimed -= origin.claim;
        self.left_medium(origin.serial);
        self.finish(origin.key, origin.serial, reply);
        self.settle();
    }

    /// The next operation for the medium.
    pub fn poll_work(&mut self) -> Option<Work> {
        self.work.pop_front()
    }

    /// The next frame that leaves: asked-for transfers and short answers first, then data, one answer after the other.
    pub fn poll_frame(&mut self) -> Option<Frame> {
        if let Some(frame) = self.control.pop_front() {
            return Some(frame);
        }
        let frame = self.next_of_answers();
        self.settle();
        frame
    }

    /// State of an exchange, for the answer to REC; None when there is none.
    pub fn exchange_status(&self, name: &ExchangeName) -> Option<ExchangeStatus> {
        let exchange = self.exchanges.get(&(name.originator, name.ox_id))?;
        if name.rx_id != UNASSIGNED && name.rx_id != exchange.rx_id {
            return None;
        }
        // The initiator has the initiative while it owes data.
        let collects = exchange.stage == Stage::Collecting;
        let owes = collects && (exchange.data.len() as u32) < exchange.asked_to;
        let transferred = match (exchange.command.write, collects) {
            (true, true) => exchange.data.len() as u32,
            (true, false) => exchange.asked_to,
            (false, _) => exchange.sent,
        };
        Some(ExchangeStatus {
            ox_id: name.ox_id,
            rx_id: exchange.rx_id,
            originator: name.originator,
            responder: self.id,
            transferred,
            status: ExchangeStatus::RESPONDER | if owes { 0 } else { ExchangeStatus::INITIATIVE },
        })
    }

    /// The initiator gives back the numbers of an aborted exchange (RRQ). True when they were remembered.
    pub fn reinstate(&mut self, name: &ExchangeName) -> bool {
        self.qualifiers.remove(&(name.originator, name.ox_id)).is_some()
    }

    pub(super) fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    /// The sending side of an exchange.
    pub(super) fn side(&self, key: Key, rx_id: u16) -> Side {
        Side { from: self.id, to: key.0, ox_id: key.1, rx_id, responder: true }
    }
}
