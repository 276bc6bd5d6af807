//! Rate, delay, loss and outage that change while packets are inside; on both engines.

use super::*;
use crate::PolicerConfig;

#[test]
fn a_new_rate_applies_to_waiting_packets_only() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(config);
        for _ in 0..4 {
            bench.send(1500);
        }
        bench.run_to(18_000); // half of the second packet has gone
        bench.variable().set_rate(Time(18_000), Rate(100_000_000));
        bench.run_to(30_000);
        assert_eq!(bench.link.queue(Time(30_000)).0, 1, "the third started at 24 us");
        bench.run_to(200_000);
        bench.variable().set_rate(Time(200_000), Rate(10_000_000_000));
        bench.send(1500);
        bench.run_dry();
        // 12, 24, then 120 us each from 24 on; the fourth is under way at 200 us; the fifth takes 1.2 us.
        assert_eq!(bench.times(), [1_012_000, 1_024_000, 1_144_000, 1_264_000, 1_265_200]);
    }
}

#[test]
fn a_longer_delay_applies_to_later_packets() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(config);
        for _ in 0..3 {
            bench.send(1500);
        }
        bench.run_to(13_000);
        bench.variable().set_delay(Time(13_000), Span::from_millis(5));
        bench.run_dry();
        assert_eq!(bench.times(), [1_012_000, 1_024_000, 5_036_000], "the second was being sent");
    }
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(config);
        bench.send(1500);
        bench.run_to(20_000);
        bench.variable().set_delay(Time(20_000), Span::from_micros(100));
        bench.send(1500);
        bench.send(1500);
        bench.run_to(950_000);
        bench.send(1500);
        bench.run_to(2_000_000);
        bench.send(1500);
        bench.run_dry();
        assert_eq!(bench.times(), [1_012_000, 1_012_000, 1_012_000, 1_062_000, 2_112_000]);
        assert_eq!(bench.numbers(), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn many_changes_of_delay_while_packets_are_on_the_line() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(config);
        for step in 1..=5u64 {
            bench.send(1500);
            bench.run_to(step * 100_000);
            let now = Time(bench.now);
            bench.variable().set_delay(now, Span::from_millis(1 + step));
        }
        bench.run_dry();
        assert_eq!(bench.times(), [1_012_000, 2_112_000, 3_212_000, 4_312_000, 5_412_000]);
    }
}

#[test]
fn an_outage_loses_the_line_and_keeps_the_queue() {
    for config in both_kinds(&gigabit(tail(3))) {
        let mut bench = Bench::new(config);
        for _ in 0..4 {
            bench.send(1500);
        }
        bench.run_to(13_000); // one on the line, one being sent, two wait
        bench.variable().set_up(Time(13_000), false);
        bench.take();
        let lost: Vec<_> = bench.dropped.iter().map(|d| (d.1.number, d.2)).collect();
        assert_eq!(lost, [(1, DropReason::Outage), (2, DropReason::Outage)]);
        assert_eq!(bench.link.poll_timeout(), Time::NEVER);
        bench.run_to(5_000_000);
        bench.send(1500);
        bench.send(1500); // no room
        assert_eq!(bench.dropped[2].2, DropReason::QueueFull);
        assert_eq!(bench.link.queue(Time(bench.now)).0, 3);
        let now = Time(bench.now);
        bench.variable().set_up(now, true);
        bench.variable().set_up(now, true);
        bench.run_dry();
        assert_eq!(bench.times(), [6_012_000, 6_024_000, 6_036_000]);
        assert_eq!(bench.numbers(), [3, 4, 5]);
        assert_eq!(bench.link.stats().dropped_by_outage, 2);
    }
}

#[test]
fn a_link_that_is_down_with_nothing_inside_comes_back() {
    for config in both_kinds(&gigabit(tail(3))) {
        let mut bench = Bench::new(config);
        bench.variable().set_up(Time(0), false);
        bench.run_to(1_000);
        bench.variable().set_rate(Time(1_000), Rate(100_000_000));
        bench.variable().set_delay(Time(1_000), Span::from_micros(50));
        bench.variable().set_up(Time(2_000), true);
        bench.run_to(2_000);
        bench.send(1500);
        bench.run_dry();
        assert_eq!(bench.times(), [172_000]);
    }
}

#[test]
fn changes_while_the_link_is_down_hold_when_it_is_up() {
    for config in both_kinds(&gigabit(tail(3))) {
        let mut bench = Bench::new(config);
        bench.variable().set_up(Time(0), false);
        bench.send(1500);
        bench.send(1500);
        bench.variable().set_rate(Time(0), Rate(100_000_000));
        bench.variable().set_delay(Time(0), Span::from_micros(50));
        bench.run_to(1_000_000);
        bench.variable().set_up(Time(1_000_000), true);
        bench.run_dry();
        assert_eq!(bench.times(), [1_170_000, 1_290_000]);
    }
}

#[test]
fn a_new_loss_model_spares_what_is_on_the_line() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(LinkConfig { loss: LossModel::EveryNth { n: 2 }, ..config });
        for _ in 0..8 {
            bench.send(1500);
        }
        bench.run_to(30_000); // three have started: the second is lost
        bench.variable().set_loss(Time(30_000), LossModel::List { packets: vec![1, 5] });
        bench.run_dry();
        assert_eq!(
            bench.numbers(),
            [1, 3, 5, 6, 7],
            "the fourth and the eighth are the first and fifth of the new model"
        );
        for _ in 0..3 {
            bench.send(1500);
        }
        bench.run_dry();
        assert_eq!(bench.numbers()[5..], [9, 10, 11]);
    }
}

#[test]
fn losses_are_told_from_outages() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::new(LinkConfig { loss: LossModel::EveryNth { n: 2 }, ..config });
        for _ in 0..4 {
            bench.send(1500);
        }
        bench.run_to(500_000);
        bench.variable().set_up(Time(500_000), false);
        bench.take();
        let stats = *bench.link.stats();
        assert_eq!((stats.dropped_by_loss, stats.dropped_by_outage, stats.delivered), (2, 2, 0));
    }
}

#[test]
fn a_policer_comes_and_goes_and_takes_nothing_of_what_is_inside() {
    for config in both_kinds(&gigabit(tail(100))) {
        let mut bench = Bench::of(Link::live(&config, 1));
        let policer = PolicerConfig { rate: Rate(1_000_000), burst_bytes: 3000 };
        bench.send(1500);
        assert!(bench.link.set_policer(Some(&policer)));
        for _ in 0..4 {
            bench.send(1500);
        }
        assert!(bench.link.set_policer(None));
        bench.send(1500);
        bench.run_dry();
        assert_eq!(bench.numbers(), [1, 2, 3, 6], "a full bucket of two packets");
        assert_eq!(bench.link.stats().dropped_by_policer, 2);
    }
    for link in [Link::<Probe>::variable(&gigabit(tail(9)), 1), Link::fixed(&gigabit(tail(9)), 1)] {
        let mut link = link;
        assert!(!link.set_policer(None), "no link that carries live traffic");
    }
}
