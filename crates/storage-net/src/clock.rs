//! Time of the running machine, for cores that take it as an argument.

use rustix::rand::{getrandom, GetRandomFlags};
use rustix::time::{clock_gettime, ClockId};
use units::Time;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> Time {
    let time = clock_gettime(ClockId::Monotonic);
    Time(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Time since 1900 by the clock of the day, ns, as NTP counts it (RFC 5905, 6).
pub(crate) fn since_1900() -> u64 {
    /// From 1900 to 1970 (RFC 5905, figure 4).
    const UNIX_EPOCH_S: u64 = 2_208_988_800;
    let time = clock_gettime(ClockId::Realtime);
    (time.tv_sec as u64).wrapping_add(UNIX_EPOCH_S).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// True when the kernel holds its clock for synchronised (adjtimex(2)).
pub(crate) fn is_synchronized() -> bool {
    // SAFETY: the structure has no invalid bit pattern; without modes the kernel changes nothing, and writes into it.
    unsafe {
        let mut state: libc::timex = std::mem::zeroed();
        libc::adjtimex(&mut state) != libc::TIME_ERROR
    }
}

/// Unpredictable bytes.
///
/// # Panics
/// When N is above 256: the kernel gives no more in one call that signals do not interrupt (getrandom(2)).
pub fn entropy<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let got = getrandom(&mut bytes, GetRandomFlags::empty());
    assert_eq!(got, Ok(N), "getrandom gives at most 256 bytes at once");
    bytes
}
