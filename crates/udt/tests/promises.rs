//! All data arrives, once and in order, and the connection ends, whatever is lost.

use crate::path::{config, Path};
use proptest::prelude::*;
use udt::{Data, Segment, Version};
use units::{Rate, Span, Time};

const BYTES: u64 = 1_000_001;

fn arrives(version: Version, rtt_ms: u64, limit: usize, loss: &mut dyn FnMut(usize, u64, &Segment) -> bool) -> Path {
    let mut path = Path::new(&config(version, 300), Rate(50_000_000), Span::from_millis(rtt_ms), limit);
    path.ends[0].write(Time::ZERO, BYTES);
    path.ends[0].connect(Time::ZERO);
    path.ends[0].close(Time::ZERO);
    path.run(Time::ZERO + Span::from_secs(3600), loss, |path| path.ends.iter().all(udt::Endpoint::is_closed));
    assert_eq!(path.received, BYTES, "{version:?}: all arrives");
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn all_data_arrives_whatever_is_lost(
        is_first in proptest::bool::ANY,
        rtt_ms in 1u64..120,
        seed in 1u64..u64::MAX,
        one_of in 8u64..200,
    ) {
        let version = if is_first { Version::Udt2003 } else { Version::Udt4 };
        let mut random = link::random::Random::new(seed);
        // Of control packets too; a handshake gives up after 3 s, a connection after 46.
        arrives(version, rtt_ms, 60, &mut |_, _, segment| {
            !matches!(segment, Segment::Handshake(_)) && random.below(one_of) == 0
        });
    }
}

#[test]
fn nothing_is_sent_again_where_nothing_is_lost() {
    for version in [Version::Udt2003, Version::Udt4] {
        let mut path = Path::new(&config(version, 100), Rate(50_000_000), Span::from_millis(40), 1000);
        path.ends[0].write(Time::ZERO, BYTES);
        path.ends[0].connect(Time::ZERO);
        path.ends[0].close(Time::ZERO);
        path.run(Time::ZERO + Span::from_secs(60), &mut |_, _, _| false, |path| path.ends[1].is_closed());
        let packets = BYTES.div_ceil(1456);
        assert_eq!((path.sent, path.ends[1].stats().data_segments_received), (packets, packets));
        assert_eq!(path.ends[0].stats().timeouts, 0);
    }
}

#[test]
fn a_lost_packet_is_reported_at_once_and_sent_again_once() {
    for version in [Version::Udt2003, Version::Udt4] {
        let mut lost = 0;
        let path = arrives(version, 40, 1000, &mut |end, _, segment| {
            let is_it = end == 0 && matches!(segment, Segment::Data(Data { number: 50, .. })) && lost < 1;
            lost += u64::from(is_it);
            is_it
        });
        assert_eq!(path.ends[0].stats().retransmitted_segments, 1, "{version:?}");
        assert_eq!(path.ends[0].stats().timeouts, 0, "{version:?}: no time-out was needed");
    }
}

#[test]
fn udt4_waits_for_its_timer_where_the_retransmission_is_lost_and_2003_reports_again() {
    for (version, timeouts) in [(Version::Udt2003, 0), (Version::Udt4, 1)] {
        let mut lost = 0;
        let path = arrives(version, 40, 1000, &mut |end, _, segment| {
            let is_it = end == 0 && matches!(segment, Segment::Data(Data { number: 50, .. })) && lost < 2;
            lost += u64::from(is_it);
            is_it
        });
        assert_eq!(path.ends[0].stats().timeouts, timeouts, "{version:?}");
    }
}

#[test]
fn a_connection_without_an_answer_is_given_up() {
    let mut path = Path::new(&config(Version::Udt4, 100), Rate(50_000_000), Span::from_millis(40), 1000);
    path.ends[0].connect(Time::ZERO);
    path.run(Time::ZERO + Span::from_secs(60), &mut |end, _, _| end == 1, |_| false);
    assert!(path.ends[0].is_closed() && !path.ends[0].was_established());
    assert!(path.now <= Time::ZERO + Span::from_secs(4), "libudt tries for 3 s");
}

#[test]
fn a_connection_that_falls_silent_is_given_up_after_sixteen_expirations() {
    let mut path = Path::new(&config(Version::Udt4, 100), Rate(50_000_000), Span::from_millis(40), 1000);
    path.ends[0].write(Time::ZERO, u64::MAX);
    path.ends[0].connect(Time::ZERO);
    path.run(Time::ZERO + Span::from_secs(2), &mut |_, _, _| false, |_| false);
    assert!(path.ends[0].is_established());
    path.run(Time::ZERO + Span::from_secs(200), &mut |_, _, _| true, |path| path.ends[0].is_closed());
    assert!(path.ends[0].is_closed());
    assert!(path.now > Time::ZERO + Span::from_secs(40), "0.3 s x (1 + 2 + ... + 17)");
}

#[test]
fn an_idle_connection_is_kept_alive() {
    let mut path = Path::new(&config(Version::Udt4, 100), Rate(50_000_000), Span::from_millis(40), 1000);
    path.ends[0].connect(Time::ZERO);
    path.run(Time::ZERO + Span::from_secs(300), &mut |_, _, _| false, |_| false);
    assert!(path.ends.iter().all(udt::Endpoint::is_established));
}
