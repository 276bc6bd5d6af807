//! Packets of one link that come to several places at one time: which was first.
//!
//! A link that changes, or has jitter, may deliver several packets in one ns, each by an event of its own. What the
//! hosts then send at once has the order of these events.

use std::collections::VecDeque;

/// Of a host: its packets that were not the first of their link at their times.
#[derive(Default)]
pub(super) struct Ties {
    /// Time, number among the host's packets at that time, number among the link's.
    list: VecDeque<(u64, u32, u32)>,
    /// Time of the latest packet that was noted, and its number among the host's at that time; the same of the latest
    /// that was taken.
    noted: (u64, u32),
    taken: (u64, u32),
}

/// Counts packets at one time from 0.
fn count((time, number): &mut (u64, u32), at: u64) -> u32 {
    (*time, *number) = (at, if at == *time { *number + 1 } else { 0 });
    *number
}

impl Ties {
    /// A packet comes at `at`, later than 0, the `nth` of its link at that time.
    pub fn note(&mut self, at: u64, nth: u32) {
        let number = count(&mut self.noted, at);
        if nth > 0 {
            self.list.push_back((at, number, nth));
        }
    }

    /// Time of the first packet that was not the first of its link.
    pub fn first(&self) -> u64 {
        self.list.front().map_or(u64::MAX, |tie| tie.0)
    }

    /// The next packet that comes at `at`, the time of [`Ties::first`] at the latest: its number among its link's.
    pub fn peek(&self, at: u64) -> u32 {
        let mut taken = self.taken;
        let number = count(&mut taken, at);
        self.list.front().filter(|tie| (tie.0, tie.1) == (at, number)).map_or(0, |tie| tie.2)
    }

    /// As [`Ties::peek`], of a packet that is handled now.
    pub fn take(&mut self, at: u64) -> u32 {
        let nth = self.peek(at);
        count(&mut self.taken, at);
        if nth > 0 {
            self.list.pop_front();
        }
        nth
    }
}
