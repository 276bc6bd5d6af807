//! What the application at the sending end writes, and how far the receiving end has it: the same on every ground.

use crate::iscsi::ConnectionTally;
use std::collections::VecDeque;
use storage::Replay;
use units::{Histogram, Rate, Size, Span, Time, NS_PER_S};

/// The sending end of a connection, as an application sees it: a simulated endpoint or a socket.
pub trait SendingEnd {
    /// Hands over up to `bytes` of data; returns how many were taken.
    fn write(&mut self, now: Time, bytes: u64) -> u64;
    /// No more will be written: the end of the stream follows what was. May be called again, to no effect.
    fn close(&mut self, now: Time);
    /// Takes back what was written and never sent, as far as this end can.
    fn discard_unsent(&mut self, now: Time);
    /// Bytes taken so far and not taken back.
    fn bytes_written(&self) -> u64;
}

impl SendingEnd for tcp::Endpoint {
    #[inline]
    fn write(&mut self, now: Time, bytes: u64) -> u64 {
        self.write(now, bytes)
    }
    #[inline]
    fn close(&mut self, now: Time) {
        self.close(now);
    }
    #[inline]
    fn discard_unsent(&mut self, now: Time) {
        self.discard_unsent(now);
    }
    #[inline]
    fn bytes_written(&self) -> u64 {
        self.bytes_written()
    }
}

/// Messages (frames, mirrored writes) on their way: each ends at a byte of the stream and was issued at a time.
#[derive(Default)]
pub struct Messages {
    /// (first byte after the message, time of issue), ascending in both.
    outstanding: VecDeque<(u64, Time)>,
    /// Time from issue to the last byte's delivery.
    pub latency: Histogram,
    /// Messages issued.
    pub issued: u64,
    /// Bytes issued.
    pub issued_bytes: u64,
}

impl Messages {
    /// `due` is when the application has it, which on a real machine is a little before it gets to write it: the wait is part
    /// of the latency, or a slow machine would hide its own delay.
    fn issue(&mut self, due: Time, bytes: u64) {
        self.issued += 1;
        self.issued_bytes += bytes;
        self.outstanding.push_back((self.issued_bytes, due));
    }

    fn handle_delivered(&mut self, now: Time, received: u64) {
        while let Some(&(end, issued)) = self.outstanding.front() {
            if end > received {
                break;
            }
            self.latency.record(now.since(issued).0);
            self.outstanding.pop_front();
        }
    }

    /// Age of the oldest message not yet delivered: what a disaster now would lose, in time.
    pub fn lag(&self, now: Time) -> Span {
        self.outstanding.front().map_or(Span::ZERO, |&(_, issued)| now.since(issued))
    }

    /// Messages issued and not delivered.
    pub fn in_transit(&self) -> usize {
        self.outstanding.len()
    }
}

/// A generator of frames at a constant rate.
pub struct Offered {
    frame: Size,
    rate: Rate,
    /// Frames that may be in transit; the generator waits at this many.
    credits: Option<u64>,
    /// Start of the current unbroken series of frames.
    base: Time,
    /// Frames since `base`. Range: u64.
    sent: u64,
    blocked: bool,
    /// Its frames.
    pub messages: Messages,
}

/// Mirrored writes of a trace.
pub struct Replicate {
    replay: Replay,
    start: Time,
    next: Option<(Time, u64)>,
    header: u64,
    /// Bytes delivered so far.
    received: u64,
    /// Most bytes issued and not delivered.
    pub lag_max_bytes: u64,
    /// Its writes.
    pub messages: Messages,
}

/// The application of one flow.
pub enum Source {
    /// As much as the connection takes.
    Bulk {
        /// Bytes in all; None = without end.
        bytes: Option<u64>,
    },
    /// Frames at a constant rate.
    Offered(Offered),
    /// Writes of a trace.
    Replicate(Replicate),
    /// A connection of an iSCSI session, which is driven elsewhere: what its requests came to.
    Iscsi(Box<ConnectionTally>),
}

/// A source and what the connection's send buffer has not taken of it yet.
#[repr(C)]
pub struct Workload {
    /// Whether deliveries have to be looked at per packet.
    pub watches_delivery: bool,
    /// Whether free buffer space has to be.
    pub watches_buffer: bool,
    /// The application writes no more.
    stopped: bool,
    /// Bytes waiting for room in the send buffer. Range: u64.
    backlog: u64,
    /// What the application is.
    pub source: Source,
    /// When all that was written had arrived, after the application stopped.
    pub done_at: Option<Time>,
    /// When the application stopped.
    pub stopped_at: Option<Time>,
}

/// A source without end writes this much at once: 4 EB, more than 400 Gbit/s carries in two years.
const ENDLESS: u64 = 1 << 62;

impl Workload {
    /// `bytes` as fast as the connection takes them; None = without end. `send_buffer_limited`: a write may be refused.
    pub fn bulk(bytes: Option<u64>, send_buffer_limited: bool) -> Workload {
        Workload::new(Source::Bulk { bytes }, bytes.is_some(), send_buffer_limited)
    }

    /// Frames of `frame` bytes at `rate`, at most `credits` of them in transit.
    pub fn offered(frame: Size, rate: Rate, credits: Option<u64>, send_buffer_limited: bool) -> Workload {
        let offered =
            Offered { frame, rate, credits, base: Time::ZERO, sent: 0, blocked: false, messages: Messages::default() };
        Workload::new(Source::Offered(offered), true, send_buffer_limited)
    }

    /// The writes of `replay`, each with `header` bytes more.
    pub fn replicate(replay: Replay, header: u64, send_buffer_limited: bool) -> Workload {
        let replicate = Replicate {
            replay,
            start: Time::ZERO,
            next: None,
            header,
            received: 0,
            lag_max_bytes: 0,
            messages: Messages::default(),
        };
        Workload::new(Source::Replicate(replicate), true, send_buffer_limited)
    }

    /// A connection of an iSCSI session.
    pub fn iscsi() -> Workload {
        let mut workload = Workload::new(Source::Iscsi(Box::default()), false, false);
        // Who drives the session writes, and says when it is done.
        workload.stopped = true;
        workload
    }

    fn new(source: Source, watches_delivery: bool, watches_buffer: bool) -> Workload {
        Workload {
            source,
            backlog: 0,
            stopped: false,
            watches_delivery,
            watches_buffer,
            done_at: None,
            stopped_at: None,
        }
    }

    /// Messages, where the source has any.
    pub fn messages(&self) -> Option<&Messages> {
        match &self.source {
            Source::Bulk { .. } | Source::Iscsi(_) => None,
            Source::Offered(offered) => Some(&offered.messages),
            Source::Replicate(replicate) => Some(&replicate.messages),
        }
    }

    /// Bytes issued by the application and not yet delivered; None for bulk, where it says nothing.
    pub fn lag_bytes(&self, received: u64) -> Option<u64> {
        self.messages().map(|m| m.issued_bytes.saturating_sub(received))
    }

    /// The application starts; returns when it wants to be called again.
    pub fn start(&mut self, now: Time, sender: &mut impl SendingEnd) -> Time {
        match &mut self.source {
            Source::Bulk { bytes } => {
                self.backlog = bytes.unwrap_or(ENDLESS);
                if bytes.is_some() {
                    self.stopped = true;
                    self.stopped_at = Some(now);
                }
                self.flush(now, sender);
                Time::NEVER
            }
            Source::Offered(offered) => {
                offered.base = now;
                self.handle_timer(now, sender)
            }
            Source::Iscsi(_) => Time::NEVER,
            Source::Replicate(replicate) => {
                replicate.start = now;
                replicate.next = replicate.replay.next().map(|w| (now + Span(w.at_ns), w.bytes));
                self.handle_timer(now, sender)
            }
        }
    }

    /// The time it asked for has come; returns when it wants to be called again.
    pub fn handle_timer(&mut self, now: Time, sender: &mut impl SendingEnd) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        let next = match &mut self.source {
            Source::Bulk { .. } | Source::Iscsi(_) => Time::NEVER,
            Source::Offered(offered) => offered.issue_due(now, &mut self.backlog),
            Source::Replicate(replicate) => replicate.issue_due(now, &mut self.backlog),
        };
        self.flush(now, sender);
        next
    }

    /// The application writes no more; what is written is still delivered.
    pub fn stop(&mut self, now: Time, sender: &mut impl SendingEnd) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        self.stopped_at = Some(now);
        if matches!(self.source, Source::Bulk { .. }) {
            self.backlog = 0;
            sender.discard_unsent(now);
        }
        self.close_when_written(now, sender);
    }

    /// `received` bytes have arrived in order. Returns a new time for the timer where the delivery unblocked the source.
    pub fn handle_delivered(&mut self, now: Time, received: u64, sender: &mut impl SendingEnd) -> Option<Time> {
        let mut wake = None;
        match &mut self.source {
            Source::Bulk { .. } | Source::Iscsi(_) => {}
            Source::Offered(offered) => {
                offered.messages.handle_delivered(now, received);
                if offered.blocked && !self.stopped && offered.has_credit() {
                    offered.blocked = false;
                    offered.base = now;
                    offered.sent = 0;
                    wake = Some(offered.issue_due(now, &mut self.backlog));
                    self.flush(now, sender);
                }
            }
            Source::Replicate(replicate) => {
                // Between two deliveries the lag only grows, so it is largest just before one.
                let lag = replicate.messages.issued_bytes - replicate.received;
                replicate.lag_max_bytes = replicate.lag_max_bytes.max(lag);
                replicate.received = received;
                replicate.messages.handle_delivered(now, received);
            }
        }
        if self.stopped && self.done_at.is_none() && self.backlog == 0 && received >= sender.bytes_written() {
            self.done_at = Some(now);
        }
        wake
    }

    /// The connection may have room again.
    pub fn flush(&mut self, now: Time, sender: &mut impl SendingEnd) {
        if self.backlog > 0 {
            self.backlog -= sender.write(now, self.backlog);
        }
        self.close_when_written(now, sender);
    }

    fn close_when_written(&mut self, now: Time, sender: &mut impl SendingEnd) {
        if self.stopped && self.backlog == 0 {
            sender.close(now);
        }
    }
}

impl Offered {
    fn has_credit(&self) -> bool {
        self.credits.is_none_or(|credits| (self.messages.in_transit() as u64) < credits)
    }

    fn due(&self) -> Time {
        // From the series' start, so that no rounding error adds up. u128: sent * 2^16 B * 8e9 passes u64 after 35,000 frames.
        let bits_ns = u128::from(self.sent) * u128::from(self.frame.0) * 8 * u128::from(NS_PER_S);
        let offset = bits_ns / u128::from(self.rate.0.max(1));
        self.base + Span(u64::try_from(offset).unwrap_or(u64::MAX))
    }

    fn issue_due(&mut self, now: Time, backlog: &mut u64) -> Time {
        loop {
            let due = self.due();
            if due > now {
                return due;
            }
            if !self.has_credit() {
                self.blocked = true;
                return Time::NEVER;
            }
            self.messages.issue(due, self.frame.0);
            *backlog += self.frame.0;
            self.sent += 1;
        }
    }
}

impl Replicate {
    fn issue_due(&mut self, now: Time, backlog: &mut u64) -> Time {
        while let Some((due, bytes)) = self.next {
            if due > now {
                return due;
            }
            let bytes = bytes + self.header;
            self.messages.issue(due, bytes);
            *backlog += bytes;
            self.next = self.replay.next().map(|w| (self.start + Span(w.at_ns), w.bytes));
        }
        Time::NEVER
    }
}
