//! Gates: when what is kept back leaves, and what that takes.

use super::Bench;
use crate::{DropReason, Hold, Kept, Link};
use units::{Rate, Span, Time};

/// Before a line of 1 Gbit/s: 1500 B in 12 us.
fn gate(limit_bytes: Option<u64>) -> Bench {
    Bench::of(Link::gate(Rate(1_000_000_000), limit_bytes))
}

fn begin(bench: &mut Bench, delay: Span, share_ppm: Option<u32>) {
    let now = Time(bench.now);
    bench.link.begin_hold(now, Hold { delay, share_ppm });
}

/// Sends a packet of 1500 B every `gap_ns`, `count` of them, the first now.
fn send_every(bench: &mut Bench, gap_ns: u64, count: u64) {
    for _ in 0..count {
        bench.send(1500);
        bench.run_to(bench.now + gap_ns);
    }
}

#[test]
fn a_gate_without_a_hold_is_not_there() {
    let mut bench = gate(None);
    send_every(&mut bench, 5_000, 3);
    // Faster than the line beyond sends: that has its own queue.
    assert_eq!(bench.times(), [0, 5_000, 10_000]);
    assert_eq!(bench.link.kept(), Some(Kept::default()));
}

#[test]
fn a_hold_lets_go_what_it_kept_as_the_line_beyond_can_send() {
    let mut bench = gate(None);
    bench.run_to(1_000_000);
    begin(&mut bench, Span::from_micros(100), None);
    // 10 packets at half the line's rate from 1,000 us on: 5 come before 1,100 us.
    send_every(&mut bench, 24_000, 10);
    bench.run_dry();
    // Let go from 1,100 us on, one per 12 us, until one (the ninth, at 1,192 us) comes when nothing is left.
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [1_100, 1_112, 1_124, 1_136, 1_148, 1_160, 1_172, 1_184, 1_192, 1_216]);
    let kept = bench.link.kept().unwrap();
    // At 1,096 us five are inside, and nothing has left.
    assert_eq!(kept, Kept { packets: 8, most_bytes: 7_500, longest: Span::from_micros(100), until: Time(1_184_000) });
    assert_eq!(bench.numbers(), (1..=10).collect::<Vec<_>>());
}

#[test]
fn a_line_that_shrinks_lets_go_more_than_comes_by_its_share_and_no_more() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_micros(100), Some(250_000));
    // A packet every 50 us leaves every 40 us until 100 us (1 + s) / s = 500 us; then as it comes.
    send_every(&mut bench, 50_000, 13);
    bench.run_dry();
    let us: Vec<_> = bench.times().iter().map(|t| t / 1_000).collect();
    assert_eq!(us, [100, 140, 180, 220, 260, 300, 340, 380, 420, 460, 500, 550, 600]);
}

#[test]
fn a_line_that_never_shrinks_delays_for_ever() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_micros(100), Some(0));
    send_every(&mut bench, 50_000, 1_000);
    bench.run_dry();
    let late: Vec<_> = bench.delivered.iter().map(|(at, probe)| at - probe.came).collect();
    assert_eq!(late, vec![100_000; 1_000]);
}

#[test]
fn a_full_gate_drops_what_does_not_fit() {
    let mut bench = gate(Some(4_500));
    begin(&mut bench, Span::from_micros(100), None);
    send_every(&mut bench, 10_000, 5);
    bench.run_dry();
    let lost: Vec<_> = bench.dropped.iter().map(|(_, probe, reason)| (probe.number, *reason)).collect();
    assert_eq!(lost, [(4, DropReason::QueueFull), (5, DropReason::QueueFull)]);
    assert_eq!(bench.link.stats().dropped_by_queue, 2);
}

#[test]
fn a_second_hold_does_not_change_the_order() {
    let mut bench = gate(None);
    begin(&mut bench, Span::from_millis(1), None);
    send_every(&mut bench, 10_000, 10);
    begin(&mut bench, Span::ZERO, None);
    send_every(&mut bench, 10_000, 10);
    bench.run_dry();
    assert_eq!(bench.numbers(), (1..=20).collect::<Vec<_>>());
    assert_eq!(bench.times()[0], 1_000_000);
}
