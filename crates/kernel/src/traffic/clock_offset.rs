//! The other host's clock against this one's, from exchanges over the connection of reports.

use units::Span;

/// Difference of two hosts' CLOCK_MONOTONIC, by the exchange with the least round trip (RFC 5905, 8: the offset errs by
/// half of it at most).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClockOffset {
    /// The other clock less this one, ns.
    pub offset_ns: i64,
    /// The round trip of that exchange.
    pub round_trip: Span,
    /// Exchanges.
    pub exchanges: u32,
}

impl ClockOffset {
    /// Takes in an exchange: sent and answered by this clock, and the other's time in between.
    pub fn add(&mut self, sent_ns: u64, there_ns: u64, answered_ns: u64) {
        let round_trip = Span(answered_ns.saturating_sub(sent_ns));
        if self.exchanges == 0 || round_trip < self.round_trip {
            // Boot times may differ by years either way: below 2^62 ns.
            let middle = sent_ns + round_trip.0 / 2;
            *self = ClockOffset { offset_ns: there_ns.wrapping_sub(middle) as i64, round_trip, ..*self };
        }
        self.exchanges += 1;
    }

    /// A time of the other clock by this one.
    pub fn here(&self, there_ns: u64) -> u64 {
        there_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// A time of this clock by the other.
    pub fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    /// Bound of its error.
    pub fn error(&self) -> Span {
        Span(self.round_trip.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_with_the_least_round_trip_counts_and_its_error_holds() {
        let mut clock = ClockOffset::default();
        // The other clock is 1000 ahead; one way takes 10 and 90, then 10 and 30, then 400 and 5.
        for (at, out, back) in [(0, 10, 90), (1000, 10, 30), (2000, 400, 5)] {
            clock.add(at, at + out + 1000, at + out + back);
        }
        assert_eq!((clock.round_trip, clock.exchanges), (Span(40), 3));
        assert!(clock.offset_ns.abs_diff(1000) <= clock.error().0, "{clock:?}");
        assert_eq!(clock.here(clock.there(5000)), 5000);
    }

    #[test]
    fn the_other_host_may_have_booted_later() {
        let mut clock = ClockOffset::default();
        clock.add(1 << 50, 500, (1 << 50) + 2);
        assert_eq!(clock.here(600), (1 << 50) + 101);
        assert_eq!(clock.here(0), (1 << 50) - 499);
    }
}
