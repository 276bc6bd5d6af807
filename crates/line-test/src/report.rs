//! Counts of a stream at its receiver, as both ends exchange and show them.

use serde::{Deserialize, Serialize};

/// Latency of frames, ns by both ends' clocks as they are: the sender's report takes the clocks' offset off.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// Smallest, exact.
    pub min: i64,
    /// Mean, exact.
    pub mean: i64,
    /// Value that half of the frames do not exceed, within 0.1 us or 0.4 % of its distance from the smallest.
    pub p50: i64,
    /// ... 90 % of them.
    pub p90: i64,
    /// ... 99 %.
    pub p99: i64,
    /// ... 99.9 %.
    pub p999: i64,
    /// Largest, exact.
    pub max: i64,
}

impl Latency {
    /// The same by clocks whose offset is taken off.
    #[must_use]
    pub fn less(self, offset_ns: i64) -> Latency {
        let less = |value: i64| value.saturating_sub(offset_ns);
        Latency {
            min: less(self.min),
            mean: less(self.mean),
            p50: less(self.p50),
            p90: less(self.p90),
            p99: less(self.p99),
            p999: less(self.p999),
            max: less(self.max),
        }
    }
}

/// Counts of a stream. Bytes are those of frames with their check sequences.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Frames that came, each counted once.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time between the first and the last frame's arrival, ns.
    pub span_ns: u64,
    /// Frames that did not come, of those up to the highest number that did; in a sender's result of all that it sent.
    pub lost: u64,
    /// Frames that came again.
    pub duplicates: u64,
    /// Frames that came after one with a higher number (RFC 4737, 3.3).
    pub reordered: u64,
    /// Largest distance of such a frame's number from the highest one before it.
    pub reorder_extent_max: u64,
    /// Frames more than 65,536 numbers late: whether they came before is no longer known. They stay lost.
    pub too_late: u64,
    /// Runs of consecutive frames that were lost (RFC 3357, 5).
    pub loss_events: u64,
    /// Frames of the longest run.
    pub longest_loss: u64,
    /// Number of runs by their length: of 1, of 2 and 3, of 4 to 7, and so on: lower bound, count.
    pub loss_lengths: Vec<(u64, u64)>,
    /// Bits of patterns that were wrong.
    pub bit_errors: u64,
    /// Frames with a wrong bit in their pattern.
    pub errored_frames: u64,
    /// Bits of patterns that were compared.
    pub bits_checked: u64,
    /// Frames of another length than their stamp says, cut short for one. They count as errored.
    pub wrong_lengths: u64,
    /// Frames of the sender whose stamp had a wrong check sequence: whose they were is not known, and they stay lost.
    pub bad_headers: u64,
    /// Frames that the receiver's kernel dropped for want of room since the stream began: not the line's loss.
    pub ring_drops: u64,
    /// Frames that the receiver's interface says that it dropped since then.
    pub interface_drops: u64,
    /// None: no frame came.
    pub latency_ns: Option<Latency>,
    /// Mean difference of consecutive frames' latencies, without its sign, ns (RFC 3393). None: no two consecutive
    /// frames came.
    pub ipdv_mean_ns: Option<u64>,
}

/// Counts between two questions of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Window {
    /// Frames that came.
    pub frames: u64,
    /// Sum of their latencies, ns.
    pub latency_sum_ns: i64,
    /// Smallest, ns; without frames, 0.
    pub latency_min_ns: i64,
    /// Largest, ns.
    pub latency_max_ns: i64,
}
