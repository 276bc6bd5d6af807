//! Messages on their way, and how long they take.

use std::collections::VecDeque;
use units::{Histogram, Span, Time};

/// How long messages took from their issue to their delivery.
#[derive(Default)]
pub struct Times {
    /// Of all messages, ns.
    pub measured: Histogram,
}

impl Times {
    /// Counts a message.
    pub(super) fn record(&mut self, issued: Time, now: Time) {
        self.measured.record(now.since(issued).0);
    }
}

/// Messages (frames, mirrored writes) on their way: each ends at a byte of the stream and was issued at a time.
#[derive(Default)]
pub struct Messages {
    /// (first byte after the message, time of issue), ascending in both.
    outstanding: VecDeque<(u64, Time)>,
    /// Time from issue to the last byte's delivery.
    pub times: Times,
    /// Messages issued.
    pub issued: u64,
    /// Bytes issued.
    pub issued_bytes: u64,
}

impl Messages {
    /// `due` is when the application has it, which on a real machine is a little before it gets to write it: the wait is part
    /// of the latency, or a slow machine would hide its own delay.
    pub(super) fn issue(&mut self, due: Time, bytes: u64) {
        self.issued += 1;
        self.issued_bytes += bytes;
        self.outstanding.push_back((self.issued_bytes, due));
    }

    pub(super) fn handle_delivered(&mut self, now: Time, received: u64) {
        while let Some(&(end, issued)) = self.outstanding.front() {
            if end > received {
                break;
            }
            self.times.record(issued, now);
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
