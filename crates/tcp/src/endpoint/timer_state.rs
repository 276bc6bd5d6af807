//! The deadlines of an endpoint.

use crate::config::Config;
use crate::consts::BACKOFF_MAX;
use crate::rtt::RttEstimator;

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// Purpose of the transmit timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Pending {
    /// Not armed.
    #[default]
    None,
    /// Retransmission time-out.
    Retrans,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window.
    Reordering,
    /// Zero-window probe.
    WindowProbe,
}

/// Deadlines, ns; [`NEVER`] when not armed.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Timers {
    pub pending: Pending,
    /// Doublings of the RTO since the last RTT sample.
    pub rto_shift: u32,
    pub xmit: u64,
    pub delack: u64,
    pub pace: u64,
    pub syn: u64,
    /// Not later than any of the above.
    pub wake: u64,
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            pending: Pending::None,
            xmit: NEVER,
            delack: NEVER,
            pace: NEVER,
            syn: NEVER,
            wake: NEVER,
            rto_shift: 0,
        }
    }
}

impl Timers {
    /// Stops everything.
    pub fn clear(&mut self) {
        *self = Timers::default();
    }

    /// RTO with its backoff, ns.
    #[inline]
    pub fn rto_ns(&self, rtt: &RttEstimator, cfg: &Config) -> u64 {
        if self.rto_shift == 0 {
            rtt.rto_ns()
        } else {
            (rtt.rto_ns() << self.rto_shift.min(BACKOFF_MAX)).min(cfg.rto_max.0)
        }
    }

    #[inline]
    pub fn arm_xmit(&mut self, pending: Pending, deadline: u64) {
        self.pending = pending;
        self.xmit = deadline;
        self.wake = self.wake.min(deadline);
    }

    #[inline]
    pub fn stop_xmit(&mut self) {
        self.pending = Pending::None;
        self.xmit = NEVER;
    }

    #[inline]
    pub fn arm_delack(&mut self, deadline: u64) {
        self.delack = deadline;
        self.wake = self.wake.min(deadline);
    }

    #[inline]
    pub fn arm_pace(&mut self, deadline: u64) {
        self.pace = deadline;
        self.wake = self.wake.min(deadline);
    }

    pub fn arm_syn(&mut self, deadline: u64) {
        self.syn = deadline;
        self.wake = self.wake.min(deadline);
    }

    pub fn recompute(&mut self) {
        self.wake = self.xmit.min(self.delack).min(self.pace).min(self.syn);
    }
}
