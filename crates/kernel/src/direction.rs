//! One direction: packets from one device through the link model to the other, in time.

use crate::clock;
use crate::packet::{Pool, Token};
use crate::tun::Tun;
use link::{Admission, Link, Stats};
use std::sync::atomic::{AtomicBool, Ordering};
use units::{Histogram, Span, Time};

/// Packets read before deliveries are looked at again: at a few us each, what is due waits for tens of us at most.
const BURST: usize = 16;
/// Least and most time before a packet is due from which on the thread watches the clock instead of sleeping. In between it
/// is what wake-ups take (microseconds on a busy core, a tenth of a millisecond where a virtual machine has to be woken).
const SPIN: (u64, u64) = (10_000, 200_000);
/// Longest sleep, so that a stop is noticed.
const NAP: Span = Span::from_millis(50);

/// What one direction did.
#[derive(Clone, Debug, Default)]
pub struct DirectionReport {
    /// The link model's own counters: the network's doing.
    pub link: Stats,
    /// Delivery into the far device against the time that the model gave.
    pub lateness: Histogram,
    /// Packets that the far device did not take: the emulator's doing.
    pub refused: u64,
    /// CPU time of the thread, ns.
    pub cpu_ns: u64,
    /// Time that the thread ran, ns.
    pub elapsed_ns: u64,
    /// Whether the scheduler gave it precedence over ordinary programs.
    pub precedence: bool,
    /// Why it ended before it was asked to.
    pub failure: Option<String>,
}

pub(crate) struct Direction<'a> {
    pub from: &'a Tun,
    pub to: &'a Tun,
    pub link: Link<Token>,
    pub pool: Pool,
    pub stop: &'a AtomicBool,
    /// How long before a packet is due the thread stops sleeping, ns.
    pub spin_ns: u64,
}

impl Direction<'_> {
    /// Carries packets until `stop`.
    pub fn run(mut self) -> DirectionReport {
        let mut report = DirectionReport { precedence: clock::precede(), ..DirectionReport::default() };
        let began = clock::now();
        while !self.stop.load(Ordering::Relaxed) {
            self.deliver(clock::now(), &mut report);
            match self.read(&mut report) {
                Ok(BURST) => {}
                Ok(_) => self.wait(),
                Err(error) => {
                    report.failure = Some(format!("reading from the device: {error}"));
                    break;
                }
            }
        }
        let end = clock::now();
        report.elapsed_ns = end.since(began).0;
        report.cpu_ns = clock::thread_cpu_ns();
        self.link.settle(end);
        report.link = *self.link.stats();
        report
    }

    /// Everything that is due by `now`. The model is told of each event at the event's own time, not at the time at which we look:
    /// being late does not change what it decides.
    fn deliver(&mut self, now: Time, report: &mut DirectionReport) {
        loop {
            let due = self.link.poll_timeout();
            if due > now || due == Time::NEVER {
                return;
            }
            self.link.handle_timeout(due);
            while let Some(token) = self.link.poll_delivery(due) {
                // Before the write: what the far stack does with a packet, which the write waits for, is its own.
                report.lateness.record(clock::now().since(due).0);
                if !self.to.write(self.pool.bytes(&token)) {
                    report.refused += 1;
                }
                self.pool.give_back(token);
            }
            self.forget_dropped();
        }
    }

    /// Reads up to [`BURST`] packets and says how many.
    fn read(&mut self, report: &mut DirectionReport) -> std::io::Result<usize> {
        for number in 0..BURST {
            let Some(bytes) = self.from.read(self.pool.next().1)? else { return Ok(number) };
            let now = clock::now();
            let token = self.pool.take(bytes);
            // What fell due meanwhile goes first: the model's time must not go back.
            self.deliver(now, report);
            self.admit(now, token);
        }
        Ok(BURST)
    }

    fn admit(&mut self, at: Time, token: Token) {
        if let Admission::Dropped(token, _) = self.link.handle_packet(at, token) {
            self.pool.give_back(token);
        }
        self.forget_dropped();
    }

    fn forget_dropped(&mut self) {
        while let Some((token, _)) = self.link.poll_dropped() {
            self.pool.give_back(token);
        }
    }

    /// Sleeps until a packet comes or one is nearly due; returns at once when one is due soon.
    fn wait(&mut self) {
        let began = clock::now();
        let left = self.link.poll_timeout().since(began).0;
        if left <= self.spin_ns {
            // Without a sleep nothing is learnt about wake-ups: try a shorter margin in a while, so that a steady stream of
            // packets does not keep the core busy for good.
            self.spin_ns = (self.spin_ns - self.spin_ns / 1024).max(SPIN.0);
            return;
        }
        let nap = (left - self.spin_ns).min(NAP.0);
        let time = libc::timespec { tv_sec: 0, tv_nsec: nap as libc::c_long };
        let mut waits = libc::pollfd { fd: self.from.descriptor(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd, a valid time below a second, no signal mask.
        let ready = unsafe { libc::ppoll(&mut waits, 1, &time, std::ptr::null()) };
        if ready == 0 {
            let over = clock::now().since(began).0.saturating_sub(nap);
            self.spin_ns = margin_after(self.spin_ns, over);
        }
    }
}

/// The margin after a sleep that took `over` ns too long: up at once, down by an eighth of the difference.
fn margin_after(margin: u64, over: u64) -> u64 {
    let wanted = over + over / 4;
    let next = if wanted > margin { wanted } else { margin - (margin - wanted) / 8 };
    next.clamp(SPIN.0, SPIN.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_follows_what_wake_ups_take_within_its_bounds() {
        assert_eq!(margin_after(SPIN.0, 80_000), 100_000);
        assert_eq!(margin_after(SPIN.0, 5_000_000), SPIN.1, "a machine that was away is no reason to spin for long");
        let settled = (0..100).fold(SPIN.1, |margin, _| margin_after(margin, 40_000));
        assert!((50_000..50_010).contains(&settled), "{settled}");
        assert_eq!((0..100).fold(SPIN.1, |margin, _| margin_after(margin, 0)), SPIN.0);
    }
}
