//! Getters of an endpoint; none changes it.

use super::{Endpoint, Phase, State};
#[cfg(doc)]
use crate::config::Reader;
use crate::stats::Stats;
use congestion::Controller;
use units::{Span, Time};

impl Endpoint {
    /// Counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The congestion control with its socket.
    pub fn controller(&self) -> &Controller {
        &self.cc
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        match self.phase {
            Phase::Closed => State::Closed,
            Phase::Listen => State::Listen,
            Phase::SynSent => State::SynSent,
            Phase::SynReceived => State::SynReceived,
            Phase::Open => match (self.fin_sent, self.fin_acked, self.rx.fin_received) {
                (false, _, false) => State::Established,
                (false, _, true) => State::CloseWait,
                (true, false, false) => State::FinWait1,
                (true, true, false) => State::FinWait2,
                (true, false, true) if self.rx.fin_first => State::LastAck,
                (true, false, true) => State::Closing,
                (true, true, true) if self.rx.fin_first => State::Closed,
                (true, true, true) => State::TimeWait,
            },
        }
    }

    /// Time at which the handshake ended at this end.
    pub fn established_at(&self) -> Option<Time> {
        self.established_at
    }

    /// Payload bytes received in order.
    #[inline]
    pub fn bytes_received(&self) -> u64 {
        self.rx.nxt.saturating_sub(1 + u64::from(self.rx.fin_received))
    }

    /// The part of the scoreboard that the next ACK looks at; for a caller that fetches memory before it is needed.
    #[inline]
    pub fn oldest_in_flight(&self) -> &[crate::scoreboard::Entry] {
        self.ring.oldest()
    }

    /// The segment that was sent last, behind which the next ones go; for such a caller.
    #[inline]
    pub fn latest_in_flight(&self) -> Option<&crate::scoreboard::Entry> {
        self.ring.latest()
    }

    /// Parts of an endpoint that ACKs of a run need, and that data needs: their places and lengths, bytes; for such a
    /// caller.
    pub const PARTS_OF_RUNS: [&'static [(usize, usize)]; 2] = {
        use std::mem::offset_of;
        let first = (0, offset_of!(Endpoint, rx) + super::receiver::Receiver::BYTES_OF_RUNS);
        let timers = (offset_of!(Endpoint, timers), offset_of!(Endpoint, stats) - offset_of!(Endpoint, timers) + 128);
        let window = (offset_of!(Endpoint, wnd_end), offset_of!(Endpoint, sacked) - offset_of!(Endpoint, wnd_end));
        [&[first, timers, window], &[first, timers]]
    };

    /// Payload bytes received in order and not yet read ([`Reader::Manual`]).
    #[inline]
    pub fn bytes_readable(&self) -> u64 {
        self.rx.unread
    }

    /// Payload bytes that the peer has acknowledged cumulatively.
    #[inline]
    pub fn bytes_acked(&self) -> u64 {
        self.una.saturating_sub(1 + u64::from(self.fin_acked))
    }

    /// Payload bytes written by the application.
    #[inline]
    pub fn bytes_written(&self) -> u64 {
        self.write_seq - 1
    }

    /// Payload bytes written and not yet sent for the first time.
    #[inline]
    pub fn bytes_unsent(&self) -> u64 {
        self.write_seq.saturating_sub(self.nxt.max(1))
    }

    /// Room in the send buffer, bytes; `u64::MAX` when it is unlimited.
    #[inline]
    pub fn send_queue_free(&self) -> u64 {
        match self.cfg.send_buffer {
            Some(size) => size.0.saturating_sub(self.write_seq - self.una.clamp(1, self.write_seq)),
            None => u64::MAX - self.write_seq,
        }
    }

    /// Smoothed RTT; none before the first sample.
    pub fn srtt(&self) -> Option<Span> {
        match self.rtt.srtt_us8() {
            0 => None,
            us8 => Some(Span::from_micros(u64::from(us8 >> 3))),
        }
    }

    /// Retransmission time-out with its backoff.
    pub fn rto(&self) -> Span {
        Span(self.timers.rto_ns(&self.rtt, &self.cfg))
    }

    /// Segments in flight as Linux estimates them.
    #[inline]
    pub fn in_flight_packets(&self) -> u64 {
        u64::from(self.cc.sock().in_flight())
    }

    /// Bytes sent and not cumulatively acknowledged.
    #[inline]
    pub fn in_flight_bytes(&self) -> u64 {
        self.nxt - self.una
    }

    /// Window that the peer offers, bytes.
    pub fn snd_wnd(&self) -> u64 {
        self.snd_wnd
    }

    /// Window that this end offers, bytes.
    pub fn rcv_wnd(&self) -> u64 {
        self.rx.current_window()
    }

    /// Payload bytes of a full segment; 0 before the handshake.
    pub fn mss(&self) -> u32 {
        self.mss
    }

    /// Duplicate ACK threshold, raised by the reordering seen.
    pub fn reordering(&self) -> u32 {
        self.reordering
    }

    /// Multiple of min_rtt / 4 that RACK waits for reordered segments.
    pub fn reo_wnd_steps(&self) -> u32 {
        self.rack.reo_wnd_steps
    }

    /// Returns whether this endpoint sends nothing more, except answers to late segments.
    pub fn is_closed(&self) -> bool {
        matches!(self.state(), State::Closed | State::TimeWait) && (self.syn_sent_at.is_some() || !self.client)
    }
}
