//! Messages in transit and their delays.

use crate::message_times::MessageTimes;
use std::collections::VecDeque;
use units::{Span, Time};

/// A message that a generator has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Time of the issue.
    pub at: Time,
    /// Bytes written to the connection.
    pub bytes: u64,
}

/// Most bytes that were issued and not delivered: data at risk.
#[derive(Default)]
pub struct Peak {
    from: Time,
    /// During the warm-up.
    pub start_up: u64,
    /// In the measured interval.
    pub measured: u64,
}

impl Peak {
    /// The measured interval begins at `from`.
    pub(super) fn new(from: Time) -> Peak {
        Peak { from, ..Peak::default() }
    }

    /// `bytes` are at risk at `now`.
    pub(super) fn note(&mut self, now: Time, bytes: u64) {
        let most = if now < self.from { &mut self.start_up } else { &mut self.measured };
        *most = bytes.max(*most);
    }
}

/// Messages (frames, mirrored writes) on their way: each ends at a byte of the stream and was issued at a time.
#[derive(Default)]
pub struct Messages {
    /// (first byte after the message, time of issue), ascending in both.
    outstanding: VecDeque<(u64, Time)>,
    /// Time from issue to the last byte's delivery.
    pub times: MessageTimes,
    /// Messages issued.
    pub issued: u64,
    /// Bytes issued.
    pub issued_bytes: u64,
}

impl Messages {
    /// The measured interval begins at `from`.
    pub(super) fn new(from: Time) -> Messages {
        Messages { times: MessageTimes::new(from), ..Messages::default() }
    }

    /// `due` is when the application has it, which on a real machine is a little before it gets to write it: the wait
    /// is part of the latency, or a slow machine would hide its own delay.
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

    /// Age of the oldest message not yet delivered: the data at risk, in time.
    pub fn lag(&self, now: Time) -> Span {
        self.outstanding.front().map_or(Span::ZERO, |&(_, issued)| now.since(issued))
    }

    /// Bytes issued by `now`, of which `received` had arrived by then. A report of a delivery may come later than the
    /// next messages were issued.
    pub(super) fn issued_by(&self, now: Time, received: u64) -> u64 {
        if self.outstanding.back().is_none_or(|&(_, issued)| issued <= now) {
            return self.issued_bytes;
        }
        let last = self.outstanding.iter().rev().find(|&&(_, issued)| issued <= now);
        last.map_or(received, |&(end, _)| end)
    }

    /// Messages issued and not delivered.
    pub fn in_transit(&self) -> usize {
        self.outstanding.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_issued_after_a_time_is_not_counted_at_it() {
        let mut messages = Messages::new(Time::ZERO);
        [(10, 100), (20, 50), (30, 7)].into_iter().for_each(|(at, bytes)| messages.issue(Time(at), bytes));
        let by = |at| messages.issued_by(Time(at), 0);
        assert_eq!([5, 10, 25, 30, 40].map(by), [0, 100, 150, 157, 157]);
        messages.handle_delivered(Time(26), 150);
        assert_eq!(messages.issued_by(Time(26), 150), 150);
    }
}
