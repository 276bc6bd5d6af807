//! One TCP connection of a run: two endpoints, where their packets go, what the application does.

use crate::spec::FlowSpec;
use crate::workload::Workload;
use tcp::Endpoint;
use units::Time;

/// Counters of a connection when the run proper ended: what drains afterwards is not part of them.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub sender: tcp::Stats,
    pub receiver: tcp::Stats,
    /// Payload received in order, bytes.
    pub received: u64,
    pub dropped_packets: u64,
}

/// The end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that opens the connection and sends the data.
    Sender = 0,
    /// The other.
    Receiver = 1,
}

/// A connection. What packets need lies together, for the cache's sake, and the specification elsewhere.
#[repr(C)]
pub struct Flow {
    pub sender: Endpoint,
    pub receiver: Endpoint,
    /// When either side's timer is set to fire: at its deadline or before (see `World::pump`).
    pub armed: [Time; 2],
    /// First hop of the packets of either side.
    pub hops: [u32; 2],
    pub workload: Workload,
    pub spec: Box<FlowSpec>,
    /// Packets of either direction lost on the way.
    pub dropped_packets: u64,
    /// Payload received when the measured interval began, bytes.
    pub received_at_warmup: u64,
    /// The same at the latest sample of the series, bytes.
    pub received_at_sample: u64,
    /// Slowest link of the data's route at the start of the run, bit/s.
    pub bottleneck_bps: u64,
    /// That link.
    pub bottleneck: usize,
}

impl Flow {
    /// The counters now.
    pub fn counters(&self) -> Counters {
        Counters {
            sender: *self.sender.stats(),
            receiver: *self.receiver.stats(),
            received: self.receiver.bytes_received(),
            dropped_packets: self.dropped_packets,
        }
    }

    /// The endpoint at `side`.
    #[inline]
    pub fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        }
    }
}
