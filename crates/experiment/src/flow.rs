//! One TCP connection of a run: two endpoints, where their packets go, what the application does.

use crate::anew::Earlier;
use crate::iscsi::NONE;
use crate::spec::FlowSpec;
use crate::tally::{FlowCounters, ReverseCounters, Rtt};
use crate::workload::Workload;
use tcp::Endpoint;
use units::Time;

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
    /// Number of the session that it is a connection of, or [`crate::iscsi::NONE`].
    pub session: u32,
    /// Number of the present connection: how many there were before it.
    pub connection: u8,
    /// Of those before it.
    pub earlier: Option<Box<Earlier>>,
    pub spec: Box<FlowSpec>,
    /// Packets of either side lost on the way.
    pub dropped_packets: [u64; 2],
    /// Payload that either side had received when the measured interval began, bytes.
    pub received_at_warmup: [u64; 2],
    /// The same at the latest sample of the series, bytes.
    pub received_at_sample: [u64; 2],
}

impl Flow {
    /// The counters now.
    pub fn counters(&self) -> FlowCounters {
        let (sender, receiver) = (self.stats(Side::Sender), self.stats(Side::Receiver));
        let sampled = sender.rtt_samples > 0;
        FlowCounters {
            received_bytes: self.received(Side::Receiver),
            delivered_packets: Some(receiver.data_segments_received),
            sent_segments: Some(sender.data_segments_sent),
            retransmitted_segments: Some(sender.retransmitted_segments),
            retransmitted_bytes: Some(sender.retransmitted_bytes),
            dropped_packets: Some(self.dropped_packets[0] + self.dropped_packets[1]),
            duplicate_acks: Some(sender.duplicate_acks_received),
            timeouts: Some(sender.timeouts),
            fast_retransmits: Some(sender.fast_retransmits),
            tlp_probes: Some(sender.tlp_probes),
            spurious_recoveries: Some(sender.spurious_undos()),
            acks: Some(receiver.acks_sent),
            rtt: Rtt {
                mean: sampled.then_some((sender.rtt_samples, sender.rtt_sum_us)),
                min_us: sampled.then_some(sender.rtt_min_us),
                max_us: sampled.then_some(sender.rtt_max_us),
            },
        }
    }

    /// Counters of the data that the other end sends, where it sends any.
    pub fn reverse(&self) -> Option<ReverseCounters> {
        let (sender, receiver) = (self.stats(Side::Sender), self.stats(Side::Receiver));
        (self.session != NONE).then(|| ReverseCounters {
            received_bytes: self.received(Side::Sender),
            received_at_warmup: self.received_at_warmup[Side::Sender as usize],
            delivered_packets: sender.data_segments_received,
            sent_segments: receiver.data_segments_sent,
            retransmitted_segments: receiver.retransmitted_segments,
            retransmitted_bytes: receiver.retransmitted_bytes,
            dropped_packets: self.dropped_packets[Side::Receiver as usize],
            timeouts: receiver.timeouts,
            fast_retransmits: receiver.fast_retransmits,
        })
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
