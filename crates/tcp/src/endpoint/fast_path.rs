//! The common case of an ACK: it acknowledges whole segments in order, nothing is SACKed, lost or retransmitted.
//!
//! The same steps in the same order as in `ack`, without those that do nothing in this case. A test compares both.

use super::Endpoint;
use crate::config::Recovery;
use crate::consts::NS_PER_US;
use crate::segment::{flags, Segment};
use congestion::{ack_flags, AckSample, CaState};

impl Endpoint {
    /// Returns whether the ACK qualifies for the fast path.
    #[inline]
    pub(crate) fn is_fast_path_ack(&self, seg: &Segment) -> bool {
        let s = self.cc.sock();
        seg.ack > self.una
            && seg.ack <= self.nxt
            && seg.sack_count == 0
            && seg.flags & flags::ECE == 0
            && u64::from(seg.window) == self.snd_wnd
            && s.ca_state == CaState::Open as u8
            && s.sacked_out | s.lost_out | s.retrans_out == 0
            && self.tlp_high_seq == 0
            && self.una >= self.retrans_end
            && self.rack.keeps_reo_wnd()
            && !self.cc.has_cong_control()
    }

    /// Processes such an ACK; false, and nothing is changed, where it ends within the oldest segment.
    #[inline]
    pub(crate) fn handle_fast_path_ack(&mut self, seg: &Segment) -> bool {
        let ack = seg.ack;
        let popped = if ack < self.nxt { self.ring.pop_some(ack) } else { self.ring.pop_all() };
        let Some(popped) = popped else { return false };
        let in_flight = self.cc.sock().packets_out;
        self.last_ecr = if self.timestamps { seg.ts_ecr } else { 0 };
        self.retransmits = 0;
        self.snd_wl1 = seg.seq;
        self.una = ack;
        self.wnd_end = ack + self.snd_wnd;
        self.sock().snd_una = ack as u32;
        self.cc.in_ack_event(ack_flags::WIN_UPDATE);

        // The FIN is the last of all.
        self.fin_acked |= self.fin_sent && ack == self.nxt;
        self.mark_cursor = self.mark_cursor.max(self.ring.head());
        if self.recovery == Recovery::Rack {
            self.rack.advanced = true;
            self.rack.rtt_ns = self.now - popped.last_tx_ns;
            if popped.last_tx_ns >= self.rack.xmit_ns {
                self.rack.xmit_ns = popped.last_tx_ns;
                self.rack.end_seq = popped.end;
            }
        }
        let rtt_us = (self.now - popped.first_tx_ns) / NS_PER_US;
        let newest_us = (self.now - popped.last_tx_ns) / NS_PER_US;
        self.rtt.sample_min(self.now_us, newest_us);
        self.rtt.sample(rtt_us, ack, self.nxt);
        self.timers.rto_shift = 0;
        self.stats.rtt_sample(rtt_us);
        let (srtt, min, now_us) = (self.rtt.srtt_us8(), self.rtt.min_us(), self.now_us);
        let s = self.cc.sock_mut();
        let acked = popped.count;
        s.packets_out -= acked;
        s.delivered = s.delivered.wrapping_add(acked);
        s.srtt_us = srtt;
        s.min_rtt_us = min;
        if s.app_limited != 0 && (s.delivered.wrapping_sub(s.app_limited) as i32) > 0 {
            s.app_limited = 0;
        }
        s.first_tx_mstamp_us = popped.last_tx_ns / NS_PER_US;
        if self.nospace {
            self.nospace = !self.has_room();
        }
        let sample = AckSample { pkts_acked: acked, rtt_us: i32::try_from(newest_us).unwrap_or(i32::MAX), in_flight };
        self.cc.pkts_acked(&sample);
        self.set_xmit_timer();
        self.sock().delivered_mstamp_us = now_us;
        self.grow(ack, acked);
        self.refresh_pacing_rate();
        true
    }
}
