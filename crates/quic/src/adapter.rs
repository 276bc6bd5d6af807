//! A congestion control of `congestion/` under QUIC's loss recovery (RFC 9002): the calls that Linux's TCP would make.
//!
//! quinn tells of an ACK in pieces: each packet, the end of the ACK, then what the ACK shows to be lost or marked. The
//! pieces are gathered, and the hooks are called when the next thing happens, in Linux's order (tcp_ack).

use crate::bursts::{Burst, Bursts};
use congestion::{ack_flags, AckSample, CaEvent, CaState, CcSock, Controller, RateSample, INFINITE_SSTHRESH};
use tcp::{halve_per_idle_rto, note_window_use, pacing_rate, prr_window, PrrStep, RttEstimator};
use units::Span;

/// First window (RFC 6928, 2; RFC 9002, 7.2), segments.
pub(crate) const INITIAL_WINDOW: u32 = 10;
/// Least window (RFC 9002, 7.2: kMinimumWindow), segments. Linux goes down to 1.
const MINIMUM_WINDOW: u32 = 2;
/// The connection's clock at its start: 0 means "none" in some fields.
pub(crate) const CLOCK_START_NS: u64 = 1_000_000_000;
const NS_PER_US: u64 = 1_000;
/// Bits of `ack_flags` that `cong_control` is given (Linux FLAG_*).
const FLAG_DATA_ACKED: u32 = 0x04;
const FLAG_ECE: u32 = 0x40;
const FLAG_SND_UNA_ADVANCED: u32 = 0x400;
/// Least time for which pacing may fall behind and then catch up: ACKs, and a busy host's threads, come that late.
const PACING_SLACK_NS: u64 = 4_000_000;
/// The same as a share of the RTT: a quarter bounds bursts to a third of the window; half where the algorithm's own
/// rate is all that goes, so that lateness would lower the rate that it finds.
const PACING_SLACK: u64 = 4;
const OWN_RATE_SLACK: u64 = 2;
/// `pacing_status` where something below paces (Linux SK_PACING_FQ).
const PACED_BELOW: u8 = 2;
/// A window that quinn's pacer does not pace (quinn-proto, Pacer::delay: beyond 2^32).
const UNPACED: u64 = 1 << 40;
/// quinn sends as many packets at once.
const BURST_SEGMENTS: u64 = 10;

/// An ACK, gathered.
#[derive(Clone, Copy, Debug, Default)]
struct Ack {
    now_ns: u64,
    bytes: u64,
    /// Moments at which the oldest and the newest packet were sent, ns.
    oldest_ns: u64,
    newest_ns: u64,
    newest: Option<Burst>,
    /// Highest number acknowledged.
    end: u64,
    in_flight_after: u64,
    app_limited: bool,
    lost: Lost,
    marked: bool,
}

/// Packets lost, gathered.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    bytes: u64,
    newest_ns: u64,
    persistent: bool,
}

/// A control on one connection. Times in ns since the connection's start.
#[derive(Debug)]
pub(crate) struct Adapter {
    cc: Controller,
    mtu: u64,
    /// Window that the last change of the MTU gave, segments, and the bytes that it stands for.
    rescaled: (u32, u64),
    /// `init` was called: the first ACK, the handshake's, has come.
    started: bool,
    now_ns: u64,
    bursts: Bursts,
    sent: u64,
    una: u64,
    /// Bytes of ack-eliciting packets in flight, as far as this side knows: exact when an ACK has come.
    in_flight: u64,
    rtt: RttEstimator,
    /// Bytes delivered or lost that are not counted in segments yet; below 0: counted too early.
    uncounted_delivered: i64,
    uncounted_lost: i64,
    ack: Ack,
    /// `ack` waits for its hooks.
    waiting: bool,
    /// The reduction began here, ns: a packet sent later ends it.
    reduced_ns: u64,
    prr_delivered: u32,
    prr_out_bytes: u64,
    /// Number of a byte: once acknowledged, whether the window limits is judged anew (Linux cwnd_usage_seq).
    usage_end: u64,
    /// Bytes that pacing allows, by the algorithm or the user; below 0: sent in advance.
    tokens: i64,
    refilled_ns: u64,
    /// The user's limit, bytes/s; `u64::MAX`: none.
    limit: u64,
    /// Tokens, not the window, were missing since the last ACK.
    was_held: bool,
    /// Questions for the window since the last event.
    asked: u32,
}

impl Adapter {
    /// A fresh connection; `mtu`: bytes of the largest UDP payload.
    pub fn new(mut cc: Controller, mtu: u16) -> Adapter {
        let mtu = u64::from(mtu.max(1));
        let s = cc.sock_mut();
        s.snd_cwnd = INITIAL_WINDOW;
        s.mss_cache = mtu as u32;
        s.gso_max_bytes = (BURST_SEGMENTS * mtu) as u32;
        s.tcp_mstamp_us = CLOCK_START_NS / NS_PER_US;
        s.pacing_status = PACED_BELOW;
        Adapter {
            cc,
            mtu,
            rescaled: (0, 0),
            started: false,
            now_ns: CLOCK_START_NS,
            bursts: Bursts::default(),
            sent: 0,
            una: 0,
            in_flight: 0,
            // As crates/tcp: RFC 6298, 2.1, and Linux's TCP_RTO_MIN and TCP_RTO_MAX.
            rtt: RttEstimator::new(Span::from_secs(1), Span::from_millis(200), Span::from_secs(120)),
            uncounted_delivered: 0,
            uncounted_lost: 0,
            ack: Ack::default(),
            waiting: false,
            reduced_ns: 0,
            prr_delivered: 0,
            prr_out_bytes: 0,
            usage_end: 0,
            tokens: (BURST_SEGMENTS * mtu) as i64,
            refilled_ns: CLOCK_START_NS,
            limit: u64::MAX,
            was_held: false,
            asked: 0,
        }
    }

    /// The sender as the algorithm sees it.
    pub fn sock(&self) -> &CcSock {
        self.cc.sock()
    }

    /// A copy for another path, which goes on from here.
    pub fn duplicate(&self) -> Adapter {
        let algorithm = self.cc.algorithm();
        let mut cc = Controller::new(algorithm, &Default::default()).expect("no parameter can be wrong");
        *cc.sock_mut() = self.cc.sock().clone();
        Adapter { cc, bursts: self.bursts.clone(), rtt: self.rtt.clone(), ..*self }
    }

    /// Packets were sent at once.
    pub fn handle_sent(&mut self, now_ns: u64, bytes: u64) {
        self.finish_ack();
        // ACKs alone are not congestion controlled (RFC 9002, 7), and quinn does not tell them apart. A little data
        // taken for one is made up for by the next ACK.
        if bytes < self.mtu / 3 {
            return;
        }
        let now_ns = self.set_now(now_ns);
        let now_us = now_ns / NS_PER_US;
        let idle = self.in_flight == 0;
        if idle && self.started {
            self.restart_after_idle();
            self.cc.cwnd_event(CaEvent::TxStart);
        }
        let s = self.cc.sock_mut();
        if idle {
            s.first_tx_mstamp_us = now_us;
            s.delivered_mstamp_us = now_us;
        }
        if let Some(burst) = self.bursts.at(now_ns) {
            burst.bytes += bytes;
        } else {
            self.bursts.push(Burst {
                sent_ns: now_ns,
                start: self.sent,
                bytes,
                acked: 0,
                delivered: s.delivered,
                delivered_ce: s.delivered_ce,
                delivered_us: s.delivered_mstamp_us,
                first_tx_us: s.first_tx_mstamp_us,
                app_limited: s.app_limited != 0,
            });
        }
        self.sent += bytes;
        self.in_flight += bytes;
        self.prr_out_bytes += bytes;
        s.lsndtime_us = now_us;
        s.snd_nxt = self.sent as u32;
        self.count_in_flight();
        if let Some(rate) = self.token_rate() {
            self.refill(rate);
            self.tokens -= bytes as i64;
            let debt = u64::try_from(-self.tokens).unwrap_or(0);
            self.cc.sock_mut().next_send_us = now_us + debt.saturating_mul(1_000_000) / rate;
        }
    }

    /// A packet sent at `sent_ns` is acknowledged.
    pub fn handle_acked(&mut self, now_ns: u64, sent_ns: u64, bytes: u64) {
        self.finish_ack();
        let (now_ns, sent_ns) = (self.set_now(now_ns), CLOCK_START_NS + sent_ns);
        let a = &mut self.ack;
        if a.bytes == 0 {
            *a = Ack { now_ns, oldest_ns: sent_ns, ..Ack::default() };
        }
        a.bytes += bytes;
        a.oldest_ns = a.oldest_ns.min(sent_ns);
        let burst = self.bursts.acknowledge(sent_ns, bytes);
        if let Some(burst) = burst {
            a.end = a.end.max(burst.start + burst.acked);
        }
        if sent_ns >= a.newest_ns {
            a.newest_ns = sent_ns;
            a.newest = burst;
        }
    }

    /// The ACK is at its end; `in_flight`: bytes after it.
    pub fn handle_end_acks(&mut self, in_flight: u64, app_limited: bool) {
        self.in_flight = in_flight;
        self.asked = 0;
        if self.ack.bytes > 0 {
            self.ack.in_flight_after = in_flight;
            self.ack.app_limited = app_limited;
            self.waiting = true;
        }
    }

    /// Packets are lost, the newest of them sent at `sent_ns`; 0 bytes: a packet sent then met congestion.
    pub fn handle_congestion(&mut self, now_ns: u64, sent_ns: u64, persistent: bool, lost_bytes: u64) {
        if self.waiting && self.ack.now_ns != CLOCK_START_NS + now_ns {
            self.finish_ack();
        }
        let sent_ns = CLOCK_START_NS + sent_ns;
        self.set_now(now_ns);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        if self.waiting {
            let a = &mut self.ack;
            if lost_bytes == 0 {
                a.marked = true;
            } else {
                a.lost.bytes += lost_bytes;
                a.lost.newest_ns = a.lost.newest_ns.max(sent_ns);
                a.lost.persistent |= persistent;
            }
            return;
        }
        self.start();
        if lost_bytes == 0 {
            self.enter_cwr(sent_ns);
            return;
        }
        // By its timer, as Linux's tcp_rack_reo_timeout.
        self.count_lost(lost_bytes);
        self.react(Lost { bytes: lost_bytes, newest_ns: sent_ns, persistent });
    }

    /// Packets have another size from now on.
    pub fn handle_mtu(&mut self, mtu: u16) {
        self.finish_ack();
        let mtu = u64::from(mtu.max(1));
        if mtu == self.mtu {
            return;
        }
        // As many bytes as before (Linux tcp_mtup_probe_success), also after the many steps of a search.
        let old = self.mtu;
        let rescaled = |bytes: u64| u32::try_from((bytes / mtu).max(1)).unwrap_or(u32::MAX);
        let s = self.cc.sock_mut();
        if s.snd_cwnd != self.rescaled.0 {
            self.rescaled.1 = u64::from(s.snd_cwnd) * old;
        }
        s.snd_cwnd = rescaled(self.rescaled.1);
        self.rescaled.0 = s.snd_cwnd;
        if s.snd_ssthresh < INFINITE_SSTHRESH {
            s.snd_ssthresh = rescaled(u64::from(s.snd_ssthresh) * old).max(MINIMUM_WINDOW);
        }
        s.snd_cwnd_cnt = 0;
        s.mss_cache = mtu as u32;
        s.gso_max_bytes = (BURST_SEGMENTS * mtu) as u32;
        self.mtu = mtu;
        self.count_in_flight();
    }

    /// Calls the hooks for the ACK gathered, if there is one. Nothing more belongs to it.
    #[inline]
    pub fn finish_ack(&mut self) {
        if self.waiting {
            self.process_ack();
        }
    }

    /// Bytes that may be in flight, by the window alone.
    pub fn window_bytes(&self) -> u64 {
        u64::from(self.cc.sock().snd_cwnd.max(MINIMUM_WINDOW)) * self.mtu
    }

    /// Most bytes per second from now on.
    pub fn set_limit(&mut self, bytes_per_s: u64) {
        self.limit = bytes_per_s;
    }

    /// Rate at which tokens come, bytes/s: the algorithm's or, for one that sets none, Linux's rule for its window; and
    /// the user's limit.
    fn token_rate(&self) -> Option<u64> {
        let rate = self.cc.sock().pacing_rate.min(self.limit);
        (rate != u64::MAX && rate != 0).then_some(rate)
    }

    /// The answer to quinn, which asks twice per packet: whether what is in flight leaves room below this, and then for
    /// its own pacer, which is to do nothing. Events begin a new count.
    pub fn answer(&mut self) -> u64 {
        let built = u64::from(self.asked / 2) * self.mtu;
        let is_for_pacer = self.asked % 2 == 1;
        self.asked += 1;
        if self.is_held(built) {
            return 1;
        }
        let window = self.window_bytes();
        if is_for_pacer && self.in_flight + built + self.mtu <= window {
            return UNPACED;
        }
        // quinn sends while what is in flight with one packet more is below the window, not at it.
        window + 1
    }

    /// Pacing holds the next packet back, after `built` bytes that are not told as sent yet. It is asked again at the
    /// next ACK: quinn has no timer for it.
    fn is_held(&mut self, built: u64) -> bool {
        let Some(rate) = self.token_rate() else { return false };
        // With less in flight no ACK may come that would ask again.
        if self.in_flight + built < u64::from(MINIMUM_WINDOW) * self.mtu {
            return false;
        }
        self.refill(rate);
        let held = self.tokens <= built as i64;
        // Linux's rule for the window is above what the window gives: it does not limit the sender (RFC 9002, 7.8).
        self.was_held |= held && (self.cc.has_cong_control() || rate == self.limit);
        held
    }

    fn refill(&mut self, rate: u64) {
        let elapsed = self.now_ns.saturating_sub(self.refilled_ns);
        let rtt_ns = u64::from(self.cc.sock().srtt_us >> 3) * NS_PER_US;
        let share = if self.cc.has_cong_control() { OWN_RATE_SLACK } else { PACING_SLACK };
        let slack_ns = PACING_SLACK_NS.max(rtt_ns / share);
        let tokens = |ns: u64| i64::try_from(u128::from(rate) * u128::from(ns) / 1_000_000_000).unwrap_or(i64::MAX);
        let most = tokens(slack_ns).max((BURST_SEGMENTS * self.mtu) as i64);
        self.tokens = self.tokens.saturating_add(tokens(elapsed)).min(most);
        self.refilled_ns = self.now_ns;
    }

    /// Moves the clock on; returns it.
    fn set_now(&mut self, now_ns: u64) -> u64 {
        self.asked = 0;
        self.now_ns = self.now_ns.max(CLOCK_START_NS + now_ns);
        self.cc.sock_mut().tcp_mstamp_us = self.now_ns / NS_PER_US;
        self.now_ns
    }

    fn count_in_flight(&mut self) {
        // Rounded, as a short packet is one too; something is at least one.
        let segments = ((self.in_flight + self.mtu / 2) / self.mtu).max(u64::from(self.in_flight > 0));
        self.cc.sock_mut().packets_out = segments as u32;
    }

    fn count_lost(&mut self, bytes: u64) -> u32 {
        let segments = whole_segments(&mut self.uncounted_lost, bytes, self.mtu);
        let s = self.cc.sock_mut();
        s.lost = s.lost.wrapping_add(segments);
        self.count_in_flight();
        segments
    }

    /// The connection stands.
    fn start(&mut self) {
        if !self.started {
            self.started = true;
            self.cc.init();
        }
    }

    /// RFC 5681, 4.1, as Linux's tcp_cwnd_restart: the window halves per RTO of idleness.
    fn restart_after_idle(&mut self) {
        let s = self.cc.sock();
        if self.cc.has_cong_control() || s.lsndtime_us == 0 {
            return;
        }
        let rto = (self.rtt.rto_ns() / NS_PER_US).max(1);
        let idle = s.tcp_mstamp_us.saturating_sub(s.lsndtime_us);
        if idle <= rto {
            return;
        }
        self.cc.cwnd_event(CaEvent::CwndRestart);
        let s = self.cc.sock_mut();
        // Linux tcp_current_ssthresh.
        s.snd_ssthresh = s.snd_ssthresh.max((s.snd_cwnd >> 1) + (s.snd_cwnd >> 2));
        halve_per_idle_rto(s, idle, rto, INITIAL_WINDOW);
    }

    /// Notes whether the window or the application is the limit (Linux tcp_cwnd_validate). `packets_out` is still that
    /// from before the ACK.
    fn validate(&mut self, limited: bool) {
        let s = self.cc.sock_mut();
        self.usage_end = note_window_use(s, self.una, self.sent, self.usage_end, limited);
    }

    #[inline(never)]
    fn process_ack(&mut self) {
        let a = std::mem::take(&mut self.ack);
        self.waiting = false;
        let prior_in_flight = a.in_flight_after + a.bytes;
        (self.in_flight, self.now_ns) = (prior_in_flight, a.now_ns);
        self.count_in_flight();
        let held = std::mem::take(&mut self.was_held);
        self.validate(!a.app_limited && !held);
        let prior_packets = self.cc.sock().packets_out;
        let prior_delivered = self.cc.sock().delivered;
        let mut flag = FLAG_DATA_ACKED;
        if self.started {
            let mut event = ack_flags::WIN_UPDATE;
            if a.lost.bytes > 0 || a.marked {
                event = ack_flags::SLOWPATH | if a.marked { ack_flags::ECE } else { 0 };
            }
            self.cc.in_ack_event(event);
        }
        if a.end > self.una {
            self.una = a.end;
            self.cc.sock_mut().snd_una = a.end as u32;
            flag |= FLAG_SND_UNA_ADVANCED;
        }
        let acked = whole_segments(&mut self.uncounted_delivered, a.bytes, self.mtu);
        let s = self.cc.sock_mut();
        let prior_delivered_ce = s.delivered_ce;
        s.delivered = s.delivered.wrapping_add(acked);
        if a.marked {
            // As Linux without AccECN: all that an ACK with ECN-Echo delivers.
            s.delivered_ce = s.delivered_ce.wrapping_add(acked);
            flag |= FLAG_ECE;
        }
        self.in_flight = a.in_flight_after;
        self.count_in_flight();
        let rtt_us = self.measure(&a);
        if !self.started {
            // The handshake's: it raises nothing, as in Linux.
            self.cc.sock_mut().delivered_mstamp_us = a.now_ns / NS_PER_US;
            self.start();
            return;
        }
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: i32::try_from(rtt_us).unwrap_or(i32::MAX),
            in_flight: prior_packets,
        };
        self.cc.pkts_acked(&sample);
        self.in_flight = a.in_flight_after.saturating_sub(a.lost.bytes);
        let losses = self.count_lost(a.lost.bytes);
        self.end_reduction(a.newest_ns);
        if a.lost.bytes > 0 {
            self.react(a.lost);
        } else if a.marked {
            self.enter_cwr(a.newest_ns);
        }
        let mut rs = self.rate_sample(&a, prior_delivered, prior_delivered_ce);
        rs.rtt_us = rtt_us as i64;
        rs.losses = losses as i32;
        rs.prior_in_flight = prior_packets;
        self.control(acked, losses, flag, &rs);
        // Packets as old as this are acknowledged or given up (RFC 9002, 6.1.2: 9/8 of an RTT).
        let rtt_ns = u64::from(self.cc.sock().srtt_us >> 3) * NS_PER_US;
        self.bursts.forget(a.newest_ns.saturating_sub(2 * rtt_ns));
        if a.app_limited {
            self.check_app_limited();
        }
    }

    /// RTT of the newest packet, us, into the estimates as Linux's tcp_ack_update_rtt: the smoothed one from the
    /// oldest packet. Without Karn's rule: a packet's number is never used again.
    fn measure(&mut self, a: &Ack) -> u64 {
        let newest = (a.now_ns - a.newest_ns.min(a.now_ns)) / NS_PER_US;
        let oldest = (a.now_ns - a.oldest_ns.min(a.now_ns)) / NS_PER_US;
        self.rtt.sample_min(a.now_ns / NS_PER_US, newest);
        self.rtt.sample(oldest, self.una, self.sent);
        let s = self.cc.sock_mut();
        s.srtt_us = self.rtt.srtt_us8();
        s.min_rtt_us = self.rtt.min_us();
        newest
    }

    /// As Linux's tcp_rate_gen.
    fn rate_sample(&mut self, a: &Ack, prior_delivered: u32, prior_delivered_ce: u32) -> RateSample {
        let now_us = a.now_ns / NS_PER_US;
        let s = self.cc.sock_mut();
        let acked = s.delivered.wrapping_sub(prior_delivered);
        if s.app_limited != 0 && (s.delivered.wrapping_sub(s.app_limited) as i32) > 0 {
            s.app_limited = 0;
        }
        let mut rs = RateSample {
            delivered: -1,
            interval_us: -1,
            acked_sacked: acked,
            prior_delivered_ce,
            ..RateSample::default()
        };
        if let Some(burst) = a.newest {
            let tx_us = burst.sent_ns / NS_PER_US;
            s.first_tx_mstamp_us = tx_us;
            rs.prior_delivered = burst.delivered;
            rs.prior_delivered_ce = burst.delivered_ce;
            rs.prior_mstamp_us = burst.delivered_us;
            rs.is_app_limited = u8::from(burst.app_limited);
            rs.last_end_seq = (burst.start + burst.acked) as u32;
            rs.delivered = s.delivered.wrapping_sub(burst.delivered) as i32;
            rs.delivered_ce = s.delivered_ce.wrapping_sub(burst.delivered_ce) as i32;
            let send_us = tx_us.saturating_sub(burst.first_tx_us);
            let ack_us = now_us.saturating_sub(burst.delivered_us);
            rs.snd_interval_us = u32::try_from(send_us).unwrap_or(u32::MAX);
            rs.rcv_interval_us = u32::try_from(ack_us).unwrap_or(u32::MAX);
            rs.interval_us = i64::try_from(send_us.max(ack_us)).unwrap_or(i64::MAX);
            if rs.interval_us < i64::from(s.min_rtt_us) {
                rs.interval_us = -1;
            }
        }
        if acked > 0 {
            s.delivered_mstamp_us = now_us;
        }
        rs
    }

    /// Linux tcp_rate_check_app_limited: samples tell nothing of the path until what is in flight is delivered.
    fn check_app_limited(&mut self) {
        let s = self.cc.sock_mut();
        if s.packets_out < s.snd_cwnd {
            s.app_limited = s.delivered.wrapping_add(s.packets_out).max(1);
        }
    }

    fn state(&self) -> u8 {
        self.cc.sock().ca_state
    }

    fn is_reducing(&self) -> bool {
        self.state() == CaState::Recovery as u8 || self.state() == CaState::Cwr as u8
    }

    /// A packet sent after the reduction began was acknowledged: it is over (RFC 9002, 7.3.2).
    fn end_reduction(&mut self, newest_ns: u64) {
        if self.state() == CaState::Open as u8 || newest_ns <= self.reduced_ns {
            return;
        }
        if self.is_reducing() && !self.cc.has_cong_control() {
            let s = self.cc.sock_mut();
            if s.snd_ssthresh < INFINITE_SSTHRESH {
                s.snd_cwnd = s.snd_ssthresh.max(1);
            }
            self.cc.cwnd_event(CaEvent::CompleteCwr);
        }
        self.cc.set_state(CaState::Open);
    }

    /// Packets were lost: one reduction per round trip (RFC 9002, 7.3.2), all over at persistent congestion (7.6).
    fn react(&mut self, lost: Lost) {
        if lost.persistent {
            self.enter_loss();
        } else if lost.newest_ns > self.reduced_ns && self.state() < CaState::Recovery as u8 {
            if self.state() != CaState::Cwr as u8 {
                self.begin_reduction();
            }
            self.cc.set_state(CaState::Recovery);
        }
    }

    fn enter_cwr(&mut self, sent_ns: u64) {
        if self.state() < CaState::Cwr as u8 && sent_ns > self.reduced_ns {
            self.begin_reduction();
            self.cc.set_state(CaState::Cwr);
        }
    }

    /// Linux tcp_init_cwnd_reduction.
    fn begin_reduction(&mut self) {
        self.reduced_ns = self.now_ns;
        self.prr_delivered = 0;
        self.prr_out_bytes = 0;
        let s = self.cc.sock_mut();
        s.snd_cwnd_cnt = 0;
        s.prior_cwnd = s.snd_cwnd;
        let ssthresh = self.cc.ssthresh();
        self.cc.sock_mut().snd_ssthresh = ssthresh;
    }

    /// Linux tcp_enter_loss.
    fn enter_loss(&mut self) {
        let state = self.state();
        if state <= CaState::Cwr as u8 || state == CaState::Loss as u8 {
            let s = self.cc.sock_mut();
            s.prior_cwnd = s.snd_cwnd;
            let ssthresh = self.cc.ssthresh();
            self.cc.sock_mut().snd_ssthresh = ssthresh;
            self.cc.cwnd_event(CaEvent::Loss);
        }
        let s = self.cc.sock_mut();
        s.snd_cwnd = s.packets_out + 1;
        s.snd_cwnd_cnt = 0;
        self.reduced_ns = self.now_ns;
        self.cc.set_state(CaState::Loss);
    }

    /// Linux tcp_cong_control: the algorithm's own, or PRR while reducing, or growth.
    fn control(&mut self, acked: u32, losses: u32, flag: u32, rs: &RateSample) {
        let ack = self.una as u32;
        if self.cc.has_cong_control() {
            self.cc.cong_control(ack, flag, rs);
            self.clamp();
            return;
        }
        if self.is_reducing() {
            self.prr_delivered += acked;
            if acked > 0 && self.cc.sock().prior_cwnd > 0 {
                let step = PrrStep {
                    delivered: self.prr_delivered,
                    out: u32::try_from(self.prr_out_bytes.div_ceil(self.mtu)).unwrap_or(u32::MAX),
                    acked_sacked: acked,
                    speeds_up: losses == 0,
                };
                let window = prr_window(self.cc.sock(), step);
                self.cc.sock_mut().snd_cwnd = window;
            }
        } else if acked > 0 {
            self.cc.cong_avoid(ack, acked);
            self.clamp();
        }
        let s = self.cc.sock_mut();
        if s.srtt_us != 0 {
            s.pacing_rate = pacing_rate(s);
        }
    }

    fn clamp(&mut self) {
        let s = self.cc.sock_mut();
        s.snd_cwnd = s.snd_cwnd.clamp(1, s.snd_cwnd_clamp);
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if self.started {
            self.cc.release();
        }
    }
}

/// Bytes in whole segments, rounded; the remainder is kept for the next time.
fn whole_segments(uncounted: &mut i64, bytes: u64, mtu: u64) -> u32 {
    *uncounted += bytes as i64;
    let segments = ((*uncounted + mtu as i64 / 2) / mtu as i64).max(0);
    *uncounted -= segments * mtu as i64;
    segments as u32
}

#[cfg(test)]
mod tests;
