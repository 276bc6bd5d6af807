//! Time of the running machine, for cores that take it as an argument.

use rustix::rand::{getrandom, GetRandomFlags};
use rustix::time::{clock_gettime, ClockId};
use units::Time;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> Time {
    let time = clock_gettime(ClockId::Monotonic);
    Time(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
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
