//! The application at the sending end, and its data's progress at the far end: the same on every backend.

use super::generator::Generator;
use super::messages::{Messages, Peak};
use super::sending_end::SendingEnd;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::request_counters::RequestCounters;
use units::{Span, Time};

/// An application at the end of a connection: it writes to anything that takes bytes. `received` counts the payload
/// that has come in order to the application's other part: the far end of what it sends, or the near end of what it
/// answers.
pub trait Application {
    /// The application starts; returns the time of the next call.
    fn start(&mut self, now: Time, end: &mut impl SendingEnd) -> Time;
    /// The next call is due; returns the time of the one after it.
    fn handle_timer(&mut self, now: Time, end: &mut impl SendingEnd) -> Time;
    /// `received` bytes have come by now. Returns a new time for its timer, where that changed it.
    fn handle_delivered(&mut self, now: Time, received: u64, end: &mut impl SendingEnd) -> Option<Time>;
    /// The connection may have room again.
    fn flush(&mut self, now: Time, end: &mut impl SendingEnd);
    /// The application writes no more; data that is written is still delivered.
    fn stop(&mut self, now: Time, end: &mut impl SendingEnd);
    /// Returns the time at which all its data had arrived, after it stopped.
    fn done_at(&self) -> Option<Time>;
}

/// Messages of a generator, and the latency of each.
pub struct ConstantRate {
    generator: Generator,
    /// Messages that may be in transit; the generator waits at this many.
    credits: Option<u64>,
    blocked: bool,
    /// Its messages.
    pub messages: Messages,
}

/// Mirrored writes.
pub struct Replicate {
    generator: Generator,
    /// Bytes delivered so far.
    received: u64,
    /// Most bytes issued and not delivered.
    pub at_risk: Peak,
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
    ConstantRate(Box<ConstantRate>),
    /// Mirrored writes.
    Replicate(Box<Replicate>),
    /// A connection of an iSCSI session, which is driven elsewhere: what its requests came to.
    Iscsi(Box<RequestCounters>),
    /// A connection between Fibre Channel gateways, which is driven elsewhere: the frames over it.
    Fc(Box<FcCounters>),
    /// The same, with SCSI initiators and targets.
    Fcp(Box<FcpCounters>),
    /// A part of a workload that several connections share; a [`super::Stripe`] drives it.
    Shared(Share),
}

/// The part of a stripe that a connection carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Index of the stripe.
    pub stripe: usize,
    /// Index among its connections.
    pub lane: usize,
}

/// A source and the bytes that the connection's send buffer has not taken yet.
#[repr(C)]
pub struct Workload {
    /// True if it has to see deliveries per packet.
    pub watches_delivery: bool,
    /// True if it has to see free space in the send buffer.
    pub watches_buffer: bool,
    /// The application writes no more.
    stopped: bool,
    /// Bytes waiting for room in the send buffer. Range: u64.
    backlog: u64,
    /// The application.
    pub source: Source,
    /// Time at which all written data had arrived, after the application stopped.
    pub done_at: Option<Time>,
    /// Time at which the application stopped.
    pub stopped_at: Option<Time>,
}

/// A source without end writes this much at once: 4 EB, more than 400 Gbit/s carries in two years.
const ENDLESS: u64 = 1 << 62;

impl Workload {
    /// `bytes` as fast as the connection takes them; None = without end. `send_buffer_limited`: a write may be refused.
    pub fn bulk(bytes: Option<u64>, send_buffer_limited: bool) -> Workload {
        Workload::new(Source::Bulk { bytes }, bytes.is_some(), send_buffer_limited)
    }

    /// Frames of `generator`, at most `credits` of them in transit, measured from `from` on.
    pub fn constant_rate(
        generator: Generator,
        credits: Option<u64>,
        from: Time,
        send_buffer_limited: bool,
    ) -> Workload {
        let constant_rate = ConstantRate { generator, credits, blocked: false, messages: Messages::new(from) };
        Workload::new(Source::ConstantRate(Box::new(constant_rate)), true, send_buffer_limited)
    }

    /// Mirrored writes of `generator`, measured from `from` on.
    pub fn replicate(generator: Generator, from: Time, send_buffer_limited: bool) -> Workload {
        let replicate = Replicate { generator, received: 0, at_risk: Peak::new(from), messages: Messages::new(from) };
        Workload::new(Source::Replicate(Box::new(replicate)), true, send_buffer_limited)
    }

    /// The work of a node, which counts into `source`.
    pub fn of_node(source: Source) -> Workload {
        let mut workload = Workload::new(source, false, false);
        // The node writes, and tells when it is done.
        workload.stopped = true;
        workload
    }

    /// A part of a workload that is driven by a stripe; `is_copy`: it asks for more whenever there is room.
    pub fn shared(share: Share, is_copy: bool, send_buffer_limited: bool) -> Workload {
        Workload::new(Source::Shared(share), true, send_buffer_limited || is_copy)
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
            Source::Bulk { .. } | Source::Iscsi(_) | Source::Fc(_) | Source::Fcp(_) | Source::Shared(_) => None,
            Source::ConstantRate(constant_rate) => Some(&constant_rate.messages),
            Source::Replicate(replicate) => Some(&replicate.messages),
        }
    }

    /// Age of the oldest message not delivered, and bytes issued and not delivered; zero for bulk, where they say
    /// nothing.
    pub fn lag(&self, now: Time, received: u64) -> (Span, u64) {
        self.messages().map_or((Span::ZERO, 0), |m| (m.lag(now), m.issued_bytes.saturating_sub(received)))
    }

    /// `received` bytes have arrived; returns whether with them, for the first time, everything has.
    pub fn note_done(&mut self, now: Time, received: u64, sender: &impl SendingEnd) -> bool {
        let done = self.stopped && self.done_at.is_none() && self.backlog == 0 && received >= sender.bytes_written();
        if done {
            self.done_at = Some(now);
        }
        done
    }

    /// The stripe that drives it, and its place there.
    #[inline]
    pub fn share(&self) -> Option<Share> {
        match self.source {
            Source::Shared(share) => Some(share),
            _ => None,
        }
    }

    /// Bytes that wait for room in the send buffer.
    pub fn backlog(&self) -> u64 {
        self.backlog
    }

    /// `bytes` more of the stripe's are to be written.
    pub(super) fn add(&mut self, now: Time, bytes: u64, sender: &mut impl SendingEnd) {
        self.backlog += bytes;
        self.flush(now, sender);
    }

    /// The stripe has nothing more for this connection.
    pub(super) fn end(&mut self, now: Time, sender: &mut impl SendingEnd) {
        if !self.stopped {
            self.stopped = true;
            self.stopped_at = Some(now);
            self.close_when_written(now, sender);
        }
    }

    fn close_when_written(&mut self, now: Time, sender: &mut impl SendingEnd) {
        if self.stopped && self.backlog == 0 {
            sender.close(now);
        }
    }
}

impl Application for Workload {
    fn start(&mut self, now: Time, end: &mut impl SendingEnd) -> Time {
        match &mut self.source {
            Source::Bulk { bytes } => {
                self.backlog = bytes.unwrap_or(ENDLESS);
                if bytes.is_some() {
                    self.stopped = true;
                    self.stopped_at = Some(now);
                }
                self.flush(now, end);
                Time::NEVER
            }
            Source::Iscsi(_) | Source::Fc(_) | Source::Fcp(_) | Source::Shared(_) => Time::NEVER,
            Source::ConstantRate(constant_rate) => {
                constant_rate.generator.start(now);
                self.handle_timer(now, end)
            }
            Source::Replicate(replicate) => {
                replicate.generator.start(now);
                self.handle_timer(now, end)
            }
        }
    }

    fn handle_timer(&mut self, now: Time, end: &mut impl SendingEnd) -> Time {
        if self.stopped {
            return Time::NEVER;
        }
        let next = match &mut self.source {
            Source::Bulk { .. } | Source::Iscsi(_) | Source::Fc(_) | Source::Fcp(_) | Source::Shared(_) => Time::NEVER,
            Source::ConstantRate(constant_rate) => constant_rate.issue_due(now, &mut self.backlog),
            Source::Replicate(replicate) => replicate.issue_due(now, &mut self.backlog),
        };
        self.flush(now, end);
        next
    }

    fn handle_delivered(&mut self, now: Time, received: u64, end: &mut impl SendingEnd) -> Option<Time> {
        let mut wake = None;
        match &mut self.source {
            Source::Bulk { .. } | Source::Iscsi(_) | Source::Fc(_) | Source::Fcp(_) | Source::Shared(_) => {}
            Source::ConstantRate(constant_rate) => {
                constant_rate.messages.handle_delivered(now, received);
                if constant_rate.blocked && !self.stopped && constant_rate.has_credit() {
                    constant_rate.blocked = false;
                    constant_rate.generator.resume(now);
                    wake = Some(constant_rate.issue_due(now, &mut self.backlog));
                    self.flush(now, end);
                }
            }
            Source::Replicate(replicate) => {
                // Between two deliveries the lag only grows, so it is largest just before one.
                let issued = replicate.messages.issued_by(now, replicate.received);
                replicate.at_risk.note(now, issued.saturating_sub(replicate.received));
                replicate.received = received;
                replicate.messages.handle_delivered(now, received);
            }
        }
        self.note_done(now, received, end);
        wake
    }

    fn flush(&mut self, now: Time, end: &mut impl SendingEnd) {
        if self.backlog > 0 {
            self.backlog -= end.write(now, self.backlog);
        }
        self.close_when_written(now, end);
    }

    fn stop(&mut self, now: Time, end: &mut impl SendingEnd) {
        if self.stopped {
            return;
        }
        self.stopped = true;
        self.stopped_at = Some(now);
        if matches!(self.source, Source::Bulk { .. }) {
            self.backlog = 0;
            end.discard_unsent(now);
        }
        self.close_when_written(now, end);
    }

    fn done_at(&self) -> Option<Time> {
        self.done_at
    }
}

impl ConstantRate {
    fn has_credit(&self) -> bool {
        self.credits.is_none_or(|credits| (self.messages.in_transit() as u64) < credits)
    }

    fn issue_due(&mut self, now: Time, backlog: &mut u64) -> Time {
        while let Some(due) = self.generator.peek() {
            if due.at > now {
                return due.at;
            }
            if !self.has_credit() {
                self.blocked = true;
                break;
            }
            self.messages.issue(due.at, due.bytes);
            *backlog += due.bytes;
            self.generator.advance();
        }
        Time::NEVER
    }
}

impl Replicate {
    /// Bytes issued that have not arrived.
    pub fn lag_bytes(&self) -> u64 {
        self.messages.issued_bytes - self.received
    }

    fn issue_due(&mut self, now: Time, backlog: &mut u64) -> Time {
        while let Some(due) = self.generator.peek() {
            if due.at > now {
                return due.at;
            }
            self.messages.issue(due.at, due.bytes);
            *backlog += due.bytes;
            self.generator.advance();
        }
        Time::NEVER
    }
}
