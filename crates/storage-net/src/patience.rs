//! How a connection waits for what comes next: with its eyes open for a moment, where what came last came within one.
//!
//! Putting a thread to sleep and waking it takes longer than a small read from a page cache, most of all on a virtual machine,
//! whose idle processor the hypervisor has to start again: 48 of the 77 us of a 4 KiB read at queue depth 1 (docs/iscsi.md).
//! (Linux does the same below: halt_poll_ns of KVM, SO_BUSY_POLL of network cards.) Over a path of a millisecond nobody looks in
//! vain but once.

use crate::clock;
use crate::wake::Waker;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Span;

/// How long it looks before it sleeps, and the longest wait after which it does: some times what a sleep and a wake take.
const MOMENT: Span = Span::from_micros(100);

/// Threads that look at the same time: never on all processors, or they would look for those whom they keep from sending.
#[derive(Debug)]
pub(crate) struct Lookers {
    now: AtomicUsize,
    most: usize,
}

impl Lookers {
    /// One processor less than there are.
    pub(crate) fn new() -> Lookers {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Lookers { now: AtomicUsize::new(0), most: processors - 1 }
    }

    /// A place among them, until it is dropped; None when all are taken.
    fn enter(&self) -> Option<Place<'_>> {
        let entered =
            self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < self.most).then_some(now + 1));
        entered.ok().map(|_| Place(&self.now))
    }
}

struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One thread's: whether its last wait was short.
#[derive(Default, Debug)]
pub(crate) struct Patience {
    short: bool,
}

impl Patience {
    /// As [`Waker::wait`], after a look round where that is promising.
    pub(crate) fn wait(
        &mut self,
        lookers: &Lookers,
        waker: &Waker,
        socket: RawFd,
        read: bool,
        write: bool,
        timeout_ms: i32,
    ) {
        let began = clock::now();
        if self.short {
            if let Some(_place) = lookers.enter() {
                while clock::now().since(began) < MOMENT {
                    if waker.wait(socket, read, write, 0) {
                        return;
                    }
                    std::hint::spin_loop();
                }
            }
        }
        let came = waker.wait(socket, read, write, timeout_ms);
        self.short = came && clock::now().since(began) < MOMENT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn what_is_there_already_is_a_short_wait_and_what_never_comes_is_not() {
        let (near, mut far) = pair();
        let (waker, lookers) = (Waker::new().unwrap(), Lookers { now: AtomicUsize::new(0), most: 1 });
        let mut patience = Patience::default();
        far.write_all(b"x").unwrap();
        // The machine may take its time over it: until a wait was short.
        for _ in 0..1000 {
            patience.wait(&lookers, &waker, near.as_raw_fd(), true, false, 1000);
            if patience.short {
                break;
            }
        }
        assert!(patience.short);
        // Looked in vain, then slept.
        let began = clock::now();
        patience.wait(&lookers, &waker, near.as_raw_fd(), false, false, 5);
        assert!(clock::now().since(began) >= Span::from_millis(5));
        assert!(!patience.short);
        assert_eq!(lookers.now.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_waker_ends_a_look_as_it_ends_a_sleep() {
        let (near, _far) = pair();
        let (waker, lookers) = (Waker::new().unwrap(), Lookers { now: AtomicUsize::new(0), most: 1 });
        for short in [true, false] {
            waker.wake();
            let mut patience = Patience { short };
            let began = clock::now();
            patience.wait(&lookers, &waker, near.as_raw_fd(), true, false, 10_000);
            assert!(clock::now().since(began) < Span::from_secs(5));
        }
    }

    #[test]
    fn no_more_than_so_many_look_at_once() {
        let lookers = Lookers { now: AtomicUsize::new(0), most: 2 };
        let (first, second) = (lookers.enter(), lookers.enter());
        assert!(first.is_some() && second.is_some());
        assert!(lookers.enter().is_none());
        drop(first);
        assert!(lookers.enter().is_some());
        // On one processor nobody does.
        assert!(Lookers { now: AtomicUsize::new(0), most: 0 }.enter().is_none());
    }
}
