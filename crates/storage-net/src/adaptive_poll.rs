//! Adaptive polling: a connection spins briefly before it sleeps if its last wait was short.
//!
//! Sleep and wake-up of a thread cost more than a small read from the page cache, most of all on a virtual machine
//! (docs/results/iscsi.md). Linux does the same below: halt_poll_ns of KVM, SO_BUSY_POLL of network cards. On a path of
//! 1 ms or more a connection spins in vain once.

use crate::clock;
use crate::waker::Waker;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Span;

/// Longest spin, and the longest wait that counts as short: a few times the cost of a sleep and a wake-up.
const SPIN_LIMIT: Span = Span::from_micros(100);

/// Limits the threads that spin at once: with spinners on all processors, no thread could send what they wait for.
#[derive(Debug)]
pub(crate) struct Spinners {
    now: AtomicUsize,
    max: usize,
}

impl Spinners {
    /// One thread fewer than processors.
    pub(crate) fn new() -> Spinners {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Spinners { now: AtomicUsize::new(0), max: processors - 1 }
    }

    /// A permit to spin, until it is dropped; None at the limit.
    fn try_acquire(&self) -> Option<SpinPermit<'_>> {
        let entered =
            self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < self.max).then_some(now + 1));
        entered.ok().map(|_| SpinPermit(&self.now))
    }
}

struct SpinPermit<'a>(&'a AtomicUsize);

impl Drop for SpinPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state of one thread.
#[derive(Default, Debug)]
pub(crate) struct AdaptivePoll {
    /// True if the last wait was short.
    short: bool,
}

impl AdaptivePoll {
    /// As [`Waker::wait`], after a spin if the last wait was short.
    pub(crate) fn wait(
        &mut self,
        spinners: &Spinners,
        waker: &Waker,
        socket: BorrowedFd<'_>,
        read: bool,
        write: bool,
        timeout_ms: i64,
    ) {
        let began = clock::now();
        if self.short {
            if let Some(_permit) = spinners.try_acquire() {
                while clock::now().since(began) < SPIN_LIMIT {
                    if waker.wait(socket, read, write, 0) {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
        }
        let came = waker.wait(socket, read, write, timeout_ms);
        self.short = came && clock::now().since(began) < SPIN_LIMIT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_ready_socket_is_a_short_wait_and_a_timeout_is_not() {
        let (near, mut far) = pair();
        let (waker, spinners) = (Waker::new().unwrap(), Spinners { now: AtomicUsize::new(0), max: 1 });
        let mut poll = AdaptivePoll::default();
        far.write_all(b"x").unwrap();
        // The machine may be slow: repeat until a wait is short.
        for _ in 0..1000 {
            poll.wait(&spinners, &waker, near.as_fd(), true, false, 1000);
            if poll.short {
                break;
            }
        }
        assert!(poll.short);
        // A spin without success, then a sleep.
        let began = clock::now();
        poll.wait(&spinners, &waker, near.as_fd(), false, false, 5);
        assert!(clock::now().since(began) >= Span::from_millis(5));
        assert!(!poll.short);
        assert_eq!(spinners.now.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_waker_ends_spinning_and_sleeping() {
        let (near, _far) = pair();
        let (waker, spinners) = (Waker::new().unwrap(), Spinners { now: AtomicUsize::new(0), max: 1 });
        for short in [true, false] {
            waker.wake();
            let mut poll = AdaptivePoll { short };
            let began = clock::now();
            poll.wait(&spinners, &waker, near.as_fd(), true, false, 10_000);
            assert!(clock::now().since(began) < Span::from_secs(5));
        }
    }

    #[test]
    fn the_number_of_spinners_is_limited() {
        let spinners = Spinners { now: AtomicUsize::new(0), max: 2 };
        let (first, second) = (spinners.try_acquire(), spinners.try_acquire());
        assert!(first.is_some() && second.is_some());
        assert!(spinners.try_acquire().is_none());
        drop(first);
        assert!(spinners.try_acquire().is_some());
        // On one processor no thread spins.
        assert!(Spinners { now: AtomicUsize::new(0), max: 0 }.try_acquire().is_none());
    }
}
