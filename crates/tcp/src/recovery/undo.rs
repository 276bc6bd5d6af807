//! Taking back a reduction that was not called for: by timestamps (Eifel, RFC 3522 and RFC 4015), by DSACK (RFC 3708),
//! by F-RTO (RFC 5682).

use crate::config::Recovery;
use crate::consts::{ecn, RACK_RECOVERY_THRESH};
use crate::endpoint::Endpoint;
use crate::scoreboard::tag;
use congestion::CaState;

/// `a` before `b` on a clock that wraps at 2^32 ms.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Endpoint {
    /// An episode begins (tcp_init_undo).
    pub(crate) fn init_undo(&mut self) {
        self.undo_marker = self.una;
        let retrans = i64::from(self.cc.sock().retrans_out);
        self.undo_retrans = if retrans > 0 { retrans } else { -1 };
        if self.tlp_high_seq != 0 && self.tlp_retrans {
            self.undo_retrans = self.undo_retrans.max(0) + 1;
        }
    }

    /// The ACK was caused by an original sent before the first retransmission (RFC 3522, 3.2), or none was sent.
    fn packet_delayed(&self, ecr: u32) -> bool {
        if self.retrans_stamp != 0 {
            return ecr != 0 && before(ecr, self.retrans_stamp);
        }
        // Without SACK, `holds_state` has cleared it although something was retransmitted.
        !(self.is_reno() && self.una >= self.high_seq)
    }

    /// The era of RFC 2581 took nothing back, nor does ns-2.
    fn undoes(&self) -> bool {
        self.cfg.undo && self.recovery != Recovery::Reno && !self.is_like_ns2()
    }

    fn may_undo(&self, ecr: u32) -> bool {
        self.undoes() && self.undo_marker != 0 && (self.undo_retrans == 0 || self.packet_delayed(ecr))
    }

    fn count_undo(&mut self) {
        if self.undo_retrans == 0 {
            self.stats.undos_dsack += 1;
        } else {
            self.stats.undos_eifel += 1;
        }
    }

    /// Back to the window before (tcp_undo_cwnd_reduction). Unmarking walks the ring, once per undo.
    fn undo_cwnd_reduction(&mut self, unmark: bool) {
        if unmark {
            let mut left = self.cc.sock().lost_out;
            let mut index = self.ring.head();
            while left > 0 && index < self.ring.tail() {
                let e = self.ring.get_mut(index);
                if e.flags & tag::LOST != 0 {
                    e.flags &= !tag::LOST;
                    left -= 1;
                }
                index += 1;
                self.stats.scoreboard_steps += 1;
            }
            self.sock().lost_out = 0;
            self.lost.clear();
            // Segments that a time-out marked are judged anew. Those of RACK are not: it takes them off its list (Linux
            // tcp_rack_detect_loss, list_del_init), and taking the mark back does not put it there again.
            if self.ca_state() == CaState::Loss as u8 {
                self.rack.cursor = self.ring.head();
            }
            self.mark_cursor = self.ring.head();
            self.sacked_above = self.cc.sock().sacked_out;
        }
        if self.prior_ssthresh != 0 {
            let cwnd = self.cc.undo_cwnd();
            let prior = self.prior_ssthresh;
            let s = self.sock();
            s.snd_cwnd = cwnd.clamp(1, s.snd_cwnd_clamp);
            if prior > s.snd_ssthresh {
                s.snd_ssthresh = prior;
                s.ecn_flags &= !ecn::QUEUE_CWR;
            }
        }
        self.cwnd_stamp_ns = self.now;
        self.undo_marker = 0;
        self.rack.advanced = true;
    }

    /// Without SACK, recovery is left only when something above high_seq is acknowledged: duplicate ACKs of its own
    /// retransmissions would start it again (RFC 6582, 4.1; tcp_is_non_sack_preventing_reopen).
    fn holds_state(&mut self) -> bool {
        if self.una == self.high_seq && self.is_reno() {
            if !self.any_retrans_done() {
                self.retrans_stamp = 0;
            }
            return true;
        }
        false
    }

    /// The episode is over (tcp_try_undo_recovery). Returns whether the state is held.
    pub(crate) fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo(self.last_ecr) {
            self.count_undo();
            self.undo_cwnd_reduction(false);
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        if self.holds_state() {
            return true;
        }
        self.cc.set_state(CaState::Open);
        false
    }

    /// Every retransmission was reported as a duplicate (tcp_try_undo_dsack).
    pub(crate) fn try_undo_dsack(&mut self) -> bool {
        if !self.undoes() || self.undo_marker == 0 || self.undo_retrans != 0 {
            return false;
        }
        self.rack.reo_wnd_persist = (self.rack.reo_wnd_persist + 1).min(RACK_RECOVERY_THRESH);
        self.undo_cwnd_reduction(false);
        self.stats.undos_dsack += 1;
        true
    }

    /// A partial ACK that no retransmission can have caused (tcp_try_undo_partial). Returns whether the ACK needs no
    /// more.
    pub(crate) fn try_undo_partial(&mut self, prior_una: u64, ecr: u32, mark: &mut bool) -> bool {
        if !self.undoes() || self.undo_marker == 0 || !self.packet_delayed(ecr) {
            return false;
        }
        if !self.is_reno() {
            self.check_sack_reordering(prior_una);
        }
        if self.cc.sock().retrans_out > 0 {
            return true;
        }
        if !self.any_retrans_done() {
            self.retrans_stamp = 0;
        }
        self.stats.undos_eifel += 1;
        self.undo_cwnd_reduction(true);
        self.try_keep_open();
        *mark = false;
        false
    }

    /// A time-out was spurious (tcp_try_undo_loss).
    pub(crate) fn try_undo_loss(&mut self, ecr: u32, by_frto: bool) -> bool {
        if !by_frto && !self.may_undo(ecr) {
            return false;
        }
        if by_frto {
            self.stats.undos_frto += 1;
        } else {
            self.count_undo();
        }
        self.undo_cwnd_reduction(true);
        self.retransmits = 0;
        if self.holds_state() {
            return true;
        }
        if by_frto || !self.is_reno() {
            self.cc.set_state(CaState::Open);
        }
        true
    }
}
