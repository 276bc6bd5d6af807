//! What a ground counted in a run, whichever ground it was: the form that [`crate::sum_up`] makes an outcome of.
//!
//! A count that a ground cannot know is None, and its metric is absent.

use crate::crowd::CrowdTally;
use crate::managed::ManagerOutcome;
use crate::measure::{FlowSeries, LinkSeries};
use crate::study::Found;
use crate::workload::{Stripe, Workload};
use link::hold_buffer::Stats as Kept;
use link::{Packet, Stats};
use sim::{Network, Routed};
use tcp::CwndReduction as Trimmed;
use units::{Span, Time};

/// Round-trip times that the sender of a connection has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// What the mean is over: (number of values, their sum in us).
    pub mean: Option<(u64, u64)>,
    /// Least sample, us.
    pub min_us: Option<u64>,
    /// Largest sample, us.
    pub max_us: Option<u64>,
}

/// Counters of a connection when the run proper ended: what drains afterwards is not part of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Payload handed to the receiving application, bytes.
    pub received_bytes: u64,
    /// Distinct data segments that arrived.
    pub delivered_packets: Option<u64>,
    /// Data segments sent, retransmissions included.
    pub sent_segments: Option<u64>,
    /// Data segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// Their payload, bytes.
    pub retransmitted_bytes: Option<u64>,
    /// Packets of either direction lost on the way.
    pub dropped_packets: Option<u64>,
    /// Duplicate ACKs at the sender (RFC 5681, 2).
    pub duplicate_acks: Option<u64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
    /// Loss recoveries that began without a time-out.
    pub fast_retransmits: Option<u64>,
    /// Tail loss probes.
    pub tlp_probes: Option<u64>,
    /// Reductions taken back.
    pub spurious_recoveries: Option<u64>,
    /// Segments without payload that the receiver sent.
    pub acks: Option<u64>,
    /// Round-trip times.
    pub rtt: Rtt,
}

/// Data that the other end of a connection sends, where it sends any, when the run proper ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReverseCounters {
    /// Payload handed to the application that opened the connection, bytes.
    pub received_bytes: u64,
    /// The same when the measured interval began.
    pub received_at_warmup: u64,
    /// Distinct data segments that arrived.
    pub delivered_packets: u64,
    /// Data segments sent, retransmissions included.
    pub sent_segments: u64,
    /// Data segments sent again.
    pub retransmitted_segments: u64,
    /// Their payload, bytes.
    pub retransmitted_bytes: u64,
    /// Packets of that end lost on the way.
    pub dropped_packets: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Loss recoveries that began without a time-out.
    pub fast_retransmits: u64,
}

/// A connection.
pub struct FlowTally {
    /// When the run proper ended.
    pub counters: FlowCounters,
    /// The other direction, where there is data.
    pub reverse: Option<ReverseCounters>,
    /// Payload received when the measured interval began, bytes.
    pub received_at_warmup: u64,
    /// Its application, in the state that it was left in: after the drain.
    pub workload: Workload,
}

impl FlowTally {
    /// Payload received within the measured interval, bytes.
    pub fn measured_bytes(&self) -> u64 {
        self.counters.received_bytes - self.received_at_warmup
    }
}

/// A background source: packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundTally {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost on the way.
    pub dropped: u64,
    /// Packets that arrived.
    pub received: u64,
}

/// The move for which a sender trims its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimmedFor {
    /// Index of the event in the spec.
    Event(usize),
    /// Index of the move in the manager's ledger.
    Entry(usize),
}

/// A sender that was told to trim its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimTally {
    /// For which move.
    pub why: TrimmedFor,
    /// Index of the flow.
    pub flow: usize,
    /// When it was told, since the run began.
    pub at: Time,
    /// Its smoothed RTT then.
    pub srtt: Span,
    /// None: it was not to be done then.
    pub trimmed: Option<Trimmed>,
}

/// A run.
pub struct RunTally {
    /// When the run proper ended, before what was on its way drained.
    pub end: Time,
    /// When it ended altogether.
    pub drained_at: Time,
    /// In the order of the spec.
    pub flows: Vec<FlowTally>,
    /// Workloads that several flows share, in the state that they were left in: after the drain.
    pub stripes: Vec<Stripe>,
    /// Counters at `end`, in the order of the spec.
    pub links: Vec<link::Stats>,
    /// In the order of the spec.
    pub background: Vec<BackgroundTally>,
    /// Series, empty unless asked for.
    pub flow_series: FlowSeries,
    /// Series, empty unless asked for.
    pub link_series: LinkSeries,
    /// What gates have kept back, in the order of the spec's events, and their counters.
    pub kept: Vec<Kept>,
    /// Counters of the gates.
    pub gates: Vec<Stats>,
    /// When each event happened, in the order of the spec; None: it did not.
    pub happened: Vec<Option<Time>>,
    /// In the order in which they were told; none where the ground knows of them only afterwards.
    pub trims: Vec<TrimTally>,
    /// Of each crowd.
    pub crowds: Vec<CrowdTally>,
    /// What came of looking whether a copy is steady, where that was asked for and the copy had not ended before.
    pub found: Option<Found>,
    /// What the manager did, where there is one.
    pub managed: Option<ManagerOutcome>,
    /// What a reader of the numbers has to know beside what the numbers themselves say.
    pub notes: Vec<String>,
}

/// What the gates of `net` have kept back, and their counters.
pub fn gates_of<P: Packet + Routed>(net: &Network<P>) -> (Vec<Kept>, Vec<Stats>) {
    net.links().iter().filter_map(|link| Some((link.as_hold_buffer()?.stats(), *link.stats()))).unzip()
}
