//! The structures that Rust and the C algorithms share, field by field as `congestion/native/sock.h` lays them out.
//!
//! Each field is one that Linux lets a `tcp_congestion_ops` read; those an algorithm may write are named so.

/// Private bytes of an algorithm per flow: Linux's `icsk_ca_priv`, 13 u64 (include/net/inet_connection_sock.h).
pub const PRIVATE_BYTES: usize = 104;

/// Most parameters that one algorithm may declare.
pub const MAX_PARAMS: usize = 16;

/// States of Linux's loss recovery (`enum tcp_ca_state`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CaState {
    /// Nothing suspicious.
    #[default]
    Open = 0,
    /// Duplicate ACKs or SACKs seen, nothing yet judged lost.
    Disorder = 1,
    /// Window being reduced after ECN-Echo.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// After a retransmission time-out.
    Loss = 4,
}

/// Events of `cwnd_event` (Linux's `enum tcp_ca_event`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaEvent {
    /// First transmission when nothing is in flight.
    TxStart = 0,
    /// cwnd restarted after idle (RFC 5681, 4.1).
    CwndRestart = 1,
    /// End of a CWR or recovery episode.
    CompleteCwr = 2,
    /// Loss state entered.
    Loss = 3,
    /// ECN-capable transport, no congestion-experienced mark.
    EcnNoCe = 4,
    /// ECN congestion-experienced mark.
    EcnIsCe = 5,
}

/// Flags of `in_ack_event` (Linux's `enum tcp_ca_ack_event_flags`).
pub mod ack_flags {
    /// In-sequence ACK, window update possible: the slow path.
    pub const SLOWPATH: u32 = 1 << 0;
    /// ACK updated the window.
    pub const WIN_UPDATE: u32 = 1 << 1;
    /// ECN-Echo was set.
    pub const ECE: u32 = 1 << 2;
}

/// The argument of `pkts_acked` (Linux's `struct ack_sample`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Segments newly acknowledged or SACKed.
    pub pkts_acked: u32,
    /// RTT of the newest of them, us; -1 when there is none (Karn). Range: i32, 35 min.
    pub rtt_us: i32,
    /// Segments in flight before this ACK.
    pub in_flight: u32,
}

/// One delivery rate sample (Linux's `struct rate_sample`, draft-cheng-iccrg-delivery-rate-estimation).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Start of the sampled interval, us; 0 when there is no sample.
    pub prior_mstamp_us: u64,
    /// `delivered` at that start, segments (u32, wraps; take differences).
    pub prior_delivered: u32,
    /// `delivered_ce` at that start, segments.
    pub prior_delivered_ce: u32,
    /// Segments delivered over the interval; -1 when the sample is invalid.
    pub delivered: i32,
    /// Segments delivered with CE marks over the interval.
    pub delivered_ce: i32,
    /// Length of the interval, us; -1 when invalid. Range: i64.
    pub interval_us: i64,
    /// Send side of the interval, us.
    pub snd_interval_us: u32,
    /// ACK side of the interval, us.
    pub rcv_interval_us: u32,
    /// RTT of the newest segment delivered, us; -1 when unknown.
    pub rtt_us: i64,
    /// Segments newly marked lost by this ACK.
    pub losses: i32,
    /// Segments newly acknowledged or SACKed by this ACK.
    pub acked_sacked: u32,
    /// Segments in flight before this ACK.
    pub prior_in_flight: u32,
    /// Last segment that this ACK delivered, low 32 bits of its end.
    pub last_end_seq: u32,
    /// 1 when the application limited the sender in the interval.
    pub is_app_limited: u8,
    /// 1 when the sample comes from a retransmitted segment.
    pub is_retrans: u8,
    /// 1 when the ACK may have been a delayed one.
    pub is_ack_delayed: u8,
    /// Zero.
    pub pad: u8,
}

/// The part of a TCP sender that its congestion control sees. One per flow, owned by the TCP endpoint.
///
/// Counts are in segments as in Linux. u32 holds 735,000 segments (the largest window of RFC 7323 at 1,460 bytes)
/// with three decades to spare; `srtt_us` at 8 times an RTT ends at 536 s.
#[repr(C, align(8))]
#[derive(Clone, Debug)]
pub struct CcSock {
    /// Congestion window, segments. Written by algorithms. At least 1.
    pub snd_cwnd: u32,
    /// Slow start threshold, segments. Written by algorithms. `0x7fff_ffff` = infinite (TCP_INFINITE_SSTHRESH).
    pub snd_ssthresh: u32,
    /// Counter of linear growth, segments. Written by algorithms.
    pub snd_cwnd_cnt: u32,
    /// Upper bound of the window, segments.
    pub snd_cwnd_clamp: u32,
    /// Window just before the last reduction, segments.
    pub prior_cwnd: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Segments SACKed (or counted as such from duplicate ACKs).
    pub sacked_out: u32,
    /// Segments judged lost.
    pub lost_out: u32,
    /// Retransmitted segments in flight.
    pub retrans_out: u32,
    /// Most segments in flight in the last window (RFC 2861).
    pub max_packets_out: u32,
    /// Segments delivered since the start, wraps.
    pub delivered: u32,
    /// Segments delivered with CE marks, wraps.
    pub delivered_ce: u32,
    /// Segments judged lost since the start, wraps.
    pub lost: u32,
    /// Non-zero: `delivered` at the end of the bubble of an application-limited sender. Written by algorithms.
    pub app_limited: u32,
    /// Smoothed RTT, us times 8 (RFC 6298); 0 before the first sample.
    pub srtt_us: u32,
    /// Windowed minimum RTT, us (Linux's 5 min filter); `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// Payload bytes of a full segment.
    pub mss_cache: u32,
    /// Low 32 bits of the first unacknowledged byte's number.
    pub snd_una: u32,
    /// Low 32 bits of the next byte's number.
    pub snd_nxt: u32,
    /// 1 when the window, not the application, limits sending.
    pub is_cwnd_limited: u8,
    /// Current [`CaState`].
    pub ca_state: u8,
    /// 0 no pacing, 1 pacing wanted. Written by algorithms.
    pub pacing_status: u8,
    /// Bit 0: ECN negotiated. Written by algorithms as Linux's ecn_flags.
    pub ecn_flags: u8,
    /// Pacing rate, bytes/s; `u64::MAX` = no limit. Written by algorithms.
    pub pacing_rate: u64,
    /// Now, us since the start of the run (Linux's tcp_mstamp).
    pub tcp_mstamp_us: u64,
    /// Time of the last delivery, us.
    pub delivered_mstamp_us: u64,
    /// Time of the first transmission of the current flight, us.
    pub first_tx_mstamp_us: u64,
    /// Time of the last transmission of data, us (Linux's lsndtime).
    pub lsndtime_us: u64,
    /// Time at which pacing lets the next segment go, us; the past: at once (Linux's tcp_wstamp_ns).
    pub next_send_us: u64,
    /// Values of the algorithm's parameters, in the order of their declaration.
    pub params: [i64; MAX_PARAMS],
    /// The algorithm's own state, zeroed before `init`.
    pub private: [u64; PRIVATE_BYTES / 8],
    /// Longest burst that counts as one packet, bytes; 0: none longer than a segment.
    pub gso_max_bytes: u32,
    /// Zero.
    pub pad: u32,
}

/// `snd_ssthresh` before the first loss (Linux's TCP_INFINITE_SSTHRESH).
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl Default for CcSock {
    fn default() -> Self {
        CcSock {
            snd_cwnd: 10,
            snd_ssthresh: INFINITE_SSTHRESH,
            snd_cwnd_cnt: 0,
            snd_cwnd_clamp: u32::MAX,
            prior_cwnd: 0,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            max_packets_out: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            app_limited: 0,
            srtt_us: 0,
            min_rtt_us: u32::MAX,
            mss_cache: 1448,
            snd_una: 0,
            snd_nxt: 0,
            is_cwnd_limited: 0,
            ca_state: CaState::Open as u8,
            pacing_status: 0,
            ecn_flags: 0,
            pacing_rate: u64::MAX,
            tcp_mstamp_us: 0,
            delivered_mstamp_us: 0,
            first_tx_mstamp_us: 0,
            lsndtime_us: 0,
            next_send_us: 0,
            params: [0; MAX_PARAMS],
            private: [0; PRIVATE_BYTES / 8],
            gso_max_bytes: 0,
            pad: 0,
        }
    }
}

impl CcSock {
    /// Segments in flight as Linux counts them (`tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// Slow start: the window is below its threshold.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.snd_cwnd < self.snd_ssthresh
    }
}
