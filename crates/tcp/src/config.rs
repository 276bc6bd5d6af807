//! Configuration of one endpoint; every default is Linux's, with the sysctl or constant it comes from.

pub use crate::consts::{MAX_REORDERING, WSCALE_MAX};
use units::{Rate, Size, Span};

/// Loss detection and recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// Fast retransmit and fast recovery that leaves at the first new ACK, go-back-N after a time-out; no SACK is
    /// negotiated (RFC 2001, 4; RFC 2581, 3.2; ns-2 tcp-reno.cc, and tcp-full.cc with `reno_fastrecov_`).
    Reno,
    /// Duplicate ACK counting, NewReno partial ACKs; no SACK is negotiated (RFC 6582).
    NewReno,
    /// SACK scoreboard with the conservative algorithm (RFC 6675).
    Sack,
    /// RACK-TLP (RFC 8985) and PRR (RFC 6937), as Linux.
    Rack,
}

/// Retransmissions that are lost again, with [`Recovery::Sack`]: RFC 6675 leaves them to the time-out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostRetransmissions {
    /// A copy is lost when something first sent after it is SACKed (Linux 2.6 to 4.20, tcp_mark_lost_retrans).
    Era,
    /// Only the time-out repairs.
    Never,
    /// As ns-2's TCP-Linux (2.35, scoreboard1.cc, UpdateScoreBoard): a copy is lost also when the fifth copy after it
    /// has arrived; a segment is lost when one four above it is SACKed; and at the end of a recovery the sender forgets
    /// what was SACKed (tcp-linux.cc, tcp_fastretrans_alert), so that it sends again what the receiver has.
    Repeatedly,
}

/// Acknowledgment as a congestion control counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// Segments that the ACK covers (Linux since 3.13; RFC 3465 without its bound).
    Segments,
    /// One for each ACK of new data (RFC 2581, 3.1; ns-2 opencwnd).
    Acks,
}

/// Linux whose autotuning of receive buffers holds (tcp_rcv_space_adjust).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiveBuffers {
    /// Since 6.16: room for what waits behind a hole (tcp_rcvbuf_grow), the least RTT at once, no longer RTT while data
    /// is unread, unread data taken off.
    Linux6_16,
    /// Until 6.15: 16 segments more, a smoothed RTT, nothing for holes.
    Linux6_15,
}

/// The application's reading of arriving data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// The application reads at once.
    Immediate,
    /// The application reads only when `Endpoint::read` is called.
    Manual,
}

/// Settings of one endpoint. Both ends of a flow normally share one.
#[derive(Clone, Debug)]
pub struct Config {
    /// Largest IP packet, bytes: 68 ..= 65535.
    pub mtu: u32,
    /// Packets have IPv6 headers.
    pub ipv6: bool,
    /// Loss recovery.
    pub recovery: Recovery,
    /// Lost retransmissions, with [`Recovery::Sack`].
    pub lost_retransmissions: LostRetransmissions,
    /// Grow the window only while it is the limit (RFC 7661; Linux tcp_is_cwnd_limited); off = on each new ACK, used or
    /// not, and never less for want of data (ns-2 tcp.cc and tcp-full.cc, opencwnd).
    pub cwnd_validation: bool,
    /// Unit in which a congestion control is told of acknowledgments.
    pub count: Count,
    /// Hold back a short segment while data is unacknowledged (RFC 896; RFC 1122, 4.2.3.4).
    pub nagle: bool,
    /// Initial window, segments; Linux TCP_INIT_CWND = 10 (RFC 6928); 1 in the dsan paper.
    pub initial_cwnd: u32,
    /// Initial ssthresh, segments; None = infinite.
    pub initial_ssthresh: Option<u32>,
    /// Offer and accept timestamps (RFC 7323; net.ipv4.tcp_timestamps).
    pub timestamps: bool,
    /// Offer and accept window scaling (RFC 7323; net.ipv4.tcp_window_scaling). Without: 65,535 bytes at most.
    pub window_scaling: bool,
    /// Largest shift that is offered: 14 (RFC 7323, 2.3); a simulator that knows no such bound may take 15, whose
    /// window still is less than 2^31 bytes.
    pub window_scale_max: u8,
    /// Force this shift instead of deriving it from the buffer: 0..=`window_scale_max` (the dsan gateways always use
    /// 10).
    pub window_scale: Option<u8>,
    /// Receive window limit, bytes: what the receiver may at most advertise (not memory: no overhead is subtracted).
    pub receive_window: Size,
    /// Grow the advertised window towards `receive_window` as the application reads (tcp_moderate_rcvbuf); off = offer
    /// all at once.
    pub receive_autotuning: bool,
    /// Version of `receive_autotuning`.
    pub receive_buffers: ReceiveBuffers,
    /// Send buffer, bytes written and not yet acknowledged; None = unlimited.
    pub send_buffer: Option<Size>,
    /// Delayed ACKs (RFC 1122, 4.2.3.2; RFC 5681, 4.2): every second full segment or when the timer fires.
    pub delayed_ack: bool,
    /// Hold back duplicate ACKs, with RACK (Linux since 4.18: net.ipv4.tcp_comp_sack_delay_ns and tcp_comp_sack_nr):
    /// after three for the same hole, one for all segments of a millisecond at most.
    pub sack_compression: bool,
    /// Segments acknowledged at once at the start (Linux TCP_MAX_QUICKACKS = 16); 0 = none.
    pub quickack_segments: u32,
    /// ECN negotiated and reacted to (RFC 3168; net.ipv4.tcp_ecn = 1).
    pub ecn: bool,
    /// Pace even when the algorithm does not ask for it (sch_fq style, Linux pacing ratios 200 % and 120 %).
    pub pacing: bool,
    /// Send bursts of a millisecond of the pacing rate, up to 64 KiB, with RACK (Linux tcp_tso_autosize since 3.12, and
    /// tcp_tso_should_defer); off = each segment as soon as the window has room for it.
    pub tso_autosizing: bool,
    /// Upper bound of the pacing rate, of payload; with one the sender always paces (SO_MAX_PACING_RATE, socket(7));
    /// None = no bound.
    pub max_pacing: Option<Rate>,
    /// Restart from the initial window after idle (net.ipv4.tcp_slow_start_after_idle = 1).
    pub slow_start_after_idle: bool,
    /// Lower bound of the RTO; Linux TCP_RTO_MIN = 200 ms (RFC 6298 says 1 s).
    pub rto_min: Span,
    /// Upper bound of the RTO; Linux TCP_RTO_MAX = 120 s.
    pub rto_max: Span,
    /// Initial duplicate ACK threshold (net.ipv4.tcp_reordering = 3).
    pub reordering: u32,
    /// Largest threshold that reordering may raise it to (net.ipv4.tcp_max_reordering = 300).
    pub max_reordering: u32,
    /// Take reductions back that timestamps, DSACK or F-RTO prove wrong, as Linux; off = never, as ns-2's TCP-Linux.
    pub undo: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Reader at this end.
    pub reader: Reader,
    /// Upper bound of the congestion window, segments; None = unlimited.
    pub cwnd_clamp: Option<u32>,
    /// F-RTO (RFC 5682; net.ipv4.tcp_frto).
    pub frto: bool,
    /// Fast retransmit at all; off = the time-out alone repairs (the dsan paper's figure 5).
    pub fast_retransmit: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            mtu: 1500,
            ipv6: false,
            recovery: Recovery::Rack,
            lost_retransmissions: LostRetransmissions::Era,
            cwnd_validation: true,
            count: Count::Segments,
            nagle: false,
            initial_cwnd: 10,
            initial_ssthresh: None,
            timestamps: true,
            window_scaling: true,
            window_scale_max: WSCALE_MAX,
            window_scale: None,
            receive_window: Size(1 << 30),
            receive_autotuning: false,
            receive_buffers: ReceiveBuffers::Linux6_16,
            send_buffer: None,
            delayed_ack: true,
            sack_compression: true,
            quickack_segments: 16,
            ecn: false,
            pacing: false,
            tso_autosizing: true,
            max_pacing: None,
            slow_start_after_idle: true,
            rto_min: Span::from_millis(200),
            rto_max: Span::from_secs(120),
            reordering: 3,
            max_reordering: MAX_REORDERING,
            undo: true,
            limited_transmit: true,
            reader: Reader::Immediate,
            cwnd_clamp: None,
            frto: true,
            fast_retransmit: true,
        }
    }
}
