//! The counters of a run on any backend, from which [`crate::summarize`] makes an outcome.
//!
//! A count that a backend cannot know is None, and its metric is absent.

use crate::copy_study::CopyResult;
use crate::manager::ManagerOutcome;
use crate::metric::Metrics;
use crate::packet_times::PacketDelays;
use crate::sender_command::MoveId;
use crate::series::{FlowSeries, LinkSeries};
use crate::workload::{Stripe, Workload};
use link::hold_buffer::Stats as HoldStats;
use link::{Packet, Stats};
use sim::{Network, Routed};
use tcp::CwndReduction;
use units::{Histogram, Span, Time};

/// Round-trip times that the sender of a connection has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    /// Values of the mean: (number, their sum in us).
    pub mean: Option<(u64, u64)>,
    /// Least sample, us.
    pub min_us: Option<u64>,
    /// Largest sample, us.
    pub max_us: Option<u64>,
}

/// Time of a sender as Linux divides it (tcp_chrono; TCP_INFO since 4.10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendingTimes {
    /// With data, us.
    pub busy_us: u64,
    /// Part of the busy time that is limited by the receive window, us.
    pub receive_window_us: u64,
    /// Part of the busy time that is limited by the send buffer, us.
    pub send_buffer_us: u64,
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
    /// Times that a loss or ECN-Echo made the control reduce its window.
    pub cwnd_reductions: Option<u64>,
    /// Reductions taken back.
    pub spurious_recoveries: Option<u64>,
    /// Segments without payload that the receiver sent.
    pub acks: Option<u64>,
    /// Round-trip times.
    pub rtt: Rtt,
    /// Busy time and its limits, by the kernel's account; None without one.
    pub sending: Option<SendingTimes>,
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
pub struct MeasuredFlow {
    /// Counters at the end of the run proper.
    pub counters: FlowCounters,
    /// The other direction, where there is data.
    pub reverse: Option<ReverseCounters>,
    /// Payload received when the measured interval began, bytes.
    pub received_at_warmup: u64,
    /// Its application, in the state that it was left in: after the drain.
    pub workload: Workload,
}

impl MeasuredFlow {
    /// Payload received within the measured interval, bytes.
    pub fn measured_bytes(&self) -> u64 {
        self.counters.received_bytes - self.received_at_warmup
    }
}

/// A background source: packets.
#[derive(Clone, Debug, Default)]
pub struct BackgroundCounters {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost on the way.
    pub dropped: u64,
    /// Packets that arrived.
    pub received: u64,
    /// One-way delays of these; None: they were not looked at one by one.
    pub delays: Option<PacketDelays>,
}

/// Statistics of the hold buffers of moves, in the order of the spec's events, and their counters.
#[derive(Clone, Debug, Default)]
pub struct HoldBufferCounters {
    /// Packets held and their delays.
    pub kept: Vec<HoldStats>,
    /// Their counters.
    pub stats: Vec<Stats>,
}

impl HoldBufferCounters {
    /// Those of `net`.
    pub fn of<P: Packet + Routed>(net: &Network<P>) -> HoldBufferCounters {
        let (kept, stats) =
            net.links().iter().filter_map(|link| Some((link.as_hold_buffer()?.stats(), *link.stats()))).unzip();
        HoldBufferCounters { kept, stats }
    }
}

/// Counters of the network as its model decided.
#[derive(Clone, Debug, Default)]
pub struct NetworkCounters {
    /// In the order of the spec.
    pub links: Vec<Stats>,
    /// In the order of the spec.
    pub background: Vec<BackgroundCounters>,
    /// Of hold buffers at moving routers.
    pub hold_buffers: HoldBufferCounters,
    /// Outcome of the manager, if there is one.
    pub managed: Option<ManagerOutcome>,
}

/// A sender that got a command to reduce its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowReduction {
    /// For which move.
    pub why: MoveId,
    /// Index of the flow.
    pub flow: usize,
    /// Time of the command since the run began.
    pub at: Time,
    /// Its smoothed RTT then.
    pub srtt: Option<Span>,
    /// None: the sender could not reduce it then.
    pub reduced: Option<CwndReduction>,
}

/// Counters of one entry of short flows.
pub struct ShortFlowsSummary {
    /// Its metrics.
    pub metrics: Metrics,
    /// Times from the beginning of a flow to the delivery of its last byte, ns.
    pub completion: Histogram,
}

/// A connection in a window of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounters {
    /// Payload handed to the receiving application, bytes.
    pub received_bytes: Option<u64>,
    /// Data segments sent again.
    pub retransmitted_segments: Option<u64>,
    /// Packets of either direction lost on the way.
    pub dropped_packets: Option<u64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
    /// Times that a loss or ECN-Echo made the control reduce its window.
    pub cwnd_reductions: Option<u64>,
    /// Samples of its congestion window: (number, their sum in segments).
    pub cwnd: (u64, u64),
}

/// A window of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// Beginning and end since the run began, which may have ended earlier than the window; None: it did not begin.
    pub interval: Option<(Time, Time)>,
    /// In the order of the spec.
    pub flows: Vec<WindowCounters>,
}

/// A run.
pub struct MeasuredRun {
    /// End of the run proper, before the packets in flight drained.
    pub end: Time,
    /// End of the run with its drain.
    pub drained_at: Time,
    /// In the order of the spec.
    pub flows: Vec<MeasuredFlow>,
    /// Workloads that several flows share, in the state that they were left in: after the drain.
    pub stripes: Vec<Stripe>,
    /// Counters of the network at `end`.
    pub network: NetworkCounters,
    /// Series, empty unless asked for.
    pub flow_series: FlowSeries,
    /// Series, empty unless asked for.
    pub link_series: LinkSeries,
    /// Time of each event, in the order of the spec; None: it did not happen.
    pub event_times: Vec<Option<Time>>,
    /// Windows of the measurement, in the order of the spec; None: they are to be read from the series.
    pub windows: Option<Vec<MeasuredWindow>>,
    /// In the order of the commands; empty if the backend knows of them only afterwards.
    pub window_reductions: Vec<WindowReduction>,
    /// Of each entry of short flows.
    pub short_flows: Vec<ShortFlowsSummary>,
    /// Result of the copy study, if one was asked for and the copy had not ended before it.
    pub copy: Option<CopyResult>,
    /// Notes that a reader of the metrics needs.
    pub notes: Vec<String>,
}
