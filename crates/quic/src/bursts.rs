//! Packets in flight, by the moment at which they were sent.
//!
//! quinn names a packet to its controller by that moment only, and sends up to ten at once.

use std::collections::VecDeque;

/// Packets that were sent at one moment, and what a rate sample needs to know of it (Linux struct tcp_skb_cb.tx).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Burst {
    /// The moment, ns.
    pub sent_ns: u64,
    /// Number of its first byte among all bytes sent.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes of it that were acknowledged.
    pub acked: u64,
    /// Segments delivered until then.
    pub delivered: u32,
    /// Segments delivered with a congestion mark until then.
    pub delivered_ce: u32,
    /// Moment of the last delivery until then, us.
    pub delivered_us: u64,
    /// Moment at which the first packet of that flight had been sent, us.
    pub first_tx_us: u64,
    /// The application had left room in the window.
    pub app_limited: bool,
}

/// Bursts in flight, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bursts {
    bursts: VecDeque<Burst>,
}

impl Bursts {
    /// The newest, if it was sent at `sent_ns`.
    pub fn at(&mut self, sent_ns: u64) -> Option<&mut Burst> {
        self.bursts.back_mut().filter(|burst| burst.sent_ns == sent_ns)
    }

    /// One more. Later than all others.
    pub fn push(&mut self, burst: Burst) {
        self.bursts.push_back(burst);
    }

    /// A packet sent at `sent_ns` is acknowledged. Returns its burst: a packet that was not counted when it was sent
    /// (a probe for the MTU, an ACK with a little data) belongs to the one before it. Nothing: it is forgotten.
    pub fn acknowledge(&mut self, sent_ns: u64, bytes: u64) -> Option<Burst> {
        let after = self.bursts.partition_point(|burst| burst.sent_ns <= sent_ns);
        let burst = self.bursts.get_mut(after.checked_sub(1)?)?;
        if burst.sent_ns == sent_ns {
            burst.acked = (burst.acked + bytes).min(burst.bytes);
        }
        Some(*burst)
    }

    /// Forgets those sent before `ns` and, from the front, those that are acknowledged whole, but not the newest.
    pub fn forget(&mut self, ns: u64) {
        while self.bursts.len() > 1 {
            let first = self.bursts[0];
            if first.acked < first.bytes && first.sent_ns >= ns {
                break;
            }
            self.bursts.pop_front();
        }
    }
}
