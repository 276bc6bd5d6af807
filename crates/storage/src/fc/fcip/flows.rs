//! Connections of exchanges: all frames of one exchange and direction go through one connection, which keeps their
//! order.

use super::output::ConnectionKey;
use std::collections::{BTreeMap, VecDeque};
use wire::fc::{frame_control, FcId, FrameHeader};

/// Way of new exchanges on connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spread {
    /// To the connection for which the least waits. Exchanges of two ports may overtake each other.
    Exchange,
    /// To one connection for each pair of ports, as long as no connection comes or goes.
    Pair,
}

/// One direction of an exchange: sender, receiver, the originator's number, and whether the responder sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FlowKey {
    s_id: FcId,
    d_id: FcId,
    ox_id: u16,
    responder: bool,
}

impl FlowKey {
    /// The direction of a frame.
    pub fn of(header: &FrameHeader) -> FlowKey {
        let responder = header.has(frame_control::EXCHANGE_RESPONDER);
        FlowKey { s_id: header.s_id, d_id: header.d_id, ox_id: header.ox_id, responder }
    }

    /// The other direction of the same exchange.
    pub fn reversed(self) -> FlowKey {
        FlowKey { s_id: self.d_id, d_id: self.s_id, ox_id: self.ox_id, responder: !self.responder }
    }

    /// A number that spreads exchanges, or pairs, evenly and in the same way at every run.
    pub fn hash(self, spread: Spread, connection: ConnectionKey) -> u64 {
        let (low, high) = (self.s_id.min(self.d_id), self.s_id.max(self.d_id));
        let ports = u64::from(low.value()) << 24 | u64::from(high.value());
        let exchange = if spread == Spread::Exchange { u64::from(self.ox_id) } else { 0 };
        mixed(mixed(mixed(ports) ^ exchange) ^ u64::from(connection.0))
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    /// None: frames of it were lost with their connection.
    connection: Option<ConnectionKey>,
    /// Frames that wait.
    queued: u32,
    /// Time at which the last frame left this end; None before the first.
    left_ns: Option<u64>,
    /// Number of the flow, by which the ring knows it from an earlier one of the same key.
    number: u64,
}

/// Place of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Its frames go through a connection.
    On(ConnectionKey),
    /// Frames of it may still come to the peer through a connection that was lost.
    Broken,
    /// Nothing of it is on its way.
    Free,
}

/// Flows of which frames wait or may be on their way.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    flows: BTreeMap<FlowKey, Flow>,
    /// Every flow once, and some that have ended, in the order in which their end is looked for.
    ring: VecDeque<(FlowKey, u64)>,
    flows_max: usize,
    /// Time after which no frame is on its way any more.
    settle_ns: u64,
    next: u64,
}

impl Flows {
    /// Flows that are looked at when one begins: two keep the ring from growing.
    const SAMPLES: usize = 4;

    pub fn new(flows_max: usize, settle_ns: u64) -> Flows {
        Flows { flows: BTreeMap::new(), ring: VecDeque::new(), flows_max: flows_max.max(1), settle_ns, next: 0 }
    }

    #[cfg(test)]
    pub fn len(&self) -> (usize, usize) {
        (self.flows.len(), self.ring.len())
    }

    pub fn place(&self, key: FlowKey, now_ns: u64) -> Place {
        match self.flows.get(&key) {
            Some(Flow { connection: Some(connection), .. }) => Place::On(*connection),
            Some(flow) if !self.settled(flow, now_ns) => Place::Broken,
            _ => Place::Free,
        }
    }

    /// Gives a free flow a connection; false when too many flows are under way.
    pub fn begin(&mut self, key: FlowKey, connection: ConnectionKey, now_ns: u64) -> bool {
        self.forget_settled(now_ns);
        if self.flows.len() >= self.flows_max && !self.flows.contains_key(&key) {
            return false;
        }
        self.next += 1;
        self.flows.insert(key, Flow { connection: Some(connection), queued: 0, left_ns: None, number: self.next });
        self.ring.push_back((key, self.next));
        true
    }

    /// Notes that a frame waits.
    pub fn enqueued(&mut self, key: FlowKey) {
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.queued += 1;
        }
    }

    /// Notes that a waiting frame left this end, or, without a time, that it was thrown away.
    pub fn dequeued(&mut self, key: FlowKey, left_ns: Option<u64>) {
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.queued = flow.queued.saturating_sub(1);
            flow.left_ns = left_ns.or(flow.left_ns);
        }
    }

    /// Forgets a flow whose exchange has ended.
    pub fn end(&mut self, key: FlowKey) {
        if self.flows.get(&key).is_some_and(|flow| flow.queued == 0 && flow.connection.is_some()) {
            self.flows.remove(&key);
        }
    }

    /// Marks a flow whose waiting frames were thrown away.
    pub fn break_off(&mut self, key: FlowKey, now_ns: u64) {
        if let Some(flow) = self.flows.get_mut(&key) {
            (flow.connection, flow.queued, flow.left_ns) = (None, 0, Some(now_ns));
        }
    }

    /// Takes a connection away. Flows of which nothing is on its way are free again; the others are broken.
    pub fn lose(&mut self, connection: ConnectionKey, now_ns: u64) {
        let settle_ns = self.settle_ns;
        self.flows.retain(|_, flow| {
            if flow.connection != Some(connection) {
                return true;
            }
            (flow.connection, flow.queued) = (None, 0);
            flow.left_ns.is_some_and(|left_ns| left_ns.saturating_add(settle_ns) > now_ns)
        });
    }

    fn settled(&self, flow: &Flow, now_ns: u64) -> bool {
        flow.queued == 0 && flow.left_ns.is_some_and(|left_ns| left_ns.saturating_add(self.settle_ns) <= now_ns)
    }

    fn forget_settled(&mut self, now_ns: u64) {
        for _ in 0..Flows::SAMPLES {
            let Some((key, number)) = self.ring.pop_front() else { return };
            match self.flows.get(&key) {
                Some(flow) if flow.number == number && self.settled(flow, now_ns) => {
                    self.flows.remove(&key);
                }
                Some(flow) if flow.number == number => self.ring.push_back((key, number)),
                _ => {}
            }
        }
    }
}
