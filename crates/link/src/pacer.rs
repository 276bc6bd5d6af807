//! What several gates let go for one line: together no faster than it sends, each in its turn.
//!
//! A gate that keeps packets back takes a turn when its oldest may leave, and the next one when that has left. So each has one turn at
//! most before it: gates that have something to send take turns packet by packet, whatever each keeps back, and where one of
//! them has it the line never waits.

use crate::serializer::Serializer;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::Rate;

/// A line for which gates let go what they kept back; clones are the same one.
///
/// It is shared by links of one network, which one thread runs, and goes with it to another: the lock is never waited for.
#[derive(Clone)]
pub struct Pacer(Arc<Mutex<Turns>>);

struct Turns {
    line: Serializer,
    /// Gates that keep something back.
    keeping: u64,
}

impl Pacer {
    /// One for a line of `rate`.
    ///
    /// # Panics
    /// When `rate` is zero or above [`crate::MAX_RATE`].
    pub fn new(rate: Rate) -> Pacer {
        check(rate);
        Pacer(Arc::new(Mutex::new(Turns { line: Serializer::new(rate), keeping: 0 })))
    }

    /// Turns not taken yet are of a line of `rate`.
    pub(crate) fn set_rate(&self, rate: Rate) {
        check(rate);
        self.turns().line.set_rate(rate);
    }

    /// The next turn from `now` on, for a packet of `bytes`: when it leaves.
    pub(crate) fn turn(&self, now: u64, bytes: u32) -> u64 {
        let line = &mut self.turns().line;
        let turn = now.max(line.free_at());
        line.send(turn, bytes);
        turn
    }

    /// Whether a gate keeps something back.
    pub(crate) fn keeps(&self) -> bool {
        self.turns().keeping > 0
    }

    /// A gate begins to keep packets back.
    pub(crate) fn begin(&self) {
        self.turns().keeping += 1;
    }

    /// A gate has let go all that it kept back.
    pub(crate) fn end(&self) {
        self.turns().keeping -= 1;
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        // Nothing is left half done where a thread could end.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(rate: Rate) {
    assert!((1..=crate::MAX_RATE.0).contains(&rate.0), "rate = {rate}: must be from 1 bit/s to 2^62 bit/s");
}
