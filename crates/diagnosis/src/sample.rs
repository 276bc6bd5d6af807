//! One look at a socket, in the units of the kernel's own counters.

use serde::{Deserialize, Serialize};

/// Counters and state of a TCP socket at one time: `TCP_INFO` (include/uapi/linux/tcp.h) and what sock_diag(7) adds. A
/// field is None where the kernel is too old for it, or has no value yet.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sample {
    /// Time of the look by a clock that no step moves, us.
    pub at_us: u64,
    /// State of the congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Congestion window, segments.
    pub cwnd_packets: u64,
    /// Slow start ends there, segments; None: not before a loss.
    pub ssthresh_packets: Option<u64>,
    /// Payload of a full segment, bytes.
    pub mss_bytes: u64,
    /// Smoothed round-trip time, us.
    pub srtt_us: Option<u64>,
    /// Least round-trip time that the connection knows of, us.
    pub min_rtt_us: Option<u64>,
    /// Segments sent and not acknowledged cumulatively.
    pub unacked: u64,
    /// Those of them that SACK reports.
    pub sacked: u64,
    /// Those that are taken for lost.
    pub lost: u64,
    /// Retransmissions in flight.
    pub retrans: u64,
    /// Retransmissions since the connection began, segments.
    pub total_retrans: u64,
    /// Retransmission time-outs since then.
    pub timeouts: Option<u64>,
    /// Probes of a closed window that are not answered yet.
    pub probes: u64,
    /// Payload acknowledged since the connection began, bytes.
    pub bytes_acked: u64,
    /// Payload received in order, bytes.
    pub bytes_received: u64,
    /// Payload sent, retransmissions included, bytes.
    pub bytes_sent: Option<u64>,
    /// Payload sent again, bytes.
    pub bytes_retrans: Option<u64>,
    /// Segments that are known to have arrived.
    pub delivered: Option<u64>,
    /// Those of them with a mark of congestion (ECN).
    pub delivered_ce: Option<u64>,
    /// Segments received.
    pub segs_in: u64,
    /// Those with payload.
    pub data_segs_in: u64,
    /// Segments that arrived ahead of a gap.
    pub out_of_order: Option<u64>,
    /// Reordering found, times.
    pub reordering_seen: Option<u64>,
    /// Segments that the peer had already.
    pub duplicates: Option<u64>,
    /// Written by the application and never sent, bytes.
    pub notsent_bytes: u64,
    /// Written and not acknowledged, bytes.
    pub unacknowledged_bytes: u64,
    /// Arrived in order and not read by the application, bytes.
    pub unread_bytes: u64,
    /// Last delivery rate, bit/s.
    pub delivery_rate_bps: u64,
    /// Nothing waited to be sent while that was measured.
    pub app_limited: bool,
    /// Rate at which the kernel paces, bit/s; None: not at all.
    pub pacing_rate_bps: Option<u64>,
    /// `SO_MAX_PACING_RATE`, bit/s; None: none.
    pub max_pacing_rate_bps: Option<u64>,
    /// Bandwidth that BBR takes for its bottleneck's, bit/s.
    pub bbr_bandwidth_bps: Option<u64>,
    /// Time with data to send or to be acknowledged, us.
    pub busy_us: Option<u64>,
    /// The part of it in which the peer's window kept data back, us.
    pub rwnd_limited_us: Option<u64>,
    /// The part of it in which the send buffer was full, and nothing unsent in it, us.
    pub sndbuf_limited_us: Option<u64>,
    /// Window that the peer offers, bytes.
    pub snd_wnd_bytes: Option<u64>,
    /// Window that this end offers, bytes.
    pub rcv_wnd_bytes: Option<u64>,
    /// Payload that the application read in one round trip, as receive autotuning counts it, bytes.
    pub rcv_space_bytes: u64,
    /// Round-trip time as the receiver sees it, us.
    pub rcv_rtt_us: Option<u64>,
    /// `SO_SNDBUF`, bytes.
    pub send_buffer_bytes: u64,
    /// `SO_RCVBUF`, bytes.
    pub receive_buffer_bytes: u64,
    /// Memory that unacknowledged data takes of it, bytes.
    pub send_memory_bytes: u64,
    /// Memory that unread data takes, bytes.
    pub receive_memory_bytes: u64,
    /// Since data was last sent, ms.
    pub last_data_sent_ms: u64,
}

/// A connection and what was seen of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Own address and port, as in `192.0.2.1:5001`.
    pub local: String,
    /// The peer's.
    pub remote: String,
    /// Name of the congestion control.
    pub congestion_control: String,
    /// It closed while it was watched.
    pub ended: bool,
    /// In the order of time.
    pub samples: Vec<Sample>,
}
