//! Arriving data: reassembly, and when to acknowledge.

use super::receiver::Receiver;
use super::{carries_data, Endpoint};
use crate::config::Recovery;
use crate::consts::*;
use crate::segment::{flags, SackBlock, Segment};
use congestion::CaEvent;

impl Endpoint {
    /// Data or a FIN.
    #[inline]
    pub(crate) fn receive_data(&mut self, seg: &Segment) {
        let end = seg.seq + u64::from(seg.len);
        let has_fin = seg.flags & flags::FIN != 0;
        if seg.seq == self.rx.nxt && !has_fin && self.rx.ofo.is_empty() && self.rx.current_window() > 0 {
            self.stats.data_segments_received += 1;
            self.event_data_received(seg);
            self.accept(end);
            self.ack_check();
            return;
        }
        self.receive_slow(seg, end, has_fin);
    }

    fn receive_slow(&mut self, seg: &Segment, end: u64, has_fin: bool) {
        let end_seq = end + u64::from(has_fin);
        if end_seq <= self.rx.nxt {
            // Nothing new: the peer must know at once (RFC 2883; Linux tcp_data_queue).
            self.stats.duplicate_segments_received += 1;
            self.note_duplicate(seg.seq, end_seq);
            self.rx.enter_quickack(MAX_QUICKACKS);
            self.rx.ack_scheduled = true;
            self.rx.ack_now = true;
            return;
        }
        let right = self.rx.nxt + self.rx.current_window();
        // In order but no window, or wholly beyond it. A FIN needs no room.
        if seg.seq > right || (seg.len > 0 && seg.seq.max(self.rx.nxt) >= right) {
            self.rx.enter_quickack(MAX_QUICKACKS);
            self.rx.ack_scheduled = true;
            self.rx.ack_now = true;
            return;
        }
        if has_fin {
            self.rx.fin_at = Some(end);
        }
        if seg.seq <= self.rx.nxt {
            self.stats.data_segments_received += u64::from(seg.len > 0);
            if seg.seq < self.rx.nxt {
                self.note_duplicate(seg.seq, self.rx.nxt);
            }
            let filling = !self.rx.ofo.is_empty();
            self.event_data_received(seg);
            self.accept(end);
            if filling {
                self.drain_ofo();
            }
            self.check_fin();
            self.ack_check();
            return;
        }
        self.receive_out_of_order(seg, end_seq);
    }

    /// The next ACK tells of what came twice, if the peer does SACK; else it would be owed for ever.
    fn note_duplicate(&mut self, start: u64, end: u64) {
        if !self.is_reno() {
            self.rx.dsack = Some(SackBlock { start, end });
        }
    }

    fn receive_out_of_order(&mut self, seg: &Segment, end_seq: u64) {
        self.ecn_received(seg);
        self.rx.last_data_ns = self.now;
        if let Some(_held) = self.rx.ofo.covering(seg.seq, end_seq) {
            self.stats.duplicate_segments_received += 1;
            self.note_duplicate(seg.seq, end_seq);
            self.rx.ack_now = true;
        } else {
            self.stats.data_segments_received += u64::from(seg.len > 0);
            self.stats.out_of_order_segments += 1;
            self.rx.fresh.clear();
            let (start, end) = self.rx.ofo.insert(seg.seq, end_seq, &mut self.rx.fresh);
            let crowded = self.rx.update_sacks(start, end);
            if self.rx.autotuning && !self.rx.old_autotuning && !self.is_reno() {
                // Without SACK a window that changes would hide duplicate ACKs (Linux tcp_data_queue_ofo).
                self.rx.open_window(0);
                self.rx.grow(seg.len);
            }
            // Linux tcp_sack_new_ofo_skb tells of the blocks before this one; there is room for it too.
            self.rx.ack_now |= crowded && self.rx.compressed > 0;
        }
        self.rx.ack_scheduled = true;
        self.ack_check();
    }

    /// Takes in-order bytes up to `end` (payload only).
    #[inline]
    fn accept(&mut self, end: u64) {
        let fresh = end - self.rx.nxt;
        self.rx.nxt = end;
        if self.rx.manual {
            self.rx.unread += fresh;
        } else if self.rx.autotuning {
            self.adjust_space();
        }
    }

    /// Out-of-order data that has come within reach (Linux tcp_ofo_queue).
    fn drain_ofo(&mut self) {
        while let Some((_, end)) = self.rx.ofo.pop_reached(self.rx.nxt) {
            if end > self.rx.nxt {
                let payload_end = match self.rx.fin_at {
                    Some(fin) => end.min(fin),
                    None => end,
                };
                if payload_end > self.rx.nxt {
                    self.accept(payload_end);
                }
            }
        }
        self.rx.remove_sacks();
        // RFC 5681, 4.2: at once when a segment fills all or part of a gap; Linux leaves a part to `ack_check`.
        self.rx.ack_now |= self.rx.ofo.is_empty();
    }

    fn check_fin(&mut self) {
        if self.rx.fin_at == Some(self.rx.nxt) && !self.rx.fin_received {
            self.rx.nxt += 1;
            self.rx.fin_received = true;
            self.rx.fin_first = !self.fin_sent;
            self.rx.ack_scheduled = true;
            self.rx.ack_now = true;
        }
    }

    /// Estimators that data feeds (Linux tcp_event_data_recv).
    #[inline]
    fn event_data_received(&mut self, seg: &Segment) {
        let now = self.now;
        let rto = || self.timers.rto_ns(&self.rtt, &self.cfg);
        let rx = &mut self.rx;
        rx.ack_scheduled = true;
        let short = rx.measure_mss(seg.len);
        if rx.ato_ns == 0 {
            let most = rx.quickack_start;
            if most > 0 {
                rx.add_quickacks(most);
            }
            rx.ato_ns = ATO_MIN.0;
        } else {
            let gap = now - rx.last_data_ns;
            if gap > ATO_MIN.0 / 2 && gap >= rx.ato_ns && rx.quickack_start > 0 && gap > rto() {
                rx.add_quickacks(MAX_QUICKACKS);
            }
            rx.ato_ns = Receiver::ato_after(rx.ato_ns, gap, rto());
        }
        rx.last_data_ns = now;
        // A reader that has taken everything acknowledges the short last segment of a burst (Linux tcp_cleanup_rbuf,
        // ICSK_ACK_PUSHED).
        if short && !rx.manual && !rx.pingpong {
            rx.ack_now = true;
        }
        if rx.autotuning {
            rx.grow(seg.len);
            self.measure_receiver_rtt(seg);
        }
        self.ecn_received(seg);
    }

    /// Linux tcp_ecn_check_ce, tcp_ecn_accept_cwr.
    #[inline]
    fn ecn_received(&mut self, seg: &Segment) {
        let ecn_flags = self.cc.sock().ecn_flags;
        if ecn_flags & ecn::OK == 0 {
            return;
        }
        if seg.flags & flags::CWR != 0 {
            self.sock().ecn_flags &= !ecn::DEMAND_CWR;
            // The peer's window may be tiny now.
            self.rx.ack_now = carries_data(seg) || self.rx.ack_now;
        }
        if seg.flags & flags::CE != 0 {
            self.cc.cwnd_event(CaEvent::EcnIsCe);
            if self.cc.sock().ecn_flags & ecn::DEMAND_CWR == 0 {
                self.rx.enter_quickack(ECN_QUICKACKS);
                self.sock().ecn_flags |= ecn::DEMAND_CWR;
            }
            self.sock().ecn_flags |= ecn::SEEN;
        } else if seg.flags & flags::ECT != 0 {
            self.cc.cwnd_event(CaEvent::EcnNoCe);
            self.sock().ecn_flags |= ecn::SEEN;
        }
    }

    /// Now or later (Linux __tcp_ack_snd_check).
    #[inline]
    fn ack_check(&mut self) {
        let rx = &self.rx;
        if rx.ack_now {
            return;
        }
        if !rx.delayed_ack || rx.in_quickack() || (rx.nxt - rx.wup > u64::from(rx.rcv_mss) && rx.offer() >= rx.wnd) {
            self.rx.ack_now = true;
        } else if rx.ofo.is_empty() {
            self.delay_ack();
        } else {
            self.compress_ack();
        }
    }

    /// A duplicate ACK: now (RFC 5681, 3.2), or together with those that follow within a millisecond.
    pub(super) fn compress_ack(&mut self) {
        let rx = &mut self.rx;
        if rx.hole != rx.nxt {
            rx.hole = rx.nxt;
            rx.hole_acks = 0;
        }
        if !rx.sack_compression || self.recovery != Recovery::Rack || rx.compressed >= COMP_SACK_MAX {
            rx.ack_now = true;
        } else if rx.hole_acks < COMP_SACK_FREE {
            rx.hole_acks += 1;
            rx.ack_now = true;
        } else {
            rx.compressed += 1;
            if rx.compressed == 1 {
                // Without timestamps or tuning the receiver knows the handshake's RTT alone.
                let known = [rx.rtt_us8, u64::from(self.rtt.srtt_us8())].into_iter().filter(|&us8| us8 > 0).min();
                let rtt_ns = known.unwrap_or(0) * NS_PER_US / 8;
                let wait = (rtt_ns / COMP_SACK_RTT_SHARE).clamp(1, COMP_SACK_DELAY.0);
                self.timers.arm_delack(self.now + wait);
            } else {
                self.stats.acks_compressed += 1;
            }
        }
    }

    /// Time that an ACK waits with the delayed ACK timer's length `ato`, ns: within 40 ms (or an RTT) and 200 ms (Linux
    /// tcp_send_delayed_ack).
    #[inline]
    pub(super) fn ack_delay(&self, mut ato: u64) -> u64 {
        if ato > ATO_MIN.0 {
            let mut most = if self.rx.pingpong { DELACK_MAX.0 } else { DELACK_CEILING.0 };
            let srtt = u64::from(self.rtt.srtt_us8() >> 3) * NS_PER_US;
            if srtt != 0 {
                most = most.min(srtt.max(ATO_MIN.0));
            }
            ato = ato.min(most);
        }
        ato.min(DELACK_MAX.0)
    }

    /// Linux tcp_send_delayed_ack.
    #[inline]
    fn delay_ack(&mut self) {
        let deadline = self.now + self.ack_delay(self.rx.ato_ns);
        if self.timers.delack != u64::MAX {
            if self.timers.delack <= self.now + (self.rx.ato_ns >> 2) {
                self.rx.ack_now = true;
                return;
            }
            if self.timers.delack <= deadline {
                return;
            }
        }
        self.timers.arm_delack(deadline);
    }

    /// The application has read: open the window if that is worth telling (Linux tcp_cleanup_rbuf).
    pub(crate) fn after_read(&mut self, taken: u64) {
        if taken == 0 || self.phase != super::Phase::Open {
            return;
        }
        if self.rx.autotuning {
            self.adjust_space();
        }
        let rx = &self.rx;
        let current = rx.current_window();
        if rx.ack_scheduled && rx.nxt - rx.wup > u64::from(rx.rcv_mss) {
            self.rx.ack_now = true;
        } else if 2 * current <= rx.clamp {
            let offer = rx.offer();
            if offer > 0 && offer >= 2 * current {
                self.rx.ack_now = true;
            }
        }
    }

    /// RTT as the receiver sees it: age of the echoed timestamp (Linux tcp_rcv_rtt_measure_ts), else the handshake's.
    fn measure_receiver_rtt(&mut self, seg: &Segment) {
        if !self.timestamps {
            self.rx.rtt_us8 = u64::from(self.rtt.srtt_us8());
            return;
        }
        if seg.ts_ecr == 0 || seg.ts_ecr == self.rx.last_ecr || seg.len < self.rx.rcv_mss {
            return;
        }
        self.rx.last_ecr = seg.ts_ecr;
        let us = u64::from(self.timestamp().wrapping_sub(seg.ts_ecr)).max(1) * 1_000;
        let rx = &mut self.rx;
        let rtt = rx.rtt_us8;
        rx.rtt_us8 = match rtt {
            0 => us << 3,
            // Since 6.16 the least counts at once, and no greater one while data is unread: its time is the reader's.
            _ if !rx.old_autotuning && us << 3 < rtt => us << 3,
            _ if !rx.old_autotuning && rx.unread > 0 => rtt,
            _ => rtt - (rtt >> 3) + us,
        };
    }

    /// Offers twice what the application read in the last RTT (Linux tcp_rcv_space_adjust).
    fn adjust_space(&mut self) {
        let rx = &mut self.rx;
        let elapsed_us = (self.now - rx.space_ns) / NS_PER_US;
        if rx.rtt_us8 == 0 || elapsed_us < rx.rtt_us8 >> 3 {
            return;
        }
        let read = rx.nxt - rx.unread;
        let unread = if rx.old_autotuning { 0 } else { rx.unread };
        let copied = (read - rx.space_seq.min(read)).saturating_sub(unread);
        if copied > rx.space {
            let more = copied - rx.space;
            rx.space = copied;
            rx.open_window(more);
        }
        rx.space_seq = read;
        rx.space_ns = self.now;
    }
}
