//! Settings of TCP, and the one place that says which are the defaults: those of `tcp::Config`, with their sources.

use crate::link::JitterKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcp::config::{Config, Count, LostRetransmissions, ReceiveBuffers, Recovery, WSCALE_MAX};

/// Transport of a flow: TCP, or UDT where `udt` says so. See `tcp::Config` for ranges and Linux's defaults.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(default)]
pub struct TransportSpec {
    /// Built-in algorithm's name, or the absolute path of a user's .c file.
    pub congestion_control: String,
    /// Values of the algorithm's parameters by name; those absent keep the default.
    /// Fractions are handed over as the integer that the parameter's declared unit asks for.
    pub parameters: BTreeMap<String, i64>,
    /// Loss detection and recovery.
    pub recovery: RecoverySpec,
    /// Lost retransmissions, with "sack"; absent = "era".
    #[serde(default, skip_serializing_if = "LostRetransmissionsSpec::is_era")]
    pub lost_retransmissions: LostRetransmissionsSpec,
    /// Grow the window only while it is the limit; absent = true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub cwnd_validation: bool,
    /// Unit in which a congestion control is told of acknowledgments; absent = "segments".
    #[serde(default, skip_serializing_if = "CountSpec::is_segments")]
    pub count: CountSpec,
    /// Nagle's algorithm; absent = false.
    #[serde(default, skip_serializing_if = "is_no")]
    pub nagle: bool,
    /// Segments.
    pub initial_cwnd: u32,
    /// Segments; null = infinite.
    pub initial_ssthresh: Option<u32>,
    /// Receive window limit, bytes.
    pub window_bytes: u64,
    /// Negotiate window scaling.
    pub window_scaling: bool,
    /// Bound the shift to RFC 7323's 14, a window of 1.07 GB; if not, to 15.
    pub window_bound: bool,
    /// Forced shift.
    pub window_scale: Option<u8>,
    /// Grow the advertised window with use.
    pub receive_autotuning: bool,
    /// Version of `receive_autotuning`; absent = "linux-6.16".
    #[serde(default, skip_serializing_if = "ReceiveBuffersSpec::is_newest")]
    pub receive_buffers: ReceiveBuffersSpec,
    /// Send buffer, bytes; null = unlimited.
    pub send_buffer_bytes: Option<u64>,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Packets have IPv6 headers; absent = false.
    #[serde(default, skip_serializing_if = "is_no")]
    pub ipv6: bool,
    /// Negotiate timestamps.
    pub timestamps: bool,
    /// Delay ACKs.
    pub delayed_ack: bool,
    /// Hold back duplicate ACKs, with "rack".
    pub sack_compression: bool,
    /// Segments acknowledged at once at the start.
    pub quickack_segments: u32,
    /// Negotiate ECN.
    pub ecn: bool,
    /// Pace always.
    pub pacing: bool,
    /// Send in bursts of a millisecond of the pacing rate, with "rack". Specifications that are older than this key
    /// mean false.
    #[serde(default)]
    #[schemars(extend("default" = true))]
    pub tso_autosizing: bool,
    /// Restart after idle.
    pub slow_start_after_idle: bool,
    /// ns.
    pub rto_min_ns: u64,
    /// ns.
    pub rto_max_ns: u64,
    /// Duplicate ACK threshold at the start.
    pub reordering: u32,
    /// Largest threshold that reordering may raise it to.
    pub max_reordering: u32,
    /// Take back reductions that were proven wrong.
    pub undo: bool,
    /// RFC 3042.
    pub limited_transmit: bool,
    /// RFC 5682.
    pub frto: bool,
    /// Off: only the time-out repairs.
    pub fast_retransmit: bool,
    /// Segments; null = unlimited.
    pub cwnd_clamp: Option<u32>,
    /// Most payload that a connection sends, bit/s, evenly spaced (`SO_MAX_PACING_RATE`); absent = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pacing_bps: Option<u64>,
    /// Time that the sender takes for each packet; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_overhead: Option<SendOverheadSpec>,
    /// UDT in place of TCP: of the keys above, `mtu_bytes`, `ipv6`, `window_bytes` and `send_buffer_bytes` hold for it;
    /// absent = TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udt: Option<UdtSpec>,
}

fn yes() -> bool {
    true
}

// Serde hands over a reference.
fn is_yes(value: &bool) -> bool {
    *value
}

fn is_no(value: &bool) -> bool {
    !*value
}

/// Random time that a sender takes for each packet, one packet after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendOverheadSpec {
    /// Distribution of the time.
    pub distribution: JitterKind,
    /// Scale, as of jitter, ns.
    pub scale_ns: u64,
}

/// UDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UdtSpec {
    /// Version.
    pub version: UdtVersionSpec,
}

/// Version of UDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum UdtVersionSpec {
    /// The UDT of 2003.
    #[serde(rename = "udt-2003")]
    Udt2003,
    /// UDT4, as libudt 4.11.
    #[serde(rename = "udt4")]
    Udt4,
}

impl UdtVersionSpec {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            UdtVersionSpec::Udt2003 => "udt-2003",
            UdtVersionSpec::Udt4 => "udt4",
        }
    }
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecoverySpec {
    /// Fast recovery that leaves at the first new ACK, go-back-N after a time-out, no SACK (RFC 2581).
    Reno,
    /// Duplicate ACK counting, NewReno partial ACKs, no SACK (RFC 6582).
    NewReno,
    /// SACK scoreboard with the conservative algorithm (RFC 6675).
    Sack,
    /// RACK-TLP (RFC 8985) and PRR (RFC 6937), as Linux.
    Rack,
}

impl From<Recovery> for RecoverySpec {
    fn from(recovery: Recovery) -> RecoverySpec {
        match recovery {
            Recovery::Reno => RecoverySpec::Reno,
            Recovery::NewReno => RecoverySpec::NewReno,
            Recovery::Sack => RecoverySpec::Sack,
            Recovery::Rack => RecoverySpec::Rack,
        }
    }
}

impl From<RecoverySpec> for Recovery {
    fn from(recovery: RecoverySpec) -> Recovery {
        match recovery {
            RecoverySpec::Reno => Recovery::Reno,
            RecoverySpec::NewReno => Recovery::NewReno,
            RecoverySpec::Sack => Recovery::Sack,
            RecoverySpec::Rack => Recovery::Rack,
        }
    }
}

/// Linux whose autotuning of receive buffers holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ReceiveBuffersSpec {
    /// 6.16 and later.
    #[default]
    #[serde(rename = "linux-6.16")]
    Linux6_16,
    /// 6.15 and earlier.
    #[serde(rename = "linux-6.15")]
    Linux6_15,
}

impl ReceiveBuffersSpec {
    /// Returns whether it is what an absent key means.
    pub fn is_newest(&self) -> bool {
        *self == ReceiveBuffersSpec::Linux6_16
    }
}

impl From<ReceiveBuffers> for ReceiveBuffersSpec {
    fn from(buffers: ReceiveBuffers) -> ReceiveBuffersSpec {
        match buffers {
            ReceiveBuffers::Linux6_16 => ReceiveBuffersSpec::Linux6_16,
            ReceiveBuffers::Linux6_15 => ReceiveBuffersSpec::Linux6_15,
        }
    }
}

impl From<ReceiveBuffersSpec> for ReceiveBuffers {
    fn from(buffers: ReceiveBuffersSpec) -> ReceiveBuffers {
        match buffers {
            ReceiveBuffersSpec::Linux6_16 => ReceiveBuffers::Linux6_16,
            ReceiveBuffersSpec::Linux6_15 => ReceiveBuffers::Linux6_15,
        }
    }
}

/// Lost retransmissions, with recovery "sack".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LostRetransmissionsSpec {
    /// Lost when something first sent after the copy is SACKed (Linux 2.6).
    #[default]
    Era,
    /// Only the time-out repairs.
    Never,
    /// Lost on each ACK anew, as ns-2's TCP-Linux.
    Repeatedly,
}

impl LostRetransmissionsSpec {
    /// Returns whether it is what an absent key means.
    pub fn is_era(&self) -> bool {
        *self == LostRetransmissionsSpec::Era
    }
}

impl From<LostRetransmissions> for LostRetransmissionsSpec {
    fn from(lost: LostRetransmissions) -> LostRetransmissionsSpec {
        match lost {
            LostRetransmissions::Era => LostRetransmissionsSpec::Era,
            LostRetransmissions::Never => LostRetransmissionsSpec::Never,
            LostRetransmissions::Repeatedly => LostRetransmissionsSpec::Repeatedly,
        }
    }
}

impl From<LostRetransmissionsSpec> for LostRetransmissions {
    fn from(lost: LostRetransmissionsSpec) -> LostRetransmissions {
        match lost {
            LostRetransmissionsSpec::Era => LostRetransmissions::Era,
            LostRetransmissionsSpec::Never => LostRetransmissions::Never,
            LostRetransmissionsSpec::Repeatedly => LostRetransmissions::Repeatedly,
        }
    }
}

/// Unit in which a congestion control is told of acknowledgments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CountSpec {
    /// Segments that the ACK covers.
    #[default]
    Segments,
    /// One for each ACK.
    Acks,
}

impl CountSpec {
    /// Returns whether it is what an absent key means.
    pub fn is_segments(&self) -> bool {
        *self == CountSpec::Segments
    }
}

impl From<Count> for CountSpec {
    fn from(count: Count) -> CountSpec {
        match count {
            Count::Segments => CountSpec::Segments,
            Count::Acks => CountSpec::Acks,
        }
    }
}

impl From<CountSpec> for Count {
    fn from(count: CountSpec) -> Count {
        match count {
            CountSpec::Segments => Count::Segments,
            CountSpec::Acks => Count::Acks,
        }
    }
}

impl TransportSpec {
    /// Returns true if the congestion control is a user's own file.
    pub fn has_own_control(&self) -> bool {
        self.congestion_control.ends_with(".c")
    }
}

impl Default for TransportSpec {
    /// CUBIC, as Linux's net.ipv4.tcp_congestion_control, over the settings that an endpoint has by default.
    fn default() -> TransportSpec {
        let Config {
            mtu,
            ipv6,
            recovery,
            lost_retransmissions,
            cwnd_validation,
            count,
            nagle,
            initial_cwnd,
            initial_ssthresh,
            timestamps,
            window_scaling,
            window_scale_max,
            window_scale,
            receive_window,
            receive_autotuning,
            receive_buffers,
            send_buffer,
            delayed_ack,
            sack_compression,
            quickack_segments,
            ecn,
            pacing,
            tso_autosizing,
            max_pacing,
            slow_start_after_idle,
            rto_min,
            rto_max,
            reordering,
            max_reordering,
            undo,
            limited_transmit,
            // An application of a run reads at once.
            reader: _,
            cwnd_clamp,
            frto,
            fast_retransmit,
        } = Config::default();
        TransportSpec {
            congestion_control: "cubic".to_owned(),
            parameters: BTreeMap::new(),
            recovery: recovery.into(),
            lost_retransmissions: lost_retransmissions.into(),
            cwnd_validation,
            count: count.into(),
            nagle,
            initial_cwnd,
            initial_ssthresh,
            window_bytes: receive_window.0,
            window_scaling,
            window_bound: window_scale_max == WSCALE_MAX,
            window_scale,
            receive_autotuning,
            receive_buffers: receive_buffers.into(),
            send_buffer_bytes: send_buffer.map(|size| size.0),
            mtu_bytes: mtu,
            ipv6,
            timestamps,
            delayed_ack,
            sack_compression,
            quickack_segments,
            ecn,
            pacing,
            tso_autosizing,
            slow_start_after_idle,
            rto_min_ns: rto_min.0,
            rto_max_ns: rto_max.0,
            reordering,
            max_reordering,
            undo,
            limited_transmit,
            frto,
            fast_retransmit,
            cwnd_clamp,
            max_pacing_bps: max_pacing.map(|rate| rate.0),
            send_overhead: None,
            udt: None,
        }
    }
}
