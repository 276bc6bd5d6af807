//! Delays of messages: frames, mirrored writes.

use units::{Histogram, Span, Time};

/// Delays of messages from their issue to their delivery.
#[derive(Default)]
pub struct MessageTimes {
    /// Messages issued before are of the start-up.
    from: Time,
    /// Of messages issued during the warm-up, ns.
    pub start_up: Histogram,
    /// Of those issued in the measured interval, ns.
    pub measured: Histogram,
    /// The longest of these, and when it was issued.
    pub longest: Option<(Span, Time)>,
}

impl MessageTimes {
    /// The measured interval begins at `from`.
    pub(crate) fn new(from: Time) -> MessageTimes {
        MessageTimes { from, ..MessageTimes::default() }
    }

    /// Counts a message.
    pub(crate) fn record(&mut self, issued: Time, now: Time) {
        let taken = now.since(issued);
        if issued < self.from {
            return self.start_up.record(taken.0);
        }
        self.measured.record(taken.0);
        if self.longest.is_none_or(|(longest, _)| taken > longest) {
            self.longest = Some((taken, issued));
        }
    }
}
