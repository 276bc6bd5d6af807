//! Throughput of the two versions where theory or the libraries tell it.

use crate::path::{config, Path};
use udt::Version;
use units::{Rate, Span, Time};

const BOTH: [Version; 2] = [Version::Udt2003, Version::Udt4];

fn s(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

fn bulk(version: Version, rate: Rate, rtt_ms: u64, limit: usize, window: u32) -> Path {
    let mut path = Path::new(&config(version, window), rate, Span::from_millis(rtt_ms), limit);
    path.ends[0].write(Time::ZERO, u64::MAX);
    path.ends[0].connect(Time::ZERO);
    path
}

#[test]
fn a_clean_path_is_filled() {
    for version in BOTH {
        // Twice the product of bandwidth and delay: 20,000 packets/s x 50 ms.
        let mut path = bulk(version, Rate(240_000_000), 50, 4000, 2000);
        let goodput = path.goodput(s(5), s(15), &mut |_, _, _| false);
        assert!(goodput > 0.93 * 240e6 * 1456.0 / 1500.0, "{version:?}: {goodput}");
        assert_eq!(path.overflowed, 0);
    }
}

#[test]
fn a_small_queue_is_overflowed_and_the_path_stays_busy() {
    for version in BOTH {
        let mut path = bulk(version, Rate(120_000_000), 20, 100, 25_600);
        let goodput = path.goodput(s(10), s(40), &mut |_, _, _| false);
        assert!(path.overflowed > 0);
        assert!(goodput > 0.75 * 120e6, "{version:?}: {goodput}");
    }
}

#[test]
fn the_window_bounds_the_rate() {
    for version in BOTH {
        let mut path = bulk(version, Rate(1_000_000_000), 100, 10_000, 200);
        let goodput = path.goodput(s(5), s(15), &mut |_, _, _| false);
        // 200 packets in a round trip of 100 ms, and up to 10 ms for the acknowledgment.
        let most = 200.0 * 1456.0 * 8.0 / 0.1;
        assert!(goodput <= most && goodput > 0.7 * most, "{version:?}: {goodput} of {most}");
    }
}

#[test]
fn udt4_raises_its_rate_faster_the_more_capacity_is_spare() {
    let after_loss = |rate: Rate| {
        let mut path = bulk(Version::Udt4, rate, 20, 100_000, 100_000);
        path.run(s(1), &mut |end, count, _| end == 0 && count == 2000, |_| false);
        let before = path.ends[0].sending_rate().0;
        path.run(s(3), &mut |_, _, _| false, |_| false);
        path.ends[0].sending_rate().0 - before
    };
    let (slow, fast) = (after_loss(Rate(100_000_000)), after_loss(Rate(1_000_000_000)));
    assert!(fast > 2 * slow, "{slow} and {fast} bit/s in two seconds");
}
