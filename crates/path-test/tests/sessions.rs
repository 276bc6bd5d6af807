//! A sender and a reflector over a path in virtual time.

use path_test::estimate::Cost;
use path_test::reflector::{Arrival, Reflector, ReflectorClock, ReflectorConfig};
use path_test::session::{ReplyArrival, Sample, SenderClock, Session, SessionConfig};
use path_test::stamp::{Key, TimeFormat};
use path_test::statistics::Statistics;
use proptest::prelude::*;
use std::net::SocketAddr;

const MS: u64 = 1_000_000;
const UNIX_NS: u64 = 1_800_000_000_000_000_000;

/// Fate of a packet on the path.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// Delays there and back, ns.
    Comes(u64, u64),
    LostThere,
    LostBack,
    Twice(u64, u64),
}

fn config(count: u64, key: Option<Key>) -> SessionConfig {
    SessionConfig {
        interval_ns: 10 * MS,
        payload_bytes: 0,
        ssid: 77,
        key,
        timeout_ns: 500 * MS,
        count: Some(count),
        format: TimeFormat::Ntp,
    }
}

/// Sends a packet for each fate; the reflector's clock is `offset_ns` ahead. Returns the session and its samples.
fn run(fates: &[Fate], offset_ns: i64, is_stateful: bool) -> (Session, Vec<Sample>) {
    let mut session = Session::new(config(fates.len() as u64, None), 0);
    let mut reflector = Reflector::new(ReflectorConfig { is_stateful, ..ReflectorConfig::default() });
    let mut arrivals: Vec<(u64, u64, Vec<u8>)> = vec![];
    let mut packet = vec![];
    for (at, fate) in fates.iter().enumerate() {
        let now = at as u64 * 10 * MS;
        let clock = SenderClock { unix_ns: UNIX_NS + now, error_ns: 1000, is_synchronized: false };
        assert_eq!(session.poll_transmit(now, clock, &mut packet), Some(at as u64));
        assert_eq!(session.poll_transmit(now, clock, &mut packet), None, "one per interval");
        match *fate {
            Fate::LostThere => {}
            Fate::LostBack => arrivals.push((now + 5 * MS, u64::MAX, packet.clone())),
            Fate::Comes(there, back) => arrivals.push((now + there, back, packet.clone())),
            Fate::Twice(there, back) => {
                arrivals.push((now + there, back, packet.clone()));
                arrivals.push((now + there + 1000, back, packet.clone()));
            }
        }
    }
    arrivals.sort_by_key(|(at, ..)| *at);
    let mut replies = vec![];
    for (at, back, packet) in arrivals {
        let peer = SocketAddr::from(([192, 0, 2, 1], 5));
        let far = |ns: u64| (UNIX_NS + ns).saturating_add_signed(offset_ns);
        let arrival = Arrival { peer, packet: &packet, ttl: Some(60), traffic_class: 0, at_ns: far(at) };
        let clock =
            ReflectorClock { now_ns: far(at + 20_000), error_ns: 1000, is_synchronized: false, is_hardware: false };
        let mut reply = vec![];
        reflector.handle_packet(&arrival, clock, &mut reply).unwrap();
        if back < u64::MAX {
            replies.push((at + 20_000 + back, reply));
        }
    }
    replies.sort_by_key(|(at, _)| *at);
    for (at_ns, packet) in &replies {
        session.handle_reply(&ReplyArrival {
            packet,
            at_ns: *at_ns,
            hardware_ns: None,
            read_ns: *at_ns,
            ttl: Some(59),
        });
    }
    assert!(session.poll_timeout().is_some());
    session.handle_timeout(fates.len() as u64 * 10 * MS + 501 * MS);
    assert!(session.is_done() && session.poll_timeout().is_none());
    let samples = std::iter::from_fn(|| session.poll_sample()).collect();
    (session, samples)
}

#[test]
fn round_trip_and_one_way_delays_are_those_of_the_path() {
    let fates = [Fate::Comes(20 * MS, 12 * MS); 30];
    let (_, samples) = run(&fates, 3_600_000_000_000, true);
    assert_eq!(samples.len(), 30);
    for sample in &samples {
        assert_eq!(sample.rtt_ns, Some(32 * MS), "without the reflector's 20 us");
        // Nobody can tell how a round trip divides: the error says so.
        let error = sample.one_way_error_ns.unwrap();
        assert!(sample.forward_ns.unwrap().abs_diff(20 * MS as i64) <= error, "{sample:?}");
        assert!(sample.reverse_ns.unwrap().abs_diff(12 * MS as i64) <= error, "{sample:?}");
        assert!(error < 17 * MS);
        assert_eq!((sample.forward_ttl, sample.ttl, sample.jitter_ns), (Some(60), Some(59), 0));
    }
}

#[test]
fn a_claim_to_follow_utc_that_the_packets_refute_is_not_believed() {
    let mut session = Session::new(config(20, None), 0);
    let mut reflector = Reflector::new(ReflectorConfig::default());
    let mut packet = vec![];
    for at in (0..20).map(|number| number * 10 * MS) {
        let clock = SenderClock { unix_ns: UNIX_NS + at, error_ns: 1000, is_synchronized: true };
        session.poll_transmit(at, clock, &mut packet).unwrap();
        // 1 ms each way, to a clock that is 50 ms ahead of what it says.
        let far = |ns: u64| UNIX_NS + ns + 50 * MS;
        let peer = SocketAddr::from(([192, 0, 2, 1], 5));
        let arrival = Arrival { peer, packet: &packet, ttl: None, traffic_class: 0, at_ns: far(at + MS) };
        let clock = ReflectorClock { now_ns: far(at + MS), error_ns: 1000, is_synchronized: true, is_hardware: false };
        let mut reply = vec![];
        reflector.handle_packet(&arrival, clock, &mut reply).unwrap();
        session.handle_reply(&ReplyArrival {
            packet: &reply,
            at_ns: at + 2 * MS,
            hardware_ns: None,
            read_ns: MS,
            ttl: None,
        });
        let sample = session.poll_sample().unwrap();
        for delay_ns in [sample.forward_ns.unwrap(), sample.reverse_ns.unwrap()] {
            assert!(delay_ns.abs_diff(MS as i64) <= sample.one_way_error_ns.unwrap(), "{sample:?}");
        }
    }
}

#[test]
fn the_interval_of_a_one_way_delay_has_the_error_of_its_time() {
    // A queue of 96 ms on the way there, while nothing else is known of the clock, and then none.
    let fates = [[Fate::Comes(98 * MS, 2 * MS); 12], [Fate::Comes(2 * MS, 2 * MS); 12]].concat();
    let (session, samples) = run(&fates[..20], 0, false);
    let mut statistics = Statistics::default();
    // The replies of the queue first, as a session with a longer interval has them.
    samples.iter().for_each(|sample| statistics.handle_sample(sample));
    let outcome = statistics.outcome(Cost::default(), session.clock(900 * MS), None);
    let forward = outcome.estimates.iter().find(|one| one.quantity == "forward_delay_s").unwrap();
    assert!(forward.low <= 0.098 && forward.high >= 0.098, "{forward:?}");
}

#[test]
fn losses_duplicates_and_late_packets_are_told_apart() {
    let there = Fate::Comes(5 * MS, 5 * MS);
    let fates = [
        there,
        Fate::LostThere,
        Fate::LostThere,
        there,
        Fate::LostBack,
        there,
        Fate::Twice(5 * MS, 5 * MS),
        there,
        // Passed by two packets on the way there.
        Fate::Comes(28 * MS, 5 * MS),
        there,
        there,
        there,
        there,
    ];
    let (session, samples) = run(&fates, 0, true);
    let mut statistics = Statistics::default();
    samples.iter().for_each(|sample| statistics.handle_sample(sample));
    let counts = statistics.counts();
    assert_eq!((counts.packets, counts.lost, counts.loss_runs, counts.longest_loss_run), (13, 3, 2, 2));
    assert_eq!((counts.duplicates, counts.reordered, counts.forward_reordered), (1, 1, 1));
    assert_eq!(counts.reorder_extent_max, 2);
    // The packet that came twice was counted twice by the reflector.
    assert_eq!(session.lost_forward(), Some(1));
    let outcome = statistics.outcome(Cost::default(), session.clock(400 * MS), session.lost_forward());
    let value = |name: &str| outcome.estimates.iter().find(|one| one.quantity == name).unwrap();
    assert!((value("loss").value - 3.0 / 13.0).abs() < 1e-12);
    assert!(value("loss").low > 0.05 && value("loss").high < 0.55);
    assert!((value("rtt_s").value - 0.010).abs() < 1e-9);
    assert!(outcome.notes.iter().any(|note| note.starts_with("3 lost in 2 runs, the longest of 2")), "{outcome:?}");
}

#[test]
fn strangers_and_wrong_keys_are_not_taken_for_replies() {
    let key = Key::new(b"a key of thirty-two octets or so");
    let mut session = Session::new(config(1, Some(key.clone())), 0);
    let mut packet = vec![];
    let clock = SenderClock { unix_ns: UNIX_NS, error_ns: 1, is_synchronized: false };
    session.poll_transmit(0, clock, &mut packet).unwrap();
    let mut reply = vec![];
    let arrival = Arrival {
        peer: SocketAddr::from(([192, 0, 2, 1], 5)),
        packet: &packet,
        ttl: None,
        traffic_class: 0,
        at_ns: UNIX_NS,
    };
    let clock = ReflectorClock { now_ns: UNIX_NS, error_ns: 1, is_synchronized: true, is_hardware: false };
    Reflector::new(ReflectorConfig { key: Some(key), ..ReflectorConfig::default() })
        .handle_packet(&arrival, clock, &mut reply)
        .unwrap();
    let mut give = |packet: &[u8]| {
        session.handle_reply(&ReplyArrival { packet, at_ns: MS, hardware_ns: None, read_ns: MS, ttl: None });
        (session.unused().strange, session.unused().wrong_hmac, session.poll_sample().is_some())
    };
    assert_eq!(give(&[]), (1, 0, false));
    let mut wrong = reply.clone();
    wrong[50] ^= 1;
    assert_eq!(give(&wrong), (1, 1, false));
    assert_eq!(give(&reply), (1, 1, true));
}

proptest! {
    #[test]
    fn replies_of_any_bytes_do_no_harm(packets in proptest::collection::vec(
        (proptest::collection::vec(any::<u8>(), 0..120), any::<u64>()), 0..40)) {
        let mut session = Session::new(SessionConfig { ssid: 0, ..config(5, None) }, 0);
        let clock = SenderClock { unix_ns: UNIX_NS, error_ns: 1, is_synchronized: true };
        let mut packet = vec![];
        for at in 0..5 {
            session.poll_transmit(at * 10 * MS, clock, &mut packet);
        }
        for (mut packet, at_ns) in packets {
            // A number and a session that were sent, so that the rest is looked at.
            if packet.len() > 44 {
                packet[14..16].fill(0);
                packet[24..28].copy_from_slice(&(at_ns as u32 % 6).to_be_bytes());
            }
            let arrival =
                ReplyArrival { packet: &packet, at_ns, hardware_ns: Some(at_ns), read_ns: at_ns, ttl: Some(1) };
            session.handle_reply(&arrival);
            session.handle_timeout(at_ns % 1_000_000_000);
        }
        let mut statistics = Statistics::default();
        while let Some(sample) = session.poll_sample() {
            statistics.handle_sample(&sample);
        }
        let _ = statistics.outcome(Cost::default(), session.clock(5), session.lost_forward());
    }
}

#[test]
fn samples_come_in_the_order_of_sending_lost_ones_too() {
    let usual = Fate::Comes(20 * MS, 12 * MS);
    let fates = [usual, Fate::LostThere, usual, Fate::Comes(80 * MS, 12 * MS), usual, Fate::LostBack, usual];
    let (_, samples) = run(&fates, 0, false);
    assert_eq!(samples.iter().map(|sample| sample.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    let lost: Vec<bool> = samples.iter().map(|sample| sample.rtt_ns.is_none()).collect();
    assert_eq!(lost, [false, true, false, false, false, true, false]);
    assert!(samples[3].is_reordered, "it came after a later one all the same");
}

#[test]
fn a_sample_waits_for_earlier_packets_only_until_their_time_is_over() {
    let mut session = Session::new(config(3, None), 0);
    let mut reflector = Reflector::new(ReflectorConfig::default());
    let mut packet = vec![];
    for at in [0, 10 * MS, 20 * MS] {
        let clock = SenderClock { unix_ns: UNIX_NS + at, error_ns: 1000, is_synchronized: false };
        // The host is 3 ms late.
        session.poll_transmit(at + 3 * MS, clock, &mut packet).unwrap();
        if at == 10 * MS {
            continue;
        }
        let peer = SocketAddr::from(([192, 0, 2, 1], 5));
        let arrival = Arrival { peer, packet: &packet, ttl: None, traffic_class: 0, at_ns: UNIX_NS + at + 5 * MS };
        let clock = ReflectorClock {
            now_ns: UNIX_NS + at + 7 * MS,
            error_ns: 1000,
            is_synchronized: false,
            is_hardware: false,
        };
        let mut reply = vec![];
        reflector.handle_packet(&arrival, clock, &mut reply).unwrap();
        let at_ns = at + 9 * MS;
        let read_ns = at_ns + if at == 0 { MS } else { 4 * MS };
        session.handle_reply(&ReplyArrival { packet: &reply, at_ns, hardware_ns: None, read_ns, ttl: None });
    }
    let first = session.poll_sample().unwrap();
    assert_eq!((first.sequence, first.late_ns, first.residence_ns), (0, 3 * MS, 2 * MS));
    assert_eq!(session.poll_sample(), None, "the packet before the third has no answer yet");
    session.handle_timeout(512 * MS);
    assert_eq!(session.poll_sample(), None);
    session.handle_timeout(513 * MS);
    let rest: Vec<_> = std::iter::from_fn(|| session.poll_sample()).collect();
    assert_eq!(
        rest.iter().map(|sample| (sample.sequence, sample.late_ns)).collect::<Vec<_>>(),
        [(1, 3 * MS), (2, 4 * MS)]
    );
    assert!(rest[0].rtt_ns.is_none() && rest[1].rtt_ns.is_some());
}
