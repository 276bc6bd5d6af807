//! The receiving half: reassembly, the window offered, and when to acknowledge.

use super::{carries_data, Endpoint};
use crate::config::{Config, Reader};
use crate::consts::*;
use crate::ranges::RangeSet;
use crate::segment::{flags, SackBlock, Segment, MAX_SACK_BLOCKS};
use congestion::CaEvent;

/// State of the receiver. In-order data leaves no trace but its count.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next byte expected.
    pub nxt: u64,
    /// `nxt` when the last acknowledgment was sent.
    pub wup: u64,
    /// Window offered with it, bytes.
    pub wnd: u64,
    /// In order and not read by the application, bytes.
    pub unread: u64,
    /// Most that may ever be offered, bytes.
    limit: u64,
    /// Most that is offered at present: `limit`, or what autotuning has come to.
    clamp: u64,
    /// What is offered grows to `clamp` with the data received (Linux rcv_ssthresh).
    ssthresh: u64,
    manual: bool,
    autotuning: bool,
    pub scaling: bool,
    pub wscale: u8,
    /// Payload of a full segment that we offered to take.
    pub advmss: u32,
    /// Payload of the segments that come (Linux rcv_mss).
    rcv_mss: u32,
    last_seg_len: u32,
    delayed_ack: bool,
    quickack_start: u32,
    /// Acknowledgments still to be sent at once.
    quick: u32,
    /// Delayed ACK timer's length; 0 before the first data.
    pub ato_ns: u64,
    pub last_data_ns: u64,
    pub pingpong: bool,
    /// Something is to be acknowledged, some time.
    pub ack_scheduled: bool,
    /// Acknowledge with the next poll.
    pub ack_now: bool,
    /// Acknowledge before anything else: the end of the handshake.
    pub ack_first: bool,
    /// Held out of order.
    ofo: RangeSet,
    fresh: Vec<(u64, u64)>,
    sacks: [SackBlock; MAX_SACK_BLOCKS],
    num_sacks: usize,
    dsack: Option<SackBlock>,
    pub ts_recent: u32,
    fin_at: Option<u64>,
    pub fin_received: bool,
    /// The peer closed before we did.
    pub fin_first: bool,
    // Autotuning.
    /// RTT as the receiver sees it, us times 8; 0 unknown.
    rtt_us8: u64,
    last_ecr: u32,
    space: u64,
    space_seq: u64,
    space_ns: u64,
}

impl Receiver {
    pub fn new(cfg: &Config) -> Receiver {
        // Linux tcp_select_initial_window: shift such that the buffer fits 16 bits.
        let derived = (63 - cfg.receive_window.0.max(1).leading_zeros()).saturating_sub(15).min(u32::from(WSCALE_MAX));
        let wscale = cfg.window_scale.unwrap_or(derived as u8).min(WSCALE_MAX);
        Receiver {
            nxt: 0,
            wup: 0,
            wnd: 0,
            unread: 0,
            limit: cfg.receive_window.0,
            clamp: cfg.receive_window.0,
            ssthresh: cfg.receive_window.0,
            manual: cfg.reader == Reader::Manual,
            autotuning: cfg.receive_autotuning,
            scaling: cfg.window_scaling,
            wscale,
            advmss: 0,
            rcv_mss: MSS_DEFAULT,
            last_seg_len: 0,
            delayed_ack: cfg.delayed_ack,
            quickack_start: cfg.quickack_segments,
            quick: 0,
            ato_ns: 0,
            last_data_ns: 0,
            pingpong: false,
            ack_scheduled: false,
            ack_now: false,
            ack_first: false,
            ofo: RangeSet::default(),
            fresh: Vec::new(),
            sacks: [SackBlock::default(); MAX_SACK_BLOCKS],
            num_sacks: 0,
            dsack: None,
            ts_recent: 0,
            fin_at: None,
            fin_received: false,
            fin_first: false,
            rtt_us8: 0,
            last_ecr: 0,
            space: 0,
            space_seq: 0,
            space_ns: 0,
        }
    }

    /// Window of a SYN: never scaled (RFC 7323, 2.2).
    pub fn initial_window(&mut self) -> u32 {
        let start = if self.autotuning { self.limit.min(AUTOTUNE_START_BYTES) } else { self.limit };
        self.wnd = start.min(WINDOW_UNSCALED_MAX);
        self.wnd as u32
    }

    /// The handshake is over: options are known.
    pub fn start(&mut self, cfg: &Config, mss: u32, now: u64) {
        if !self.scaling {
            self.wscale = 0;
        }
        self.limit = cfg.receive_window.0.min(WINDOW_UNSCALED_MAX << self.wscale);
        self.clamp = if self.autotuning { self.limit.min(AUTOTUNE_START_BYTES) } else { self.limit };
        self.ssthresh = self.clamp;
        self.wup = self.nxt;
        // Linux tcp_initialize_rcv_mss.
        self.rcv_mss = self.advmss.min(mss).min((self.wnd / 2) as u32).clamp(MSS_MIN, MSS_DEFAULT);
        self.space = self.clamp.min(10 * u64::from(self.advmss));
        self.space_seq = self.nxt;
        self.space_ns = now;
    }

    /// What is left of the window last offered.
    #[inline]
    pub fn current_window(&self) -> u64 {
        (self.wup + self.wnd).saturating_sub(self.nxt)
    }

    /// What could be offered now (Linux __tcp_select_window; RFC 9293, 3.8.6.2.2, against silly windows).
    #[inline]
    fn offer(&self) -> u64 {
        let mut free = self.clamp.saturating_sub(self.unread);
        let mss = u64::from(self.rcv_mss).min(self.clamp);
        if free < self.clamp >> 1 && (free < self.clamp >> 4 || free < mss) {
            return 0;
        }
        free = free.min(self.ssthresh);
        if self.wscale > 0 {
            // Rounded down, so that the limit is one; but what is open stays open.
            let rounded = free >> self.wscale << self.wscale;
            return if rounded == 0 { 1 << self.wscale } else { rounded };
        }
        if self.wnd + mss <= free || self.wnd > free {
            return if self.manual && mss > 0 { free - free % mss } else { free };
        }
        self.wnd
    }

    /// Decides on the window and notes it as offered; never takes back what was offered before.
    #[inline]
    pub fn select_window(&mut self) -> u32 {
        let current = self.current_window();
        let mut window = self.offer();
        if window < current {
            let unit = 1u64 << self.wscale;
            window = (current + unit - 1) & !(unit - 1);
        }
        self.wnd = window.min(WINDOW_UNSCALED_MAX << self.wscale);
        self.wup = self.nxt;
        self.wnd as u32
    }

    #[inline]
    pub fn has_sacks(&self) -> bool {
        self.num_sacks != 0 || self.dsack.is_some()
    }

    fn most_sacks(timestamps: bool) -> usize {
        MAX_SACK_BLOCKS - usize::from(timestamps)
    }

    pub fn sack_option_bytes(&self, timestamps: bool) -> u32 {
        let count = (self.num_sacks + usize::from(self.dsack.is_some())).min(Self::most_sacks(timestamps));
        if count == 0 {
            0
        } else {
            4 + 8 * count as u32
        }
    }

    /// DSACK first, then the blocks most recently changed (RFC 2018, 4; RFC 2883, 4).
    pub fn write_sacks(&mut self, seg: &mut Segment, timestamps: bool) {
        let most = Self::most_sacks(timestamps);
        let mut count = 0;
        if let Some(block) = self.dsack.take() {
            seg.sacks[0] = block;
            count = 1;
        }
        for block in &self.sacks[..self.num_sacks] {
            if count == most {
                break;
            }
            seg.sacks[count] = *block;
            count += 1;
        }
        seg.sack_count = count as u8;
    }

    /// An acknowledgment goes out.
    #[inline]
    pub fn ack_sent(&mut self) {
        if self.ack_scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ns = ATO_MIN.0;
            }
        }
        self.ack_scheduled = false;
        self.ack_now = false;
    }

    /// Linux tcp_incr_quickack: as many as half a window of segments asks for.
    fn add_quickacks(&mut self, most: u32) {
        let by_window = (self.wnd / (2 * u64::from(self.rcv_mss.max(1)))).max(2);
        self.quick = self.quick.max(by_window.min(u64::from(most)) as u32);
    }

    fn enter_quickack(&mut self, most: u32) {
        self.add_quickacks(most);
        self.pingpong = false;
        self.ato_ns = ATO_MIN.0;
    }

    #[inline]
    fn in_quickack(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }

    /// Linux tcp_measure_rcv_mss. Returns whether the segment is shorter than a full one.
    #[inline]
    fn measure_mss(&mut self, len: u32) -> bool {
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(self.advmss.max(MSS_MIN));
            return false;
        }
        if len == self.last_seg_len {
            self.rcv_mss = len.max(MSS_MIN);
            return false;
        }
        self.last_seg_len = len;
        true
    }

    /// New out-of-order block becomes the first SACK; those it swallowed leave.
    fn update_sacks(&mut self, start: u64, end: u64) {
        let mut kept = [SackBlock { start, end }; MAX_SACK_BLOCKS];
        let mut count = 1;
        for block in &self.sacks[..self.num_sacks] {
            if count < MAX_SACK_BLOCKS && (block.start > end || block.end < start) {
                kept[count] = *block;
                count += 1;
            }
        }
        self.sacks = kept;
        self.num_sacks = count;
    }

    fn remove_sacks(&mut self) {
        let mut count = 0;
        for i in 0..self.num_sacks {
            if self.sacks[i].start > self.nxt {
                self.sacks[count] = self.sacks[i];
                count += 1;
            }
        }
        self.num_sacks = count;
    }

    /// Bytes have come in order: the window may open further (Linux tcp_grow_window).
    #[inline]
    fn grow(&mut self, len: u32) {
        if self.ssthresh < self.clamp {
            let more = u64::from(2 * self.advmss.max(len));
            self.ssthresh = (self.ssthresh + more).min(self.clamp);
        }
    }
}

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
            self.rx.dsack = Some(SackBlock { start: seg.seq, end: end_seq });
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
                self.rx.dsack = Some(SackBlock { start: seg.seq, end: self.rx.nxt });
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

    fn receive_out_of_order(&mut self, seg: &Segment, end_seq: u64) {
        self.ecn_received(seg);
        self.rx.last_data_ns = self.now;
        if let Some(_held) = self.rx.ofo.covering(seg.seq, end_seq) {
            self.stats.duplicate_segments_received += 1;
            self.rx.dsack = Some(SackBlock { start: seg.seq, end: end_seq });
        } else {
            self.stats.data_segments_received += u64::from(seg.len > 0);
            self.stats.out_of_order_segments += 1;
            self.rx.fresh.clear();
            let (start, end) = self.rx.ofo.insert(seg.seq, end_seq, &mut self.rx.fresh);
            self.rx.update_sacks(start, end);
        }
        // RFC 5681, 3.2: an immediate duplicate ACK.
        self.rx.ack_scheduled = true;
        self.rx.ack_now = true;
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
        // RFC 5681, 4.2: at once when a segment fills all or part of a gap.
        self.rx.ack_now = true;
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
        let rto = self.rto_now();
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
            if gap <= ATO_MIN.0 / 2 {
                rx.ato_ns = (rx.ato_ns >> 1) + ATO_MIN.0 / 2;
            } else if gap < rx.ato_ns {
                rx.ato_ns = ((rx.ato_ns >> 1) + gap).min(rto);
            } else if gap > rto && rx.quickack_start > 0 {
                rx.add_quickacks(MAX_QUICKACKS);
            }
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
        if !rx.delayed_ack
            || rx.in_quickack()
            || (rx.nxt - rx.wup > u64::from(rx.rcv_mss) && rx.offer() >= rx.wnd)
            || !rx.ofo.is_empty()
        {
            self.rx.ack_now = true;
            return;
        }
        self.delay_ack();
    }

    /// Linux tcp_send_delayed_ack: the estimate, within 40 ms (or an RTT) and 200 ms.
    #[inline]
    fn delay_ack(&mut self) {
        let mut ato = self.rx.ato_ns;
        if ato > ATO_MIN.0 {
            let mut most = if self.rx.pingpong { DELACK_MAX.0 } else { DELACK_CEILING.0 };
            let srtt = u64::from(self.rtt.srtt_us8() >> 3) * NS_PER_US;
            if srtt != 0 {
                most = most.min(srtt.max(ATO_MIN.0));
            }
            ato = ato.min(most);
        }
        ato = ato.min(DELACK_MAX.0);
        let deadline = self.now + ato;
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
        let rtt = self.rx.rtt_us8;
        self.rx.rtt_us8 = if rtt == 0 { us << 3 } else { rtt - (rtt >> 3) + us };
    }

    /// Offers twice what the application read in the last RTT (Linux tcp_rcv_space_adjust).
    fn adjust_space(&mut self) {
        let rx = &mut self.rx;
        let elapsed_us = (self.now - rx.space_ns) / NS_PER_US;
        if rx.rtt_us8 == 0 || elapsed_us < rx.rtt_us8 >> 3 {
            return;
        }
        let read = rx.nxt - rx.unread;
        let copied = read - rx.space_seq.min(read);
        if copied > rx.space {
            let mut window = (copied << 1) + AUTOTUNE_EXTRA_SEGMENTS * u64::from(rx.advmss);
            let grow = u128::from(window) * u128::from(copied - rx.space) / u128::from(rx.space.max(1));
            window = window.saturating_add(u64::try_from(grow << 1).unwrap_or(u64::MAX));
            rx.clamp = rx.clamp.max(window.min(rx.limit));
            rx.space = copied;
        }
        rx.space_seq = read;
        rx.space_ns = self.now;
    }
}
