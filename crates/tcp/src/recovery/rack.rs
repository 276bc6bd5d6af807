//! RACK-TLP (RFC 8985; Linux tcp_recovery.c): a segment is lost when one sent later has arrived, and time has passed.
//!
//! No walk over the scoreboard. Original transmissions lie in the ring in the order of their time: a cursor judges each
//! once. Retransmissions queue in the order of theirs.

use super::rack_state::Resent;
use crate::config::Recovery;
use crate::consts::{NS_PER_US, RACK_RECOVERY_THRESH, RACK_REO_WND_STEPS_MAX, TIMEOUT_MIN};
use crate::endpoint::ack_state::{flag, AckState};
use crate::endpoint::timer_state::Pending;
use crate::endpoint::{Endpoint, Rexmit};
use crate::scoreboard::{tag, Entry};
use congestion::CaState;
use std::collections::VecDeque;

/// Room for retransmissions that is kept when none is in flight; more is given back.
const RESENT_KEPT: usize = 4096;

impl Endpoint {
    /// `e` has been delivered (RFC 8985, 6.2, steps 1 and 2).
    #[inline]
    pub(crate) fn rack_advance(&mut self, e: &Entry) {
        let rtt_ns = self.now - e.tx_ns;
        if e.flags & (tag::RETRANS | tag::EVER_RETRANS) != 0 && rtt_ns / NS_PER_US < u64::from(self.rtt.min_us()) {
            // Too quick for the copy: the original has arrived.
            return;
        }
        self.rack.advanced = true;
        self.rack.rtt_ns = rtt_ns;
        let (tx_ns, end) = (e.tx_ns, e.end());
        if tx_ns > self.rack.xmit_ns || (tx_ns == self.rack.xmit_ns && end > self.rack.end_seq) {
            self.rack.xmit_ns = tx_ns;
            self.rack.end_seq = end;
        }
    }

    /// RFC 8985, 6.2, step 4 (tcp_rack_reo_wnd), ns.
    fn rack_reo_wnd(&self) -> u64 {
        if let Some(hinted) = self.hinted_reo_wnd() {
            return hinted;
        }
        if !self.reord_seen {
            // No reordering ever seen: in recovery, or with enough duplicate ACKs, do not wait.
            let s = self.cc.sock();
            let enough = s.sacked_out >= self.reordering && !self.ignores_dupthresh();
            if s.ca_state >= CaState::Recovery as u8 || enough {
                return 0;
            }
        }
        let quarter = u64::from(self.rtt.min_us() >> 2);
        let srtt = u64::from(self.rtt.srtt_us8() >> 3);
        (quarter * u64::from(self.rack.reo_wnd_steps)).min(srtt) * NS_PER_US
    }

    /// Sent less than an RTT ago.
    pub(crate) fn rack_not_yet(&self, e: &Entry) -> bool {
        e.tx_ns + self.rack.rtt_ns > self.now
    }

    /// RFC 8985, 6.2, step 5. Returns whether something remains to be waited for.
    fn rack_detect_loss(&mut self) -> bool {
        let wait = self.rack.rtt_ns + self.rack_reo_wnd();
        let mut waiting = false;
        self.rack.cursor = self.rack.cursor.max(self.ring.head());
        while self.rack.cursor < self.ring.tail() {
            let index = self.rack.cursor;
            self.stats.scoreboard_steps += 1;
            let e = self.ring.get(index);
            if e.flags & (tag::SACKED | tag::LOST | tag::RETRANS | tag::EVER_RETRANS) == 0 {
                if !self.rack.sent_before(e.tx_ns, e.end()) {
                    break;
                }
                if e.tx_ns + wait > self.now {
                    waiting = true;
                    break;
                }
                self.mark_lost(index);
            }
            self.rack.cursor += 1;
        }
        while let Some(&Resent { index, tx_ns }) = self.rack.resent.front() {
            self.stats.scoreboard_steps += 1;
            if index >= self.ring.head() {
                let e = self.ring.get(index);
                if e.tx_ns == tx_ns && e.flags & (tag::SACKED | tag::RETRANS) == tag::RETRANS {
                    // At one instant, which virtual time allows, numbers do not tell the order of copies and originals:
                    // wait for something surely later.
                    if tx_ns >= self.rack.xmit_ns {
                        break;
                    }
                    if tx_ns + wait > self.now {
                        waiting = true;
                        break;
                    }
                    self.mark_lost(index);
                    if self.ring.get(index).flags & tag::RETRANS != 0 {
                        // A probe's copy, now lost together with its original: judged again as a copy.
                        self.mark_lost(index);
                    }
                }
            }
            self.rack.resent.pop_front();
        }
        if self.rack.resent.is_empty() && self.rack.resent.capacity() > RESENT_KEPT {
            self.rack.resent = VecDeque::new();
        }
        waiting
    }

    /// Marks what is lost; arms the reordering timer for what may be (tcp_rack_mark_lost).
    pub(crate) fn rack_mark_lost(&mut self) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        if !self.rack_detect_loss() {
            return false;
        }
        // Linux waits for the last of those sent before the most recent delivery; that one's own time bounds it from
        // above, by no more than the spacing of segments, and needs no walk.
        let wait = self.rack.rtt_ns + self.rack_reo_wnd() + TIMEOUT_MIN.0;
        let deadline = (self.rack.xmit_ns + wait).max(self.now + TIMEOUT_MIN.0).min(self.now + self.rto_now());
        self.timers.arm_xmit(Pending::Reordering, deadline);
        true
    }

    /// RFC 8985, 6.3 (tcp_rack_reo_timeout).
    pub(crate) fn rack_timeout(&mut self) {
        let prior = self.cc.sock().in_flight();
        self.rack_detect_loss();
        if prior != self.cc.sock().in_flight() {
            if self.ca_state() != CaState::Recovery as u8 {
                self.enter_recovery(false);
                if !self.cc.has_cong_control() {
                    self.cwnd_reduction(1, 1, 0);
                }
            }
            self.rexmit = Rexmit::Lost;
        }
        if self.timers.pending != Pending::Retrans {
            self.timers.pending = Pending::Reordering;
            self.rearm_rto();
        }
    }

    /// RFC 8985, 6.2, step 4: DSACKs widen the reordering window, 16 recoveries without narrow it again.
    #[inline]
    pub(crate) fn rack_update_reo_wnd(&mut self, a: &AckState) {
        if self.recovery == Recovery::Rack && a.newest.valid {
            self.rack_adjust_reo_wnd(a.newest.entry.delivered);
        }
    }

    /// `prior`: `delivered` when the newest segment delivered was sent.
    pub(crate) fn rack_adjust_reo_wnd(&mut self, prior: u32) {
        // At most one step per round trip.
        if (prior.wrapping_sub(self.rack.last_delivered) as i32) < 0 {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.reo_wnd_steps = (self.rack.reo_wnd_steps + 1).min(RACK_REO_WND_STEPS_MAX);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = self.cc.sock().delivered;
            self.rack.reo_wnd_persist = RACK_RECOVERY_THRESH;
        } else if self.rack.reo_wnd_persist == 0 {
            self.rack.reo_wnd_steps = 1;
        }
    }

    /// RFC 8985, 7.4: was the probe's loss real (tcp_process_tlp_ack)?
    pub(crate) fn process_tlp_ack(&mut self, ack: u64, f: u32) {
        if ack < self.tlp_high_seq {
            return;
        }
        if !self.tlp_retrans || f & flag::DSACK_TLP != 0 {
            // New data arrived, or both the original and the probe did.
            self.tlp_high_seq = 0;
        } else if ack > self.tlp_high_seq {
            // The probe filled a hole: a loss, so a reduction.
            self.init_cwnd_reduction();
            self.cc.set_state(CaState::Cwr);
            self.end_cwnd_reduction();
            self.try_keep_open();
        } else if f & (flag::SND_UNA_ADVANCED | flag::NOT_DUP | flag::DATA_SACKED) == 0 {
            // A duplicate ACK: both arrived.
            self.tlp_high_seq = 0;
        }
    }
}
