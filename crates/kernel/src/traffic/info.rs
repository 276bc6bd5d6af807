//! The kernel's own values of a connection: `TCP_INFO`.

use experiment::{ssthresh, FlowRow, SendingTimes};
use std::io;
use std::os::fd::RawFd;
use units::{Span, Time};

/// `struct tcp_info` of Linux 6.18, as far as it is used (include/uapi/linux/tcp.h). The kernel appends fields and
/// never moves any, and copies as much as both sides know: an older one fills less.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    /// Window scales of the sending (low 4 bits) and receiving side.
    pub wscale: u8,
    pub bits: u8,
    pub rto_us: u32,
    pub ato_us: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent_ms: u32,
    pub last_ack_sent_ms: u32,
    pub last_data_recv_ms: u32,
    pub last_ack_recv_ms: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt_us: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt_us: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time_ms: u32,
}

const _: () = assert!(std::mem::offset_of!(RawInfo, total_retrans) == 100);
const _: () = assert!(std::mem::offset_of!(RawInfo, bytes_retrans) == 208);
const _: () = assert!(std::mem::size_of::<RawInfo>() == 248, "no padding anywhere");

/// Bit of `options`: SACK was negotiated (include/uapi/linux/tcp.h).
const TCPI_OPT_SACK: u8 = 2;

/// And timestamps were.
const TCPI_OPT_TIMESTAMPS: u8 = 1;

/// Bytes that they take in each segment (RFC 7323, appendix A).
const TIMESTAMP_BYTES: u32 = 12;

/// [`RawInfo`] and how much of it the kernel filled.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Info {
    raw: RawInfo,
    bytes: usize,
}

/// A field that came after Linux 4.6, the first with `struct tcp_info` up to `data_segs_out`; None when the kernel is
/// older.
macro_rules! since {
    ($self:ident, $field:ident) => {{
        let end = std::mem::offset_of!(RawInfo, $field) + std::mem::size_of_val(&$self.raw.$field);
        (end <= $self.bytes).then_some($self.raw.$field)
    }};
}

impl Info {
    /// Asks the kernel about the TCP socket `fd`.
    ///
    /// # Errors
    /// The kernel's; "unsupported" when it is older than Linux 4.6.
    pub fn of(fd: RawFd) -> io::Result<Info> {
        let mut raw = RawInfo::default();
        let mut length = std::mem::size_of::<RawInfo>() as libc::socklen_t;
        let into = std::ptr::from_mut(&mut raw).cast();
        // SAFETY: `into` points to `length` bytes of plain integers, for which every pattern is valid.
        if unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, into, &mut length) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let bytes = length as usize;
        if bytes < std::mem::offset_of!(RawInfo, delivery_rate) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("TCP_INFO has {bytes} bytes: Linux 4.6 or later"),
            ));
        }
        Ok(Info { raw, bytes })
    }

    /// Returns the values of `bytes`, a `struct tcp_info` that the kernel gave by another way.
    pub fn parse(bytes: &[u8]) -> Info {
        let mut raw = RawInfo::default();
        let length = bytes.len().min(std::mem::size_of::<RawInfo>());
        // SAFETY: both are valid for `length` bytes; the target is plain integers, for which every pattern is valid.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(&mut raw).cast(), length) };
        Info { raw, bytes: length }
    }

    /// The fields that every supported kernel fills.
    pub fn raw(&self) -> &RawInfo {
        &self.raw
    }

    /// Payload sent and not acknowledged cumulatively, bytes; from segments where the kernel does not count bytes.
    pub fn in_flight_bytes(&self) -> u64 {
        match (since!(self, bytes_sent), since!(self, bytes_retrans)) {
            // The SYN counts as a byte acknowledged, and not as one sent.
            (Some(sent), Some(again)) => sent.saturating_sub(again + self.raw.bytes_acked.saturating_sub(1)),
            _ => u64::from(self.raw.unacked) * u64::from(self.raw.snd_mss),
        }
    }

    /// Segments that are known to have arrived, the SYN included (Linux 4.18).
    pub fn delivered(&self) -> Option<u64> {
        since!(self, delivered).map(u64::from)
    }

    /// Segments that the peer reported to have had already (Linux 4.19); None where SACK is off.
    pub fn duplicates(&self) -> Option<u64> {
        since!(self, dsack_dups).filter(|_| self.raw.options & TCPI_OPT_SACK != 0).map(u64::from)
    }

    /// Payload sent, what was sent again included, bytes (Linux 4.19).
    pub fn bytes_sent(&self) -> Option<u64> {
        since!(self, bytes_sent)
    }

    /// Options in each segment, bytes.
    pub fn option_bytes(&self) -> u32 {
        u32::from(self.raw.options & TCPI_OPT_TIMESTAMPS) * TIMESTAMP_BYTES
    }

    /// Payload sent again, bytes (Linux 4.19).
    pub fn bytes_retrans(&self) -> Option<u64> {
        since!(self, bytes_retrans)
    }

    /// Retransmission time-outs, those of the SYN included (Linux 6.7).
    pub fn timeouts(&self) -> Option<u64> {
        since!(self, total_rto).map(u64::from)
    }

    /// Window that the peer offers, bytes (Linux 5.4).
    pub fn snd_wnd(&self) -> Option<u64> {
        since!(self, snd_wnd).map(u64::from)
    }

    /// Window that this end offers, bytes (Linux 6.2).
    pub fn rcv_wnd(&self) -> Option<u64> {
        since!(self, rcv_wnd).map(u64::from)
    }

    /// The same as the peer sees it: 16 bits, scaled (RFC 7323, 2.3).
    pub fn rcv_wnd_on_the_wire(&self) -> Option<u64> {
        self.rcv_wnd().map(|bytes| bytes.min(65_535 << (self.raw.wscale >> 4)))
    }

    /// Time with data to send, us (Linux 4.10).
    pub fn busy_us(&self) -> Option<u64> {
        since!(self, busy_time_us)
    }

    /// The part of it that was spent waiting for the receive window, us (Linux 4.10).
    pub fn rwnd_limited_us(&self) -> Option<u64> {
        since!(self, rwnd_limited_us)
    }

    /// The part of it that was spent waiting for the send buffer, us (Linux 4.10).
    pub fn sndbuf_limited_us(&self) -> Option<u64> {
        since!(self, sndbuf_limited_us)
    }

    /// Time with data to send, and what it waited for meanwhile; None where the kernel gives none.
    pub fn sending_times(&self) -> Option<SendingTimes> {
        Some(SendingTimes {
            busy_us: self.busy_us()?,
            receive_window_us: self.rwnd_limited_us()?,
            send_buffer_us: self.sndbuf_limited_us()?,
        })
    }

    /// Segments that arrived with a mark of congestion (Linux 4.18).
    pub fn delivered_ce(&self) -> Option<u64> {
        since!(self, delivered_ce).map(u64::from)
    }

    /// Segments that arrived ahead of a gap (Linux 5.4).
    pub fn out_of_order(&self) -> Option<u64> {
        since!(self, rcv_ooopack).map(u64::from)
    }

    /// Reordering found, times (Linux 4.19).
    pub fn reordering_seen(&self) -> Option<u64> {
        since!(self, reord_seen).map(u64::from)
    }

    /// Nothing waited to be sent while the last delivery rate was measured (Linux 4.9).
    pub fn is_app_limited(&self) -> bool {
        self.raw.bits & 1 != 0
    }

    /// Least round-trip time, us; None before the first sample.
    pub fn min_rtt_us(&self) -> Option<u64> {
        // The kernel's minimum filter begins at ~0.
        (self.raw.min_rtt_us != u32::MAX && self.raw.rtt_us > 0).then_some(u64::from(self.raw.min_rtt_us))
    }

    /// As an older kernel would fill it: `bytes` and no more.
    #[cfg(test)]
    fn cut_to(self, bytes: usize) -> Info {
        Info { bytes, ..self }
    }

    /// Returns a row of the series; `goodput_bps` and `retransmitted_segments` are the flow's, and so is the lag.
    pub fn row(
        &self,
        time: Time,
        flow: usize,
        goodput_bps: f64,
        retransmitted_segments: u64,
        (lag, lag_bytes): (Span, u64),
    ) -> FlowRow {
        let raw = self.raw();
        FlowRow {
            time,
            flow,
            cwnd_packets: raw.snd_cwnd,
            ssthresh_packets: ssthresh(raw.snd_ssthresh),
            // TCP_INFO has 0 before the first sample.
            srtt: (raw.rtt_us > 0).then(|| Span::from_micros(u64::from(raw.rtt_us))),
            in_flight_bytes: self.in_flight_bytes(),
            goodput_bps,
            retransmitted_segments,
            duplicate_acks: None,
            lag,
            lag_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_kernel_does_not_fill_is_absent() {
        let raw =
            RawInfo { delivered: 7, bytes_retrans: 8, total_rto: 9, unacked: 3, snd_mss: 1448, ..RawInfo::default() };
        let info = Info { raw, bytes: std::mem::size_of::<RawInfo>() };
        assert_eq!((info.delivered(), info.bytes_retrans(), info.timeouts()), (Some(7), Some(8), Some(9)));
        let at_4_18 = info.cut_to(200);
        assert_eq!((at_4_18.delivered(), at_4_18.bytes_retrans(), at_4_18.timeouts()), (Some(7), None, None));
        assert_eq!(at_4_18.in_flight_bytes(), 3 * 1448);
        // A field that was cut in the middle is not filled either.
        assert_eq!(info.cut_to(195).delivered(), None);
    }
}
