//! The quantities: time, rate and size, their arithmetic and how they are printed.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run.
///
/// Range: u64, 584 years; beyond, arithmetic saturates at [`Time::NEVER`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

/// A length of time: nanoseconds. Range: u64, 584 years; sums saturate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(pub u64);

/// A rate: bits per second. Range: u64; 400 Gbit/s is 4e11, the field ends at 1.8e19.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(pub u64);

/// An amount of data: bytes. Range: u64; 400 Gbit/s for a year is 1.6e18.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than everything.
    pub const NEVER: Time = Time(u64::MAX);

    /// Time passed since `earlier`; zero when `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Seconds since the start of the run, for printing and plotting only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From whole seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * NS_PER_S)
    }

    /// From whole milliseconds.
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// From whole microseconds.
    pub const fn from_micros(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// Whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds, for printing and plotting only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
}

impl Rate {
    /// Time to send `size` at this rate, rounded up; [`Span`] of `u64::MAX` at rate zero.
    ///
    /// `size * 8e9` fits u64 up to 2.3 GB; beyond, the product is taken in u128.
    pub fn time_for(self, size: Size) -> Span {
        if self.0 == 0 {
            return Span(u64::MAX);
        }
        let bits_ns = u128::from(size.0) * 8 * u128::from(NS_PER_S);
        Span(u64::try_from(bits_ns.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
    }

    /// Data sent in `span` at this rate, rounded down.
    pub fn data_in(self, span: Span) -> Size {
        let bytes = u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NS_PER_S));
        Size(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0s"),
            n if n % NS_PER_S == 0 => write!(f, "{}s", n / NS_PER_S),
            n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n != 0 && n % 1_000_000_000 == 0 => write!(f, "{}Gbit/s", n / 1_000_000_000),
            n if n != 0 && n % 1_000_000 == 0 => write!(f, "{}Mbit/s", n / 1_000_000),
            n if n != 0 && n % 1_000 == 0 => write!(f, "{}kbit/s", n / 1_000),
            n => write!(f, "{n}bit/s"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n != 0 && n % (1 << 30) == 0 => write!(f, "{}GiB", n >> 30),
            n if n != 0 && n % (1 << 20) == 0 => write!(f, "{}MiB", n >> 20),
            n if n != 0 && n % 1_000_000_000 == 0 => write!(f, "{}GB", n / 1_000_000_000),
            n if n != 0 && n % 1_000_000 == 0 => write!(f, "{}MB", n / 1_000_000),
            n if n != 0 && n % (1 << 10) == 0 => write!(f, "{}KiB", n >> 10),
            n if n != 0 && n % 1_000 == 0 => write!(f, "{}kB", n / 1_000),
            n => write!(f, "{n}B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_rate, parse_size, parse_span};

    #[test]
    fn four_hundred_gigabit_for_a_second_does_not_overflow() {
        let rate = Rate(400_000_000_000);
        assert_eq!(rate.data_in(Span::from_secs(1)), Size(50_000_000_000));
        assert_eq!(rate.time_for(Size(50_000_000_000)), Span::from_secs(1));
    }

    #[test]
    fn serialisation_time_rounds_up() {
        assert_eq!(Rate(1_000_000_000).time_for(Size(1500)), Span(12_000));
        assert_eq!(Rate(3).time_for(Size(1)), Span(2_666_666_667));
        assert_eq!(Rate(0).time_for(Size(1)), Span(u64::MAX));
    }

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
        assert_eq!(Time(1) - Span(2), Time::ZERO);
        assert_eq!(Time(1).since(Time(2)), Span::ZERO);
    }

    #[test]
    fn what_is_printed_parses_back() {
        for span in [1, 999, 1_000, 25_000_000, 3_000_000_000, 1_234_567] {
            assert_eq!(parse_span(&Span(span).to_string()).unwrap(), Span(span));
        }
        for rate in [1, 9_600, 45_000_000, 1_000_000_000, 9_953_280_000] {
            assert_eq!(parse_rate(&Rate(rate).to_string()).unwrap(), Rate(rate));
        }
        for size in [1, 1500, 1024, 65_535, 8_000_000, 8 << 20, 1 << 30] {
            assert_eq!(parse_size(&Size(size).to_string()).unwrap(), Size(size));
        }
    }
}
