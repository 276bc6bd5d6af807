//! The kernel's configuration, as far as objects ask for it (`CONFIG_HZ`, congestion/bpf/env.h), where it is not to be
//! had.
//!
//! libbpf reads it from a file and refuses an object where there is none, also one that could do without, as in a
//! container of a distribution that keeps it under /boot alone. libbpf does not look for what it gets at opening.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// Ticks per second that kernels are built with (kernel/Kconfig.hz).
const RATES: [u64; 4] = [100, 250, 300, 1000];

/// Between two looks at the number of ticks: 20 or more of them.
const LOOK_NS: u64 = 200_000_000;

/// The kernel's configuration for libbpf; `None` where libbpf finds it itself.
pub(crate) fn text_for_libbpf() -> Option<CString> {
    text_of(&places(), Path::new("/proc/timer_list"))
}

/// Files in which libbpf looks. By uname(2), as libbpf has it: /proc may show processes alone.
fn places() -> [PathBuf; 2] {
    // SAFETY: all zeros are a valid utsname, which the call fills with strings that end.
    let release = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        std::ffi::CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    };
    [format!("/boot/config-{release}").into(), "/proc/config.gz".into()]
}

fn text_of(places: &[PathBuf], timers: &Path) -> Option<CString> {
    if places.iter().any(|place| place.exists()) {
        return None;
    }
    CString::new(format!("CONFIG_HZ={}\n", ticks_per_s(timers))).ok()
}

/// Ticks of the kernel's clock per second, by counting them in `timers`; 0 where it does not show.
fn ticks_per_s(timers: &Path) -> u64 {
    let (Some(first), began_ns) = (ticks(timers), monotonic_ns()) else { return 0 };
    let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK_NS as i64 };
    // SAFETY: the time is valid; what a signal leaves of it does not matter, because the clock is read.
    unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
    let (Some(last), ended_ns) = (ticks(timers), monotonic_ns()) else { return 0 };
    rate_of(last.saturating_sub(first), ended_ns - began_ns)
}

/// The rate that `ticks` within `elapsed_ns` are closest to; 0 where they are close to none.
fn rate_of(ticks: u64, elapsed_ns: u64) -> u64 {
    let rate = ticks * 1_000_000_000 / elapsed_ns.max(1);
    let nearest = RATES.into_iter().min_by_key(|known| known.abs_diff(rate)).unwrap_or(0);
    // 250 and 300 are the closest.
    if nearest.abs_diff(rate) * 12 < nearest {
        nearest
    } else {
        0
    }
}

fn ticks(timers: &Path) -> Option<u64> {
    let text = fs::read_to_string(timers).ok()?;
    text.lines().find_map(|line| line.strip_prefix("jiffies: "))?.trim().parse().ok()
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libbpf_gets_only_what_it_cannot_find() {
        let [none, here] = [PathBuf::from("no such file"), PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        assert_eq!(text_of(&[none.clone(), here], &none), None);
        assert_eq!(text_of(std::slice::from_ref(&none), &none).as_deref(), Some(c"CONFIG_HZ=0\n"));
    }

    #[test]
    fn a_rate_is_one_that_kernels_are_built_with_or_none() {
        for rate in RATES {
            assert_eq!(rate_of(rate / 5, LOOK_NS), rate);
            assert_eq!(rate_of(rate * 21 / 100, LOOK_NS + 10_000_000), rate);
        }
        assert_eq!(rate_of(274, 1_000_000_000), 0);
        assert_eq!(rate_of(0, LOOK_NS), 0);
    }

    #[test]
    fn ticks_are_as_the_kernel_was_built() {
        let counted = ticks_per_s(Path::new("/proc/timer_list"));
        // A user who may not read that file gives libbpf nothing.
        assert_eq!(counted != 0, ticks(Path::new("/proc/timer_list")).is_some());
        let [plain, packed] = places();
        let command = std::process::Command::new("zcat").arg("-f").args([plain, packed]).output();
        let text = String::from_utf8_lossy(&command.expect("zcat runs").stdout).into_owned();
        let configured = text.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse::<u64>().ok());
        assert!(counted == 0 || configured.is_none_or(|rate| rate == counted), "{counted} counted, {configured:?}");
    }
}
