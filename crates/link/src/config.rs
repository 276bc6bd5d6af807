//! Configuration of a link.

use crate::framing::{Framing, MAX_OVERHEAD_BYTES};
use std::fmt;
use units::{Rate, Span};

/// Highest rate, bit/s: remainders of a departure below it add up in u64. 4.6e18, ten million times 400 Gbit/s.
pub const MAX_RATE: Rate = Rate(1 << 62);

/// Largest burst: 2^40 bytes, 22 s at 400 Gbit/s.
pub(crate) const MAX_BURST_BYTES: u64 = 1 << 40;

/// Largest batch: more than Linux joins (GRO_MAX_SIZE, 8 x 65,535 B).
const MAX_BATCH_BYTES: u32 = 1 << 20;

/// Denominator of probabilities per packet.
pub(crate) const E12: u64 = 1_000_000_000_000;
/// Denominator of the bit error probability.
pub(crate) const E18: u64 = 1_000_000_000_000_000_000;

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Rate of the line, bits of frames and what lies between them per second; 1 to [`MAX_RATE`].
    pub rate: Rate,
    /// Frame around each packet; none: the rate is one of IP packets.
    pub framing: Framing,
    /// Propagation delay.
    pub delay: Span,
    /// Queue discipline and limits.
    pub queue: QueueConfig,
    /// Loss on the line, after the queue: a lost packet has taken its time to send.
    pub loss: LossModel,
    /// Random extra delay.
    pub jitter: Option<Jitter>,
    /// Token bucket before the queue, which drops what exceeds it.
    pub policer: Option<PolicerConfig>,
    /// Packets are taken in batches, after a wait. It goes with a drop-tail queue, and with neither loss, jitter nor
    /// policer.
    pub batching: Option<Batching>,
}

/// Queue discipline. The packet being sent has left the queue: limits and queue lengths count those that wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueConfig {
    /// First in, first out; a packet that does not fit is dropped. Neither limit set: unlimited.
    DropTail {
        /// Most bytes waiting.
        limit_bytes: Option<u64>,
        /// Most packets waiting.
        limit_packets: Option<u64>,
    },
    /// Random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000): between `max_bytes` and twice that the
    /// probability rises from its maximum to 1.
    Red {
        /// Most bytes waiting.
        limit_bytes: u64,
        /// Average queue where dropping starts, bytes.
        min_bytes: u64,
        /// Average queue where the probability reaches `max_probability_ppm`, bytes; above `min_bytes`, at most 2^40.
        max_bytes: u64,
        /// Drop probability at `max_bytes`, 10^-6; at most 1,000,000.
        max_probability_ppm: u32,
        /// Weight of a new sample in the moving average: 2^-`weight_shift`; 1 to 20.
        weight_shift: u32,
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool,
    },
    /// Controlled delay (RFC 8289).
    Codel {
        /// Most packets waiting.
        limit_packets: u64,
        /// Acceptable standing queue delay.
        target: Span,
        /// Time within which the delay must fall to the target once; above zero.
        interval: Span,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
    /// Flow queues, each with CoDel, served by deficit round robin with new flows first (RFC 8290).
    FqCodel {
        /// Most packets waiting, over all queues.
        limit_packets: u64,
        /// Queues that flows are hashed to; 1 to 65536.
        flows: u32,
        /// Bytes a queue may send per round; above zero.
        quantum_bytes: u32,
        /// Acceptable standing queue delay.
        target: Span,
        /// Time within which the delay must fall to the target once; above zero.
        interval: Span,
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool,
    },
}

/// Loss on the line. Probabilities are integers so that every machine draws the same losses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LossModel {
    /// No loss.
    None,
    /// Each packet independently; drawn per flow, so that a flow's losses do not depend on who else is there.
    Independent {
        /// Probability, 10^-12.
        probability_e12: u64,
    },
    /// Two-state Markov chain (Gilbert 1960, Elliott 1963): before each packet the state may change, then the packet
    /// is lost with its state's probability. Starts in the good state.
    GilbertElliott {
        /// Good to bad, 10^-12 per packet.
        good_to_bad_e12: u64,
        /// Bad to good, 10^-12 per packet; the mean sojourn in the bad state is its inverse.
        bad_to_good_e12: u64,
        /// Loss in the good state, 10^-12.
        loss_good_e12: u64,
        /// Loss in the bad state, 10^-12.
        loss_bad_e12: u64,
    },
    /// Runs of one length, as an impairment device drops them: a run begins at each packet outside of one alike.
    Runs {
        /// Probability that a run begins, 10^-12 per packet.
        begins_e12: u64,
        /// Packets lost in a row; above zero.
        length: u64,
    },
    /// Packets n, 2n, 3n, ... of those that enter the line, counted from 1.
    EveryNth {
        /// The period; above zero.
        n: u64,
    },
    /// Independent bit errors: a frame of b bits survives with (1 - p)^b. Drawn per flow.
    BitErrorRate {
        /// p, 10^-18 per bit.
        probability_e18: u64,
    },
    /// Bit errors in bursts: a two-state Markov chain with one step per bit of a frame. The good state has no error.
    BitErrorBursts {
        /// Good to bad, 10^-18 per bit.
        good_to_bad_e18: u64,
        /// Bad to good, 10^-18 per bit; the mean length of a burst is its inverse. Above zero.
        bad_to_good_e18: u64,
        /// Bit error probability in the bad state, 10^-18.
        error_bad_e18: u64,
    },
    /// Exactly these of the packets that enter the line, counted from 1.
    List {
        /// Packet numbers, strictly ascending.
        packets: Vec<u64>,
    },
}

/// Random extra delay of each packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Jitter {
    /// Shape.
    pub distribution: JitterDistribution,
    /// Largest value (uniform), mean (exponential), or standard deviation (normal); at most an hour.
    pub scale: Span,
    /// True if a packet may overtake another; if not, it waits at the end of the line for those before it.
    pub reordering: bool,
}

/// A policer's token bucket: RFC 2697 with the committed bucket alone, as tc-police(8) with `conform-exceed drop`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicerConfig {
    /// Rate at which the bucket fills, bits of IP packets per second (RFC 2697: CIR); 1 to [`MAX_RATE`].
    pub rate: Rate,
    /// Size of the bucket, bytes (RFC 2697: CBS); 1 to 2^40. A packet that is larger never passes.
    pub burst_bytes: u64,
}

/// Batches in which a host takes packets, and its wait for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batching {
    /// Most bytes of a batch: one header and the payload of all; 0 to 2^20. Each packet is a batch where two exceed it.
    pub max_bytes: u32,
    /// Time from the first packet to the interrupt; 1 s at most.
    pub wait: Span,
    /// Packets at which the interrupt comes before; None: only the time counts. Above zero.
    pub wait_packets: Option<u64>,
}

/// Shape of jitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JitterDistribution {
    /// Every ns from 0 to the scale equally likely.
    Uniform,
    /// Exponential with mean scale.
    Exponential,
    /// Absolute value of a normal deviate with standard deviation scale, cut at four of them.
    Normal,
}

/// An error in a [`LinkConfig`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The expected value, as a phrase.
    pub expected: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: must be {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for ConfigError {}

fn require(
    right: bool,
    field: &'static str,
    value: impl fmt::Display,
    expected: &'static str,
) -> Result<(), ConfigError> {
    if right {
        Ok(())
    } else {
        Err(ConfigError { field, value: value.to_string(), expected })
    }
}

impl LinkConfig {
    /// Returns whether a link can be made from this.
    ///
    /// # Errors
    /// The first field that is out of the range its documentation gives.
    pub fn check(&self) -> Result<(), ConfigError> {
        require((1..=MAX_RATE.0).contains(&self.rate.0), "rate", self.rate, "from 1 bit/s to 2^62 bit/s")?;
        let Framing { header_bytes, min_frame_bytes, gap_bytes } = self.framing;
        let overhead = |field, bytes: u32| require(bytes <= MAX_OVERHEAD_BYTES, field, bytes, "at most 2^30 bytes");
        overhead("framing.header_bytes", header_bytes)?;
        overhead("framing.gap_bytes", gap_bytes)?;
        require(min_frame_bytes <= 65_535, "framing.min_frame_bytes", min_frame_bytes, "at most 65535 bytes")?;
        self.queue.check()?;
        self.loss.check()?;
        if let Some(jitter) = &self.jitter {
            require(jitter.scale <= Span::from_secs(3600), "jitter.scale", jitter.scale, "1h at most")?;
        }
        self.policer.as_ref().map_or(Ok(()), PolicerConfig::check)?;
        self.batching.as_ref().map_or(Ok(()), |batching| self.check_batching(batching))
    }

    fn check_batching(&self, batching: &Batching) -> Result<(), ConfigError> {
        let Batching { max_bytes, wait, wait_packets } = *batching;
        require(max_bytes <= MAX_BATCH_BYTES, "batching.max_bytes", max_bytes, "at most 2^20 bytes")?;
        require(wait <= Span::from_secs(1), "batching.wait", wait, "1s at most")?;
        require(wait_packets != Some(0), "batching.wait_packets", 0, "above zero")?;
        let plain = matches!(self.queue, QueueConfig::DropTail { .. }) && self.loss == LossModel::None;
        let plain = plain && self.jitter.is_none() && self.policer.is_none();
        let expected = "on a link with a drop-tail queue, without loss, jitter and policer";
        require(plain, "batching", "on another link", expected)
    }

    /// # Panics
    /// When [`LinkConfig::check`] refuses this.
    pub(crate) fn require(&self) {
        if let Err(error) = self.check() {
            panic!("link configuration out of range: {error}");
        }
    }
}

impl PolicerConfig {
    /// Returns whether a policer can be made from this.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (rate, burst) = (self.rate, self.burst_bytes);
        require((1..=MAX_RATE.0).contains(&rate.0), "policer.rate", rate, "from 1 bit/s to 2^62 bit/s")?;
        require((1..=MAX_BURST_BYTES).contains(&burst), "policer.burst_bytes", burst, "from 1 to 2^40 bytes")
    }
}

impl QueueConfig {
    /// Returns whether a queue can be made from this.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let codel =
            |interval: &Span| require(interval.0 > 0, "queue.interval", interval, "above zero (RFC 8289: 100ms)");
        match self {
            QueueConfig::DropTail { .. } => Ok(()),
            QueueConfig::Red { min_bytes, max_bytes, max_probability_ppm, weight_shift, .. } => {
                require(min_bytes < max_bytes, "queue.min_bytes", min_bytes, "below max_bytes")?;
                require(*max_bytes <= 1 << 40, "queue.max_bytes", max_bytes, "at most 2^40 bytes")?;
                let ppm = max_probability_ppm;
                require(*ppm <= 1_000_000, "queue.max_probability_ppm", ppm, "at most 1000000 (probability 1)")?;
                require((1..=20).contains(weight_shift), "queue.weight_shift", weight_shift, "from 1 to 20")
            }
            QueueConfig::Codel { interval, .. } => codel(interval),
            QueueConfig::FqCodel { flows, quantum_bytes, interval, .. } => {
                require((1..=65_536).contains(flows), "queue.flows", flows, "from 1 to 65536")?;
                require(*quantum_bytes > 0, "queue.quantum_bytes", quantum_bytes, "above zero (a packet's size)")?;
                codel(interval)
            }
        }
    }
}

impl QueueConfig {
    /// Most packets and most bytes that may wait.
    pub(crate) fn limits(&self) -> (u64, u64) {
        match *self {
            QueueConfig::DropTail { limit_bytes, limit_packets } => {
                (limit_packets.unwrap_or(u64::MAX), limit_bytes.unwrap_or(u64::MAX))
            }
            QueueConfig::Red { limit_bytes, .. } => (u64::MAX, limit_bytes),
            QueueConfig::Codel { limit_packets, .. } | QueueConfig::FqCodel { limit_packets, .. } => {
                (limit_packets, u64::MAX)
            }
        }
    }
}

impl LossModel {
    /// Returns whether losses can be drawn from this.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let e12 = |field, p: u64| require(p <= E12, field, p, "at most 10^12 (probability 1)");
        match self {
            LossModel::None => Ok(()),
            LossModel::Independent { probability_e12 } => e12("loss.probability_e12", *probability_e12),
            LossModel::GilbertElliott { good_to_bad_e12, bad_to_good_e12, loss_good_e12, loss_bad_e12 } => {
                e12("loss.good_to_bad_e12", *good_to_bad_e12)?;
                e12("loss.bad_to_good_e12", *bad_to_good_e12)?;
                e12("loss.loss_good_e12", *loss_good_e12)?;
                e12("loss.loss_bad_e12", *loss_bad_e12)
            }
            LossModel::Runs { begins_e12, length } => {
                e12("loss.begins_e12", *begins_e12)?;
                require(*length > 0, "loss.length", length, "above zero")
            }
            LossModel::EveryNth { n } => require(*n > 0, "loss.n", n, "above zero"),
            LossModel::BitErrorRate { probability_e18: p } => {
                require(*p <= E18, "loss.probability_e18", p, "at most 10^18 (probability 1)")
            }
            LossModel::BitErrorBursts { good_to_bad_e18, bad_to_good_e18, error_bad_e18 } => {
                let e18 = |field, p: u64| require(p <= E18, field, p, "at most 10^18 (probability 1)");
                e18("loss.good_to_bad_e18", *good_to_bad_e18)?;
                e18("loss.bad_to_good_e18", *bad_to_good_e18)?;
                e18("loss.error_bad_e18", *error_bad_e18)?;
                let leaves = *bad_to_good_e18 > 0;
                require(leaves, "loss.bad_to_good_e18", 0, "above zero: with 0 the line never leaves the bad state")
            }
            LossModel::List { packets } => {
                require(packets.first() != Some(&0), "loss.packets", 0, "counted from 1")?;
                match packets.windows(2).find(|pair| pair[0] >= pair[1]) {
                    Some(pair) => require(false, "loss.packets", pair[1], "above the number before it"),
                    None => Ok(()),
                }
            }
        }
    }
}
