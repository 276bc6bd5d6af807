//! Fields of a line: exact numbers, and what to say when they are none.

use super::request::SECTOR_BYTES;

/// Highest first sector whose offset in bytes fits u64.
pub const MAX_LBA: u64 = u64::MAX / SECTOR_BYTES as u64;

/// A whole number from 0 to `most`, in digits alone.
pub fn whole(text: &str, what: &str, most: u64) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = if digits { text.parse::<u64>().ok() } else { None };
    value.filter(|&v| v <= most).ok_or_else(|| format!("{what}, 0 to {most}, not {text:?}"))
}

/// A decimal number of a unit of `unit_ns` ns (a power of ten), as ns. Digits below 1 ns are dropped, as is nothing
/// else.
pub fn decimal_ns(text: &str, what: &str, unit_ns: u64) -> Result<u64, String> {
    let refuse = || format!("{what} as a decimal number, not {text:?}");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Err(refuse());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refuse())? };
    let mut ns = whole.checked_mul(unit_ns).ok_or_else(|| format!("{what} below 584 years, not {text:?}"))?;
    let mut weight = unit_ns;
    for digit in fraction.bytes() {
        weight /= 10;
        if weight == 0 {
            break;
        }
        ns = ns.checked_add(u64::from(digit - b'0') * weight).ok_or_else(refuse)?;
    }
    Ok(ns)
}

/// An amount of data in bytes, above zero.
pub fn bytes(text: &str) -> Result<u32, String> {
    match whole(text, "a size in bytes", u64::from(u32::MAX))? {
        0 => Err("a size of at least 1 byte".to_owned()),
        n => Ok(n as u32),
    }
}

/// A number of sectors of 512 bytes, above zero, as bytes.
pub fn sectors(text: &str) -> Result<u32, String> {
    match whole(text, "a size in sectors", u64::from(u32::MAX / SECTOR_BYTES))? {
        0 => Err("a size of at least 1 sector".to_owned()),
        n => Ok(n as u32 * SECTOR_BYTES),
    }
}

/// The white-space separated fields of a line when there are exactly `N` of them, else how many there are.
pub fn columns<const N: usize>(line: &str) -> Result<[&str; N], usize> {
    let mut fields = [""; N];
    let mut count = 0;
    for field in line.split_ascii_whitespace() {
        if count < N {
            fields[count] = field;
        }
        count += 1;
    }
    if count == N {
        Ok(fields)
    } else {
        Err(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal_ns("603064.588892", "t", 1_000_000_000), Ok(603_064_588_892_000));
        assert_eq!(decimal_ns("0.1", "t", 1_000_000), Ok(100_000));
        assert_eq!(decimal_ns(".5", "t", 1_000), Ok(500));
        assert_eq!(decimal_ns("7", "t", 1_000), Ok(7_000));
        assert_eq!(decimal_ns("1.9999999999999", "t", 1_000), Ok(1_999));
        for bad in ["", ".", "1.2.3", "-1", "1e3", "99999999999999999999", "18446744073710"] {
            assert!(decimal_ns(bad, "t", 1_000_000_000).is_err(), "{bad}");
        }
    }
}
