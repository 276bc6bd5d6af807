//! Processing of an ACK (Linux tcp_ack, tcp_clean_rtx_queue), in Linux's order, since algorithms rely on it.

use super::ack_state::{flag, AckState, Newest};
use super::timer_state::Pending;
use super::{carries_data, Endpoint, Rexmit};
use crate::config::{Count, Recovery};
use crate::consts::{ecn, NS_PER_US};
use crate::scoreboard::tag;
use crate::segment::{flags, Segment};
use congestion::{ack_flags, AckSample, CaState};

impl Endpoint {
    /// A segment for an open connection.
    #[inline]
    pub(crate) fn segment_open(&mut self, seg: &Segment) {
        if seg.flags & flags::SYN != 0 {
            // A SYN-ACK again: our last ACK of the handshake was lost.
            self.rx.ack_first = seg.has(flags::ACK);
            return;
        }
        let data = carries_data(seg);
        if !data && seg.seq < self.rx.wup {
            // Unacceptable: a window probe, most likely (RFC 9293, 3.10.7.4).
            self.rx.ack_scheduled = true;
            self.rx.ack_now = true;
            return;
        }
        if self.timestamps && seg.seq <= self.rx.wup {
            self.rx.ts_recent = seg.ts_val;
        }
        let nothing_new = data
            && seg.ack == self.una
            && seg.sack_count == 0
            && seg.flags & flags::ECE == 0
            && u64::from(seg.window) == self.snd_wnd;
        if !nothing_new {
            #[cfg(test)]
            let allowed = !self.slow_path_only;
            #[cfg(not(test))]
            let allowed = true;
            if allowed && !data && self.is_fast_path_ack(seg) && self.handle_fast_path_ack(seg) {
                return;
            }
            self.acknowledge(seg, data);
        }
        if data {
            self.receive_data(seg);
        }
    }

    #[inline(never)]
    fn acknowledge(&mut self, seg: &Segment, data: bool) {
        if seg.ack > self.nxt {
            return;
        }
        self.last_ecr = if self.timestamps { seg.ts_ecr } else { 0 };
        let s = self.cc.sock();
        let mut a = AckState {
            flag: if data { flag::DATA } else { 0 },
            prior_una: self.una,
            prior_fack: self.highest_sack(),
            prior_in_flight: s.in_flight(),
            prior_delivered: s.delivered,
            prior_delivered_ce: s.delivered_ce,
            prior_lost: s.lost,
            ecr: self.last_ecr,
            reord: self.nxt,
            first_sackt: 0,
            last_sackt: 0,
            ca_rtt_us: -1,
            newest: Newest::default(),
        };
        if seg.ack < self.una {
            self.old_ack(seg, &mut a);
            return;
        }
        let prior_packets = s.packets_out;
        if seg.ack > self.una {
            a.flag |= flag::SND_UNA_ADVANCED;
            self.retransmits = 0;
        }
        let plain = seg.sack_count == 0
            && seg.flags & flags::ECE == 0
            && a.flag & flag::SND_UNA_ADVANCED != 0
            && !data
            && u64::from(seg.window) == self.snd_wnd;
        if plain {
            self.snd_wl1 = seg.seq;
            self.advance_una(seg.ack);
            a.flag |= flag::WIN_UPDATE;
            self.cc.in_ack_event(ack_flags::WIN_UPDATE);
        } else {
            let mut event = ack_flags::SLOWPATH;
            if self.update_send_window(seg) {
                a.flag |= flag::WIN_UPDATE;
                event |= ack_flags::WIN_UPDATE;
            }
            if seg.sack_count > 0 && !self.is_reno() {
                self.sacktag(seg, &mut a);
            }
            if seg.flags & flags::ECE != 0 && self.cc.sock().ecn_flags & ecn::OK != 0 {
                a.flag |= flag::ECE;
                event |= ack_flags::ECE;
            }
            self.advance_una(seg.ack);
            self.cc.in_ack_event(event);
        }
        if prior_packets == 0 {
            self.no_queue(&mut a);
            return;
        }
        self.clean_rtx_queue(&mut a);
        self.rack_update_reo_wnd(&a);
        if self.tlp_high_seq != 0 {
            self.process_tlp_ack(seg.ack, a.flag);
        }
        self.rexmit = Rexmit::None;
        if self.is_dubious(a.flag) {
            let mut dupacks = 0;
            if a.flag & (flag::SND_UNA_ADVANCED | flag::NOT_DUP | flag::DSACKING_ACK) == 0 {
                self.stats.duplicate_acks_received += 1;
                dupacks = 1;
            }
            self.fastretrans_alert(&mut a, dupacks);
        }
        if a.flag & flag::SET_XMIT_TIMER != 0 {
            self.set_xmit_timer();
        }
        self.congestion_control(seg.ack, &a);
    }

    /// An ACK overtaken by a later one: only its SACK blocks tell something.
    fn old_ack(&mut self, seg: &Segment, a: &mut AckState) {
        if seg.sack_count == 0 || self.is_reno() {
            return;
        }
        self.sacktag(seg, a);
        if self.ring.is_empty() {
            return;
        }
        let before = self.rexmit;
        self.rexmit = Rexmit::None;
        self.fastretrans_alert(a, 0);
        if self.rexmit == Rexmit::None {
            self.rexmit = before;
        }
    }

    /// Nothing was in flight: the ACK may open the window.
    fn no_queue(&mut self, a: &mut AckState) {
        if a.flag & flag::DSACKING_ACK != 0 {
            self.fastretrans_alert(a, 0);
        }
        if self.nothing_to_send() {
            return;
        }
        let next = (self.write_seq - self.nxt.min(self.write_seq)).min(u64::from(self.mss));
        if self.nxt + next <= self.wnd_end {
            self.backoff = 0;
            if self.timers.pending == Pending::WindowProbe {
                self.timers.stop_xmit();
            }
        } else if self.timers.pending == Pending::WindowProbe {
            self.arm_window_probe();
        }
    }

    #[inline]
    fn advance_una(&mut self, ack: u64) {
        self.una = ack;
        self.sock().snd_una = ack as u32;
        self.wnd_end = ack + self.snd_wnd;
    }

    /// RFC 9293, 3.10.7.4 (Linux tcp_ack_update_window).
    fn update_send_window(&mut self, seg: &Segment) -> bool {
        let window = u64::from(seg.window);
        if seg.ack > self.una || seg.seq > self.snd_wl1 || (seg.seq == self.snd_wl1 && window > self.snd_wnd) {
            self.snd_wl1 = seg.seq;
            let changed = window != self.snd_wnd;
            if changed {
                self.snd_wnd = window;
                self.max_window = self.max_window.max(window);
            }
            self.wnd_end = seg.ack + window;
            return true;
        }
        false
    }

    /// Takes what is acknowledged off the ring; measures.
    #[inline]
    fn clean_rtx_queue(&mut self, a: &mut AckState) {
        let una = self.una;
        let sack = !self.is_reno();
        let rack = self.recovery == Recovery::Rack;
        let (mut acked, mut sacked, mut lost, mut retrans, mut delivered) = (0u32, 0u32, 0u32, 0u32, 0u32);
        let (mut first_ackt, mut last_ackt) = (None, 0);
        let prior_sacked = self.cc.sock().sacked_out;
        while !self.ring.is_empty() {
            let index = self.ring.head();
            let e = *self.ring.get(index);
            if e.end() > una {
                break;
            }
            if e.flags & (tag::RETRANS | tag::EVER_RETRANS) != 0 {
                if self.recovery == Recovery::Sack {
                    self.copy_arrived(index);
                }
                retrans += u32::from(e.flags & tag::RETRANS != 0);
                a.flag |= flag::RETRANS_DATA_ACKED;
            } else if e.flags & tag::SACKED == 0 {
                last_ackt = e.tx_ns;
                first_ackt.get_or_insert(e.tx_ns);
                a.reord = a.reord.min(e.seq);
                if e.end() <= self.high_seq {
                    a.flag |= flag::ORIG_SACK_ACKED;
                }
            }
            if e.flags & tag::SACKED != 0 {
                sacked += 1;
            } else if sack {
                delivered += 1;
                if rack {
                    self.rack_advance(&e);
                }
            }
            lost += u32::from(e.flags & tag::LOST != 0);
            if index >= self.mark_cursor {
                self.mark_cursor = index + 1;
                self.sacked_above -= u32::from(e.flags & tag::SACKED != 0);
            }
            if e.flags & tag::FIN != 0 {
                self.fin_acked = true;
            }
            a.newest.delivered(&e, self.ring.rate(index));
            acked += 1;
            self.ring.pop_front();
        }
        let s = self.cc.sock_mut();
        s.packets_out -= acked;
        s.lost_out -= lost;
        s.retrans_out -= retrans;
        if sack {
            s.sacked_out -= sacked;
            s.delivered = s.delivered.wrapping_add(delivered);
            if a.flag & flag::ECE != 0 {
                s.delivered_ce = s.delivered_ce.wrapping_add(delivered);
            }
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(una);
        }
        let (mut seq_rtt_us, mut sack_rtt_us) = (-1i64, -1i64);
        if let (Some(first), 0) = (first_ackt, a.flag & flag::RETRANS_DATA_ACKED) {
            seq_rtt_us = ((self.now - first) / NS_PER_US) as i64;
            a.ca_rtt_us = ((self.now - last_ackt) / NS_PER_US) as i64;
            // A lone short segment, nothing else delivered since it was sent: the receiver may have waited for more.
            let lone = acked == 1 && prior_sacked == 0 && una - a.prior_una < u64::from(self.mss);
            if lone
                && a.flag & flag::CA_ALERT == 0
                && a.newest.valid
                && a.newest.entry.delivered.wrapping_add(1) == self.cc.sock().delivered
            {
                a.flag |= flag::ACK_MAYBE_DELAYED;
            }
        }
        if a.first_sackt != 0 {
            sack_rtt_us = ((self.now - a.first_sackt) / NS_PER_US) as i64;
            a.ca_rtt_us = ((self.now - a.last_sackt) / NS_PER_US) as i64;
        }
        if acked > 0 {
            a.flag |= flag::DATA_ACKED;
        }
        let rtt_updated = self.update_rtt(a, seq_rtt_us, sack_rtt_us);
        if acked > 0 {
            a.flag |= flag::SET_XMIT_TIMER;
            if sack {
                if a.reord < a.prior_fack {
                    self.check_sack_reordering(a.reord);
                }
            } else {
                self.remove_reno_sacks(acked, a.flag & flag::ECE != 0);
                if a.flag & flag::RETRANS_DATA_ACKED != 0 {
                    // Without SACK nobody knows whether the original or the copy arrived.
                    a.flag &= !flag::ORIG_SACK_ACKED;
                }
            }
            self.nospace = self.nospace && !self.has_room();
        } else if !self.ring.is_empty()
            && rtt_updated
            && sack_rtt_us >= 0
            && sack_rtt_us as u64 > (self.now - self.ring.get(self.ring.head()).tx_ns) / NS_PER_US
        {
            // The SACKed data was sent before the head was sent (again): the RTO may start anew.
            a.flag |= flag::SET_XMIT_TIMER;
        }
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: i32::try_from(a.ca_rtt_us).unwrap_or(i32::MAX),
            in_flight: a.prior_in_flight,
        };
        self.cc.pkts_acked(&sample);
    }

    pub(crate) fn has_room(&self) -> bool {
        match self.cfg.send_buffer {
            Some(size) => self.send_queue_free() >= size.0 / crate::consts::NOSPACE_FREE_SHARE,
            None => true,
        }
    }

    /// Karn's rule, SACK and timestamps decide which sample counts (Linux tcp_ack_update_rtt).
    #[inline]
    fn update_rtt(&mut self, a: &mut AckState, seq_rtt_us: i64, sack_rtt_us: i64) -> bool {
        let mut rtt = if seq_rtt_us >= 0 { seq_rtt_us } else { sack_rtt_us };
        if rtt < 0 && a.ecr != 0 && a.flag & flag::DATA_ACKED != 0 {
            let ms = self.timestamp().wrapping_sub(a.ecr);
            if ms <= i32::MAX as u32 {
                // The clock ticks in ms: at least one (Linux tcp_rtt_tsopt_us).
                rtt = i64::from(ms.max(1)) * 1_000;
                a.ca_rtt_us = rtt;
            }
        }
        if rtt < 0 {
            return false;
        }
        if a.ca_rtt_us >= 0 {
            self.rtt.sample_min(self.now_us, a.ca_rtt_us as u64);
        }
        self.rtt.sample(rtt as u64, self.una, self.nxt);
        self.timers.rto_shift = 0;
        self.stats.rtt_sample(rtt as u64);
        let (srtt, min) = (self.rtt.srtt_us8(), self.rtt.min_us());
        let s = self.sock();
        s.srtt_us = srtt;
        s.min_rtt_us = min;
        true
    }

    #[inline]
    fn is_dubious(&self, f: u32) -> bool {
        f & flag::NOT_DUP == 0 || f & flag::CA_ALERT != 0 || self.ca_state() != CaState::Open as u8
    }

    /// Linux tcp_cong_control: the algorithm's own, or PRR while reducing, or growth.
    #[inline]
    fn congestion_control(&mut self, ack: u64, a: &AckState) {
        let rs = self.rate_sample(a);
        if self.cc.has_cong_control() {
            self.cc.cong_control(ack as u32, a.flag, &rs);
            self.clamp_cwnd();
            return;
        }
        if self.in_cwnd_reduction() {
            self.cwnd_reduction(rs.acked_sacked, rs.losses.max(0) as u32, a.flag);
        } else if self.may_raise_cwnd(a.flag) {
            self.grow(ack, rs.acked_sacked);
        }
        self.refresh_pacing_rate();
    }

    #[inline]
    fn may_raise_cwnd(&self, f: u32) -> bool {
        if self.reordering > self.cfg.reordering {
            f & flag::FORWARD_PROGRESS != 0
        } else {
            f & flag::DATA_ACKED != 0
        }
    }

    /// The window grows on an ACK of `acked` segments.
    #[inline]
    pub(crate) fn grow(&mut self, ack: u64, acked: u32) {
        if self.old_growth {
            self.grow_as_in_ns2(ack, acked);
        } else {
            self.cc.cong_avoid(ack as u32, acked);
        }
        self.clamp_cwnd();
    }

    // Apart: the common case stays short.
    #[inline(never)]
    fn grow_as_in_ns2(&mut self, ack: u64, acked: u32) {
        if self.cfg.cwnd_validation || self.cc.sock().snd_cwnd < self.peer_window() {
            // Beyond the peer's window ns-2's FullTcp leaves its window alone, too (tcp-full.cc, header prediction).
            let acked = if self.cfg.count == Count::Acks { acked.min(1) } else { acked };
            self.cc.cong_avoid(ack as u32, acked);
        }
    }

    #[inline]
    pub(crate) fn clamp_cwnd(&mut self) {
        let s = self.cc.sock_mut();
        s.snd_cwnd = s.snd_cwnd.min(s.snd_cwnd_clamp).max(1);
    }
}
