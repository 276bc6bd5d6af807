//! A hook that never ends: a thread looks, and ends the process.

use super::line::Line;
use super::slot::Slot;
use std::sync::atomic::Ordering;
use std::sync::Once;
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_millis(250);

/// CPU time of one call after which it is taken for endless, ns. A hook takes some 10 ns; the kernel's verifier allows
/// a million instructions, less than 1 ms.
const CPU_NS_MAX: u64 = 5_000_000_000;

/// Looks at one call after which it is taken for endless though it takes no CPU time: a minute. A process that is
/// stopped is not looked at.
const LOOKS_MAX: u32 = 240;

/// One thread's call at the last check.
#[derive(Clone, Copy)]
struct Seen {
    count: u64,
    cpu_ns: u64,
    looks: u32,
}

/// Starts the thread, once for all.
pub(super) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without it, an endless hook is ended by the user.
        let _ = thread::Builder::new().name("control-watchdog".into()).stack_size(1 << 17).spawn(watch);
    });
}

#[allow(clippy::disallowed_methods, reason = "a thread of its own, which no run waits for")]
fn watch() {
    let mut seen: Vec<Option<Seen>> = vec![];
    loop {
        thread::sleep(INTERVAL);
        let slots = Slot::all();
        seen.resize(slots.len(), None);
        for (slot, seen) in slots.into_iter().zip(&mut seen) {
            *seen = look(slot, *seen);
        }
    }
}

fn look(slot: &Slot, seen: Option<Seen>) -> Option<Seen> {
    let count = slot.count.load(Ordering::Acquire);
    // The clock is a running thread's: it is in a hook.
    if count.is_multiple_of(2) {
        return None;
    }
    let cpu_ns = cpu_ns(slot);
    let Some(first) = seen.filter(|seen| seen.count == count) else {
        return Some(Seen { count, cpu_ns, looks: 0 });
    };
    let now = Seen { looks: first.looks + 1, ..first };
    if cpu_ns.saturating_sub(first.cpu_ns) > CPU_NS_MAX || now.looks > LOOKS_MAX {
        if let Some(call) = slot.call().filter(|_| slot.count.load(Ordering::Acquire) == count) {
            let mut line = Line::of(&call);
            line.push("has not returned after ");
            line.push_number(CPU_NS_MAX / 1_000_000_000, 10, 1);
            line.push(" s; a hook takes less than 1 ms");
            line.end();
        }
    }
    Some(now)
}

fn cpu_ns(slot: &Slot) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes the time.
    unsafe { libc::clock_gettime(slot.clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
