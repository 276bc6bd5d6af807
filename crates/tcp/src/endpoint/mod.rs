//! The endpoint: its state, and the four kinds of methods.

mod ack;
mod ack_run;
pub(crate) mod ack_state;
mod arrival;
mod burst_state;
mod ca_state;
mod data_run;
mod fast_path;
mod getters;
mod handshake;
mod held_run;
#[cfg(debug_assertions)]
mod invariants;
mod output;
mod path_change_hint;
mod path_change_state;
mod rate;
mod receive;
mod receiver;
mod segmentation;
#[cfg(test)]
mod tests;
mod timer_run;
pub(crate) mod timer_state;
mod timers;
mod train;
mod window;

#[cfg(doc)]
use crate::config::Reader;
use crate::config::{Config, Count, Recovery};
use crate::consts::{NS_PER_MS, NS_PER_US, TIMEOUT_INIT, TIMESTAMP_OFFSET};
use crate::ranges::RangeSet;
use crate::recovery::copies_state::Copies;
use crate::recovery::rack_state::Rack;
use crate::rtt::RttEstimator;
use crate::scoreboard::{LostQueue, Ring};
use crate::segment::{flags, SackBlock, Segment, MAX_SACK_BLOCKS};
use crate::stats::Stats;
pub use arrival::{Arrival, Output};
use burst_state::Bursts;
use congestion::{CaState, CcSock, Controller};
pub use path_change_state::CwndReduction;
use path_change_state::PathChangeHint;
use receiver::Receiver;
use timer_state::Timers;
use units::Time;

/// State of a connection (RFC 9293, 3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Made, and not yet told to connect; or done.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received, SYN-ACK sent.
    SynReceived,
    /// Open both ways.
    Established,
    /// Our FIN is sent.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// Both FINs crossed; ours is not yet acknowledged.
    Closing,
    /// Both sides are done; late segments are still answered.
    TimeWait,
    /// The peer's FIN has come.
    CloseWait,
    /// The peer's FIN has come, ours is sent.
    LastAck,
}

/// Phase of the connection; FINs have flags of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Open,
}

/// Retransmissions that the last ACK allows (Linux REXMIT_*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rexmit {
    /// Nothing.
    None,
    /// Lost segments.
    Lost,
    /// New data first: F-RTO's test (RFC 5682, 2.1, step 2b).
    New,
}

/// Segments that [`Endpoint::poll_train`] hands out together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Train {
    /// Their number.
    pub segments: u32,
    /// True if there may be more to send. False spares a further call, which would see the end of the burst twice.
    pub more: bool,
}

impl Train {
    pub(crate) const NONE: Train = Train { segments: 0, more: false };
    pub(crate) const ONE: Train = Train { segments: 1, more: true };
}

/// One end of a connection. See the crate's documentation for the order of calls.
///
/// Fields are ordered by use, so that a packet touches few cache lines when a thousand flows share the cache: fields
/// of every segment first, then the receiver, then the sender from in-order ACKs to loss recovery.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    pub(crate) phase: Phase,
    pub(crate) timestamps: bool,
    pub(crate) ipv6: bool,
    /// Recovery in force: NewReno when the peer does not do SACK.
    pub(crate) recovery: Recovery,
    pub(crate) rexmit: Rexmit,
    /// A zero-window probe is to be sent.
    pub(crate) probe_pending: bool,
    /// A tail loss probe is to be sent.
    pub(crate) tlp_probe: bool,
    pub(crate) fin_queued: bool,
    pub(crate) fin_sent: bool,
    pub(crate) fin_acked: bool,
    /// The application found the send buffer full.
    pub(crate) nospace: bool,
    /// Settings that every segment reads.
    pub(crate) paced: bool,
    /// Upper bound of the pacing rate, bytes/s.
    pub(crate) max_pacing: u64,
    pub(crate) fast_retransmit: bool,
    /// Payload of a full segment.
    pub(crate) mss: u32,
    /// Time of the current call, ns and us.
    pub(crate) now: u64,
    pub(crate) now_us: u64,
    /// First unacknowledged byte.
    pub(crate) una: u64,
    /// Next byte to send.
    pub(crate) nxt: u64,
    /// End of the application's data.
    pub(crate) write_seq: u64,
    /// Window offered by the peer, bytes.
    pub(crate) snd_wnd: u64,
    pub(crate) rx: Receiver,
    pub(crate) timers: Timers,
    // cwnd validation.
    pub(crate) cwnd_usage_seq: u64,
    pub(crate) cwnd_stamp_ns: u64,
    pub(crate) stats: Stats,
    /// First byte beyond the peer's window.
    pub(crate) wnd_end: u64,
    /// Number of the segment that last changed it.
    pub(crate) snd_wl1: u64,
    /// Highest end of anything ever retransmitted.
    pub(crate) retrans_end: u64,
    /// Outstanding tail loss probe: end of data when it was sent; 0 = none.
    pub(crate) tlp_high_seq: u64,
    /// RFC 6675 loss marking: next entry to judge, and SACKed entries at or above it.
    pub(crate) mark_cursor: u64,
    pub(crate) sacked_above: u32,
    /// Consecutive time-outs without progress.
    pub(crate) retransmits: u32,
    /// Timestamp echoed by the last ACK, ms; 0 = none.
    pub(crate) last_ecr: u32,
    /// Something was sent since the last time nothing could be sent.
    pub(crate) burst: bool,
    /// The window grows as in ns-2: once for each ACK, or used or not.
    pub(crate) old_growth: bool,
    pub(crate) bursts: Bursts,
    /// Window for which the pacing rate was computed last.
    pub(crate) paced_cwnd: u32,
    pub(crate) cwnd_used: u32,
    pub(crate) ring: Ring,
    pub(crate) rtt: RttEstimator,
    pub(crate) cc: Controller,
    pub(crate) rack: Rack,
    /// Ranges that the peer has SACKed.
    pub(crate) sacked: RangeSet,
    pub(crate) lost: LostQueue,
    /// End of the episode that loss recovery is in (Linux high_seq).
    pub(crate) high_seq: u64,
    /// Retransmissions allowed whatever the window: the fast retransmit itself.
    pub(crate) forced: u32,
    /// Duplicate ACK threshold now in force, raised by reordering seen.
    pub(crate) reordering: u32,
    pub(crate) reord_seen: bool,
    pub(crate) tlp_retrans: bool,
    pub(crate) frto: bool,
    // PRR (RFC 6937).
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    // Undo.
    pub(crate) prior_ssthresh: u32,
    /// First byte of the episode that may be undone; 0 = none.
    pub(crate) undo_marker: u64,
    /// Retransmissions not yet reported as duplicates; -1 = none made yet.
    pub(crate) undo_retrans: i64,
    /// Timestamp of the first retransmission of the episode, ms; 0 = none.
    pub(crate) retrans_stamp: u32,
    /// Consecutive zero-window probes unanswered.
    pub(crate) backoff: u32,
    pub(crate) total_retrans: u64,
    pub(crate) dsack_dups: u64,
    pub(crate) pace_next_ns: u64,
    /// Largest window the peer has offered.
    pub(crate) max_window: u64,
    /// Blocks of the last ACK, which are known already.
    pub(crate) last_sacks: [SackBlock; MAX_SACK_BLOCKS],
    /// End of the segment that was SACKed last, and the entry that begins there.
    pub(crate) sack_hint: (u64, u64),
    /// Scratch for newly covered ranges.
    pub(crate) fresh: Vec<(u64, u64)>,
    pub(crate) path_change_hint: PathChangeHint,
    /// Retransmissions that are judged without RACK.
    pub(crate) copies: Copies,
    pub(crate) cfg: Config,
    // Handshake.
    pub(crate) client: bool,
    pub(crate) syn_pending: bool,
    pub(crate) syn_retries: u32,
    pub(crate) syn_sent_at: Option<u64>,
    pub(crate) established_at: Option<Time>,
    /// Disables the fast paths of ACKs and trains, so that tests can compare.
    #[cfg(test)]
    pub(crate) slow_path_only: bool,
}

impl Endpoint {
    /// The end that opens the connection, when told to [`Endpoint::connect`].
    pub fn new_client(cfg: Config, cc: Controller, now: Time) -> Endpoint {
        Endpoint::new(cfg, cc, now, true)
    }

    /// The end that accepts the first SYN it is handed.
    pub fn new_server(cfg: Config, cc: Controller, now: Time) -> Endpoint {
        Endpoint::new(cfg, cc, now, false)
    }

    fn new(cfg: Config, cc: Controller, now: Time, client: bool) -> Endpoint {
        let rtt = RttEstimator::new(TIMEOUT_INIT, cfg.rto_min, cfg.rto_max);
        let rx = Receiver::new(&cfg);
        let ring = Ring::new(cc.has_cong_control());
        Endpoint {
            recovery: cfg.recovery,
            reordering: cfg.reordering,
            timestamps: cfg.timestamps,
            ipv6: cfg.ipv6,
            paced: cfg.pacing || cfg.max_pacing.is_some(),
            max_pacing: cfg.max_pacing.map_or(u64::MAX, |rate| (rate.0 / 8).max(1)),
            bursts: Bursts::new(&cfg),
            fast_retransmit: cfg.fast_retransmit,
            phase: if client { Phase::Closed } else { Phase::Listen },
            client,
            now: now.0,
            now_us: now.0 / NS_PER_US,
            cc,
            stats: Stats::default(),
            syn_pending: false,
            syn_sent_at: None,
            syn_retries: 0,
            established_at: None,
            una: 0,
            nxt: 0,
            write_seq: 1,
            fin_queued: false,
            fin_sent: false,
            fin_acked: false,
            mss: 0,
            snd_wnd: 0,
            wnd_end: 0,
            snd_wl1: 0,
            max_window: 0,
            nospace: false,
            ring,
            lost: LostQueue::default(),
            copies: Copies::default(),
            sacked: RangeSet::default(),
            last_sacks: [SackBlock::default(); MAX_SACK_BLOCKS],
            sack_hint: (0, 0),
            fresh: Vec::new(),
            high_seq: 0,
            rexmit: Rexmit::None,
            forced: 0,
            rtt,
            timers: Timers::default(),
            rack: Rack::default(),
            mark_cursor: 0,
            sacked_above: 0,
            reord_seen: false,
            tlp_high_seq: 0,
            tlp_retrans: false,
            prr_delivered: 0,
            prr_out: 0,
            prior_ssthresh: 0,
            undo_marker: 0,
            undo_retrans: -1,
            retrans_stamp: 0,
            total_retrans: 0,
            retrans_end: 0,
            paced_cwnd: 0,
            dsack_dups: 0,
            frto: false,
            retransmits: 0,
            cwnd_usage_seq: 0,
            cwnd_used: 0,
            cwnd_stamp_ns: 0,
            burst: false,
            old_growth: !cfg.cwnd_validation || cfg.count == Count::Acks,
            pace_next_ns: 0,
            probe_pending: false,
            tlp_probe: false,
            last_ecr: 0,
            backoff: 0,
            rx,
            cfg,
            path_change_hint: PathChangeHint::default(),
            #[cfg(test)]
            slow_path_only: false,
        }
    }

    // Commands.

    /// Opens the connection: a SYN is ready to be sent. Does nothing on a server or a second time.
    pub fn connect(&mut self, now: Time) {
        self.set_now(now);
        if self.client && self.phase == Phase::Closed && self.established_at.is_none() && self.syn_sent_at.is_none() {
            self.phase = Phase::SynSent;
            self.syn_pending = true;
        }
    }

    /// Hands over `bytes` of data; returns how many fit the send buffer. Before the handshake ends they wait.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.set_now(now);
        self.bursts.end_deferral();
        if self.fin_queued {
            return 0;
        }
        let accepted = bytes.min(self.send_queue_free());
        self.nospace = accepted < bytes;
        if accepted > 0 && self.phase == Phase::Open {
            self.restart_after_idle();
            self.check_app_limited();
        }
        self.write_seq = self.write_seq.saturating_add(accepted);
        accepted
    }

    /// Discards written bytes that were never sent; returns how many. For an application that stops early.
    pub fn discard_unsent(&mut self, now: Time) -> u64 {
        self.set_now(now);
        self.bursts.end_deferral();
        let kept = self.nxt.max(1).min(self.write_seq);
        let dropped = self.write_seq - kept;
        self.write_seq = kept;
        dropped
    }

    /// Sends a FIN after all that has been written.
    pub fn close(&mut self, now: Time) {
        self.set_now(now);
        self.bursts.end_deferral();
        if matches!(self.phase, Phase::Listen) {
            self.phase = Phase::Closed;
        } else {
            self.fin_queued = true;
        }
    }

    /// Takes up to `bytes` of received data ([`Reader::Manual`]); returns how many there were.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        self.set_now(now);
        let taken = bytes.min(self.rx.unread);
        self.rx.unread -= taken;
        self.after_read(taken);
        taken
    }

    /// Forgets the connection without telling the peer.
    pub fn abort(&mut self, now: Time) {
        self.set_now(now);
        self.phase = Phase::Closed;
        self.timers.clear();
        self.cc.release();
    }

    // Inputs.

    /// A segment has come from the peer.
    #[inline]
    pub fn handle_segment(&mut self, now: Time, seg: &Segment) {
        self.set_now(now);
        self.bursts.end_deferral();
        match self.phase {
            Phase::Open => self.segment_open(seg),
            _ => self.segment_handshake(seg),
        }
        #[cfg(debug_assertions)]
        self.check_invariants();
    }

    /// Takes segments that arrive, in the order of time, as far as they are the common case: ACKs at an end that only
    /// sends, or, at one that only receives, full segments in order or any behind a hole. Returns how many it took.
    ///
    /// Equals [`Endpoint::handle_segment`] for each and then [`Endpoint::poll_train`] without a limit until there is no
    /// more, at less cost: `output` gets the time, the first segment and the number of each train. It stops before a
    /// segment that is anything else, or that arrives at or after `until` or [`Endpoint::poll_timeout`]. During the
    /// call the latter only gets earlier: who reads it afterwards has missed nothing.
    #[inline]
    pub fn handle_run(&mut self, until: Time, arrivals: impl Iterator<Item = Arrival>, output: impl Output) -> usize {
        let taken = if self.may_take_acks() {
            if self.acts_as_linux() {
                self.take_acks::<true>(until, arrivals, output)
            } else {
                self.take_acks::<false>(until, arrivals, output)
            }
        } else if self.may_take_data() {
            self.take_data(until, arrivals, output)
        } else if self.may_take_held() {
            self.take_held(until, arrivals, output)
        } else {
            0
        };
        #[cfg(debug_assertions)]
        self.check_invariants();
        taken
    }

    /// The time of [`Endpoint::poll_timeout`] has come, or any other.
    pub fn handle_timeout(&mut self, now: Time) {
        self.set_now(now);
        self.run_timers();
        #[cfg(debug_assertions)]
        self.check_invariants();
    }

    // Outputs.

    /// Writes the next segment to send into `seg` and returns true; false when there is none.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, seg: &mut Segment) -> bool {
        self.poll(now, seg, 1, true).segments > 0
    }

    /// As [`Endpoint::poll_transmit`], but up to `max_segments` segments at once where they are alike: the first into
    /// `seg`; each further one begins where the one before it ends (`seq` grows by `len`) and equals it in all else.
    /// To be called until there are no more ([`Train::more`]), not again.
    #[inline]
    pub fn poll_train(&mut self, now: Time, seg: &mut Segment, max_segments: u32) -> Train {
        self.poll(now, seg, max_segments, false)
    }

    /// Sends what is to go next; `asks_again`: whatever it was, the caller asks until there is nothing.
    #[inline(always)]
    fn poll(&mut self, now: Time, seg: &mut Segment, max_segments: u32, asks_again: bool) -> Train {
        if self.is_idle() {
            return Train::NONE;
        }
        self.set_now(now);
        if self.phase == Phase::Open {
            self.transmit_open(seg, max_segments, asks_again)
        } else {
            Train { segments: u32::from(self.transmit_handshake(seg)), more: true }
        }
    }

    /// Returns whether [`Endpoint::poll_transmit`] would find a segment now; a loss probe may turn out to be none.
    pub fn has_to_transmit(&mut self, now: Time) -> bool {
        if self.is_idle() {
            return false;
        }
        self.set_now(now);
        if self.phase == Phase::Open {
            self.wants_to_transmit()
        } else {
            self.syn_pending
        }
    }

    /// Returns whether nothing is to be sent or acknowledged now: [`Endpoint::poll_transmit`] would find nothing and
    /// change nothing. So it is in a receiver most of the time, and in a sender that has sent all that was written.
    #[inline]
    pub fn is_idle(&self) -> bool {
        !self.rx.ack_now
            && self.nxt == self.write_seq
            && self.phase == Phase::Open
            && !self.fin_queued
            && !self.rx.ack_first
            && (self.una == self.nxt || self.waits_for_acks())
    }

    /// Time at which [`Endpoint::handle_timeout`] is to be called at the latest; [`Time::NEVER`] when not at all.
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        Time(self.timers.wake)
    }

    // Shared by the parts.

    #[inline]
    fn set_now(&mut self, now: Time) {
        debug_assert!(now.0 >= self.now, "time goes back: {} after {}", now.0, self.now);
        if now.0 != self.now {
            self.now = now.0;
            self.now_us = now.0 / NS_PER_US;
            self.cc.sock_mut().tcp_mstamp_us = self.now_us;
        }
    }

    #[inline]
    pub(crate) fn sock(&mut self) -> &mut CcSock {
        self.cc.sock_mut()
    }

    /// Timestamp clock, ms (RFC 7323, 5.4).
    #[inline]
    fn timestamp(&self) -> u32 {
        Endpoint::timestamp_at(self.now)
    }

    /// Flags of every segment that this end sends beside those of TCP.
    #[inline]
    fn ip_flags(&self) -> u16 {
        if self.ipv6 {
            flags::IPV6
        } else {
            0
        }
    }

    /// Flags of an ACK, or of data without PSH, by either end, once the connection is open.
    #[inline]
    fn plain_flags(&self) -> u16 {
        flags::ACK | self.ip_flags() | if self.timestamps { flags::TIMESTAMPS } else { 0 }
    }

    #[inline]
    fn timestamp_at(ns: u64) -> u32 {
        (ns / NS_PER_MS + TIMESTAMP_OFFSET) as u32
    }

    #[inline]
    pub(crate) fn ca_state(&self) -> u8 {
        self.cc.sock().ca_state
    }

    #[inline]
    pub(crate) fn is_reno(&self) -> bool {
        matches!(self.recovery, Recovery::Reno | Recovery::NewReno)
    }

    #[inline]
    pub(crate) fn in_cwnd_reduction(&self) -> bool {
        let state = self.cc.sock().ca_state;
        state == CaState::Cwr as u8 || state == CaState::Recovery as u8
    }

    /// `ssthresh` to remember when the window is about to be reduced (Linux tcp_current_ssthresh).
    pub(crate) fn current_ssthresh(&self) -> u32 {
        let s = self.cc.sock();
        if self.in_cwnd_reduction() {
            s.snd_ssthresh
        } else {
            s.snd_ssthresh.max((s.snd_cwnd >> 1) + (s.snd_cwnd >> 2))
        }
    }
}

/// Returns whether `seg` has payload or takes a number.
#[inline]
fn carries_data(seg: &Segment) -> bool {
    seg.len > 0 || seg.flags & flags::FIN != 0
}
