//! Time of the running machine, for cores that take it as an argument.

use units::Time;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now() -> Time {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes a timespec that is there; it cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut spec) };
    Time(spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64)
}

/// Unpredictable bytes.
pub fn entropy<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer has N bytes; up to 256 are given in one call without interruption (getrandom(2)).
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    assert_eq!(got, N as isize, "getrandom gives at most 256 bytes at once");
    bytes
}
