//! Counters of a link, and the packets dropped inside it until the caller takes them.

use std::collections::VecDeque;

/// Reason for which a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The queue's management dropped it early (RED) or for its delay (CoDel).
    Aqm,
    /// Lost on the line.
    Loss,
    /// On the line when the link went down.
    Outage,
    /// Exceeded the policer's rate and burst.
    Policer,
}

/// Counters since the link was made; u64, so none wraps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets admitted: all that came but those refused on arrival.
    pub enqueued: u64,
    /// Packets that reached the other end.
    pub delivered: u64,
    /// Bytes that reached the other end.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_by_queue: u64,
    /// Packets dropped by RED or CoDel.
    pub dropped_by_aqm: u64,
    /// Packets lost on the line.
    pub dropped_by_loss: u64,
    /// Packets lost because the link went down.
    pub dropped_by_outage: u64,
    /// Packets dropped by the policer before the queue.
    pub dropped_by_policer: u64,
    /// Packets marked "congestion experienced".
    pub marked: u64,
    /// Most packets that waited at once.
    pub max_queue_packets: u64,
    /// Most bytes that waited at once.
    pub max_queue_bytes: u64,
}

impl Stats {
    /// Packets lost, whatever the reason.
    pub fn dropped(&self) -> u64 {
        let on_the_line = self.dropped_by_loss + self.dropped_by_outage;
        self.dropped_by_queue + self.dropped_by_aqm + on_the_line + self.dropped_by_policer
    }

    #[inline]
    pub(crate) fn record_queue(&mut self, packets: u64, bytes: u64) {
        self.max_queue_packets = self.max_queue_packets.max(packets);
        self.max_queue_bytes = self.max_queue_bytes.max(bytes);
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::QueueFull => self.dropped_by_queue += 1,
            DropReason::Aqm => self.dropped_by_aqm += 1,
            DropReason::Loss => self.dropped_by_loss += 1,
            DropReason::Outage => self.dropped_by_outage += 1,
            DropReason::Policer => self.dropped_by_policer += 1,
        }
    }
}

/// Counters, and the packets dropped after admission.
pub(crate) struct LinkCounters<P> {
    pub stats: Stats,
    pub dropped: VecDeque<(P, DropReason)>,
}

impl<P> LinkCounters<P> {
    pub fn new() -> LinkCounters<P> {
        LinkCounters { stats: Stats::default(), dropped: VecDeque::new() }
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Counts a packet dropped inside and keeps it for `poll_dropped`.
    #[cold]
    pub fn drop_inside(&mut self, packet: P, reason: DropReason) {
        self.stats.count_drop(reason);
        self.dropped.push_back((packet, reason));
    }

    /// [`LinkCounters::drop_inside`] of the packet that a queue returned.
    #[cold]
    pub fn drop_inside_if_any(&mut self, packet: Option<P>, reason: DropReason) {
        if let Some(packet) = packet {
            self.drop_inside(packet, reason);
        }
    }

    #[inline]
    pub fn deliver(&mut self, bytes: u32) {
        self.stats.delivered += 1;
        self.stats.delivered_bytes += u64::from(bytes);
    }
}
