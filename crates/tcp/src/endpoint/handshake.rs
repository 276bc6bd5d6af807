//! Opening: SYN, SYN-ACK, what they negotiate (RFC 9293, 3.5; RFC 7323; RFC 2018; RFC 3168, 6.1.1).

use super::{Endpoint, Phase};
use crate::config::Recovery;
use crate::consts::*;
use crate::segment::{base_header_bytes, flags, Segment, WindowScale, TIMESTAMP_OPTION_BYTES};
use congestion::INFINITE_SSTHRESH;
use units::Time;

impl Endpoint {
    /// MSS offered: what fits the MTU without options.
    fn advertised_mss(&self) -> u32 {
        let headers = base_header_bytes(self.ipv6);
        self.cfg.mtu.saturating_sub(headers).clamp(MSS_MIN, 65_535 - headers)
    }

    pub(super) fn transmit_handshake(&mut self, seg: &mut Segment) -> bool {
        if !self.syn_pending {
            return false;
        }
        self.syn_pending = false;
        let answer = self.phase == Phase::SynReceived;
        *seg = Segment { seq: 0, mss: self.advertised_mss() as u16, ..Segment::default() };
        seg.flags = flags::SYN | self.ip_flags();
        if answer {
            seg.flags |= flags::ACK;
            seg.ack = self.rx.nxt;
        }
        if self.timestamps {
            seg.flags |= flags::TIMESTAMPS;
            seg.ts_val = self.timestamp();
            seg.ts_ecr = if answer { self.rx.ts_recent } else { 0 };
        }
        if !self.is_reno() {
            seg.flags |= flags::SACK_PERMITTED;
        }
        let scaling = if answer { self.rx.scaling } else { self.cfg.window_scaling };
        if scaling {
            seg.wscale = Some(WindowScale::new(self.rx.wscale));
        }
        if answer {
            if self.cc.sock().ecn_flags & ecn::OK != 0 {
                seg.flags |= flags::ECE;
            }
        } else if self.cfg.ecn && self.syn_retries == 0 {
            // A retransmitted SYN asks for no ECN (RFC 3168, 6.1.1.1; Linux tcp_ecn_fallback).
            seg.flags |= flags::ECE | flags::CWR;
        }
        seg.window = self.rx.initial_window();
        self.syn_sent_at = Some(self.now);
        self.nxt = 1;
        self.sock().snd_nxt = 1;
        let wait = TIMEOUT_INIT.0 << self.syn_retries.min(BACKOFF_MAX);
        self.timers.arm_syn(self.now + wait.min(self.cfg.rto_max.0));
        self.stats.segments_sent += 1;
        true
    }

    pub(super) fn syn_timeout(&mut self) {
        if !matches!(self.phase, Phase::SynSent | Phase::SynReceived) {
            return;
        }
        if self.syn_retries >= SYN_RETRIES {
            self.phase = Phase::Closed;
            return;
        }
        self.syn_retries += 1;
        self.stats.syn_retransmits += 1;
        self.syn_pending = true;
    }

    pub(super) fn segment_handshake(&mut self, seg: &Segment) {
        match self.phase {
            Phase::Listen if seg.has(flags::SYN) && !seg.has(flags::ACK) => {
                self.take_options(seg);
                if self.cfg.ecn && seg.has(flags::ECE | flags::CWR) {
                    self.sock().ecn_flags = ecn::OK;
                }
                self.phase = Phase::SynReceived;
                self.syn_pending = true;
            }
            Phase::SynReceived if seg.has(flags::SYN) && !seg.has(flags::ACK) => self.syn_pending = true,
            Phase::SynReceived if seg.has(flags::ACK) && seg.ack >= 1 => {
                self.open(seg);
                if super::carries_data(seg) {
                    self.segment_open(seg);
                }
            }
            Phase::SynSent if seg.has(flags::SYN | flags::ACK) && seg.ack == 1 => {
                self.take_options(seg);
                if self.cfg.ecn && seg.has(flags::ECE) && !seg.has(flags::CWR) {
                    self.sock().ecn_flags = ecn::OK;
                }
                self.open(seg);
                self.rx.ack_first = true;
            }
            _ => {}
        }
    }

    /// Negotiates the options of the peer's SYN with this end's.
    fn take_options(&mut self, seg: &Segment) {
        self.timestamps = self.cfg.timestamps && seg.has(flags::TIMESTAMPS);
        if self.timestamps {
            self.rx.ts_recent = seg.ts_val;
        }
        if !seg.has(flags::SACK_PERMITTED) && !self.is_reno() {
            self.recovery = Recovery::NewReno;
        }
        self.rx.scaling = self.cfg.window_scaling && seg.wscale.is_some();
        let offered = if seg.mss == 0 { MSS_DEFAULT } else { u32::from(seg.mss) };
        let headers = if self.timestamps { TIMESTAMP_OPTION_BYTES } else { 0 };
        let mss = offered.min(self.advertised_mss()).saturating_sub(headers).max(MSS_MIN);
        self.max_window = u64::from(seg.window);
        // No segment longer than half the window that the peer ever offered (Linux tcp_bound_to_half_wnd).
        let half = if seg.window > MSS_DEFAULT { seg.window >> 1 } else { seg.window };
        self.mss = if half > 0 { mss.min(half.max(MSS_MIN)) } else { mss };
        self.rx.advmss = self.advertised_mss().saturating_sub(headers);
        self.rx.nxt = 1;
    }

    /// The handshake is over: the sender starts.
    fn open(&mut self, seg: &Segment) {
        self.phase = Phase::Open;
        self.timers.syn = u64::MAX;
        self.established_at = Some(Time(self.now));
        self.una = 1;
        self.nxt = 1;
        self.snd_wl1 = seg.seq;
        self.snd_wnd = u64::from(seg.window);
        self.max_window = self.max_window.max(self.snd_wnd);
        self.wnd_end = self.una + self.snd_wnd;
        if let (Some(sent), 0) = (self.syn_sent_at, self.syn_retries) {
            let us = (self.now - sent) / NS_PER_US;
            self.rtt.sample_min(self.now_us, us);
            self.rtt.sample(us, self.una, self.nxt);
            self.stats.rtt_sample(us);
        }
        self.rx.start(&self.cfg, self.mss, self.now);
        let mss = self.mss;
        let (srtt, min) = (self.rtt.srtt_us8(), self.rtt.min_us());
        let now_us = self.now_us;
        // RFC 6298, 5.7, and Linux tcp_init_transfer: a SYN lost more than once means a window of 1.
        let cwnd = if self.syn_retries > 1 { 1 } else { self.cfg.initial_cwnd.max(1) };
        let ssthresh = self.cfg.initial_ssthresh.unwrap_or(INFINITE_SSTHRESH);
        let clamp = self.cfg.cwnd_clamp.unwrap_or(u32::MAX).max(1);
        let (longest_packet, is_paced) = (self.bursts.max_bytes, self.paced);
        let s = self.sock();
        // As SO_MAX_PACING_RATE and sch_fq set sk_pacing_status: CUBIC's HyStart expects longer trains of ACKs then.
        s.pacing_status = u8::from(is_paced);
        s.mss_cache = mss;
        s.snd_una = 1;
        s.snd_nxt = 1;
        s.srtt_us = srtt;
        s.min_rtt_us = min;
        s.tcp_mstamp_us = now_us;
        s.delivered_mstamp_us = now_us;
        s.snd_cwnd = cwnd.min(clamp);
        s.snd_ssthresh = ssthresh;
        s.snd_cwnd_clamp = clamp;
        s.gso_max_bytes = longest_packet;
        self.cwnd_stamp_ns = self.now;
        self.cc.init();
        self.check_app_limited();
    }
}
