//! Hints to a sender before its packets change their path: reduce cwnd, and tolerate reordering.

use super::path_change_state::CwndReduction;
use super::Endpoint;
use congestion::CaState;
use units::{Span, Time};

/// Least cwnd after a reduction, segments: as after a loss (RFC 5681, 3.1, equation 4).
const MIN_CWND: u32 = 2;
/// Parts per million in one.
const PPM: u64 = 1_000_000;

impl Endpoint {
    /// Reduces cwnd at once to the share `cwnd_fraction_ppm`, or, without it, to (RTT - `shorter`) / RTT by the
    /// smoothed RTT. The sender pauses until that much has been acknowledged and then goes on as the ACKs come.
    ///
    /// The congestion control is told of a reduction as by ECN (RFC 3168, 6.1.2) from the reduced cwnd, so that it
    /// does not return to the old one. None: not done, during loss recovery, or where the congestion control sets cwnd
    /// on every ACK. On the kernel backend congestion/bpf/cwnd_reduction.h does the same.
    pub fn reduce_cwnd(&mut self, now: Time, shorter: Span, cwnd_fraction_ppm: Option<u32>) -> Option<CwndReduction> {
        self.set_now(now);
        let state = self.ca_state();
        let rtt = self.srtt()?;
        if state > CaState::Disorder as u8 || self.cc.has_cong_control() {
            return None;
        }
        let s = self.cc.sock();
        let (window, before) = (s.snd_cwnd.min(s.packets_out.max(1)), (s.snd_cwnd, s.snd_ssthresh));
        let kept = match cwnd_fraction_ppm {
            Some(ppm) => u64::from(window) * u64::from(ppm.min(PPM as u32)) / PPM,
            // A window of 2^32 segments and an RTT of hours: 2^32 * 2^44 / 2^44.
            None => (u128::from(window) * u128::from(rtt.0.saturating_sub(shorter.0)) / u128::from(rtt.0)) as u64,
        };
        let kept = (kept as u32).max(MIN_CWND);
        // CUBIC would otherwise return within seconds to the window that it was reduced from, and overflow the queue
        // that the reduction protects.
        self.sock().snd_cwnd = kept;
        self.cc.ssthresh();
        let s = self.sock();
        s.prior_cwnd = window.max(MIN_CWND);
        s.snd_cwnd_cnt = 0;
        s.snd_ssthresh = kept;
        s.snd_cwnd = kept;
        self.path_change_hint.before = Some(before);
        self.cwnd_stamp_ns = self.now;
        self.refresh_pacing_rate();
        Some(CwndReduction { window, kept })
    }

    /// Restores cwnd and ssthresh from before [`Endpoint::reduce_cwnd`], unless losses have changed them since.
    pub fn restore_cwnd(&mut self, now: Time) {
        self.set_now(now);
        let Some((cwnd, ssthresh)) = self.path_change_hint.before.take() else { return };
        if self.ca_state() > CaState::Disorder as u8 {
            return;
        }
        let s = self.sock();
        s.snd_cwnd = s.snd_cwnd.max(cwnd);
        s.snd_ssthresh = s.snd_ssthresh.max(ssthresh);
        self.refresh_pacing_rate();
    }

    /// For `duration` a segment counts as lost only once it is late by `reo_wnd`, however many later segments were
    /// acknowledged: raises dupthresh (RFC 6675, RFC 5681) and RACK's reordering window. With `reo_wnd` zero RACK
    /// waits for its own window of a quarter of the minimum RTT whatever the number of duplicate ACKs, and the other
    /// recoveries do not change: Linux's net.ipv4.tcp_recovery with 4 added (RACK_NO_DUPTHRESH), for established
    /// connections.
    pub fn tolerate_reordering(&mut self, now: Time, reo_wnd: Span, duration: Span) {
        self.set_now(now);
        self.path_change_hint.until = (now + duration).0;
        self.path_change_hint.reo_wnd = (reo_wnd > Span::ZERO).then_some(reo_wnd.0);
    }

    /// The reordering window that a hint imposes, ns; None = none now.
    #[inline]
    pub(crate) fn hinted_reo_wnd(&self) -> Option<u64> {
        self.path_change_hint.reo_wnd.filter(|_| self.now < self.path_change_hint.until)
    }

    /// Duplicate ACK threshold in force.
    #[inline]
    pub(crate) fn dupthresh(&self) -> u32 {
        if self.hinted_reo_wnd().is_some() {
            u32::MAX
        } else {
            self.reordering
        }
    }

    /// Returns whether RACK ignores dupthresh although no reordering has been seen (Linux RACK_NO_DUPTHRESH).
    #[inline]
    pub(crate) fn ignores_dupthresh(&self) -> bool {
        self.now < self.path_change_hint.until && self.path_change_hint.reo_wnd.is_none()
    }
}
