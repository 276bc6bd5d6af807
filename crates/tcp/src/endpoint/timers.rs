//! Timers: deadlines in fields, re-armed lazily, and what happens when they fire.
//!
//! One transmit timer serves as retransmission, probe, reordering and persist timer, as in Linux (icsk_pending).
//! Moving a deadline back writes one field: `wake` stays where it was, fires early, and finds nothing to do.

use super::timer_state::{Pending, NEVER};
use super::{Endpoint, Phase, Rexmit};
use crate::config::Recovery;
use crate::consts::{ATO_MIN, BACKOFF_MAX, NS_PER_US, TIMEOUT_INIT, TIMEOUT_MIN};
use congestion::CaState;

impl Endpoint {
    pub(crate) fn run_timers(&mut self) {
        let now = self.now;
        if now >= self.timers.syn {
            self.timers.syn = NEVER;
            self.syn_timeout();
        }
        if now >= self.timers.delack {
            self.timers.delack = NEVER;
            self.delack_timeout();
        }
        if now >= self.timers.pace {
            // poll_transmit goes on by itself.
            self.timers.pace = NEVER;
            self.bursts.end_deferral();
        }
        if now >= self.timers.xmit {
            let pending = self.timers.pending;
            self.timers.stop_xmit();
            self.bursts.end_deferral();
            match pending {
                Pending::None => {}
                Pending::Retrans => self.retransmission_timeout(),
                Pending::LossProbe => self.send_loss_probe(),
                Pending::Reordering => self.rack_timeout(),
                Pending::WindowProbe => self.window_probe_timeout(),
            }
        }
        self.timers.recompute();
    }

    #[inline]
    pub(crate) fn rto_now(&self) -> u64 {
        self.timers.rto_ns(&self.rtt, &self.cfg)
    }

    /// Time at which the oldest segment times out, ns.
    #[inline]
    fn head_deadline(&self) -> u64 {
        self.ring.get(self.ring.head()).tx_ns.saturating_add(self.rto_now())
    }

    /// (Re)starts the retransmission timer (RFC 6298, 5.3; Linux tcp_rearm_rto).
    #[inline]
    pub(crate) fn rearm_rto(&mut self) {
        if self.ring.is_empty() {
            self.timers.stop_xmit();
            return;
        }
        let deadline = match self.timers.pending {
            // The time that a probe waited counts towards the RTO of the head.
            Pending::Reordering | Pending::LossProbe => self.head_deadline().max(self.now + 1),
            _ => self.now + self.rto_now(),
        };
        self.timers.arm_xmit(Pending::Retrans, deadline);
    }

    /// Arms the tail loss probe or, where there is none, the RTO (Linux tcp_set_xmit_timer).
    #[inline]
    pub(crate) fn set_xmit_timer(&mut self) {
        if !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
    }

    /// RFC 8985, 7.2: PTO = 2 srtt, plus the delayed-ACK allowance with one segment out; never beyond the RTO.
    #[inline]
    pub(crate) fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        if self.recovery != Recovery::Rack || self.ring.is_empty() || !self.fast_retransmit {
            return false;
        }
        let s = self.cc.sock();
        if s.ca_state != CaState::Open as u8 && s.ca_state != CaState::Cwr as u8 {
            return false;
        }
        let mut timeout = TIMEOUT_INIT.0;
        let srtt = self.rtt.srtt_us8();
        if srtt != 0 {
            timeout = self.probe_wait();
        }
        let mut deadline = self.now + timeout;
        let rto = if advancing_rto { self.now + self.rto_now() } else { self.head_deadline() };
        if rto > self.now {
            deadline = deadline.min(rto);
        }
        self.timers.arm_xmit(Pending::LossProbe, deadline);
        true
    }

    /// Time after which a probe goes where there is an RTT, ns.
    #[inline]
    pub(crate) fn probe_wait(&self) -> u64 {
        let more = if self.cc.sock().packets_out == 1 { self.cfg.rto_min.0 } else { TIMEOUT_MIN.0 };
        u64::from(self.rtt.srtt_us8() >> 2) * NS_PER_US + more
    }

    /// Arms the timer after new data, which ended a burst: [`Endpoint::rearm_rto`] where a probe was pending, and then
    /// [`Endpoint::schedule_loss_probe`].
    // Once per train.
    #[inline(always)]
    pub(crate) fn rearm_after_burst(&mut self) {
        let is_open = self.cc.sock().ca_state == CaState::Open as u8;
        if is_open && self.timers.pending == Pending::LossProbe && self.rtt.srtt_us8() != 0 {
            // Both with one look at the oldest segment.
            let head_tx_ns = self.ring.get(self.ring.head()).tx_ns;
            return self.rearm_probe(self.now, head_tx_ns);
        }
        if self.timers.pending == Pending::LossProbe {
            self.rearm_rto();
        }
        self.schedule_loss_probe(false);
    }

    /// A train has gone while the probe was armed: what [`Endpoint::rearm_rto`] and then
    /// [`Endpoint::schedule_loss_probe`] do. `head_tx_ns`: transmission of the oldest segment.
    ///
    /// The probe is the earlier of the two but where the RTO's time is past.
    #[inline]
    pub(crate) fn rearm_probe(&mut self, now: u64, head_tx_ns: u64) {
        let rto = head_tx_ns.saturating_add(self.rto_now());
        let mut deadline = now + self.probe_wait();
        let mut wake = self.timers.wake;
        if rto > now {
            deadline = deadline.min(rto);
        } else {
            wake = wake.min(now + 1);
        }
        self.timers.pending = Pending::LossProbe;
        self.timers.xmit = deadline;
        self.timers.wake = wake.min(deadline);
    }

    /// RFC 8985, 7.3: new data if there is some, else the last segment again (Linux tcp_send_loss_probe).
    fn send_loss_probe(&mut self) {
        self.timers.pending = Pending::LossProbe;
        if self.tlp_high_seq == 0 && !self.ring.is_empty() {
            self.tlp_retrans = false;
            self.tlp_probe = true;
            self.stats.tlp_probes += 1;
        }
        self.rearm_rto();
    }

    /// RFC 6298, 5.4 to 5.7 (Linux tcp_retransmit_timer).
    fn retransmission_timeout(&mut self) {
        if self.ring.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        self.enter_loss();
        self.retransmits += 1;
        self.timers.rto_shift = (self.timers.rto_shift + 1).min(BACKOFF_MAX);
        self.rexmit = Rexmit::Lost;
        self.forced = 1;
        let deadline = self.now + self.rto_now();
        self.timers.arm_xmit(Pending::Retrans, deadline);
    }

    /// RFC 9293, 3.8.6.1 (Linux tcp_probe_timer).
    fn window_probe_timeout(&mut self) {
        if !self.ring.is_empty() || self.nothing_to_send() {
            self.backoff = 0;
            return;
        }
        self.probe_pending = true;
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.arm_window_probe();
    }

    /// Next zero-window probe: the RTO doubled with each unanswered one (Linux tcp_probe0_when).
    pub(crate) fn arm_window_probe(&mut self) {
        let base = self.rto_now().max(self.cfg.rto_min.0);
        let wait = (base << self.backoff).min(self.cfg.rto_max.0);
        self.timers.arm_xmit(Pending::WindowProbe, self.now.saturating_add(wait));
    }

    fn delack_timeout(&mut self) {
        if self.phase != Phase::Open || !self.rx.ack_scheduled {
            return;
        }
        if self.rx.compressed > 0 {
            // Linux tcp_compressed_ack_kick.
        } else if self.rx.pingpong {
            self.rx.pingpong = false;
            self.rx.ato_ns = ATO_MIN.0;
        } else {
            // The peer did not send a second segment in time: wait longer for the next.
            self.rx.ato_ns = (self.rx.ato_ns << 1).min(self.rto_now());
        }
        self.rx.ack_now = true;
    }
}
