//! Timers and thresholds, each with its source.

use units::Span;

/// Nanoseconds in a microsecond.
pub const NS_PER_US: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// RTO before the first RTT sample, and first SYN time-out (RFC 6298, 2.1; Linux TCP_TIMEOUT_INIT).
pub const TIMEOUT_INIT: Span = Span::from_secs(1);
/// SYN retransmissions before the attempt is given up (net.ipv4.tcp_syn_retries).
pub const SYN_RETRIES: u32 = 6;
/// Least time a probe or reordering timer waits beyond its computed value (Linux TCP_TIMEOUT_MIN, 2 ticks of 1 ms).
pub const TIMEOUT_MIN: Span = Span::from_millis(2);
/// Delayed ACK timer at its shortest (Linux TCP_DELACK_MIN and TCP_ATO_MIN, HZ/25).
pub const ATO_MIN: Span = Span::from_millis(40);
/// Delayed ACK timer at its longest in an interactive flow (Linux TCP_DELACK_MAX, HZ/5).
pub const DELACK_MAX: Span = Span::from_millis(200);
/// Longest delayed ACK before a bound from the RTT (Linux tcp_send_delayed_ack, HZ/2; RFC 1122, 4.2.3.2).
pub const DELACK_CEILING: Span = Span::from_millis(500);
/// Longest that a duplicate ACK is held back (net.ipv4.tcp_comp_sack_delay_ns).
pub const COMP_SACK_DELAY: Span = Span::from_millis(1);
/// The same as a share of the RTT: 1/20 (Linux up to 6.18 __tcp_ack_snd_check; later
/// net.ipv4.tcp_comp_sack_rtt_percent).
pub const COMP_SACK_RTT_SHARE: u64 = 20;
/// Duplicate ACKs that one may stand for (net.ipv4.tcp_comp_sack_nr).
pub const COMP_SACK_MAX: u8 = 44;
/// Duplicate ACKs for the same hole that are not held back (Linux TCP_FASTRETRANS_THRESH).
pub const COMP_SACK_FREE: u8 = 3;
/// Blocks that every ACK has room for: a third or fourth is told before another comes (Linux TCP_SACK_BLOCKS_EXPECTED).
pub const SACK_BLOCKS_EXPECTED: usize = 2;
/// Duplicate ACKs that make a loss (RFC 5681, 3.2) and the degree of reordering after which RACK keeps its window.
pub const MAX_REORDERING: u32 = 300;
/// Recoveries for which RACK keeps an enlarged reordering window (RFC 8985, 7.4; Linux TCP_RACK_RECOVERY_THRESH).
pub const RACK_RECOVERY_THRESH: u32 = 16;
/// Largest multiple of min_rtt / 4 that RACK's window may reach (Linux: a u8).
pub const RACK_REO_WND_STEPS_MAX: u32 = 255;
/// Quick ACKs after a duplicate segment (Linux TCP_MAX_QUICKACKS).
pub const MAX_QUICKACKS: u32 = 16;
/// Quick ACKs after a CE mark (Linux tcp_ecn_check_ce).
pub const ECN_QUICKACKS: u32 = 2;
/// Length of the minimum-RTT filter (net.ipv4.tcp_min_rtt_wlen).
pub const MIN_RTT_WINDOW_US: u64 = 300_000_000;
/// MSS when the peer offers none (RFC 9293, 3.7.1; Linux TCP_MSS_DEFAULT).
pub const MSS_DEFAULT: u32 = 536;
/// Least MSS believed (Linux TCP_MIN_SND_MSS minus options; RFC 791's 68-byte datagram).
pub const MSS_MIN: u32 = 28;
/// Largest receive window without scaling (RFC 9293: 16 bits).
pub const WINDOW_UNSCALED_MAX: u64 = 65_535;
/// Largest shift (RFC 7323, 2.3).
pub const WSCALE_MAX: u8 = 14;
/// Segments sent before pacing begins (Linux tcp_update_skb_after_send, as sch_fq).
pub const PACING_FREE_SEGMENTS: u64 = 10;
/// Pacing in slow start, percent of cwnd / srtt (net.ipv4.tcp_pacing_ss_ratio).
pub const PACING_SS_PERCENT: u64 = 200;
/// Pacing otherwise, percent of cwnd / srtt (net.ipv4.tcp_pacing_ca_ratio).
pub const PACING_CA_PERCENT: u64 = 120;
/// Longest packet that a sender hands to the device, bytes: 64 KiB less room for headers (Linux sk_dst_gso_max_size:
/// GSO_LEGACY_MAX_SIZE - (MAX_TCP_HEADER + 1)).
pub const GSO_MAX_BYTES: u32 = 65_536 - 321;
/// Pacing rate to the longest burst: the bytes of 1/1024 s (Linux sk_pacing_shift).
pub const PACING_SHIFT: u32 = 10;
/// Least RTT, us, to the power of two by which the longest packet is divided (net.ipv4.tcp_tso_rtt_log).
pub const TSO_RTT_SHIFT: u32 = 9;
/// Least segments of a burst (net.ipv4.tcp_min_tso_segs).
pub const MIN_TSO_SEGMENTS: u32 = 2;
/// Share of the window that is worth a burst of its own (net.ipv4.tcp_tso_win_divisor).
pub const TSO_WIN_DIVISOR: u64 = 3;
/// Segments that may go out beyond the window on duplicate ACKs (RFC 3042, 2).
pub const LIMITED_TRANSMIT_SEGMENTS: u32 = 2;
/// First receive window when it is tuned as data comes (half of net.ipv4.tcp_rmem\[1\], 128 KiB).
pub const AUTOTUNE_START_BYTES: u64 = 65_535;
/// Segments added to twice the bytes read per RTT when the window is tuned (tcp_rcv_space_adjust until Linux 6.15).
pub const AUTOTUNE_EXTRA_SEGMENTS: u64 = 16;
/// Timestamp clock at time zero: an echo of 0 means "none" in practice (Linux tests rcv_tsecr), so it starts at 1.
pub const TIMESTAMP_OFFSET: u64 = 1;
/// Zero-window probes are not counted beyond this for the backoff (shift of the RTO; Linux TCP_RTO_MAX bounds it
/// first).
pub const BACKOFF_MAX: u32 = 16;
/// A send buffer that was full counts as limiting until a third of it is free (Linux sk_stream_is_writeable).
pub const NOSPACE_FREE_SHARE: u64 = 3;
/// Bits of `CcSock::ecn_flags` (Linux TCP_ECN_*).
pub mod ecn {
    /// Negotiated.
    pub const OK: u8 = 1;
    /// Tell the peer with the next new data segment that the window was reduced.
    pub const QUEUE_CWR: u8 = 2;
    /// Echo congestion until the peer says CWR.
    pub const DEMAND_CWR: u8 = 4;
    /// An ECN-capable packet has been seen.
    pub const SEEN: u8 = 8;
}
