//! Window reduction: proportional (RFC 6937 in Linux's form), or at once with the older recoveries.

use crate::config::Recovery;
use crate::consts::ecn;
use crate::endpoint::ack_state::flag;
use crate::endpoint::Endpoint;
use congestion::{CaEvent, CaState, CcSock, INFINITE_SSTHRESH};

/// Progress of a reduction when an ACK has come, segments.
#[derive(Clone, Copy, Debug)]
pub struct PrrStep {
    /// Delivered since it began, this ACK's among them.
    pub delivered: u32,
    /// Sent since it began.
    pub out: u32,
    /// Delivered by this ACK.
    pub acked_sacked: u32,
    /// Nothing more was lost: below ssthresh the window may grow as in slow start.
    pub speeds_up: bool,
}

/// The window during a proportional reduction (RFC 6937; Linux tcp_cwnd_reduction), segments. `prior_cwnd` is not 0.
#[inline]
pub fn prr_window(s: &CcSock, step: PrrStep) -> u32 {
    let flight = i64::from(s.in_flight());
    let delta = i64::from(s.snd_ssthresh) - flight;
    let (delivered, out) = (i64::from(step.delivered), i64::from(step.out));
    let count = if delta < 0 {
        let dividend = u64::from(s.snd_ssthresh) * u64::from(step.delivered) + u64::from(s.prior_cwnd) - 1;
        (dividend / u64::from(s.prior_cwnd)) as i64 - out
    } else {
        let grow = (delivered - out).max(i64::from(step.acked_sacked)) + i64::from(step.speeds_up);
        grow.min(delta)
    };
    // The fast retransmit itself goes.
    (flight + count.max(i64::from(step.out == 0))).max(1) as u32
}

impl Endpoint {
    /// Start of an episode (tcp_init_cwnd_reduction).
    pub(crate) fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.nxt;
        self.tlp_high_seq = 0;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.forget_unused_window();
        let s = self.sock();
        s.snd_cwnd_cnt = 0;
        s.prior_cwnd = s.snd_cwnd;
        let ssthresh = self.cc.ssthresh();
        self.sock().snd_ssthresh = ssthresh;
        self.stats.cwnd_reductions += 1;
        self.queue_cwr();
    }

    /// Segments that an ACK allows during the reduction (tcp_cwnd_reduction). Before RACK: RFC 6675, 5, step 4.2, and
    /// RFC 6582, 3.2, step 3, set the window to ssthresh at once; duplicate ACKs then shrink the pipe instead of
    /// inflating the window.
    pub(crate) fn cwnd_reduction(&mut self, acked_sacked: u32, newly_lost: u32, f: u32) {
        if self.recovery != Recovery::Rack {
            let s = self.sock();
            s.snd_cwnd = s.snd_ssthresh.min(s.snd_cwnd).max(1);
            return;
        }
        if acked_sacked == 0 || self.cc.sock().prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += acked_sacked;
        let step = PrrStep {
            delivered: self.prr_delivered,
            out: self.prr_out,
            acked_sacked,
            // Slow start below ssthresh only while the retransmissions arrive (Linux's PRR-SSRB heuristic).
            speeds_up: f & flag::SND_UNA_ADVANCED != 0 && newly_lost == 0,
        };
        let window = prr_window(self.cc.sock(), step);
        self.sock().snd_cwnd = window;
    }

    /// End of an episode (tcp_end_cwnd_reduction).
    pub(crate) fn end_cwnd_reduction(&mut self) {
        if self.cc.has_cong_control() {
            return;
        }
        let s = self.cc.sock();
        if s.snd_ssthresh < INFINITE_SSTHRESH && (s.ca_state == CaState::Cwr as u8 || self.undo_marker != 0) {
            let ssthresh = s.snd_ssthresh;
            self.sock().snd_cwnd = ssthresh.max(1);
            self.cwnd_stamp_ns = self.now;
        }
        self.cc.cwnd_event(CaEvent::CompleteCwr);
    }

    /// RFC 3168, 6.1.2: tell the receiver with the next new segment.
    pub(crate) fn queue_cwr(&mut self) {
        let s = self.sock();
        if s.ecn_flags & ecn::OK != 0 {
            s.ecn_flags |= ecn::QUEUE_CWR;
        }
    }
}
