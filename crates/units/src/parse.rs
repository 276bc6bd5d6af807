//! Text to quantity, exactly: decimal arithmetic on integers, no floats.

use crate::quantity::{Rate, Size, Span};
use std::fmt;

/// Reason for which a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The text as given.
    pub text: String,
    /// The right form, as a phrase with examples.
    pub expected: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not {}", self.text, self.expected)
    }
}

impl std::error::Error for ParseError {}

const SPAN: &str = "a time with a unit (ns, us, ms, s, min or h), such as \"25ms\" or \"1.5s\"";
const RATE: &str =
    "a rate with a unit (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s; B/s, kB/s, MB/s, GB/s, TB/s; KiB/s, MiB/s, \
    GiB/s, TiB/s), such as \"45Mbit/s\" or \"180MB/s\"";
const SIZE: &str =
    "a size with a unit (B, kB, MB, GB, TB = powers of 1000; KiB, MiB, GiB, TiB = powers of 1024), such as \"8MB\" or \
    \"64KiB\"";

/// A time such as "25ms" or "1.5 s", rounded down to whole ns.
pub fn parse_span(text: &str) -> Result<Span, ParseError> {
    scaled(text, SPAN, |unit| {
        Some(match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        })
    })
    .map(Span)
}

/// A rate such as "1Gbit/s" (powers of 1000) or "180MB/s" (as [`parse_size`], 8 bits each); the result is whole bit/s.
pub fn parse_rate(text: &str) -> Result<Rate, ParseError> {
    scaled(text, RATE, |unit| {
        Some(match unit {
            "bit/s" => 1,
            "kbit/s" => 1_000,
            "Mbit/s" => 1_000_000,
            "Gbit/s" => 1_000_000_000,
            "Tbit/s" => 1_000_000_000_000,
            _ => 8 * bytes(unit.strip_suffix("/s")?)?,
        })
    })
    .map(Rate)
}

/// A size such as "8MB" (8e6 bytes) or "8MiB" (2^23 bytes).
pub fn parse_size(text: &str) -> Result<Size, ParseError> {
    scaled(text, SIZE, bytes).map(Size)
}

/// Bytes of a unit of size.
fn bytes(unit: &str) -> Option<u64> {
    Some(match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    })
}

fn scaled(text: &str, expected: &'static str, scale_of: impl Fn(&str) -> Option<u64>) -> Result<u64, ParseError> {
    let error = || ParseError { text: text.to_owned(), expected };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).ok_or_else(error)?;
    let scale = scale_of(trimmed[split..].trim_start()).ok_or_else(error)?;
    let number: String = trimmed[..split].chars().filter(|&c| c != '_').collect();
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
    // 18 fractional digits keep 10^digits inside u64; longer fractions say nothing in any of our units.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 18 || fraction.contains('.') {
        return Err(error());
    }
    let whole: u128 = whole.parse().map_err(|_| error())?;
    let parts: u128 = fraction.parse().map_err(|_| error())?;
    let digits = 10u128.pow(fraction.len() as u32);
    let value = whole
        .checked_mul(u128::from(scale))
        .and_then(|v| v.checked_add(parts * u128::from(scale) / digits))
        .ok_or_else(error)?;
    u64::try_from(value).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse_rate("9.95328Gbit/s").unwrap(), Rate(9_953_280_000));
        assert_eq!(parse_span("17.079ms").unwrap(), Span(17_079_000));
        assert_eq!(parse_size("0.5 GB").unwrap(), Size(500_000_000));
        assert_eq!(parse_size("1_000B").unwrap(), Size(1000));
    }

    #[test]
    fn mb_and_mib_are_not_the_same() {
        assert_eq!(parse_size("8MB").unwrap(), Size(8_000_000));
        assert_eq!(parse_size("8MiB").unwrap(), Size(8_388_608));
    }

    #[test]
    fn a_rate_in_bytes_is_eight_times_as_many_bits() {
        assert_eq!(parse_rate("180MB/s").unwrap(), Rate(1_440_000_000));
        assert_eq!(parse_rate("1.5 kB/s").unwrap(), Rate(12_000));
        assert_eq!(parse_rate("1GB/s").unwrap(), parse_rate("8Gbit/s").unwrap());
        assert_eq!(parse_rate("64MiB/s").unwrap(), Rate((64 * 8) << 20));
        assert_eq!(parse_rate("1B/s").unwrap(), Rate(8));
    }

    #[test]
    fn a_unit_is_required_and_known() {
        for bad in ["25", "", "ms", "25 furlongs", "1.2.3s", "-1s", "1e3s", ".5s", "5.s", "99999999999999h"] {
            assert!(parse_span(bad).is_err(), "{bad:?} must not parse");
        }
        for bad in ["1", "1Gb", "1Gb/s", "1Gbps", "1gbit/s", "1GB", "1Gibit/s", "/s", "1/s"] {
            assert!(parse_rate(bad).is_err(), "{bad:?} must not parse");
        }
        for bad in ["8", "8M", "8mb", "8Mbit"] {
            assert!(parse_size(bad).is_err(), "{bad:?} must not parse");
        }
        assert!(parse_span("25").unwrap_err().to_string().contains("25ms"));
    }
}
