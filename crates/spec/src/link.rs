//! Links: rate, delay, queue, loss, jitter, policer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name, unique; the long form's `a->b`.
    pub name: String,
    /// Index of the node it leaves.
    pub from: usize,
    /// Index of the node it enters.
    pub to: usize,
    /// Line rate, bit/s: of IP packets, or with `framing` of frames and what lies between them.
    pub rate_bps: u64,
    /// Propagation delay, ns.
    pub delay_ns: u64,
    /// Queue before the line.
    pub queue: QueueSpec,
    /// Loss on the line (after the queue).
    pub loss: LossSpec,
    /// Largest IP packet, bytes; left out where all links have the same, which the senders know. Routers of an emulated
    /// path enforce it; senders of the simulator always know the least of their route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Extra random delay.
    pub jitter: Option<JitterSpec>,
    /// Policer before the queue; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<PolicerSpec>,
    /// Frame around each packet; left out where the rate is one of IP packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<FramingSpec>,
    /// Batches in which a host takes packets, and its wait for them; left out where each is taken alone, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batching: Option<BatchingSpec>,
}

/// Segmentation and receive offload, interrupt coalescing: a frame's overhead is one of a batch then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchingSpec {
    /// Most bytes of a batch, of one header and the payload of all; 0: each packet alone.
    pub max_bytes: u32,
    /// Time from the first packet to the interrupt, ns; 0: at once.
    pub wait_ns: u64,
    /// Packets at which the interrupt comes before; null: only the time counts.
    pub wait_packets: Option<u64>,
}

/// Bytes that a line adds to each IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FramingSpec {
    /// Bytes of the frame around its packet: headers, tags and check sequence.
    pub header_bytes: u32,
    /// Shortest frame, bytes: a shorter one is padded.
    pub min_frame_bytes: u32,
    /// Bytes between two frames: preamble and gap, or a flag.
    pub gap_bytes: u32,
}

/// Token bucket that drops what exceeds it (RFC 2697, the committed bucket alone).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// Rate at which the bucket fills, bit/s of IP packets (CIR).
    pub rate_bps: u64,
    /// Size of the bucket, bytes (CBS).
    pub burst_bytes: u64,
}

/// Queue discipline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueSpec {
    /// First in, first out; a packet that does not fit is dropped. Exactly one limit is set.
    #[schemars(title = "DropTailSpec")]
    DropTail {
        /// Limit, bytes.
        limit_bytes: Option<u64>,
        /// Limit, packets.
        limit_packets: Option<u64>,
    },
    /// Random early detection, gentle (Floyd and Jacobson 1993).
    #[schemars(title = "RedSpec")]
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
    #[schemars(title = "CodelSpec")]
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
    #[schemars(title = "FqCodelSpec")]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossSpec {
    /// No loss.
    #[schemars(title = "NoLossSpec")]
    None,
    /// Each packet independently.
    #[schemars(title = "IndependentLossSpec")]
    Independent {
        /// Loss probability per packet, 10^-12.
        probability_e12: u64,
    },
    /// Two-state Markov chain, one step per packet (Gilbert 1960, Elliott 1963).
    #[schemars(title = "GilbertElliottLossSpec")]
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
    /// Runs of one length: one begins at each packet outside of a run with the same probability.
    #[schemars(title = "RunsLossSpec")]
    Runs {
        /// Probability that a run begins, 10^-12 per packet.
        begins_e12: u64,
        /// Packets lost in a row.
        length: u64,
    },
    /// Packets n, 2n, 3n, ... counted from 1.
    #[schemars(title = "EveryNthLossSpec")]
    EveryNth {
        /// The period, packets.
        n: u64,
    },
    /// Bit errors: a frame of b bits survives with (1 - p)^b.
    #[schemars(title = "BitErrorRateSpec")]
    BitErrorRate {
        /// Bit error probability, 10^-18.
        probability_e18: u64,
    },
    /// Bit errors in bursts: a two-state Markov chain with one step per bit of a frame; the good state has no error.
    #[schemars(title = "BitErrorBurstsSpec")]
    BitErrorBursts {
        /// Probability good to bad per bit, 10^-18.
        good_to_bad_e18: u64,
        /// Probability bad to good per bit, 10^-18.
        bad_to_good_e18: u64,
        /// Bit error probability in the bad state, 10^-18.
        error_bad_e18: u64,
    },
    /// Exactly these packets, counted from 1 over everything that enters the line; strictly ascending.
    #[schemars(title = "LossListSpec")]
    List {
        /// Packet numbers.
        packets: Vec<u64>,
    },
}

/// Random extra delay of a link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JitterSpec {
    /// Distribution of the extra delay.
    pub distribution: JitterKind,
    /// Scale: largest value (uniform), mean (exponential), standard deviation (normal, cut at 0 and 4 sigma), ns.
    pub scale_ns: u64,
    /// Packets may overtake each other.
    pub reordering: bool,
}

/// Shape of jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JitterKind {
    /// 0 ..= scale.
    Uniform,
    /// Mean scale.
    Exponential,
    /// Absolute value of a normal deviate.
    Normal,
}
