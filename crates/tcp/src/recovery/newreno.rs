//! Without SACK: duplicate ACKs counted as if each SACKed one segment (RFC 6582 in Linux's form; RFC 2581).

use crate::config::Recovery;
use crate::endpoint::Endpoint;
use congestion::{CaEvent, CaState};

impl Endpoint {
    /// A duplicate ACK: one more segment has left the network (tcp_add_reno_sack).
    pub(crate) fn add_reno_sack(&mut self, dupacks: u32, ece: bool) {
        if dupacks == 0 {
            return;
        }
        let prior = self.cc.sock().sacked_out;
        self.sock().sacked_out += dupacks;
        self.check_reno_reordering(0);
        let s = self.sock();
        let delivered = s.sacked_out.saturating_sub(prior);
        s.delivered = s.delivered.wrapping_add(delivered);
        if ece {
            s.delivered_ce = s.delivered_ce.wrapping_add(delivered);
        }
    }

    /// A cumulative ACK fills one hole; the rest was counted from duplicate ACKs (tcp_remove_reno_sacks).
    pub(crate) fn remove_reno_sacks(&mut self, acked: u32, ece: bool) {
        let s = self.sock();
        let delivered = acked.saturating_sub(s.sacked_out).max(1);
        s.delivered = s.delivered.wrapping_add(delivered);
        if ece {
            s.delivered_ce = s.delivered_ce.wrapping_add(delivered);
        }
        s.sacked_out = s.sacked_out.saturating_sub(acked - 1);
        self.check_reno_reordering(acked);
    }

    /// More duplicate ACKs than segments in flight: some were not about loss (tcp_check_reno_reordering).
    fn check_reno_reordering(&mut self, acked: u32) {
        let classic = self.recovery == Recovery::Reno;
        let s = self.sock();
        let holes = s.lost_out.max(1).min(s.packets_out);
        if s.sacked_out + holes <= s.packets_out {
            return;
        }
        s.sacked_out = s.packets_out - holes;
        if classic {
            // The threshold of RFC 2581 is three for ever.
            return;
        }
        let degree = (s.packets_out + acked).min(self.cfg.max_reordering);
        self.reordering = self.reordering.max(degree);
        self.reord_seen = true;
        self.stats.reordering_seen += 1;
    }

    /// RFC 2581, 3.2, step 5: the first ACK of new data ends fast recovery, whatever is missing beyond it (ns-2
    /// tcp-full.cc, pack_action with `reno_fastrecov_`; tcp-reno.cc, recv). The window is ssthresh already: duplicate
    /// ACKs have shrunk the pipe, not inflated the window.
    pub(crate) fn leave_reno_recovery(&mut self) {
        self.sock().sacked_out = 0;
        self.undo_marker = 0;
        self.retrans_stamp = 0;
        self.cc.cwnd_event(CaEvent::CompleteCwr);
        self.cc.set_state(CaState::Open);
        self.high_seq = self.nxt;
    }

    /// RFC 6582, 3.2: the first unacknowledged segment is lost on the third duplicate, and on each partial ACK.
    pub(crate) fn newreno_mark_lost(&mut self, una_advanced: bool) {
        let s = self.cc.sock();
        let state = s.ca_state;
        let recovery = CaState::Recovery as u8;
        if (state < recovery && s.sacked_out >= self.dupthresh()) || (state == recovery && una_advanced) {
            let head = self.ring.head();
            self.mark_lost(head);
            if state == recovery {
                self.forced = 1;
            }
        }
    }
}
