//! RED, CoDel and FQ-CoDel as links.

use super::*;
use std::collections::BTreeMap;

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;

fn codel(ecn: bool) -> QueueConfig {
    QueueConfig::Codel { limit_packets: 100_000, target: Span(TARGET), interval: Span(INTERVAL), ecn }
}

fn fq_codel(limit_packets: u64) -> QueueConfig {
    let (target, interval) = (Span(TARGET), Span(INTERVAL));
    QueueConfig::FqCodel { limit_packets, flows: 1024, quantum_bytes: 1514, target, interval, ecn: false }
}

/// 10 Mbit/s (1500 B in 1.2 ms), no delay.
fn ten_megabit(queue: QueueConfig) -> LinkConfig {
    LinkConfig { rate: Rate(10_000_000), delay: Span::ZERO, ..gigabit(queue) }
}

/// Sends 1500 B every `gap` ns up to `end`.
fn flood(bench: &mut Bench, gap: u64, end: u64, ect: bool) {
    while bench.now < end {
        bench.send_of(1500, 0, ect);
        bench.run_to(bench.now + gap);
    }
}

#[test]
fn codel_drops_at_an_interval_over_the_root_of_the_count() {
    let mut bench = Bench::new(ten_megabit(codel(false)));
    flood(&mut bench, 600_000, 3_000_000_000, false);
    let drops: Vec<u64> = bench.dropped.iter().map(|d| d.0).collect();
    assert!(bench.dropped.iter().all(|d| d.2 == DropReason::Aqm));
    // The delay passes 5 ms when 10 packets have gone (0.6 ms more each); dropping starts an interval later.
    let first = drops[0];
    assert!((INTERVAL + 8_000_000..INTERVAL + 16_000_000).contains(&first), "first drop at {first}");
    let mut due = first;
    for (count, &at) in drops.iter().enumerate().skip(1).take(60) {
        due += (INTERVAL as f64 / (count as f64).sqrt()) as u64;
        // A drop happens when a packet is taken, every 1.2 ms.
        assert!(at >= due - 1_000 && at <= due + 1_201_000, "drop {count} at {at}, due at {due}");
    }
}

#[test]
fn codel_leaves_a_queue_alone_that_empties_within_the_interval() {
    let mut bench = Bench::new(ten_megabit(codel(false)));
    for _ in 0..50 {
        // A burst of 60 packets needs 72 ms.
        for _ in 0..60 {
            bench.send(1500);
        }
        bench.run_to(bench.now + 75_000_000);
    }
    assert_eq!(bench.dropped.len(), 0);
    assert_eq!(bench.delivered.len(), 3000);
}

#[test]
fn codel_marks_what_can_be_marked_instead() {
    let mut bench = Bench::new(ten_megabit(codel(true)));
    flood(&mut bench, 1_000_000, 2_000_000_000, true);
    let marked = bench.delivered.iter().filter(|d| d.1.ce).count() as u64;
    assert!(marked > 10, "{marked} marked");
    assert_eq!((bench.dropped.len(), bench.link.stats().marked), (0, marked));
}

#[test]
fn codel_refuses_beyond_its_hard_limit() {
    let queue = QueueConfig::Codel { limit_packets: 5, target: Span(TARGET), interval: Span(INTERVAL), ecn: false };
    let mut bench = Bench::new(ten_megabit(queue));
    for _ in 0..8 {
        bench.send(1500);
    }
    assert_eq!(
        bench.dropped.iter().map(|d| (d.1.number, d.2)).collect::<Vec<_>>(),
        [(7, DropReason::QueueFull), (8, DropReason::QueueFull)]
    );
}

#[test]
fn red_keeps_the_average_queue_between_its_thresholds() {
    let red = QueueConfig::Red {
        limit_bytes: 300_000,
        min_bytes: 30_000,
        max_bytes: 90_000,
        max_probability_ppm: 100_000,
        weight_shift: 9,
        ecn: false,
    };
    for config in both_kinds(&ten_megabit(red)) {
        let mut bench = Bench::new(config);
        // 5 % more than the line carries: one in 21 must go. Distances between drops are uniform on 1 .. 1/p, so p =
        // 1/41 does it, where the average queue is 44.6 kB.
        let (mut sum, mut samples) = (0u64, 0u64);
        while bench.now < 60_000_000_000 {
            bench.send(1500);
            bench.run_to(bench.now + 1_142_857);
            if bench.now > 20_000_000_000 {
                sum += bench.link.queue(Time(bench.now)).1;
                samples += 1;
            }
        }
        let mean = sum / samples;
        assert!((42_500..46_500).contains(&mean), "mean queue {mean} B");
        assert_eq!(bench.link.stats().dropped_by_queue, 0);
        assert!(bench.link.stats().dropped_by_aqm > 1_500);
    }
}

#[test]
fn fq_codel_shares_equally_between_unequal_floods() {
    let mut bench = Bench::new(ten_megabit(fq_codel(10_000)));
    let mut step = 0u64;
    while bench.now < 10_000_000_000 {
        // Flow 1 floods with 1500 B, flow 2 with as many bytes in packets of 500 B at a third of flow 1's excess.
        for _ in 0..3 {
            bench.send_of(1500, 1, false);
        }
        for _ in 0..2 {
            bench.send_of(500, 2, false);
        }
        step += 1;
        bench.run_to(step * 1_200_000);
    }
    let mut bytes = BTreeMap::new();
    for (_, probe) in bench.delivered.iter().filter(|d| d.0 > 2_000_000_000) {
        *bytes.entry(probe.flow).or_insert(0u64) += u64::from(probe.bytes);
    }
    let (one, two) = (bytes[&1] as f64, bytes[&2] as f64);
    assert!((one / two - 1.0).abs() < 0.02, "shares {one} and {two}");
}

#[test]
fn fq_codel_lets_a_sparse_flow_pass_a_flood() {
    let mut bench = Bench::new(ten_megabit(fq_codel(10_000)));
    let mut step = 0u64;
    while bench.now < 5_000_000_000 {
        bench.send_of(1500, 1, false);
        bench.send_of(1500, 1, false);
        let turn = step % 20;
        if turn == 0 {
            bench.send_of(100, 2, false);
        }
        step += 1;
        bench.run_to(step * 1_200_000);
    }
    bench.run_dry();
    let waits = |flow| bench.delivered.iter().filter(move |d| d.1.flow == flow).map(|d| d.0 - d.1.arrived);
    // At most the packet being sent (1.2 ms), one turn of the other queue, and itself.
    let worst = waits(2).max().unwrap();
    assert!(worst <= 2 * 1_200_000 + 80_000, "the sparse flow waited {worst} ns");
    assert!(waits(1).max().unwrap() > 100_000_000);
    assert_eq!(waits(2).count(), (step as usize).div_ceil(20));
}

#[test]
fn fq_codel_takes_an_overflow_out_of_the_fattest_queue() {
    let mut bench = Bench::new(ten_megabit(fq_codel(100)));
    for _ in 0..10 {
        bench.send_of(1500, 2, false);
    }
    for _ in 0..500 {
        bench.send_of(1500, 1, false);
    }
    assert!(bench.dropped.iter().all(|d| d.1.flow == 1 && d.2 == DropReason::QueueFull));
    assert!(bench.link.queue(Time(0)).0 <= 100);
    assert_eq!(bench.link.packets_inside() + bench.dropped.len() as u64, 510);
    // From its head: the packets that waited longest.
    assert_eq!(bench.dropped[0].1.number, 11);
}

#[test]
fn fq_codel_controls_the_delay_of_each_flow() {
    let mut bench = Bench::new(ten_megabit(fq_codel(10_000)));
    flood(&mut bench, 1_150_000, 20_000_000_000, false);
    let late: Vec<u64> = bench.delivered.iter().filter(|d| d.0 > 10_000_000_000).map(|d| d.0 - d.1.arrived).collect();
    let mean = late.iter().sum::<u64>() / late.len() as u64;
    assert!(mean < 60_000_000, "mean delay {mean} ns under 4 % of overload");
    assert!(bench.link.stats().dropped_by_aqm > 300);
}
