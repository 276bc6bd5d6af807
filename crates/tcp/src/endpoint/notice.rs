//! What a sender can be told before its packets change their way: to shrink its window, and to be patient.

use super::Endpoint;
use congestion::CaState;
use units::{Span, Time};

/// What a sender has been told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notice {
    /// Window and threshold before the window was trimmed; (0, 0) = it was not.
    before: (u32, u32),
    /// Until when it is patient, ns.
    until: u64,
    /// By how much a segment may then be late, ns; 0 = by RACK's own reordering window.
    late: u64,
}

/// A window that was trimmed, segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trimmed {
    /// What of it was in use.
    pub window: u32,
    /// What was kept.
    pub kept: u32,
}

/// Least window that is left, segments: as after a loss (RFC 5681, 3.1, equation 4).
const LEAST: u32 = 2;
/// Parts of one.
const PPM: u64 = 1_000_000;

impl Endpoint {
    /// Shrinks the window at once to the part `keep_ppm`, or, without it, to what the RTT less `shorter` asks for: (RTT - shorter) /
    /// RTT by the smoothed RTT. So the sender pauses until that much has been acknowledged and then goes on as the ACKs come.
    /// The congestion control is told as of a reduction by ECN (RFC 3168, 6.1.2) from what is kept, so that it does not take the old
    /// window for one that it may return to. None: it was not done, while losses are repaired, or where the congestion control sets
    /// the window on every ACK. On the kernel ground congestion/bpf/trim.h does the same.
    pub fn trim(&mut self, now: Time, shorter: Span, keep_ppm: Option<u32>) -> Option<Trimmed> {
        self.set_now(now);
        let state = self.ca_state();
        let rtt = self.srtt();
        if state > CaState::Disorder as u8 || self.cc.has_cong_control() || rtt == Span::ZERO {
            return None;
        }
        let s = self.cc.sock();
        let (window, before) = (s.snd_cwnd.min(s.packets_out.max(1)), (s.snd_cwnd, s.snd_ssthresh));
        let kept = match keep_ppm {
            Some(ppm) => u64::from(window) * u64::from(ppm.min(PPM as u32)) / PPM,
            // A window of 2^32 segments and an RTT of hours: 2^32 * 2^44 / 2^44.
            None => (u128::from(window) * u128::from(rtt.0.saturating_sub(shorter.0)) / u128::from(rtt.0)) as u64,
        };
        let kept = (kept as u32).max(LEAST);
        // The shorter way has room for what is kept and no more: CUBIC would be back at a window that it was reduced from within
        // seconds, and overflow the queue that the window was trimmed for.
        self.sock().snd_cwnd = kept;
        self.cc.ssthresh();
        let s = self.sock();
        s.prior_cwnd = window.max(LEAST);
        s.snd_cwnd_cnt = 0;
        s.snd_ssthresh = kept;
        s.snd_cwnd = kept;
        self.notice.before = before;
        self.cwnd_stamp_ns = self.now;
        self.refresh_pacing_rate();
        Some(Trimmed { window, kept })
    }

    /// Gives the window back that [`Endpoint::trim`] took, unless losses have changed it since.
    pub fn untrim(&mut self, now: Time) {
        self.set_now(now);
        let (cwnd, ssthresh) = std::mem::take(&mut self.notice.before);
        if cwnd == 0 || self.ca_state() > CaState::Disorder as u8 {
            return;
        }
        let s = self.sock();
        s.snd_cwnd = s.snd_cwnd.max(cwnd);
        s.snd_ssthresh = s.snd_ssthresh.max(ssthresh);
        self.refresh_pacing_rate();
    }

    /// For `duration` a segment is not taken for lost before it is late by `late`, however many were acknowledged that were sent
    /// after it: the reordering degree of RFC 6675 and RFC 5681, and RACK's reordering window, raised. With `late` zero RACK
    /// waits for its own window of a quarter of the least RTT whatever the number of duplicate ACKs, and the other eras do
    /// not change: Linux's net.ipv4.tcp_recovery with 4 added (RACK_NO_DUPTHRESH), which holds for connections that run.
    pub fn tolerate(&mut self, now: Time, late: Span, duration: Span) {
        self.set_now(now);
        (self.notice.until, self.notice.late) = ((now + duration).0, late.0);
    }

    /// RACK's reordering window while the sender is patient, ns; 0 = it is not.
    #[inline]
    pub(crate) fn patience(&self) -> u64 {
        if self.now < self.notice.until {
            self.notice.late
        } else {
            0
        }
    }

    /// Duplicate ACK threshold in force.
    #[inline]
    pub(crate) fn degree(&self) -> u32 {
        if self.patience() > 0 {
            u32::MAX
        } else {
            self.reordering
        }
    }

    /// Whether RACK is to wait although no reordering has been seen.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.now < self.notice.until && self.notice.late == 0
    }
}
