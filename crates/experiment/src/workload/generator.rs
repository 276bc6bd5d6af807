//! Times and sizes of messages.

use super::messages::Due;
use super::random_writes::RandomWrites;
use crate::active::Active;
use spec::ActiveSpec;
use storage::Replay;
use units::{Rate, Size, Span, Time, NS_PER_S};

/// A source of messages in the order of their issue.
pub enum Generator {
    /// Frames at a constant rate.
    Frames(Frames),
    /// The writes of a trace.
    Trace(Trace),
    /// Writes that are drawn.
    RandomWrites(Box<RandomWrites>),
}

/// Frames of one size at a constant rate.
pub struct Frames {
    size: Size,
    rate: Rate,
    active: Active,
    /// Start of the present unbroken series of frames, ns of active time.
    base_ns: u64,
    /// Frames since `base_ns`. Range: u64.
    sent: u64,
    /// Time of the next one: it is looked at more often than it changes.
    due: Time,
}

/// Writes of a trace.
pub struct Trace {
    replay: Replay,
    start: Time,
    next: Option<Due>,
    header: u64,
}

impl Generator {
    /// Frames of `size` at `rate`, in `periods`.
    pub fn frames(size: Size, rate: Rate, periods: Option<ActiveSpec>) -> Generator {
        let active = Active::new(periods, Time::ZERO);
        Generator::Frames(Frames { size, rate, active, base_ns: 0, sent: 0, due: Time::ZERO })
    }

    /// The writes of `replay`, each with `header` bytes more.
    pub fn trace(replay: Replay, header: u64) -> Generator {
        Generator::Trace(Trace { replay, start: Time::ZERO, next: None, header })
    }

    /// The application starts.
    pub fn start(&mut self, now: Time) {
        match self {
            Generator::Frames(frames) => {
                frames.active = frames.active.from(now);
                frames.restart(now);
            }
            Generator::Trace(trace) => {
                trace.start = now;
                trace.advance();
            }
            Generator::RandomWrites(drawn) => drawn.start(now),
        }
    }

    /// Goes on at `now` after a wait for room; the messages missed meanwhile are not made up for.
    pub fn resume(&mut self, now: Time) {
        match self {
            Generator::Frames(frames) => frames.restart(now),
            Generator::RandomWrites(drawn) => drawn.resume(now),
            Generator::Trace(_) => {}
        }
    }

    /// The next message; None: there is none any more.
    #[inline]
    pub fn peek(&self) -> Option<Due> {
        match self {
            Generator::Frames(frames) => Some(Due { at: frames.due, bytes: frames.size.0 }),
            Generator::Trace(trace) => trace.next,
            Generator::RandomWrites(drawn) => Some(drawn.peek()),
        }
    }

    /// The message that [`Generator::peek`] shows is issued.
    #[inline]
    pub fn advance(&mut self) {
        match self {
            Generator::Frames(frames) => frames.advance(),
            Generator::Trace(trace) => trace.advance(),
            Generator::RandomWrites(drawn) => drawn.advance(),
        }
    }
}

impl Frames {
    fn restart(&mut self, now: Time) {
        (self.base_ns, self.sent) = (self.active.until(now), 0);
        self.due = self.next_due();
    }

    fn advance(&mut self) {
        self.sent += 1;
        self.due = self.next_due();
    }

    fn next_due(&self) -> Time {
        // From the series' start, so that no rounding error adds up. u128: sent * 2^16 B * 8e9 passes u64 after 35,000
        // frames.
        let bits_ns = u128::from(self.sent) * u128::from(self.size.0) * 8 * u128::from(NS_PER_S);
        let offset = bits_ns / u128::from(self.rate.0.max(1));
        self.active.at(self.base_ns.saturating_add(u64::try_from(offset).unwrap_or(u64::MAX)))
    }
}

impl Trace {
    fn advance(&mut self) {
        self.next = self.replay.next().map(|w| Due { at: self.start + Span(w.at_ns), bytes: w.bytes + self.header });
    }
}
