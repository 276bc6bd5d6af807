//! The state machine of loss recovery: Open, Disorder, CWR, Recovery, Loss (Linux tcp_fastretrans_alert).

use super::ack_state::{flag, AckState};
use super::{Endpoint, Rexmit};
use crate::config::Recovery;
use crate::scoreboard::tag;
use congestion::{CaEvent, CaState};

const OPEN: u8 = CaState::Open as u8;
const DISORDER: u8 = CaState::Disorder as u8;
const CWR: u8 = CaState::Cwr as u8;
const RECOVERY: u8 = CaState::Recovery as u8;
const LOSS: u8 = CaState::Loss as u8;

impl Endpoint {
    pub(crate) fn fastretrans_alert(&mut self, a: &mut AckState, dupacks: u32) {
        let ece = a.flag & flag::ECE != 0;
        let mut mark = dupacks > 0 || (a.flag & flag::DATA_SACKED != 0 && self.enough_dupacks());
        let mut entered = false;
        if self.ring.is_empty() && self.cc.sock().sacked_out > 0 {
            self.sock().sacked_out = 0;
        }
        if ece {
            self.prior_ssthresh = 0;
        }
        // The episode's end.
        if self.ca_state() == OPEN {
            self.retrans_stamp = 0;
        } else if self.recovery == Recovery::Reno && self.ca_state() == RECOVERY {
            if a.flag & flag::SND_UNA_ADVANCED != 0 {
                self.leave_reno_recovery();
            }
        } else if self.una >= self.high_seq {
            if self.ca_state() >= RECOVERY && self.is_like_ns2() {
                self.forget_scoreboard();
            }
            match self.ca_state() {
                // Something above high_seq must be acknowledged, or the window would grow in the same flight.
                CWR if self.una != self.high_seq => {
                    self.end_cwnd_reduction();
                    self.cc.set_state(CaState::Open);
                }
                RECOVERY => {
                    if self.is_reno() {
                        self.sock().sacked_out = 0;
                    }
                    if self.try_undo_recovery() {
                        return;
                    }
                    self.end_cwnd_reduction();
                }
                _ => {}
            }
        }
        match self.ca_state() {
            RECOVERY => {
                if a.flag & flag::SND_UNA_ADVANCED == 0 {
                    if self.is_reno() {
                        self.add_reno_sack(dupacks, ece);
                    }
                } else if self.try_undo_partial(a.prior_una, a.ecr, &mut mark) {
                    return;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(a.flag);
                }
                self.identify_loss(a);
                if self.ca_state() != RECOVERY {
                    if !self.time_to_recover() {
                        return;
                    }
                    self.enter_recovery(ece);
                    entered = true;
                }
            }
            LOSS => {
                self.process_loss(a, dupacks);
                self.identify_loss(a);
                if self.ca_state() != OPEN && a.flag & flag::LOST_RETRANS == 0 {
                    return;
                }
                // Undone, or a retransmission was lost: as in Open.
                if !self.alert_default(a, dupacks, ece, &mut entered) {
                    return;
                }
            }
            _ => {
                if !self.alert_default(a, dupacks, ece, &mut entered) {
                    return;
                }
            }
        }
        if self.recovery != Recovery::Rack && mark {
            self.update_scoreboard(entered);
        }
        self.rexmit = Rexmit::Lost;
    }

    /// Open, Disorder and CWR. Returns whether recovery was entered.
    fn alert_default(&mut self, a: &mut AckState, dupacks: u32, ece: bool, entered: &mut bool) -> bool {
        if self.is_reno() {
            if a.flag & flag::SND_UNA_ADVANCED != 0 {
                self.sock().sacked_out = 0;
            }
            self.add_reno_sack(dupacks, ece);
        }
        if self.ca_state() <= DISORDER {
            self.try_undo_dsack();
        }
        self.identify_loss(a);
        if !self.time_to_recover() {
            self.try_to_open(a.flag);
            return false;
        }
        self.enter_recovery(ece);
        *entered = true;
        true
    }

    /// RFC 5681, 3.2 (Linux tcp_dupack_heuristics, tcp_force_fast_retransmit).
    fn enough_dupacks(&self) -> bool {
        match self.lost_below_in_ns2() {
            Some(below) => below > self.ring.head(),
            None => self.cc.sock().sacked_out >= self.dupthresh(),
        }
    }

    fn time_to_recover(&self) -> bool {
        if !self.fast_retransmit {
            return false;
        }
        self.cc.sock().lost_out > 0 || (self.recovery != Recovery::Rack && self.enough_dupacks())
    }

    fn identify_loss(&mut self, a: &mut AckState) {
        if self.ring.is_empty() || !self.fast_retransmit {
            return;
        }
        match self.recovery {
            Recovery::Reno | Recovery::NewReno => self.newreno_mark_lost(a.flag & flag::SND_UNA_ADVANCED != 0),
            Recovery::Sack => {}
            Recovery::Rack => {
                let prior = self.cc.sock().retrans_out;
                if self.rack_mark_lost() {
                    a.flag &= !flag::SET_XMIT_TIMER;
                }
                if prior > self.cc.sock().retrans_out {
                    a.flag |= flag::LOST_RETRANS;
                }
            }
        }
    }

    pub(crate) fn try_to_open(&mut self, f: u32) {
        if !self.any_retrans_done() {
            self.retrans_stamp = 0;
        }
        if f & flag::ECE != 0 {
            self.enter_cwr();
        }
        if self.ca_state() != CWR {
            self.try_keep_open();
        }
    }

    /// Open, or Disorder while something is SACKed, lost or retransmitted.
    pub(crate) fn try_keep_open(&mut self) {
        let s = self.cc.sock();
        let state =
            if s.sacked_out + s.lost_out > 0 || self.any_retrans_done() { CaState::Disorder } else { CaState::Open };
        if self.ca_state() != state as u8 {
            self.cc.set_state(state);
            self.high_seq = self.nxt;
        }
    }

    pub(crate) fn any_retrans_done(&self) -> bool {
        self.cc.sock().retrans_out > 0
            || (!self.ring.is_empty() && self.ring.get(self.ring.head()).flags & tag::EVER_RETRANS != 0)
    }

    /// RFC 3168, 6.1.2: ECN-Echo reduces as a loss does, once per window.
    fn enter_cwr(&mut self) {
        self.prior_ssthresh = 0;
        if self.ca_state() < CWR {
            self.undo_marker = 0;
            self.init_cwnd_reduction();
            self.cc.set_state(CaState::Cwr);
            self.stats.ecn_reductions += 1;
        }
    }

    pub(crate) fn enter_recovery(&mut self, ece: bool) {
        self.stats.fast_retransmits += 1;
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            if !ece {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction();
        }
        self.cc.set_state(CaState::Recovery);
        if self.recovery != Recovery::Rack {
            // RFC 6582, 3.2, step 2, and RFC 6675, 5, step 4.3: the first retransmission goes whatever the pipe.
            self.forced = 1;
        }
    }

    /// After a time-out: what is in flight counts as lost (Linux tcp_enter_loss).
    pub(crate) fn enter_loss(&mut self) {
        let state = self.ca_state();
        let new_recovery = state < RECOVERY;
        let reno = self.recovery == Recovery::Reno;
        if reno && state == RECOVERY {
            // ns-2 halves the inflated window, as RFC 2581, 3.1, halves what is in flight.
            let s = self.sock();
            s.snd_cwnd = s.snd_cwnd.saturating_add(s.sacked_out);
        }
        self.timeout_mark_lost();
        if reno || state <= DISORDER || self.una >= self.high_seq || (state == LOSS && self.retransmits == 0) {
            self.prior_ssthresh = self.current_ssthresh();
            self.forget_unused_window();
            let s = self.sock();
            s.prior_cwnd = s.snd_cwnd;
            let ssthresh = self.cc.ssthresh();
            self.sock().snd_ssthresh = ssthresh;
            self.stats.cwnd_reductions += 1;
            self.cc.cwnd_event(CaEvent::Loss);
            self.init_undo();
        }
        let s = self.sock();
        s.snd_cwnd = s.in_flight() + 1;
        s.snd_cwnd_cnt = 0;
        self.cwnd_stamp_ns = self.now;
        // A time-out in spite of many duplicate ACKs: reordering was overestimated.
        if state <= DISORDER && self.cc.sock().sacked_out >= self.cfg.reordering {
            self.reordering = self.reordering.min(self.cfg.reordering);
        }
        self.cc.set_state(CaState::Loss);
        self.high_seq = self.nxt;
        self.tlp_high_seq = 0;
        self.queue_cwr();
        self.frto = self.cfg.frto && !reno && !self.is_like_ns2() && (new_recovery || self.retransmits > 0);
    }

    /// One walk per time-out (Linux tcp_timeout_mark_lost).
    fn timeout_mark_lost(&mut self) {
        if self.is_reno() {
            self.sock().sacked_out = 0;
        }
        self.lost.clear();
        self.copies.clear();
        let head = self.ring.head();
        for index in head..self.ring.tail() {
            self.stats.scoreboard_steps += 1;
            let e = self.ring.get(index);
            // A segment sent less than an RTT ago may still be on its way.
            if self.recovery == Recovery::Rack && index != head && self.rack_not_yet(e) {
                if e.flags & (tag::LOST | tag::RETRANS) == tag::LOST {
                    self.lost.push(index);
                }
                continue;
            }
            if e.flags & (tag::LOST | tag::RETRANS) == tag::LOST {
                self.lost.push(index);
            } else {
                self.mark_lost(index);
            }
        }
    }

    /// An ACK after a time-out, with F-RTO's test (RFC 5682, 3.1; Linux tcp_process_loss).
    fn process_loss(&mut self, a: &mut AckState, dupacks: u32) {
        let recovered = self.una >= self.high_seq;
        if a.flag & flag::SND_UNA_ADVANCED != 0 && self.try_undo_loss(a.ecr, false) {
            return;
        }
        if self.frto {
            if a.flag & flag::ORIG_SACK_ACKED != 0 && self.try_undo_loss(a.ecr, true) {
                return;
            }
            if self.nxt > self.high_seq {
                if a.flag & flag::DATA_SACKED != 0 || dupacks > 0 {
                    self.frto = false;
                }
            } else if a.flag & flag::SND_UNA_ADVANCED != 0 && !recovered {
                self.high_seq = self.nxt;
                if !self.nothing_to_send() && self.wnd_end > self.nxt {
                    self.rexmit = Rexmit::New;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return;
        }
        if self.is_reno() {
            if self.nxt > self.high_seq && dupacks > 0 {
                self.add_reno_sack(dupacks, a.flag & flag::ECE != 0);
            } else if a.flag & flag::SND_UNA_ADVANCED != 0 {
                self.sock().sacked_out = 0;
            }
        }
        self.rexmit = Rexmit::Lost;
    }
}
