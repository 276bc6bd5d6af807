//! Drop-tail: times, limits, loss, jitter. Each holds for the analytic engine and for the event-driven one.

use super::*;

#[test]
fn packets_leave_one_after_the_other() {
    for mut bench in benches(&gigabit(tail(100))) {
        for bytes in [1500, 1500, 52] {
            bench.send(bytes);
        }
        bench.run_to(500_000);
        bench.send(1500);
        bench.run_dry();
        assert_eq!(bench.times(), [1_012_000, 1_024_000, 1_024_416, 1_512_000]);
        assert_eq!(bench.link.stats().delivered_bytes, 4552);
    }
}

#[test]
fn an_odd_rate_does_not_drift_over_a_million_packets() {
    // 9.95328 Gbit/s: 1500 B take 1205.632716 ns; rounding each up would lose 0.03 % of the rate.
    let rate = 9_953_280_000u64;
    for mut config in both_kinds(&gigabit(tail(10))) {
        config.rate = Rate(rate);
        let mut bench = Bench::new(config);
        let mut last = 0;
        for _ in 0..1_000_000 {
            bench.run_to(bench.now + 1205);
            if bench.link.queue(Time(bench.now)).0 < 5 {
                bench.send(1500);
            }
            last = bench.delivered.last().map_or(last, |d| d.0);
            bench.delivered.clear();
        }
        let sent = bench.link.stats().delivered;
        assert!(sent > 990_000, "the line was busy throughout");
        let exact = (u128::from(sent) * 1500 * 8_000_000_000).div_ceil(u128::from(rate)) as u64;
        // The first packet came at 1205 ns.
        assert_eq!(last, 1205 + exact + 1_000_000);
    }
}

#[test]
fn a_limit_in_packets_counts_those_that_wait() {
    for mut bench in benches(&gigabit(tail(3))) {
        for _ in 0..6 {
            bench.send(1500);
        }
        assert_eq!(bench.dropped.iter().map(|d| d.1.number).collect::<Vec<_>>(), [5, 6], "one is sent, three wait");
        assert_eq!(bench.link.queue(Time(0)), (3, 4500));
        // A packet that comes at the ns at which another starts finds its place free.
        bench.run_to(12_000);
        bench.send(1500);
        assert_eq!((bench.dropped.len(), bench.link.queue(Time(12_000)).0), (2, 3));
        bench.run_dry();
        assert_eq!(bench.link.stats().dropped_by_queue, 2);
        assert_eq!((bench.link.stats().max_queue_packets, bench.link.stats().max_queue_bytes), (3, 4500));
    }
}

#[test]
fn a_limit_in_bytes_lets_a_small_packet_in_where_a_large_one_is_refused() {
    let queue = QueueConfig::DropTail { limit_bytes: Some(3100), limit_packets: None };
    for mut bench in benches(&gigabit(queue)) {
        for bytes in [1500, 1500, 1500, 1500, 100, 1] {
            bench.send(bytes);
        }
        bench.run_dry();
        assert_eq!(bench.numbers(), [1, 2, 3, 5]);
    }
}

#[test]
fn without_room_to_wait_a_free_line_still_sends() {
    for mut bench in benches(&gigabit(tail(0))) {
        for time in [0, 5_000, 12_000, 12_001] {
            bench.run_to(time);
            bench.send(1500);
        }
        bench.run_dry();
        assert_eq!(bench.numbers(), [1, 3]);
    }
}

#[test]
fn a_lost_packet_has_taken_its_time_on_the_line() {
    let loss = LossModel::List { packets: vec![2] };
    for mut bench in benches(&LinkConfig { loss, ..gigabit(tail(100)) }) {
        for _ in 0..3 {
            bench.send(1500);
        }
        bench.run_dry();
        assert_eq!(bench.times(), [1_012_000, 1_036_000]);
        assert_eq!(bench.dropped.iter().map(|d| (d.1.number, d.2)).collect::<Vec<_>>(), [(2, DropReason::Loss)]);
        assert_eq!(bench.link.packets_inside(), 0);
    }
}

#[test]
fn jitter_without_reordering_keeps_order_and_with_it_does_not() {
    for distribution in [JitterDistribution::Uniform, JitterDistribution::Exponential, JitterDistribution::Normal] {
        for reordering in [false, true] {
            let jitter = Some(Jitter { distribution, scale: Span::from_micros(100), reordering });
            let mut bench = Bench::new(LinkConfig { jitter, ..gigabit(tail(10_000)) });
            for _ in 0..5_000 {
                bench.send(1500);
            }
            bench.run_dry();
            assert_eq!(bench.delivered.len(), 5_000);
            let times = bench.times();
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            let overtaken = bench.numbers().windows(2).filter(|pair| pair[0] > pair[1]).count();
            assert_eq!(overtaken > 100, reordering, "{distribution:?}: {overtaken} overtaken");
            for (time, probe) in &bench.delivered {
                assert!(*time >= 12_000 * probe.number + 1_000_000, "earlier than the delay allows");
            }
        }
    }
}

#[test]
fn memory_and_counters_are_clean_after_a_long_run() {
    let mut bench = Bench::new(gigabit(tail(50)));
    for _ in 0..100_000 {
        bench.run_to(bench.now + 11_990);
        bench.send(1500);
        bench.delivered.clear();
    }
    bench.run_dry();
    let stats = *bench.link.stats();
    assert_eq!(stats.enqueued + stats.dropped_by_queue, 100_000);
    assert_eq!((stats.enqueued, bench.link.packets_inside()), (stats.delivered, 0));
    assert_eq!(stats.max_queue_packets, 50);
}

#[test]
#[should_panic(expected = "rate = 0bit/s: must be from 1 bit/s")]
fn a_link_without_rate_is_refused() {
    Bench::new(LinkConfig { rate: Rate(0), ..gigabit(tail(1)) });
}

#[test]
fn what_is_out_of_range_is_named() {
    let red = |min_bytes, max_bytes, ppm, weight_shift| QueueConfig::Red {
        limit_bytes: 1 << 20,
        min_bytes,
        max_bytes,
        max_probability_ppm: ppm,
        weight_shift,
        ecn: false,
    };
    let interval = Span::ZERO;
    let codel = QueueConfig::Codel { limit_packets: 1, target: Span(1), interval, ecn: false };
    let fq = |flows, quantum_bytes| QueueConfig::FqCodel {
        limit_packets: 1,
        flows,
        quantum_bytes,
        target: Span(1),
        interval: Span(1),
        ecn: false,
    };
    for (queue, field) in [
        (red(9, 9, 1, 9), "queue.min_bytes"),
        (red(1, 9, 1_000_001, 9), "queue.max_probability_ppm"),
        (red(1, 9, 1, 21), "queue.weight_shift"),
        (codel, "queue.interval"),
        (fq(0, 1), "queue.flows"),
        (fq(1, 0), "queue.quantum_bytes"),
    ] {
        assert_eq!(queue.check().unwrap_err().field, field);
    }
    for (loss, field) in [
        (LossModel::Independent { probability_e12: 1_000_000_000_001 }, "loss.probability_e12"),
        (LossModel::EveryNth { n: 0 }, "loss.n"),
        (LossModel::List { packets: vec![0, 1] }, "loss.packets"),
        (LossModel::List { packets: vec![2, 2] }, "loss.packets"),
        (LossModel::BitErrorRate { probability_e18: u64::MAX }, "loss.probability_e18"),
    ] {
        assert_eq!(loss.check().unwrap_err().field, field);
    }
}

#[test]
fn adding_a_flow_does_not_change_the_losses_of_another() {
    let lost = |others: bool, config: &LinkConfig| {
        let mut bench = Bench::new(config.clone());
        for _ in 0..20_000 {
            bench.send_of(1500, 1, false);
            if others {
                bench.send_of(700, 2, false);
            }
            bench.run_to(bench.now + 20_000);
        }
        bench.run_dry();
        let numbers = bench.dropped.iter().filter(|d| d.1.flow == 1).map(|d| d.1.arrived);
        numbers.collect::<Vec<_>>()
    };
    for loss in [
        LossModel::Independent { probability_e12: 10_000_000_000 },
        LossModel::BitErrorRate { probability_e18: 1_000_000_000_000 },
    ] {
        for config in both_kinds(&LinkConfig { loss: loss.clone(), ..gigabit(tail(100)) }) {
            assert!(lost(false, &config).len() > 100);
            assert_eq!(lost(false, &config), lost(true, &config));
        }
    }
}

/// The core runs on a thread of its own while Python goes on.
#[test]
fn a_link_may_change_threads() {
    fn send<T: Send>(_: T) {}
    send(Link::<Probe>::variable(&gigabit(tail(1)), 1));
}
