//! Deadlines by time and by what they are for: at most one for each purpose.

use super::output::{ConnectionKey, PeerKey};
use super::session::SessionKey;
use std::collections::{BTreeMap, BTreeSet};
use wire::fc::Wwn;

/// Purpose of a deadline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Timer {
    /// A connection, CBIND or UNBIND has had no answer.
    Setup(ConnectionKey),
    /// The peer, whose CBIND won, has not sent it.
    Awaited(SessionKey),
    /// The next test of liveness is to be sent.
    Test(SessionKey),
    /// The peer may have been silent for too long.
    Silence(SessionKey),
    /// A peer that refused has left a connection open for a while.
    Proof(ConnectionKey),
    /// A peer that is down is to be tried again.
    Reconnect(PeerKey),
    /// A port that its peer did not have is to be presented again.
    Return(Wwn),
}

/// All deadlines. Each operation costs the logarithm of their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    by_time: BTreeSet<(u64, Timer)>,
    times: BTreeMap<Timer, u64>,
}

impl Timers {
    /// Sets the deadline of a purpose.
    pub fn set(&mut self, timer: Timer, at_ns: u64) {
        self.clear(timer);
        self.by_time.insert((at_ns, timer));
        self.times.insert(timer, at_ns);
    }

    /// Removes the deadline of a purpose, if there is one.
    pub fn clear(&mut self, timer: Timer) {
        if let Some(at_ns) = self.times.remove(&timer) {
            self.by_time.remove(&(at_ns, timer));
        }
    }

    /// The earliest deadline, ns.
    pub fn next(&self) -> Option<u64> {
        self.by_time.first().map(|(at_ns, _)| *at_ns)
    }

    /// Takes the earliest deadline that has come.
    pub fn expired(&mut self, now_ns: u64) -> Option<Timer> {
        let (at_ns, timer) = *self.by_time.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.clear(timer);
        Some(timer)
    }
}
