//! Time of the running machine, for cores that take it as an argument.

use line_test::Now;
use rustix::time::{clock_gettime, ClockId};

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time by CLOCK_MONOTONIC, and since 1970.
pub(crate) fn now() -> Now {
    Now { steady_ns: read(ClockId::Monotonic), day_ns: read(ClockId::Realtime) }
}

/// A clock that is read once a frame: CLOCK_MONOTONIC, with the day's distance from it as it was lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameClock(u64);

impl FrameClock {
    /// Looks at both clocks. The distance is true until the day's clock is set.
    pub fn new() -> FrameClock {
        /// Looks, of which the one that took least counts: between two reads the processor may do other work.
        const LOOKS: usize = 8;
        /// A look that takes no longer is good enough, ns.
        const SHORT_NS: u64 = 500;
        let mut best = (u64::MAX, 0);
        for _ in 0..LOOKS {
            let before = read(ClockId::Monotonic);
            let day_ns = read(ClockId::Realtime);
            let took_ns = read(ClockId::Monotonic) - before;
            if took_ns < best.0 {
                best = (took_ns, day_ns.wrapping_sub(before + took_ns / 2));
            }
            if took_ns <= SHORT_NS {
                break;
            }
        }
        FrameClock(best.1)
    }

    /// Time since 1970 of a time by CLOCK_MONOTONIC, ns.
    #[inline]
    pub fn day_of(self, steady_ns: u64) -> u64 {
        steady_ns.wrapping_add(self.0)
    }

    /// The time.
    #[inline]
    pub fn now(self) -> Now {
        let steady_ns = read(ClockId::Monotonic);
        Now { steady_ns, day_ns: steady_ns.wrapping_add(self.0) }
    }
}
