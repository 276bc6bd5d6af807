//! Use of the congestion window: validation (RFC 2861, RFC 7661), restart after idle (RFC 5681, 4.1), pacing.

use super::Endpoint;
use crate::consts::*;
use crate::pacing::pacing_rate;
use crate::window_use::{halve_per_idle_rto, note_window_use};
use congestion::{CaEvent, CaState};

impl Endpoint {
    /// Notes whether the window or the application is the limit (Linux tcp_cwnd_validate).
    #[inline]
    pub(super) fn cwnd_validate(&mut self, limited: bool) {
        // Without validation the window counts as used, whatever was sent.
        let limited = limited || (self.old_growth && !self.cfg.cwnd_validation);
        let s = self.cc.sock_mut();
        self.cwnd_usage_seq = note_window_use(s, self.una, self.nxt, self.cwnd_usage_seq, limited);
        if s.is_cwnd_limited != 0 || (s.in_slow_start() && s.snd_cwnd < s.max_packets_out.saturating_mul(2)) {
            self.cwnd_used = 0;
            self.cwnd_stamp_ns = self.now;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(s.packets_out);
        if self.cfg.slow_start_after_idle
            && self.now - self.cwnd_stamp_ns >= self.rto_now()
            && !self.cc.has_cong_control()
        {
            self.cwnd_application_limited();
        }
    }

    /// The peer's window, full segments, at least one.
    pub(crate) fn peer_window(&self) -> u32 {
        u32::try_from(self.snd_wnd / u64::from(self.mss.max(1))).unwrap_or(u32::MAX).max(1)
    }

    /// Takes the part of an unvalidated window that the peer's never allowed, before a reduction: ns-2 halves the less
    /// of the two (tcp.cc, slowdown and window).
    pub(crate) fn forget_unused_window(&mut self) {
        if !self.cfg.cwnd_validation {
            let most = self.peer_window();
            let s = self.sock();
            s.snd_cwnd = s.snd_cwnd.min(most);
        }
    }

    /// RFC 2861, 2: an RTO long the window was not used: halfway back to what was.
    fn cwnd_application_limited(&mut self) {
        let s = self.cc.sock();
        if s.ca_state == CaState::Open as u8 && !self.nospace {
            let used = self.cwnd_used.max(self.cfg.initial_cwnd.min(s.snd_cwnd_clamp));
            if used < s.snd_cwnd {
                let ssthresh = self.current_ssthresh();
                let s = self.sock();
                s.snd_ssthresh = ssthresh;
                s.snd_cwnd = ((u64::from(s.snd_cwnd) + u64::from(used)) >> 1) as u32;
                self.stats.cwnd_restarts += 1;
            }
            self.cwnd_used = 0;
        }
        self.cwnd_stamp_ns = self.now;
    }

    /// RFC 5681, 4.1, halving per RTO of idleness as RFC 2861, 2 (Linux tcp_slow_start_after_idle_check,
    /// tcp_cwnd_restart).
    pub(super) fn restart_after_idle(&mut self) {
        let s = self.cc.sock();
        if !self.cfg.slow_start_after_idle || s.packets_out > 0 || self.cc.has_cong_control() || s.lsndtime_us == 0 {
            return;
        }
        let rto = (self.rto_now() / NS_PER_US).max(1);
        let idle = self.now_us.saturating_sub(s.lsndtime_us);
        if idle <= rto {
            return;
        }
        self.cc.cwnd_event(CaEvent::CwndRestart);
        let ssthresh = self.current_ssthresh();
        let initial = self.cfg.initial_cwnd.max(1);
        let s = self.sock();
        s.snd_ssthresh = ssthresh;
        halve_per_idle_rto(s, idle, rto, initial);
        self.cwnd_stamp_ns = self.now;
        self.cwnd_used = 0;
        self.stats.cwnd_restarts += 1;
    }

    /// Updates the pacing rate. Without pacing it follows cwnd, not each RTT sample, outside slow start: a division
    /// per ACK costs too much.
    #[inline]
    pub(crate) fn refresh_pacing_rate(&mut self) {
        let s = self.cc.sock();
        if s.snd_cwnd != self.paced_cwnd || s.in_slow_start() || self.is_pacing() {
            self.paced_cwnd = s.snd_cwnd;
            self.update_pacing_rate();
        }
    }

    pub(super) fn update_pacing_rate(&mut self) {
        let s = self.cc.sock_mut();
        if s.srtt_us != 0 {
            s.pacing_rate = pacing_rate(s);
        }
    }

    #[inline]
    pub(super) fn is_pacing(&self) -> bool {
        self.paced || self.cc.sock().pacing_status != 0
    }

    /// Rate at which segments are paced, bytes/s (Linux: sk_pacing_rate, at most sk_max_pacing_rate).
    #[inline]
    pub(super) fn paced_rate(&self) -> u64 {
        self.cc.sock().pacing_rate.min(self.max_pacing)
    }

    /// Returns whether pacing allows the segment at `seq` now; arms the timer when not.
    #[inline]
    pub(super) fn pacing_allows(&mut self, seq: u64) -> bool {
        if self.pace_next_ns <= self.now || !self.is_pacing() || self.is_in_burst(seq) {
            return true;
        }
        self.timers.arm_pace(self.pace_next_ns);
        false
    }

    /// `segments` of `payload` bytes each have gone: when the next burst may go (Linux tcp_update_skb_after_send).
    #[inline]
    pub(super) fn pacing_sent(&mut self, payload: u32, segments: u32) {
        if !self.is_pacing() || self.stats.data_segments_sent < PACING_FREE_SEGMENTS {
            return;
        }
        let paced = (self.stats.data_segments_sent + 1 - PACING_FREE_SEGMENTS).min(u64::from(segments));
        let rate = self.paced_rate();
        if rate == u64::MAX || rate == 0 {
            return;
        }
        if self.pace_next_ns <= self.now {
            // The first of a burst.
            self.bursts.late_ns = self.now - self.pace_next_ns;
        }
        let gap = u64::from(payload) * 1_000_000_000 / rate;
        let made_up = self.bursts.make_up(paced * (gap / 2));
        self.pace_next_ns = self.pace_next_ns.max(self.now) + paced * gap - made_up;
        self.sock().next_send_us = self.pace_next_ns / NS_PER_US;
    }
}
