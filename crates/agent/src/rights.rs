//! Rights of this process.

use std::fs;

/// Number of the capability to mount and much else (include/uapi/linux/capability.h).
pub const SYS_ADMIN: u32 = 21;

/// Capabilities in effect, a bit each.
pub fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    bits.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Returns true if this process may mount, without a user namespace of its own.
pub fn may_mount() -> bool {
    rustix::process::geteuid().is_root() && effective_capabilities() >> SYS_ADMIN & 1 == 1
}
