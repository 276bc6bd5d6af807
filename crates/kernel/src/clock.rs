//! The clock and the thread's standing with the scheduler.

use units::{Span, Time};

fn read(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(which, &mut now) };
    now.tv_sec as u64 * units::NS_PER_S + now.tv_nsec as u64
}

/// Time of a run on this machine, by CLOCK_MONOTONIC: no step of the wall clock moves a packet.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// CLOCK_MONOTONIC at time zero, ns.
    epoch_ns: u64,
}

impl Clock {
    /// A clock whose time zero, when the run begins, is `wait` from now.
    pub fn starting_in(wait: Span) -> Clock {
        Clock { epoch_ns: monotonic_ns() + wait.0 }
    }

    /// Time since the run began; zero before that.
    #[inline]
    pub fn now(&self) -> Time {
        Time(monotonic_ns().saturating_sub(self.epoch_ns))
    }

    /// Returns the time of this run at CLOCK_MONOTONIC `monotonic_ns`; zero before it began.
    pub(crate) fn at_monotonic_ns(&self, monotonic_ns: u64) -> Time {
        Time(monotonic_ns.saturating_sub(self.epoch_ns))
    }

    /// A clock that has begun by now, and its reading when this one's run begins.
    pub(crate) fn including_now(&self) -> (Clock, Time) {
        let epoch_ns = self.epoch_ns.min(monotonic_ns());
        (Clock { epoch_ns }, Time(self.epoch_ns - epoch_ns))
    }

    /// Returns the CLOCK_MONOTONIC time of `time`, ns, for timers of the kernel.
    pub fn monotonic_ns_at(&self, time: Time) -> u64 {
        self.epoch_ns.saturating_add(time.0)
    }
}

/// Returns CLOCK_MONOTONIC, ns.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Lets `time` pass.
pub(crate) fn nap(time: Span) {
    let asked =
        libc::timespec { tv_sec: (time.0 / units::NS_PER_S) as i64, tv_nsec: (time.0 % units::NS_PER_S) as i64 };
    // SAFETY: the time is valid; the rest after a signal does not matter.
    unsafe { libc::nanosleep(&asked, std::ptr::null_mut()) };
}

/// CPU time of this thread, ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time that the scheduler keeps for the thread, and in what time, ns. The time bounds how long a thread that has
/// used up its share has to wait; the share leaves room for a second emulator on two cores (the kernel gives away 95 %,
/// sched(7)).
const KEPT_NS: u64 = 800_000;
const PERIOD_NS: u64 = 1_000_000;

/// Asks for exact timers and for precedence over ordinary programs, which would otherwise delay a wake-up by their time
/// slice (milliseconds). True when it was granted; it needs CAP_SYS_NICE.
///
/// SCHED_DEADLINE rather than SCHED_FIFO: the scheduler's fair server gives ordinary programs up to 50 ms in one piece
/// ahead of SCHED_FIFO, every second in which they compete with a thread that is seldom idle. A thread whose deadline
/// is nearer than the server's goes first. Where the kernel's share is given away already, the lowest SCHED_FIFO is
/// what is left.
pub(crate) fn precede() -> bool {
    let attributes = SchedAttr {
        size: std::mem::size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_DEADLINE as u32,
        flags: (libc::SCHED_FLAG_RESET_ON_FORK | libc::SCHED_FLAG_RECLAIM) as u64,
        runtime: KEPT_NS,
        deadline: PERIOD_NS,
        period: PERIOD_NS,
        ..SchedAttr::default()
    };
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: system calls on the calling thread with valid structures, of which the first says its size.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
        libc::syscall(libc::SYS_sched_setattr, 0, &attributes, 0) == 0
            || libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &lowest) == 0
    }
}

/// Asks for exact timers and nothing else: the host's own work goes on as it did.
pub(crate) fn be_exact() {
    // SAFETY: a plain system call on the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
}

/// Asks for exact timers, and to go before other ordinary programs but not before the emulator: an application that is
/// kept waiting by strangers measures them.
pub(crate) fn prefer() {
    // SAFETY: plain system calls on the calling thread. Without CAP_SYS_NICE the second is refused, and lateness tells.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
        libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, -20);
    }
}

/// struct sched_attr of sched_setattr(2), in its first form.
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}
