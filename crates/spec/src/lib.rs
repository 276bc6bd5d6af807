//! One validated run, as the Python front hands it over: JSON, every quantity an integer in the unit of its name.
//!
//! Nothing here has a default that a user could miss: the front resolves all of them, so that a stored spec is
//! complete.

mod extrapolate;
mod iscsi;
mod manager;
mod short_flows;
mod workload;

pub use extrapolate::ExtrapolateSpec;
pub use iscsi::{AllegianceSpec, DiskSpec, IscsiSpec, OutOfRangeSpec, SourceSpec};
pub use manager::{LightpathSpec, ManagerSpec, PathMitigationSpec};
pub use short_flows::{ShortFlowsSpec, SizesSpec};
pub use workload::{ArrivalsSpec, DistributionSpec, TraceSpec, WorkloadSpec, WriteSizesSpec, WritesSpec};

use serde::Deserialize;

/// One point of a scenario with one seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Form of this structure; 1.
    pub format: u32,
    /// Seed of all random streams.
    pub seed: u64,
    /// Simulated time after which the run ends, ns. Flows that finish earlier end it earlier when `stop_when_done`.
    pub duration_ns: u64,
    /// End as soon as every flow with a finite workload has delivered it, and no other flow exists.
    pub stop_when_done: bool,
    /// Nodes; everything else names them by index.
    pub nodes: Vec<String>,
    /// One-way links.
    pub links: Vec<LinkSpec>,
    /// What carries packets on the backend kernel, where it is not elephan's emulator: "netem". Of no account in the
    /// simulator.
    #[serde(default)]
    pub emulator: Option<String>,
    /// TCP flows, one entry per connection.
    pub flows: Vec<FlowSpec>,
    /// Short flows that come and go; absent in specifications from before they were there.
    #[serde(default)]
    pub short_flows: Vec<ShortFlowsSpec>,
    /// Who moves flows to lightpaths; null = nobody.
    #[serde(default)]
    pub manager: Option<ManagerSpec>,
    /// How far a long copy is simulated until the rest may be extrapolated; null = to its end.
    #[serde(default)]
    pub extrapolate: Option<ExtrapolateSpec>,
    /// Traffic without congestion control.
    pub background: Vec<BackgroundSpec>,
    /// What changes in time.
    pub events: Vec<EventSpec>,
    /// What to observe.
    pub measure: MeasureSpec,
}

/// One direction of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name, unique; the long form's `a->b`.
    pub name: String,
    /// Index of the node it leaves.
    pub from: usize,
    /// Index of the node it enters.
    pub to: usize,
    /// Line rate, bit/s of IP packets.
    pub rate_bps: u64,
    /// Propagation delay, ns.
    pub delay_ns: u64,
    /// Queue before the line.
    pub queue: QueueSpec,
    /// Loss on the line (after the queue).
    pub loss: LossSpec,
    /// Extra random delay.
    pub jitter: Option<JitterSpec>,
}

/// Queue discipline.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// First in, first out; a packet that does not fit is dropped. Exactly one limit is set.
    DropTail {
        /// Limit, bytes.
        limit_bytes: Option<u64>,
        /// Limit, packets.
        limit_packets: Option<u64>,
    },
    /// Random early detection, gentle (Floyd and Jacobson 1993).
    Red {
        /// Hard limit, bytes.
        limit_bytes: u64,
        /// Average queue where dropping starts, bytes.
        min_bytes: u64,
        /// Average queue where the probability reaches `max_probability_ppm`, bytes.
        max_bytes: u64,
        /// Drop probability at `max_bytes`, parts per million.
        max_probability_ppm: u32,
        /// Weight of the moving average as a negative power of two (9 = 1/512).
        weight_shift: u32,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
    /// Controlled delay (RFC 8289).
    Codel {
        /// Hard limit, packets.
        limit_packets: u64,
        /// Acceptable standing delay, ns (5 ms).
        target_ns: u64,
        /// Sliding interval, ns (100 ms).
        interval_ns: u64,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
    /// Flow queues with CoDel each (RFC 8290).
    FqCodel {
        /// Hard limit over all queues, packets.
        limit_packets: u64,
        /// Number of queues.
        flows: u32,
        /// Bytes a queue may send in one round.
        quantum_bytes: u32,
        /// Acceptable standing delay, ns.
        target_ns: u64,
        /// Sliding interval, ns.
        interval_ns: u64,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
}

/// Loss model. Probabilities are parts per 10^12 (integers keep records equal on every machine).
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossSpec {
    /// No loss.
    None,
    /// Each packet independently.
    Independent {
        /// Loss probability per packet, 10^-12.
        probability_e12: u64,
    },
    /// Two-state Markov chain, one step per packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability good to bad per packet, 10^-12.
        good_to_bad_e12: u64,
        /// Probability bad to good per packet, 10^-12.
        bad_to_good_e12: u64,
        /// Loss probability in the good state, 10^-12.
        loss_good_e12: u64,
        /// Loss probability in the bad state, 10^-12.
        loss_bad_e12: u64,
    },
    /// Packets n, 2n, 3n, ... counted from 1.
    EveryNth {
        /// The period, packets.
        n: u64,
    },
    /// Bit errors: a packet of b bits survives with (1 - p)^b.
    BitErrorRate {
        /// Bit error probability, 10^-18.
        probability_e18: u64,
    },
    /// Exactly these packets, counted from 1 over everything that enters the line; strictly ascending.
    List {
        /// Packet numbers.
        packets: Vec<u64>,
    },
}

/// Random extra delay of a link.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Distribution of the extra delay.
    pub distribution: JitterKind,
    /// Scale: largest value (uniform), mean (exponential), standard deviation (normal, cut at 0 and 4 sigma), ns.
    pub scale_ns: u64,
    /// Whether packets may overtake each other.
    pub reordering: bool,
}

/// Shape of jitter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JitterKind {
    /// 0 ..= scale.
    Uniform,
    /// Mean scale.
    Exponential,
    /// Absolute value of a normal deviate.
    Normal,
}

/// One TCP connection and what it carries.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Name, unique: `name` or `name.3` for the third connection of a flow entry.
    pub name: String,
    /// Connections of one flow entry share their group: metrics are added up over it. Index from 0.
    pub group: usize,
    /// Sending node.
    pub source: usize,
    /// Receiving node.
    pub destination: usize,
    /// Links for data, in order.
    pub route: Vec<usize>,
    /// Links for ACKs, in order.
    pub return_route: Vec<usize>,
    /// Transport.
    pub transport: TransportSpec,
    /// When the connection is opened, ns.
    pub start_ns: u64,
    /// When the application stops writing, ns.
    pub stop_ns: Option<u64>,
    /// What it carries.
    pub workload: WorkloadSpec,
    /// Whether the connections of its group share the workload; absent where each has its own.
    #[serde(default)]
    pub distribution: DistributionSpec,
}

/// Transport of a flow. See `tcp::Config` for ranges and Linux's defaults.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportSpec {
    /// Built-in algorithm's name, or the absolute path of a user's .c file.
    pub congestion_control: String,
    /// Values of the algorithm's parameters by name; those absent keep the default.
    /// Fractions are handed over as the integer that the parameter's declared unit asks for.
    pub parameters: std::collections::BTreeMap<String, i64>,
    /// "newreno", "sack" or "rack".
    pub recovery: String,
    /// Segments.
    pub initial_cwnd: u32,
    /// Segments; null = infinite.
    pub initial_ssthresh: Option<u32>,
    /// Receive window limit, bytes.
    pub window_bytes: u64,
    /// Negotiate window scaling.
    pub window_scaling: bool,
    /// Whether RFC 7323's largest shift of 14, a window of 1.07 GB, holds; if not, 15. Absent in specifications of
    /// before, where it did, as the next two.
    #[serde(default = "yes")]
    pub window_bound: bool,
    /// Forced shift.
    pub window_scale: Option<u8>,
    /// Grow the advertised window with use.
    pub receive_autotuning: bool,
    /// Send buffer, bytes; null = unlimited.
    pub send_buffer_bytes: Option<u64>,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Negotiate timestamps.
    pub timestamps: bool,
    /// Delay ACKs.
    pub delayed_ack: bool,
    /// Hold back duplicate ACKs, with "rack"; absent in specifications from before it was there, which did not.
    #[serde(default)]
    pub sack_compression: bool,
    /// Segments acknowledged at once at the start.
    pub quickack_segments: u32,
    /// Negotiate ECN.
    pub ecn: bool,
    /// Pace always.
    pub pacing: bool,
    /// Restart after idle.
    pub slow_start_after_idle: bool,
    /// ns.
    pub rto_min_ns: u64,
    /// ns.
    pub rto_max_ns: u64,
    /// Duplicate ACK threshold at the start.
    pub reordering: u32,
    /// Largest threshold that reordering may raise it to.
    #[serde(default = "linux_max_reordering")]
    pub max_reordering: u32,
    /// Take back reductions that were proven wrong.
    #[serde(default = "yes")]
    pub undo: bool,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// RFC 5682.
    pub frto: bool,
    /// Off: only the time-out repairs.
    pub fast_retransmit: bool,
    /// Segments; null = unlimited.
    pub cwnd_clamp: Option<u32>,
}

fn yes() -> bool {
    true
}

fn linux_max_reordering() -> u32 {
    tcp::config::MAX_REORDERING
}

/// Traffic that does not react, on a route of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundSpec {
    /// Name, unique.
    pub name: String,
    /// Links, in order.
    pub route: Vec<usize>,
    /// Rate while on, bit/s of IP packets.
    pub rate_bps: u64,
    /// Bytes of an IP packet.
    pub packet_bytes: u32,
    /// First on, ns.
    pub start_ns: u64,
    /// Last off, ns; null = the end of the run.
    pub stop_ns: Option<u64>,
    /// Mean time on, ns, and mean time off, ns, both exponential; null = constantly on.
    pub on_off_ns: Option<(u64, u64)>,
    /// Whether it is on at all before an event says so.
    pub enabled: bool,
}

/// One change.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSpec {
    /// When.
    pub when: WhenSpec,
    /// What.
    pub action: ActionSpec,
}

/// When an event happens.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum WhenSpec {
    /// At a time.
    At {
        /// ns.
        time_ns: u64,
    },
    /// When a flow's delivered rate over `window_ns` first reaches a rate.
    FlowReaches {
        /// Index into `flows`.
        flow: usize,
        /// bit/s of payload.
        rate_bps: u64,
        /// Averaging window, ns.
        window_ns: u64,
    },
}

/// What an event does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ActionSpec {
    /// New rate of a link.
    Rate {
        /// Index into `links`.
        link: usize,
        /// bit/s.
        rate_bps: u64,
    },
    /// New delay of a link.
    Delay {
        /// Index into `links`.
        link: usize,
        /// ns.
        delay_ns: u64,
    },
    /// New loss model of a link.
    Loss {
        /// Index into `links`.
        link: usize,
        /// The model.
        loss: LossSpec,
    },
    /// The link carries nothing; what is on the line is lost, the queue waits.
    LinkDown {
        /// Index into `links`.
        link: usize,
    },
    /// The link carries again.
    LinkUp {
        /// Index into `links`.
        link: usize,
    },
    /// A background source starts.
    BackgroundOn {
        /// Index into `background`.
        source: usize,
    },
    /// A background source stops.
    BackgroundOff {
        /// Index into `background`.
        source: usize,
    },
    /// Connections change their way, each packet from the router on where its way and the new one part; what is past
    /// that router, or waits in its queue, stays on the old way.
    Move {
        /// Indices into `flows`.
        flows: Vec<usize>,
        /// Links for data, in order; null = data stays where it is.
        route: Option<Vec<usize>>,
        /// Links for ACKs, in order; null = ACKs stay where they are.
        return_route: Option<Vec<usize>>,
        /// What keeps the data's move from hurting; absent = nothing does.
        #[serde(default)]
        mitigation: Option<MitigationSpec>,
    },
    /// Background sources change their way, as [`ActionSpec::Move`].
    MoveBackground {
        /// Indices into `background`.
        sources: Vec<usize>,
        /// Links, in order.
        route: Vec<usize>,
        /// What keeps the move from hurting; only its gate counts.
        #[serde(default)]
        mitigation: Option<MitigationSpec>,
    },
}

/// What is done at the moving router and at the senders so that a move hurts less.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MitigationSpec {
    /// The moving router keeps packets back.
    pub hold_buffer: Option<HoldBufferSpec>,
    /// Senders shrink their windows before.
    pub cwnd_reduction: Option<CwndReductionSpec>,
    /// Senders wait longer before they take a packet that is late for lost.
    pub reordering_tolerance: Option<ReorderingToleranceSpec>,
}

/// A delay line at the moving router; see `link::Hold`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HoldBufferSpec {
    /// What it begins with, ns: by how much the old way is longer, as the router believes.
    pub delay_ns: u64,
    /// Links of the old way whose queues, at the moment of the move, are added to that.
    pub queues: Vec<QueueDelaySpec>,
    /// By how much more than comes leaves it while it is shortened, parts per million; null = all at once after the
    /// delay.
    pub share_ppm: Option<u32>,
    /// How fast it lets go at most, bit/s: as the line behind it sends, or slower.
    pub rate_bps: u64,
    /// Link for whose line it lets go: gates of one link and rate take turns; null = it has that rate for itself.
    #[serde(default)]
    pub line: Option<usize>,
    /// Bytes that it holds at most; null = no bound.
    pub limit_bytes: Option<u64>,
}

/// A queue and the line that empties it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueDelaySpec {
    /// Index into `links`.
    pub link: usize,
    /// Its rate as the moving router knows it, bit/s.
    pub rate_bps: u64,
}

/// A window that is told to shrink.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CwndReductionSpec {
    /// By how much the new way is shorter, ns, as the sender is told.
    pub delay_ns: u64,
    /// Part of the window that is kept, parts per million; null = (RTT - delay) / RTT by the sender's own RTT.
    pub cwnd_fraction_ppm: Option<u32>,
    /// From telling the sender to the move, ns.
    pub lead_ns: u64,
    /// From the move to giving the window back, ns; null = it is left to the congestion control.
    pub restore_ns: Option<u64>,
}

/// Patience with late packets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingToleranceSpec {
    /// How late, ns; 0 = as RACK waits by itself.
    pub delay_ns: u64,
    /// For how long, ns; null = twice the sender's RTT and the delay.
    pub duration_ns: Option<u64>,
}

impl ActionSpec {
    /// The link that it changes, by its index.
    pub fn link(&self) -> Option<usize> {
        match *self {
            ActionSpec::Rate { link, .. }
            | ActionSpec::Delay { link, .. }
            | ActionSpec::Loss { link, .. }
            | ActionSpec::LinkDown { link }
            | ActionSpec::LinkUp { link } => Some(link),
            ActionSpec::BackgroundOn { .. }
            | ActionSpec::BackgroundOff { .. }
            | ActionSpec::Move { .. }
            | ActionSpec::MoveBackground { .. } => None,
        }
    }
}

/// What to observe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// Interval of the series, ns; null = none.
    pub series_interval_ns: Option<u64>,
    /// Start of the interval over which goodput and shares are counted, ns (warm-up before it).
    pub warmup_ns: u64,
    /// pcapng file to write, absolute path; null = none.
    pub pcap: Option<String>,
    /// Index of the node whose view the capture takes: packets it sends and receives.
    pub pcap_node: usize,
    /// Packets captured at most (headers only are stored); null = no bound.
    pub pcap_packets: Option<u64>,
}
