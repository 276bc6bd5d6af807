//! Over loopback.

use path_net::{ReflectorServer, SessionOptions, Sessions, TrainDriver};
use path_test::reflector::ReflectorConfig;
use path_test::session::Sample;
use path_test::stamp::{Key, TimeFormat};
use path_test::train::Train;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const KEY: &[u8] = b"a key of thirty-two octets or so";

fn options(to: SocketAddr) -> SessionOptions {
    SessionOptions {
        towards: to.to_string(),
        key: None,
        interval_ns: 2_000_000,
        packet_bytes: 0,
        timeout_ns: 1_000_000_000,
        count: Some(40),
        traffic_class: 0,
        format: TimeFormat::Ntp,
    }
}

/// Does `work` beside a reflector on `listen`.
fn beside_reflector<T>(listen: &str, config: ReflectorConfig, work: impl FnOnce(SocketAddr) -> T) -> T {
    let mut server = ReflectorServer::open(&[listen.parse().unwrap()], config).unwrap();
    let to = server.local()[0];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(|| stop.load(Ordering::Relaxed)).unwrap());
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(to)));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn run(options: &SessionOptions) -> Vec<Sample> {
    let mut sessions = Sessions::default();
    sessions.add(options, 0).unwrap();
    let mut samples = vec![];
    while !sessions.is_done() {
        samples.extend(sessions.poll(100_000_000).unwrap().into_iter().map(|(_, sample)| sample));
    }
    samples
}

fn check(samples: &[Sample]) {
    assert_eq!(samples.len(), 40);
    for sample in samples {
        // A loaded machine may take long between two stamps of the kernel, but not half a second.
        assert!(sample.rtt_ns.unwrap() < 500_000_000, "{sample:?}");
        let (forward, reverse) = (sample.forward_ns.unwrap(), sample.reverse_ns.unwrap());
        let error = sample.one_way_error_ns.unwrap() as i64;
        assert!(forward > -error && reverse > -error, "{sample:?}");
        assert_eq!(sample.ttl, Some(255));
        assert_eq!(sample.forward_ttl, Some(255));
    }
}

#[test]
fn packets_go_both_ways_by_ipv4_and_ipv6_in_both_forms_of_time() {
    for (listen, format) in [("127.0.0.1:0", TimeFormat::Ntp), ("[::1]:0", TimeFormat::Ptp)] {
        let samples = beside_reflector(listen, ReflectorConfig::default(), |to| {
            run(&SessionOptions { format, packet_bytes: 200, ..options(to) })
        });
        check(&samples);
    }
}

#[test]
fn a_key_is_needed_where_the_reflector_has_one() {
    let config = || ReflectorConfig { key: Some(Key::new(KEY)), is_stateful: true, ..ReflectorConfig::default() };
    let samples = beside_reflector("127.0.0.1:0", config(), |to| {
        run(&SessionOptions { key: Some(KEY.to_vec()), packet_bytes: 400, ..options(to) })
    });
    check(&samples);
    for key in [None, Some(b"another".to_vec())] {
        let samples = beside_reflector("127.0.0.1:0", config(), |to| {
            run(&SessionOptions { key, timeout_ns: 50_000_000, count: Some(5), ..options(to) })
        });
        assert_eq!(samples.iter().filter(|sample| sample.rtt_ns.is_none()).count(), 5);
    }
}

#[test]
fn many_sessions_share_a_thread() {
    let samples = beside_reflector("127.0.0.1:0", ReflectorConfig::default(), |to| {
        let mut sessions = Sessions::default();
        let numbers: Vec<_> = (0..10).map(|at| sessions.add(&options(to), at * 200_000).unwrap()).collect();
        let mut samples = vec![0; numbers.len()];
        while !sessions.is_done() {
            for (number, sample) in sessions.poll(100_000_000).unwrap() {
                samples[number] += usize::from(sample.rtt_ns.is_some());
            }
        }
        samples
    });
    assert_eq!(samples, [40; 10]);
}

#[test]
fn a_port_where_nobody_listens_is_told_apart_from_silence() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut sessions = Sessions::default();
    let number = sessions.add(&SessionOptions { timeout_ns: 20_000_000, count: Some(3), ..options(free) }, 0).unwrap();
    let mut lost = 0;
    while !sessions.is_done() {
        lost += sessions.poll(100_000_000).unwrap().len();
    }
    assert_eq!(lost, 3);
    assert!(sessions.fault(number).unwrap().contains("nobody listens at this port"), "{:?}", sessions.fault(number));
}

#[test]
fn a_train_comes_back_with_the_time_of_every_packet() {
    for (key, short_replies) in [(None, true), (Some(KEY), true), (None, false)] {
        let config = ReflectorConfig { key: key.map(Key::new), short_replies, is_stateful: false };
        let (even, burst) = beside_reflector("127.0.0.1:0", config, |to| {
            let mut driver = TrainDriver::open(&to.to_string(), key, 1_000_000_000).unwrap();
            let even = driver.send(&Train::even(50, 1500, 500_000), &mut || false).unwrap();
            let burst = driver.send(&Train { ttl: 9, ..Train::even(200, 1500, 0) }, &mut || false).unwrap();
            (even, burst)
        });
        assert_eq!((even.packets.len(), burst.packets.len()), (50, 200));
        for report in [&even, &burst] {
            for packets in report.packets.windows(2) {
                assert!(packets[0].sent_ns <= packets[1].sent_ns, "{packets:?}");
                assert!(packets[0].received_ns.unwrap() <= packets[1].received_ns.unwrap(), "{packets:?}");
            }
            assert!(report.packets.iter().all(|packet| packet.returned_ns.unwrap() >= packet.sent_ns));
        }
        let spread = even.packets[49].sent_ns - even.packets[0].sent_ns;
        // A busy host sends the first packet late, and the others when they are due.
        assert!(spread >= 12_000_000, "{spread} ns for 49 gaps of 500 us");
    }
}

#[test]
fn a_train_of_jumbo_packets_passes_and_one_shorter_than_a_test_packet_is_refused() {
    let report = beside_reflector("[::1]:0", ReflectorConfig::default(), |to| {
        let mut driver = TrainDriver::open(&to.to_string(), None, 200_000_000).unwrap();
        assert!(driver.send(&Train::even(1, 70, 0), &mut || false).is_err(), "shorter than a test packet");
        driver.send(&Train { do_not_fragment: true, ..Train::even(2, 9000, 0) }, &mut || false).unwrap()
    });
    assert!(report.packets.iter().all(|packet| packet.returned_ns.is_some()), "{report:?}");
}

#[test]
fn estimators_go_by_their_names_over_real_trains() {
    let config = ReflectorConfig { short_replies: true, ..ReflectorConfig::default() };
    let (mtu, wrong) = beside_reflector("127.0.0.1:0", config, |to| {
        let test = |name: &str, more: &str| format!(r#"{{"test": "{name}", "towards": "{to}"{more}}}"#);
        let mut trains = 0;
        let mtu = path_net::run_test(&test("mtu", ""), &mut || false, &mut |_| trains += 1).unwrap();
        assert!(trains > 0);
        let wrong =
            [("mtu", r#", "speed": 3"#), ("speed", ""), ("stamp", r#", "count": 0"#), ("stamp", r#", "key": "1""#)];
        let refusals = wrong.map(|(name, more)| {
            path_net::run_test(&test(name, more), &mut || false, &mut |_| {}).unwrap_err().to_string()
        });
        (mtu, refusals)
    });
    assert!(mtu["cost"]["packets"].as_u64().unwrap() > 0, "{mtu}");
    for (refusal, says) in wrong.iter().zip(["speed", "must be one of", "count 0", "hexadecimal"]) {
        assert!(refusal.contains(says) && !refusal.contains('\n'), "{refusal}");
    }
    assert!(path_net::test_names().contains(&"capacity"));
}

#[test]
fn names_and_ports_are_read_as_people_write_them() {
    let of = |text: &str| path_net::resolve(text).unwrap().to_string();
    assert_eq!(of("127.0.0.1"), "127.0.0.1:862");
    assert_eq!(of("[::1]:5000"), "[::1]:5000");
    assert_eq!(of("::1"), "[::1]:862");
    assert_eq!(path_net::resolve("localhost:7").unwrap().port(), 7);
    for wrong in ["no-such-host.invalid:7", "127.0.0.1:99999", "127.0.0.1:0", ""] {
        assert!(path_net::resolve(wrong).is_err(), "{wrong}");
    }
}
