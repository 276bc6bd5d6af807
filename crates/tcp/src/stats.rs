//! What an endpoint has counted since it was made.

/// Counters of one endpoint; u64, none wraps in practice. The first eight, a line of the cache, are those of every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Segments sent, of every kind.
    pub segments_sent: u64,
    /// Segments with payload or FIN sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Data segments that brought something new, in order or not.
    pub data_segments_received: u64,
    /// Segments without payload sent to acknowledge.
    pub acks_sent: u64,
    /// RTT samples.
    pub rtt_samples: u64,
    /// Sum of the RTT samples, us.
    pub rtt_sum_us: u64,
    /// Smallest, us; `u64::MAX` before the first.
    pub rtt_min_us: u64,
    /// Largest, us.
    pub rtt_max_us: u64,
    /// Retransmissions among the data segments sent (time-out, fast retransmit, tail loss probe).
    pub retransmitted_segments: u64,
    /// Their payload, bytes.
    pub retransmitted_bytes: u64,
    /// SYN and SYN-ACK retransmissions.
    pub syn_retransmits: u64,
    /// Fast recoveries entered.
    pub fast_retransmits: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985, 7).
    pub tlp_probes: u64,
    /// Duplicate ACKs received (RFC 5681, 2: data in flight, no payload, same ACK and window).
    pub duplicate_acks_received: u64,
    /// Segments newly SACKed.
    pub segments_sacked: u64,
    /// DSACKs received (RFC 2883).
    pub dsacks_received: u64,
    /// Reductions undone because timestamps showed that the original had arrived (Eifel, RFC 3522), also by F-RTO.
    pub undos_eifel: u64,
    /// Reductions undone because every retransmission was reported as a duplicate (DSACK).
    pub undos_dsack: u64,
    /// Time-outs found spurious by F-RTO (RFC 5682).
    pub undos_frto: u64,
    /// Window reductions on ECN-Echo.
    pub ecn_reductions: u64,
    /// Segments judged lost; one may be judged more than once.
    pub segments_marked_lost: u64,
    /// Retransmissions found lost (RACK).
    pub lost_retransmissions: u64,
    /// Times that reordering was seen.
    pub reordering_seen: u64,
    /// Data segments that brought something new and came out of order.
    pub out_of_order_segments: u64,
    /// Data segments that brought nothing new.
    pub duplicate_segments_received: u64,
    /// Segments without payload sent that repeat the last acknowledgment number.
    pub duplicate_acks_sent: u64,
    /// Duplicate ACKs that were held back and for which another one stood (Linux TCPACKCOMPRESSED).
    pub acks_compressed: u64,
    /// Zero-window probes sent.
    pub zero_window_probes: u64,
    /// Times that the peer's window closed on queued data.
    pub persists: u64,
    /// Times that the window was lowered after idle or for want of data (RFC 2861).
    pub cwnd_restarts: u64,
    /// Steps of loss detection: entries looked at. Per packet it must not grow with the window.
    pub scoreboard_steps: u64,
}

impl Stats {
    /// Reductions undone, for whatever reason.
    pub fn spurious_undos(&self) -> u64 {
        self.undos_eifel + self.undos_dsack + self.undos_frto
    }

    /// Notes an RTT sample.
    #[inline]
    pub(crate) fn rtt_sample(&mut self, us: u64) {
        self.rtt_samples += 1;
        self.rtt_sum_us += us;
        self.rtt_min_us = self.rtt_min_us.min(us);
        self.rtt_max_us = self.rtt_max_us.max(us);
    }
}
