//! The machine's clocks.

use rustix::time::{clock_gettime, ClockId};

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * units::NS_PER_S + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, ns: the clock of sessions and trains, which makes no steps.
pub fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// CLOCK_REALTIME, ns since 1970: the kernel stamps packets by it.
pub fn unix_ns() -> u64 {
    read(ClockId::Realtime)
}

/// Distance of CLOCK_REALTIME from CLOCK_MONOTONIC as it is now. A stamp of the last moments is converted by it, so that
/// a step of the former moves no packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Distance(u64);

impl Distance {
    /// Reads both clocks. Of a few looks the one that took least counts: between two reads the processor may do other
    /// work.
    pub fn now() -> Distance {
        const LOOKS: usize = 4;
        const SHORT_NS: u64 = 500;
        let mut best = (u64::MAX, 0);
        for _ in 0..LOOKS {
            let before = monotonic_ns();
            let unix = unix_ns();
            let took_ns = monotonic_ns() - before;
            if took_ns < best.0 {
                best = (took_ns, unix.wrapping_sub(before + took_ns / 2));
            }
            if took_ns <= SHORT_NS {
                break;
            }
        }
        Distance(best.1)
    }

    /// A stamp, ns since 1970, by CLOCK_MONOTONIC.
    pub fn monotonic(self, unix_ns: u64) -> u64 {
        unix_ns.wrapping_sub(self.0)
    }
}

/// The kernel's own opinion of CLOCK_REALTIME (adjtimex(2)).
#[derive(Clone, Copy, Debug)]
pub struct ClockQuality {
    /// The largest error, ns.
    pub error_ns: u64,
    /// Somebody steers it by an external source.
    pub is_synchronized: bool,
}

/// Asks the kernel.
pub fn clock_quality() -> ClockQuality {
    // SAFETY: the structure has no invalid bit pattern; modes 0 changes nothing.
    let (state, said) = unsafe {
        let mut said: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut said), said)
    };
    let is_synchronized = state >= 0 && state != libc::TIME_ERROR && said.status & libc::STA_UNSYNC == 0;
    // Without a source the kernel's bound grows to 16 s and stays there.
    ClockQuality { error_ns: (said.maxerror.max(1) as u64).saturating_mul(1000), is_synchronized }
}
