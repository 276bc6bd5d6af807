//! Serial number arithmetic (RFC 1982).

/// Returns whether `a` comes before `b` in serial number arithmetic (RFC 1982): numbers wrap at 2^32, and those at most
/// 2^31 - 1 ahead come later.
pub fn serial_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
