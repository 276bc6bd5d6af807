//! One end of a connection as the kernel really has it, and how far its windows went: the proof behind a plan.

use super::info::Info;
use super::socket::Socket;
use serde::Serialize;
use std::io;

/// Most that was seen, over all samples of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extremes {
    snd_window_bytes: Option<u64>,
    rcv_window_bytes: Option<u64>,
    cwnd_segments: u32,
    in_flight_bytes: u64,
}

impl Extremes {
    /// Takes in a sample.
    pub fn note(&mut self, info: &Info) {
        self.snd_window_bytes = self.snd_window_bytes.max(info.snd_wnd());
        self.rcv_window_bytes = self.rcv_window_bytes.max(info.rcv_wnd());
        self.cwnd_segments = self.cwnd_segments.max(info.raw().snd_cwnd);
        self.in_flight_bytes = self.in_flight_bytes.max(info.in_flight_bytes());
    }
}

/// One end of a connection, as the kernel has it; what it does not tell is None.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndReport {
    /// Name of the flow.
    pub flow: String,
    /// `TCP_CONGESTION`.
    pub congestion_control: String,
    /// `SO_SNDBUF`, the kernel's own memory included.
    pub send_buffer_bytes: u64,
    /// `SO_RCVBUF`, the kernel's own memory included.
    pub receive_buffer_bytes: u64,
    /// `TCP_WINDOW_CLAMP`; None of a program's socket, which nobody else can ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_clamp_bytes: Option<u64>,
    /// Payload of a full segment.
    pub max_segment_bytes: u64,
    /// Segment that this end announced.
    pub announced_segment_bytes: u64,
    /// MTU of the path as the kernel knows it.
    pub path_mtu_bytes: u64,
    /// Shift of the windows that this end announces; None without window scaling.
    pub window_shift: Option<u8>,
    /// Largest window that the other end offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_window_max_bytes: Option<u64>,
    /// Largest window that this end offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcv_window_max_bytes: Option<u64>,
    /// Largest congestion window.
    pub cwnd_max_segments: u32,
    /// Most payload in flight.
    pub in_flight_max_bytes: u64,
    /// Least round-trip time, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_min_s: Option<f64>,
    /// Payload that arrived at this end in order.
    pub received_bytes: u64,
    /// Time that a sender with data waited for the receive window, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by_receive_window_s: Option<f64>,
    /// Time that it waited for the send buffer, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_by_send_buffer_s: Option<f64>,
    /// Time that it had data, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_s: Option<f64>,
}

/// Bit of `options`: windows are scaled (include/uapi/linux/tcp.h).
const TCPI_OPT_WSCALE: u8 = 4;

impl EndReport {
    /// The end of flow `flow` that is `socket`; None where the kernel does not tell.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn of(flow: &str, socket: &Socket, extremes: &mut Extremes) -> io::Result<Option<EndReport>> {
        let Some(info) = socket.info_if_told()? else { return Ok(None) };
        extremes.note(&info);
        let buffers = (socket.get(libc::SOL_SOCKET, libc::SO_SNDBUF)?, socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF)?);
        let clamp = socket.get(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP)?;
        let report = EndReport::seen(flow, &info, &socket.congestion()?, buffers, extremes);
        Ok(Some(EndReport { window_clamp_bytes: Some(clamp), ..report }))
    }

    /// The end of flow `flow` that was seen with `info`, this congestion control, and these buffers for sending and
    /// receiving.
    pub(crate) fn seen(
        flow: &str,
        info: &Info,
        congestion_control: &str,
        buffers: (u64, u64),
        extremes: &Extremes,
    ) -> EndReport {
        let raw = info.raw();
        let seconds = |us: u64| us as f64 / 1e6;
        EndReport {
            flow: flow.to_owned(),
            congestion_control: congestion_control.to_owned(),
            send_buffer_bytes: buffers.0,
            receive_buffer_bytes: buffers.1,
            window_clamp_bytes: None,
            max_segment_bytes: raw.snd_mss.into(),
            announced_segment_bytes: raw.advmss.into(),
            path_mtu_bytes: raw.pmtu.into(),
            window_shift: (raw.options & TCPI_OPT_WSCALE != 0).then_some(raw.wscale >> 4),
            snd_window_max_bytes: extremes.snd_window_bytes,
            rcv_window_max_bytes: extremes.rcv_window_bytes,
            cwnd_max_segments: extremes.cwnd_segments,
            in_flight_max_bytes: extremes.in_flight_bytes,
            rtt_min_s: info.min_rtt_us().map(seconds),
            received_bytes: raw.bytes_received,
            limited_by_receive_window_s: info.rwnd_limited_us().map(seconds),
            limited_by_send_buffer_s: info.sndbuf_limited_us().map(seconds),
            busy_s: info.busy_us().map(seconds),
        }
    }
}
