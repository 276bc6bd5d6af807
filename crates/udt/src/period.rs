//! The time between two packets, and the arithmetic of rates that both versions share.

use crate::config::SYN;

/// Picoseconds in a second and in a microsecond. A period is kept in picoseconds: a packet of 9000 bytes at 400 Gbit/s
/// takes 180,000 of them, and one per second 10^12.
pub(crate) const PS_PER_S: u64 = 1_000_000_000_000;
pub(crate) const PS_PER_US: u64 = 1_000_000;
/// Increases are in billionths of a packet per SYN.
pub(crate) const NANO: u128 = 1_000_000_000;
/// First period: a packet each microsecond (libudt, and the library of 2003).
pub(crate) const FIRST_PERIOD_PS: u64 = PS_PER_US;

/// State of the sender that rate control takes decisions from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// The next packet that the receiver expects.
    pub expected: u64,
    /// Smoothed round-trip time, us.
    pub rtt_us: u64,
    /// Smoothed arrival speed, packets/s.
    pub receive_rate: u64,
    /// Arrival speed of this acknowledgment alone, packets/s; 0: it has none.
    pub latest_rate: u64,
    /// Smoothed estimate of the path's capacity, packets/s.
    pub capacity: u64,
}

/// Packets per second of a period.
pub(crate) fn rate_of(period_ps: u64) -> u64 {
    PS_PER_S / period_ps.max(1)
}

/// The period of `packets` per second.
pub(crate) fn period_of(packets: u64) -> u64 {
    (PS_PER_S / packets.max(1)).max(1)
}

/// Increase for a spare capacity of `spare` packets/s of `mtu` bytes, in billionths of a packet per SYN:
/// 10^ceil(log10(spare bit/s)) x 1.5e-6 / MTU packets, `least` at least (draft-gg-udt-03, 6.1).
pub(crate) fn increase(spare: u64, mtu: u32, least: u128) -> u128 {
    let bits = u128::from(spare) * u128::from(mtu) * 8;
    let mut power = 1u128;
    while power < bits {
        power *= 10;
    }
    if bits == 0 {
        return least;
    }
    // 1.5e-6 packets and bytes, in billionths.
    (power * 1_500 / u128::from(mtu)).max(least)
}

/// The period after `increase` billionths of a packet more in each SYN.
pub(crate) fn shortened(period_ps: u64, increase: u128) -> u64 {
    let syn = u128::from(SYN.0) * 1_000 * NANO;
    let period = u128::from(period_ps);
    u64::try_from(period * syn / (period * increase + syn)).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_increase_follows_the_drafts_table() {
        // draft-gg-udt-03, 6.1: of 1500-byte packets 10 per SYN above 1 Gbit/s and up to 10, 1 above 100 Mbit/s, ...
        let packets = |bits_per_s: u64| bits_per_s / (1500 * 8);
        for (spare_bps, expected) in [
            (9_000_000_000, 10 * NANO),
            (900_000_000, NANO),
            (90_000_000, NANO / 10),
            (9_000_000, NANO / 100),
            (12_000, NANO / 10_000),
        ] {
            assert_eq!(increase(packets(spare_bps), 1500, 0), expected, "{spare_bps} bit/s");
        }
        assert_eq!(increase(0, 1500, 7), 7);
    }

    #[test]
    fn a_packet_more_per_syn_is_a_hundred_per_second() {
        assert_eq!(rate_of(shortened(period_of(10_000), NANO)), 10_100);
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        assert!(shortened(u64::MAX / 2, increase(u64::MAX / 1500 / 8, 65_535, 1)) > 0);
        assert_eq!(period_of(u64::MAX), 1);
        assert_eq!(rate_of(0), PS_PER_S);
    }
}
