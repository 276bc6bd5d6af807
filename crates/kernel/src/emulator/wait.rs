//! Waiting for packets and for the time: sleep until shortly before something is due, then watch the clock, within
//! bounds.

use crate::clock;
use std::io;
use std::os::fd::RawFd;

/// Least and most time before a packet is due from which on the thread watches the clock instead of sleeping. In
/// between it is what wake-ups take (microseconds on a busy core, a tenth of a millisecond where a virtual machine has
/// to be woken).
const MARGIN: (u64, u64) = (5_000, 100_000);

/// Share of the time that may be spent watching the clock: one part in this many. A thread with real-time priority that
/// never sleeps takes its core from the very programs whose packets it carries, until the scheduler takes the core from
/// it, for tens of ms (fair server, sched(7)).
const WATCH_SHARE: i64 = 4;

/// Most time that can be saved up for watching, ns.
const WATCH_MOST: i64 = 2_000_000;

/// Least sleep where the clock may not be watched any more and something is always due, ns: a sleep costs as much CPU
/// time as handing over several packets, so they are handed over in batches. Half of it is what they are late by; well
/// below 0.2 ms.
const REST: u64 = 50_000;

/// Longest sleep, ns, so that nothing that was missed stays so.
const NAP: u64 = 50_000_000;

/// The result of a wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Waited {
    /// It would have ended when a packet came.
    pub listened: bool,
    /// Time that the wait took beyond its limit, ns.
    pub over_ns: u64,
}

/// Descriptors that the thread waits on, and its measurements of past waits.
pub(super) struct Waiter {
    polled: Vec<libc::pollfd>,
    /// Time before an event at which the sleep ends, ns.
    margin_ns: u64,
    watching: bool,
    allowance: Allowance,
}

/// Time that may be spent watching the clock; time spent beyond it is owed.
struct Allowance {
    left_ns: i64,
    /// Time of the latest update.
    counted_ns: u64,
}

impl Allowance {
    /// Brings it up to `now`; whether there is any.
    fn earn(&mut self, now: u64) -> bool {
        self.left_ns = (self.left_ns + (now - self.counted_ns) as i64 / WATCH_SHARE).min(WATCH_MOST);
        self.counted_ns = now;
        self.left_ns > 0
    }

    /// The time until `now` was spent watching.
    fn spend(&mut self, now: u64) {
        // A thread that was kept from its core while it watched did not spend all of that.
        self.left_ns = (self.left_ns - (now - self.counted_ns) as i64).max(-WATCH_MOST);
        self.counted_ns = now;
    }
}

impl Waiter {
    /// Waits on `descriptors`. `watching`: whether to watch the clock at all.
    pub fn new(descriptors: impl Iterator<Item = RawFd>, watching: bool) -> Waiter {
        let polled = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        Waiter {
            polled,
            margin_ns: MARGIN.0,
            watching,
            allowance: Allowance { left_ns: WATCH_MOST, counted_ns: clock::monotonic_ns() },
        }
    }

    /// Returns true if descriptor `index` had something to read when the last wait ended.
    pub fn is_ready(&self, index: usize) -> bool {
        self.polled[index].revents != 0
    }

    /// Waits until there is something to read, or until shortly before `left_ns` have passed.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, left_ns: u64) -> io::Result<Waited> {
        let began = clock::monotonic_ns();
        let allowed = self.allowance.earn(began);
        if left_ns == 0 {
            self.poll(0)?;
            return Ok(Waited::default());
        }
        let watch = self.watching && allowed;
        if watch && left_ns <= self.margin_ns {
            self.poll(0)?;
            self.allowance.spend(clock::monotonic_ns());
            // Without a sleep there is no measurement of wake-ups: try a shorter margin in a while.
            self.margin_ns = (self.margin_ns - self.margin_ns / 1024).max(MARGIN.0);
            return Ok(Waited::default());
        }
        if self.watching && !allowed && left_ns < REST {
            // Not for packets either: they would wake it as often.
            rest(REST);
            let over_ns = (clock::monotonic_ns() - began).saturating_sub(REST);
            self.poll(0)?;
            return Ok(Waited { listened: false, over_ns });
        }
        let early = if watch { self.margin_ns } else { 0 };
        let nap = (left_ns - early).min(NAP);
        let mut over_ns = 0;
        if self.poll(nap)? == 0 {
            over_ns = (clock::monotonic_ns() - began).saturating_sub(nap);
            self.margin_ns = margin_after(self.margin_ns, over_ns);
        }
        Ok(Waited { listened: true, over_ns })
    }

    /// ppoll for `ns`; how many are ready.
    fn poll(&mut self, ns: u64) -> io::Result<usize> {
        let time = libc::timespec { tv_sec: 0, tv_nsec: ns as libc::c_long };
        let count = self.polled.len() as libc::nfds_t;
        // SAFETY: valid pollfds and their count, a valid time below a second, no signal mask.
        let ready = unsafe { libc::ppoll(self.polled.as_mut_ptr(), count, &time, std::ptr::null()) };
        match usize::try_from(ready) {
            Ok(ready) => Ok(ready),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }
}

/// Sleeps for `ns`, below a second.
fn rest(ns: u64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns as libc::c_long };
    // SAFETY: a valid time; how much was left when a signal came is not asked for.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// The margin after a sleep that took `over` ns too long: up at once, down by an eighth of the difference.
fn margin_after(margin: u64, over: u64) -> u64 {
    let wanted = over + over / 4;
    let next = if wanted > margin { wanted } else { margin - (margin - wanted) / 8 };
    next.clamp(MARGIN.0, MARGIN.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_what_wake_ups_take_within_its_bounds() {
        assert_eq!(margin_after(MARGIN.0, 40_000), 50_000);
        assert_eq!(
            margin_after(MARGIN.0, 5_000_000),
            MARGIN.1,
            "a machine that was away is no reason to watch for long"
        );
        let settled = (0..100).fold(MARGIN.1, |margin, _| margin_after(margin, 40_000));
        assert!((50_000..50_010).contains(&settled), "{settled}");
        assert_eq!((0..100).fold(MARGIN.1, |margin, _| margin_after(margin, 0)), MARGIN.0);
    }

    #[test]
    fn the_clock_is_watched_for_a_share_of_the_time_at_most() {
        let mut allowance = Allowance { left_ns: WATCH_MOST, counted_ns: 0 };
        let (mut now, mut watched) = (0u64, 0i64);
        while now < 1_000_000_000 {
            // Something is always due soon: watched while that is allowed, slept through otherwise.
            let watches = allowance.earn(now);
            now += 2_000;
            if watches {
                allowance.spend(now);
                watched += 2_000;
            }
        }
        let allowed = WATCH_MOST + now as i64 / WATCH_SHARE;
        assert!((allowed * 7 / 10..=allowed + 2_000).contains(&watched), "{watched} of {now} ns");
    }
}
