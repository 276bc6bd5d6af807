//! The hook call that each thread is in, for the signal handler and the watchdog.

use super::memory::{alternate_stack, GuardedSock};
use crate::own::Subject;
use crate::sock::CcSock;
use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// A thread's hook calls. It stays when the thread ends, for the watchdog.
pub(super) struct Slot {
    /// Counts beginnings and ends of calls: odd within a hook.
    pub count: AtomicU64,
    /// Address of a variable in the caller's frame: the hook's frames lie below.
    pub stack: AtomicUsize,
    subject: AtomicPtr<Subject>,
    hook: AtomicPtr<&'static str>,
    time_us: AtomicU64,
    /// Clock of the thread's CPU time.
    pub clock: libc::clockid_t,
    /// The sender that hooks are called with.
    pub sock: GuardedSock,
}

/// A call, or the last one.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub subject: &'static Subject,
    pub hook: &'static str,
    pub time_us: u64,
}

thread_local! {
    static SLOT: Cell<*const Slot> = const { Cell::new(null()) };
}

static SLOTS: Mutex<Vec<&'static Slot>> = Mutex::new(vec![]);

impl Slot {
    /// This thread's, where it has called a hook. A signal handler may ask.
    pub fn of_thread() -> Option<&'static Slot> {
        // SAFETY: null, or a slot that stays.
        unsafe { SLOT.get().as_ref() }
    }

    /// Makes this thread's.
    #[cold]
    pub fn make() -> &'static Slot {
        alternate_stack();
        let mut clock = 0;
        // SAFETY: it writes the clock of this thread.
        unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut clock) };
        let slot: &'static Slot = Box::leak(Box::new(Slot {
            count: AtomicU64::new(0),
            stack: AtomicUsize::new(0),
            subject: AtomicPtr::new(null_mut()),
            hook: AtomicPtr::new(null_mut()),
            time_us: AtomicU64::new(0),
            clock,
            sock: GuardedSock::new(),
        }));
        SLOTS.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        SLOT.set(slot);
        slot
    }

    /// All slots.
    pub fn all() -> Vec<&'static Slot> {
        SLOTS.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn enter(&self, subject: &'static Subject, hook: &'static &'static str, sock: &CcSock, stack: usize) {
        self.subject.store(std::ptr::from_ref(subject).cast_mut(), Ordering::Relaxed);
        self.hook.store(std::ptr::from_ref(hook).cast_mut(), Ordering::Relaxed);
        self.time_us.store(sock.tcp_mstamp_us, Ordering::Relaxed);
        self.stack.store(stack, Ordering::Relaxed);
        // A signal of this thread sees all of it; the watchdog reads it after the count.
        self.count.fetch_add(1, Ordering::Release);
    }

    pub fn leave(&self) {
        self.count.fetch_add(1, Ordering::Release);
    }

    pub fn is_in_hook(&self) -> bool {
        self.count.load(Ordering::Acquire) % 2 == 1
    }

    /// The call that the thread is in, or its last one.
    pub fn call(&self) -> Option<Call> {
        let (subject, hook) = (self.subject.load(Ordering::Relaxed), self.hook.load(Ordering::Relaxed));
        // SAFETY: null, or what stays.
        let (subject, hook) = unsafe { (subject.as_ref()?, hook.as_ref()?) };
        Some(Call { subject, hook, time_us: self.time_us.load(Ordering::Relaxed) })
    }
}
