//! Threads that take part in one run: the barrier where they wait for each other, and what they hand each other there.

use super::arrival::Arrival;
use link::DropReason;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Looks at a barrier before a thread sleeps. With 1,000, 1,000 flows took 4 % longer: waking takes its time, too.
const SPINS: u32 = 10_000;
/// Looks after which another thread may have the core.
const LOOKS_OF_A_TURN: u32 = 100;

/// Packets on their way to a merged link.
pub(super) type Parcel<P> = (u32, Vec<Arrival<P>>);

/// Packets and losses that a worker has for another one once its merged links have passed on all that came.
pub(super) struct Deliveries<P> {
    /// Packets at the entry of a last link, or at the end of their last link, with their times.
    pub packets: Vec<(u64, P)>,
    /// As in `Horizons::drops`.
    pub drops: Vec<(u64, u32, P, DropReason)>,
    pub report: Report,
}

/// The state of a worker, as the others have to know it.
#[derive(Clone, Copy, Default)]
pub(super) struct Report {
    /// Events so far.
    pub events: u64,
    /// Processes that had a turn.
    pub turns: u64,
    /// No packet is on its way to one of its processes or merged links.
    pub is_idle: bool,
    /// Time of the next timer of its processes.
    pub wake: u64,
}

impl Report {
    /// Another worker beside this one.
    pub fn add(&mut self, other: &Report) {
        self.events += other.events;
        self.turns += other.turns;
        self.is_idle &= other.is_idle;
        self.wake = self.wake.min(other.wake);
    }
}

/// Workers of one run, each a thread with a network of the whole run, of which it moves its part
/// ([`crate::Network::join`]).
pub struct Team<P> {
    workers: usize,
    give_way: fn(),
    /// Those that wait at the barrier, and how often all have passed it.
    waiting: AtomicUsize,
    passed: AtomicUsize,
    is_over: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
    /// From worker i to worker k at i * workers + k.
    arrivals: Vec<Mutex<Vec<Parcel<P>>>>,
    deliveries: Vec<Mutex<Deliveries<P>>>,
}

impl<P> Team<P> {
    /// A team of `workers`, at least one. `give_way` lets another thread have the core, as `std::thread::yield_now`
    /// does.
    pub fn new(workers: usize, give_way: fn()) -> Team<P> {
        let pairs = || 0..workers * workers;
        let nothing = || Deliveries { packets: vec![], drops: vec![], report: Report::default() };
        Team {
            workers,
            give_way,
            waiting: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
            arrivals: pairs().map(|_| Mutex::new(vec![])).collect(),
            deliveries: pairs().map(|_| Mutex::new(nothing())).collect(),
        }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Ends the run of all: nobody waits at the barrier any more, and [`crate::Network::run_horizons`] returns.
    pub fn dissolve(&self) {
        let _awake = lock(&self.sleep);
        self.is_over.store(true, Ordering::Release);
        self.wake.notify_all();
    }

    /// Returns whether [`Team::dissolve`] was called.
    pub fn is_dissolved(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// A barrier: waits until all workers are here. False: the team is dissolved.
    pub(super) fn wait_for_all(&self) -> bool {
        let passed = self.passed.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            self.waiting.store(0, Ordering::Relaxed);
            let _awake = lock(&self.sleep);
            self.passed.store(passed.wrapping_add(1), Ordering::Release);
            self.wake.notify_all();
            return true;
        }
        // A worker that is done behind the last barrier may dissolve the team before all have left it.
        let is_passed = || self.passed.load(Ordering::Acquire) != passed;
        for look in 1..=SPINS {
            if is_passed() {
                return true;
            }
            if look % LOOKS_OF_A_TURN == 0 {
                // The core may be needed by whom this one waits for.
                (self.give_way)();
            } else {
                std::hint::spin_loop();
            }
        }
        let mut asleep = lock(&self.sleep);
        while !is_passed() && !self.is_dissolved() {
            asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
        is_passed()
    }

    /// Packets for merged links. The owner of either end has them between two barriers.
    pub(super) fn arrivals(&self, from: usize, to: usize) -> MutexGuard<'_, Vec<Parcel<P>>> {
        lock(&self.arrivals[from * self.workers + to])
    }

    /// The same for what merged links have passed on.
    pub(super) fn deliveries(&self, from: usize, to: usize) -> MutexGuard<'_, Deliveries<P>> {
        lock(&self.deliveries[from * self.workers + to])
    }
}

/// A worker that panics leaves nothing half done that another one still uses.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn nobody_passes_a_barrier_before_all_have_come() {
        let (team, came) = (Team::<()>::new(3, thread::yield_now), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                let (team, came) = (&team, &came);
                scope.spawn(move || {
                    for round in 1..=1000 {
                        came.fetch_add(1, Ordering::AcqRel);
                        assert!(team.wait_for_all());
                        assert_eq!(came.load(Ordering::Acquire), 3 * round);
                        // Nobody begins the next round before all have looked.
                        assert!(team.wait_for_all());
                    }
                });
            }
        });
    }

    #[test]
    fn a_worker_that_waits_leaves_when_its_team_is_dissolved() {
        let team = Team::<()>::new(2, thread::yield_now);
        thread::scope(|scope| {
            let waits = scope.spawn(|| team.wait_for_all());
            team.dissolve();
            assert!(!waits.join().expect("it does not panic"));
        });
    }
}
