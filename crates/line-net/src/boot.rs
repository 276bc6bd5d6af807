//! The machine's start, by its number: two ends with the same one read the same clock.

/// First 64 bits of the kernel's boot_id (random(4)); 0 where it cannot be read, which no other end has.
pub(crate) fn number() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}
