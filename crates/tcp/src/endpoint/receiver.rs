//! State of the receiving half: the window offered, SACK blocks, estimates.

use crate::config::{Config, Reader, ReceiveBuffers};
use crate::consts::*;
use crate::ranges::RangeSet;
use crate::segment::{SackBlock, Segment, MAX_SACK_BLOCKS};

/// State of the receiver. In-order data leaves no trace but its count. The first two lines of the cache are what data
/// in order needs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct Receiver {
    /// Next byte expected.
    pub(crate) nxt: u64,
    /// `nxt` when the last acknowledgment was sent.
    pub(crate) wup: u64,
    /// Window offered with it, bytes.
    pub(crate) wnd: u64,
    /// In order and not read by the application, bytes.
    pub(crate) unread: u64,
    /// Largest window offered at present: `limit`, or the result of autotuning.
    pub(crate) clamp: u64,
    /// The offered window grows to `clamp` with the data received (Linux rcv_ssthresh).
    pub(crate) ssthresh: u64,
    /// Delayed ACK timer's length; 0 before the first data.
    pub(crate) ato_ns: u64,
    pub(crate) last_data_ns: u64,
    /// Payload of a full segment that we offered to take.
    pub(crate) advmss: u32,
    /// Payload of the segments that come (Linux rcv_mss).
    pub(crate) rcv_mss: u32,
    pub(crate) ts_recent: u32,
    pub(crate) quickack_start: u32,
    /// Acknowledgments still to be sent at once.
    pub(crate) quick: u32,
    pub(crate) wscale: u8,
    pub(crate) manual: bool,
    pub(crate) autotuning: bool,
    /// Autotuning is that of Linux until 6.15.
    pub(crate) old_autotuning: bool,
    pub(crate) delayed_ack: bool,
    pub(crate) pingpong: bool,
    /// Duplicate ACKs held back since the last ACK; while there are some, the delayed ACK's timer is theirs.
    pub(crate) compressed: u8,
    /// Something is to be acknowledged, some time.
    pub(crate) ack_scheduled: bool,
    /// Acknowledge with the next poll.
    pub(crate) ack_now: bool,
    /// Acknowledge before anything else: the end of the handshake.
    pub(crate) ack_first: bool,
    pub(crate) scaling: bool,
    pub(crate) fin_received: bool,
    /// The peer closed before we did.
    pub(crate) fin_first: bool,
    pub(crate) sack_compression: bool,
    /// Duplicate ACKs sent for the hole at `hole`.
    pub(crate) hole_acks: u8,
    pub(crate) hole: u64,
    pub(crate) num_sacks: usize,
    pub(crate) dsack: Option<SackBlock>,
    /// Held out of order.
    pub(crate) ofo: RangeSet,
    pub(crate) sacks: [SackBlock; MAX_SACK_BLOCKS],
    pub(crate) fresh: Vec<(u64, u64)>,
    /// Most that may ever be offered, bytes.
    pub(crate) limit: u64,
    pub(crate) fin_at: Option<u64>,
    pub(crate) last_seg_len: u32,
    // Autotuning.
    pub(crate) last_ecr: u32,
    /// RTT as the receiver sees it, us times 8; 0 unknown.
    pub(crate) rtt_us8: u64,
    pub(crate) space: u64,
    pub(crate) space_seq: u64,
    pub(crate) space_ns: u64,
}

impl Receiver {
    /// Bytes at its beginning that data in order needs.
    pub(crate) const BYTES_OF_RUNS: usize = std::mem::offset_of!(Receiver, ofo);

    pub(crate) fn new(cfg: &Config) -> Receiver {
        // Linux tcp_select_initial_window: shift such that the buffer fits 16 bits.
        let derived =
            (63 - cfg.receive_window.0.max(1).leading_zeros()).saturating_sub(15).min(u32::from(cfg.window_scale_max));
        let wscale = cfg.window_scale.unwrap_or(derived as u8).min(cfg.window_scale_max);
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
            old_autotuning: cfg.receive_buffers == ReceiveBuffers::Linux6_15,
            scaling: cfg.window_scaling,
            wscale,
            advmss: 0,
            rcv_mss: MSS_DEFAULT,
            last_seg_len: 0,
            delayed_ack: cfg.delayed_ack,
            sack_compression: cfg.sack_compression,
            compressed: 0,
            hole_acks: 0,
            hole: 0,
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
    pub(crate) fn initial_window(&mut self) -> u32 {
        let start = if self.autotuning { self.limit.min(AUTOTUNE_START_BYTES) } else { self.limit };
        self.wnd = start.min(WINDOW_UNSCALED_MAX);
        self.wnd as u32
    }

    /// The handshake is over: options are known.
    pub(crate) fn start(&mut self, cfg: &Config, mss: u32, now: u64) {
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

    /// Rest of the window last offered.
    #[inline]
    pub(crate) fn current_window(&self) -> u64 {
        (self.wup + self.wnd).saturating_sub(self.nxt)
    }

    /// The window that could be offered now (Linux __tcp_select_window; RFC 9293, 3.8.6.2.2, against silly windows).
    #[inline]
    pub(crate) fn offer(&self) -> u64 {
        if self.unread == 0 && self.wscale > 0 {
            // All is free: as below, short.
            return (self.clamp.min(self.ssthresh) >> self.wscale).max(1) << self.wscale;
        }
        self.offer_of_part()
    }

    #[inline(never)]
    fn offer_of_part(&self) -> u64 {
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
    pub(crate) fn select_window(&mut self) -> u32 {
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
    pub(crate) fn has_sacks(&self) -> bool {
        self.num_sacks != 0 || self.dsack.is_some()
    }

    /// Returns whether nothing is owed to the peer, and a header that goes changes nothing here.
    // Once per run.
    #[inline(always)]
    pub(crate) fn owes_nothing(&self) -> bool {
        !(self.ack_now | self.ack_first | self.ack_scheduled)
            && !self.has_sacks()
            && (self.ato_ns == 0 || self.pingpong)
            && self.compressed == 0
            && self.wup == self.nxt
            && self.offer() == self.wnd
    }

    pub(crate) fn most_sacks(timestamps: bool) -> usize {
        MAX_SACK_BLOCKS - usize::from(timestamps)
    }

    pub(crate) fn sack_option_bytes(&self, timestamps: bool) -> u32 {
        let count = (self.num_sacks + usize::from(self.dsack.is_some())).min(Self::most_sacks(timestamps));
        if count == 0 {
            0
        } else {
            4 + 8 * count as u32
        }
    }

    /// DSACK first, then the blocks most recently changed (RFC 2018, 4; RFC 2883, 4), as far as `room` bytes of
    /// options go. Returns whether there was room for one.
    pub(crate) fn write_sacks(&mut self, seg: &mut Segment, timestamps: bool, room: u32) -> bool {
        let most = Self::most_sacks(timestamps).min(room.saturating_sub(4) as usize / 8);
        if most == 0 {
            return false;
        }
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
        true
    }

    /// An acknowledgment goes out.
    #[inline]
    pub(crate) fn ack_sent(&mut self) {
        if self.ack_scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato_ns = ATO_MIN.0;
            }
        }
        self.ack_scheduled = false;
        self.ack_now = false;
        self.compressed = 0;
    }

    /// Linux tcp_incr_quickack: as many as half a window of segments asks for.
    pub(crate) fn add_quickacks(&mut self, max_segments: u32) {
        let by_window = (self.wnd / (2 * u64::from(self.rcv_mss.max(1)))).max(2);
        self.quick = self.quick.max(by_window.min(u64::from(max_segments)) as u32);
    }

    pub(crate) fn enter_quickack(&mut self, max_segments: u32) {
        self.add_quickacks(max_segments);
        self.pingpong = false;
        self.ato_ns = ATO_MIN.0;
    }

    #[inline]
    pub(crate) fn in_quickack(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }

    /// Length of the delayed ACK timer after data that come `gap` behind those before them, all in ns (Linux
    /// tcp_event_data_recv).
    #[inline]
    pub(crate) fn ato_after(ato: u64, gap: u64, rto: u64) -> u64 {
        if gap <= ATO_MIN.0 / 2 {
            (ato >> 1) + ATO_MIN.0 / 2
        } else if gap < ato {
            ((ato >> 1) + gap).min(rto)
        } else {
            ato
        }
    }

    /// Linux tcp_measure_rcv_mss. Returns whether the segment is shorter than a full one.
    #[inline]
    pub(crate) fn measure_mss(&mut self, len: u32) -> bool {
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

    /// New out-of-order block becomes the first SACK; those it swallowed leave. Returns whether it was not among the
    /// first that every ACK has room for.
    pub(crate) fn update_sacks(&mut self, start: u64, end: u64) -> bool {
        let first = &self.sacks[..self.num_sacks.min(SACK_BLOCKS_EXPECTED)];
        let crowded = self.num_sacks >= SACK_BLOCKS_EXPECTED
            && !first.iter().any(|block| block.start <= end && block.end >= start);
        let mut kept = [SackBlock::default(); MAX_SACK_BLOCKS];
        kept[0] = SackBlock { start, end };
        let mut count = 1;
        for block in &self.sacks[..self.num_sacks] {
            if count < MAX_SACK_BLOCKS && (block.start > end || block.end < start) {
                kept[count] = *block;
                count += 1;
            }
        }
        self.sacks = kept;
        self.num_sacks = count;
        crowded
    }

    pub(crate) fn remove_sacks(&mut self) {
        let mut count = 0;
        for i in 0..self.num_sacks {
            if self.sacks[i].start > self.nxt {
                self.sacks[count] = self.sacks[i];
                count += 1;
            }
        }
        self.num_sacks = count;
    }

    /// Offers twice `space`, more where it has just grown by `more` bytes, and what is held out of order beside it: the
    /// sender goes on behind a hole (Linux tcp_rcvbuf_grow, since 6.16). Older ones add 16 segments, and nothing for a
    /// hole.
    pub(crate) fn open_window(&mut self, more: u64) {
        let mut window = self.space << 1;
        if self.old_autotuning {
            window += AUTOTUNE_EXTRA_SEGMENTS * u64::from(self.advmss);
        }
        let grow = u128::from(window) * u128::from(more) / u128::from((self.space - more).max(1));
        window = window.saturating_add(u64::try_from(grow << 1).unwrap_or(u64::MAX));
        if !self.old_autotuning {
            window = window.saturating_add(self.ofo.end().saturating_sub(self.nxt));
        }
        self.clamp = self.clamp.max(window.min(self.limit));
    }

    /// Bytes have come in order: the window may open further (Linux tcp_grow_window).
    #[inline]
    pub(crate) fn grow(&mut self, len: u32) {
        if self.ssthresh < self.clamp {
            let more = u64::from(2 * self.advmss.max(len));
            self.ssthresh = (self.ssthresh + more).min(self.clamp);
        }
    }
}
