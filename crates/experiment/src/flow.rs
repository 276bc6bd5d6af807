//! One TCP connection of a run: two endpoints, the routes of their packets, the application.

use crate::counters::{FlowCounters, ReverseCounters, Rtt};
use crate::node_number::EndNodes;
use crate::reconnect::Earlier;
use crate::side::Side;
use crate::transport::Transport;
use crate::workload::Workload;
use spec::FlowSpec;
use tcp::Stats;
use units::Time;

/// A connection. What packets need lies together, for the cache's sake, and the specification elsewhere.
#[repr(C)]
pub struct Flow<T> {
    pub sender: T,
    pub receiver: T,
    /// Times to which the sides' timers are set: the deadline or before (see `World::pump`).
    pub armed: [Time; 2],
    /// First hop of the packets of either side.
    pub hops: [u32; 2],
    /// The nodes that drive its ends, in place of the workload.
    pub nodes: EndNodes,
    pub workload: Workload,
    /// Of connections before the present one.
    pub earlier: Option<Box<Earlier>>,
    pub spec: Box<FlowSpec>,
    /// Packets of either side lost on the way.
    pub dropped_packets: [u64; 2],
    /// Payload that either side had received when the measured interval began, bytes.
    pub received_at_warmup: [u64; 2],
    /// The same at the latest sample of the series, bytes.
    pub received_at_sample: [u64; 2],
}

impl<T: Transport> Flow<T> {
    /// The counters now.
    pub fn counters(&self) -> FlowCounters {
        let (sender, receiver) = (self.stats(Side::Sender), self.stats(Side::Receiver));
        let sampled = sender.rtt_samples > 0;
        // UDT has neither duplicate ACKs nor probes, and takes no reduction back.
        let of_tcp = |count: u64| self.spec.transport.udt.is_none().then_some(count);
        FlowCounters {
            received_bytes: self.received(Side::Receiver),
            delivered_packets: Some(receiver.data_segments_received),
            sent_segments: Some(sender.data_segments_sent),
            retransmitted_segments: Some(sender.retransmitted_segments),
            retransmitted_bytes: Some(sender.retransmitted_bytes),
            dropped_packets: Some(self.dropped_packets[0] + self.dropped_packets[1]),
            duplicate_acks: of_tcp(sender.duplicate_acks_received),
            timeouts: Some(sender.timeouts),
            fast_retransmits: Some(sender.fast_retransmits),
            tlp_probes: of_tcp(sender.tlp_probes),
            cwnd_reductions: of_tcp(sender.cwnd_reductions),
            spurious_recoveries: of_tcp(sender.spurious_undos()),
            acks: Some(receiver.acks_sent),
            rtt: Rtt {
                mean: sampled.then_some((sender.rtt_samples, sender.rtt_sum_us)),
                min_us: sender.rtt_min_us,
                max_us: sampled.then_some(sender.rtt_max_us),
            },
            sending: None,
        }
    }

    /// Counters of the data that the other end sends, where it sends any.
    pub fn reverse(&self) -> Option<ReverseCounters> {
        let (sender, receiver) = (self.stats(Side::Sender), self.stats(Side::Receiver));
        self.is_two_way().then(|| ReverseCounters {
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

    /// Returns true if both ends send data: the same node drives them.
    pub fn is_two_way(&self) -> bool {
        self.nodes[0].is_some() && self.nodes[0] == self.nodes[1]
    }

    /// The endpoint at `side`.
    #[inline]
    pub fn endpoint(&mut self, side: Side) -> &mut T {
        match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        }
    }
}

impl<T: Transport> Flow<T> {
    /// Puts fresh endpoints in place of those that are there.
    pub fn reconnect(&mut self, sender: T, receiver: T) {
        let before = Earlier {
            stats: [self.stats(Side::Sender), self.stats(Side::Receiver)],
            received: [self.received(Side::Sender), self.received(Side::Receiver)],
        };
        (self.sender, self.receiver) = (sender, receiver);
        self.earlier = Some(Box::new(before));
    }

    /// Payload that an end has received, over all connections, bytes.
    pub fn received(&self, side: Side) -> u64 {
        let now = match side {
            Side::Sender => self.sender.bytes_received(),
            Side::Receiver => self.receiver.bytes_received(),
        };
        now + self.earlier.as_ref().map_or(0, |earlier| earlier.received[side as usize])
    }

    /// Segments that the sender has sent again, and duplicate ACKs that it has got, over all its connections.
    #[inline]
    pub fn sender_counts(&self) -> (u64, u64) {
        let now = self.sender.stats();
        let earlier = self.earlier.as_ref().map(|earlier| &earlier.stats[Side::Sender as usize]);
        let before = earlier.map_or((0, 0), |of| (of.retransmitted_segments, of.duplicate_acks_received));
        (now.retransmitted_segments + before.0, now.duplicate_acks_received + before.1)
    }

    /// Returns the counters of an end, over all its connections.
    pub fn stats(&self, side: Side) -> Stats {
        let now = match side {
            Side::Sender => self.sender.stats(),
            Side::Receiver => self.receiver.stats(),
        };
        self.earlier.as_ref().map_or(*now, |earlier| earlier.stats[side as usize].plus(now))
    }
}
