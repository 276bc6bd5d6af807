//! Counters of an endpoint.

/// Counters of one endpoint; u64, none wraps in practice. The first eight, a line of the cache, are those of every
/// packet.
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
    /// Smallest, us; none before the first.
    pub rtt_min_us: Option<u64>,
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
    /// Times that a loss or ECN-Echo made the control reduce its window, later undone or not (RFC 4898,
    /// tcpEStatsPerfCongSignals).
    pub cwnd_reductions: u64,
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

    /// The sum of the counters of two endpoints.
    pub fn plus(&self, other: &Stats) -> Stats {
        Stats {
            segments_sent: self.segments_sent + other.segments_sent,
            data_segments_sent: self.data_segments_sent + other.data_segments_sent,
            data_segments_received: self.data_segments_received + other.data_segments_received,
            acks_sent: self.acks_sent + other.acks_sent,
            rtt_samples: self.rtt_samples + other.rtt_samples,
            rtt_sum_us: self.rtt_sum_us + other.rtt_sum_us,
            rtt_min_us: self.rtt_min_us.into_iter().chain(other.rtt_min_us).min(),
            rtt_max_us: self.rtt_max_us.max(other.rtt_max_us),
            retransmitted_segments: self.retransmitted_segments + other.retransmitted_segments,
            retransmitted_bytes: self.retransmitted_bytes + other.retransmitted_bytes,
            syn_retransmits: self.syn_retransmits + other.syn_retransmits,
            fast_retransmits: self.fast_retransmits + other.fast_retransmits,
            timeouts: self.timeouts + other.timeouts,
            tlp_probes: self.tlp_probes + other.tlp_probes,
            duplicate_acks_received: self.duplicate_acks_received + other.duplicate_acks_received,
            segments_sacked: self.segments_sacked + other.segments_sacked,
            dsacks_received: self.dsacks_received + other.dsacks_received,
            undos_eifel: self.undos_eifel + other.undos_eifel,
            undos_dsack: self.undos_dsack + other.undos_dsack,
            undos_frto: self.undos_frto + other.undos_frto,
            ecn_reductions: self.ecn_reductions + other.ecn_reductions,
            segments_marked_lost: self.segments_marked_lost + other.segments_marked_lost,
            lost_retransmissions: self.lost_retransmissions + other.lost_retransmissions,
            reordering_seen: self.reordering_seen + other.reordering_seen,
            out_of_order_segments: self.out_of_order_segments + other.out_of_order_segments,
            duplicate_segments_received: self.duplicate_segments_received + other.duplicate_segments_received,
            duplicate_acks_sent: self.duplicate_acks_sent + other.duplicate_acks_sent,
            acks_compressed: self.acks_compressed + other.acks_compressed,
            zero_window_probes: self.zero_window_probes + other.zero_window_probes,
            persists: self.persists + other.persists,
            cwnd_reductions: self.cwnd_reductions + other.cwnd_reductions,
            cwnd_restarts: self.cwnd_restarts + other.cwnd_restarts,
            scoreboard_steps: self.scoreboard_steps + other.scoreboard_steps,
        }
    }

    /// Notes an RTT sample.
    #[inline]
    pub(crate) fn rtt_sample(&mut self, us: u64) {
        self.rtt_samples += 1;
        self.rtt_sum_us += us;
        // Branches that nearly always go the same way, not two stores.
        if self.rtt_min_us.is_none_or(|least| us < least) {
            self.rtt_min_us = Some(us);
        }
        if us > self.rtt_max_us {
            self.rtt_max_us = us;
        }
    }
}
