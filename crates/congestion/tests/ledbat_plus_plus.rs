//! LEDBAT++ against draft-irtf-iccrg-ledbat-plus-plus: numbers worked from its sections 4.1 to 4.4.

use crate::common::{near, Flow};
use congestion::INFINITE_SSTHRESH;

const NAME: &str = "ledbat_plus_plus";

/// A flow whose handshake took `base_us`.
fn fresh(values: &[(&str, i64)], base_us: u32) -> Flow {
    let mut flow = Flow::new(NAME, values, 10);
    flow.control.sock_mut().min_rtt_us = base_us;
    flow.control.sock_mut().srtt_us = base_us * 8;
    flow.control.sock_mut().snd_cwnd = 10;
    flow.control.init();
    flow.ack(0, base_us as i32);
    flow
}

/// In congestion avoidance at `window`, without slowdowns unless `values` ask for them.
fn steady(values: &[(&str, i64)], window: u32, base_us: u32) -> Flow {
    let mut all = vec![("slowdown_interval", 0)];
    all.extend(values);
    let mut flow = fresh(&all, base_us);
    flow.control.sock_mut().snd_cwnd = window;
    flow.control.sock_mut().snd_ssthresh = window;
    flow.ack(0, base_us as i32);
    flow
}

/// ACKs one after the other until `segments` are acknowledged, all with this RTT.
fn acked(flow: &mut Flow, segments: u32, rtt_us: u32) {
    for _ in 0..segments {
        flow.now_us += 1;
        flow.ack(1, rtt_us as i32);
    }
}

#[test]
fn the_gain_follows_the_base_rtt() {
    // 1 / min(16, ceil(120 ms / base)): segments acknowledged at a window of 100 for one segment of growth.
    for (base_us, divisor) in
        [(1_000, 16), (7_500, 16), (8_000, 15), (20_000, 6), (60_000, 2), (119_999, 2), (120_000, 1), (1_000_000, 1)]
    {
        let mut flow = steady(&[], 100, base_us);
        acked(&mut flow, 100 * divisor - 1, base_us);
        assert_eq!(flow.cwnd(), 100, "{base_us} us");
        acked(&mut flow, 1, base_us);
        assert_eq!(flow.cwnd(), 101, "{base_us} us");
    }
    let mut slower = steady(&[("gain_limit", 64)], 100, 1_000);
    acked(&mut slower, 6_399, 1_000);
    assert_eq!(slower.cwnd(), 100);
    acked(&mut slower, 1, 1_000);
    assert_eq!(slower.cwnd(), 101);
}

#[test]
fn slow_start_has_the_gain_and_begins_at_two() {
    // 4.1: W += acked gain. Base 40 ms: gain 1/3.
    let mut flow = fresh(&[], 40_000);
    assert_eq!(flow.cwnd(), 2);
    acked(&mut flow, 300, 40_000);
    assert_eq!(flow.cwnd(), 102);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
}

#[test]
fn the_first_slow_start_ends_at_three_quarters_of_the_target() {
    let mut flow = fresh(&[], 40_000);
    acked(&mut flow, 300, 85_000);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (102, INFINITE_SSTHRESH), "45 ms are not more than 3/4 of 60");
    // Four samples: the least of them counts.
    acked(&mut flow, 3, 85_001);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    acked(&mut flow, 1, 85_001);
    assert_eq!(flow.ssthresh(), 103);
}

#[test]
fn above_the_target_the_window_shrinks_with_the_excess() {
    // 4.3, base 60 ms: gain 1/2. Delay 75 ms = 1.25 targets: per RTT W -= 0.25 W - 0.5, ACK by ACK W e^-0.25.
    let mut flow = steady(&[], 1000, 60_000);
    acked(&mut flow, 4, 135_000);
    let before = f64::from(flow.cwnd());
    acked(&mut flow, 1000, 135_000);
    near(f64::from(flow.cwnd()), before - 249.5, 0.2);

    // At the target exactly it still grows.
    let mut at = steady(&[], 1000, 60_000);
    acked(&mut at, 2000, 120_000);
    assert_eq!(at.cwnd(), 1001);

    // Twice the constant, twice the decrease.
    let mut twice = steady(&[("decrease", 2000)], 1000, 60_000);
    acked(&mut twice, 4, 135_000);
    let before = f64::from(twice.cwnd());
    acked(&mut twice, 1000, 135_000);
    near(f64::from(twice.cwnd()), before - 499.5, 0.2);
}

#[test]
fn at_most_half_the_window_goes_per_rtt_and_two_segments_stay() {
    let mut flow = steady(&[], 1000, 60_000);
    acked(&mut flow, 4, 2_000_000);
    let before = f64::from(flow.cwnd());
    acked(&mut flow, 1000, 2_000_000);
    near(f64::from(flow.cwnd()), before - 499.5, 0.2);
    acked(&mut flow, 10_000, 2_000_000);
    assert_eq!(flow.cwnd(), 2);
}

#[test]
fn a_loss_halves() {
    for (before, after) in [(1000, 500), (5, 2), (3, 2), (34_000_000, 17_000_000)] {
        assert_eq!(steady(&[], before, 40_000).control.ssthresh(), after);
    }
}

/// ACKs evenly over each `rtt` until the window is cut to 2; returns the window before. All of it is then in flight.
fn until_slowdown(flow: &mut Flow, rtt: u64) -> u32 {
    for _ in 0..1_000_000 {
        let before = flow.cwnd();
        flow.now_us += rtt / u64::from(before);
        flow.ack(1, rtt as i32);
        if flow.cwnd() == 2 && before > 3 {
            return before;
        }
    }
    panic!("no slowdown");
}

/// The rest of the flight that was out when the window was cut, over one `rtt`: `window` - 1 segments.
fn drain(flow: &mut Flow, window: u32, rtt: u64) {
    for _ in 1..window {
        flow.now_us += rtt / u64::from(window);
        flow.ack(1, rtt as i32);
        assert_eq!(flow.cwnd(), 2);
    }
}

#[test]
fn slowdowns_come_two_rtts_after_slow_start_and_then_nine_durations_apart() {
    let rtt = 120_000;
    let mut flow = fresh(&[], rtt as u32);
    for _ in 0..6 {
        flow.round(rtt);
    }
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    // 50 ms of queue end slow start; the gain is 1, so each ACK has added a segment.
    acked(&mut flow, 4, 170_000);
    assert_ne!(flow.ssthresh(), INFINITE_SSTHRESH);
    let over = flow.now_us;
    let window = until_slowdown(&mut flow, rtt);
    let began = flow.now_us;
    near((began - over) as f64, 2.0 * rtt as f64, 2.0);
    assert_eq!(flow.ssthresh(), window, "it will go back to where it was");

    // 2 RTTs: what was in flight, and two segments once more. Then slow start.
    drain(&mut flow, window, rtt);
    assert_eq!(flow.cwnd(), 2);
    flow.round(rtt);
    assert!((3..=4).contains(&flow.cwnd()), "the ACK that ends the second flight is the first of slow start");
    while flow.cwnd() < window {
        flow.now_us += rtt / u64::from(flow.cwnd());
        flow.ack(1, rtt as i32);
    }
    let took = flow.now_us - began;
    // A segment more for each ACK, ACKs as dense as the window is large: dW/dt = W / RTT.
    near(took as f64, (2.0 + (f64::from(window) / 3.0).ln()) * rtt as f64, 5.0);
    let ended = flow.now_us;
    until_slowdown(&mut flow, rtt);
    near((flow.now_us - ended) as f64, 9.0 * took as f64, 2.0);
}

#[test]
fn a_loss_in_a_slowdown_halves_where_it_goes_back_to() {
    let rtt = 120_000;
    let mut flow = steady(&[("slowdown_interval", 9)], 400, rtt as u32);
    let window = until_slowdown(&mut flow, rtt);
    flow.lose(rtt);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (2, 2));
    drain(&mut flow, window, rtt);
    flow.round(rtt);
    assert_eq!(flow.ssthresh(), window / 2);
}

#[test]
fn the_base_is_forgotten_after_ten_minutes() {
    // The path becomes 40 ms longer: that is queue until the old minutes are gone.
    let grown = |minutes: i64, after_us: u64| {
        let mut flow = steady(&[("base_history", minutes), ("target", 20_000)], 1000, 60_000);
        let end = flow.now_us + after_us;
        while flow.now_us < end {
            flow.now_us += 1_000_000;
            flow.ack(1, 100_000);
        }
        let before = flow.cwnd();
        acked(&mut flow, 2 * before.max(100), 100_000);
        flow.cwnd() > before
    };
    assert!(!grown(10, 590_000_000));
    assert!(grown(10, 620_000_000));
    assert!(!grown(2, 100_000_000));
    assert!(grown(2, 140_000_000));
}

#[test]
fn the_widest_window_does_not_overflow() {
    // 400 Gbit/s x 1 s, base 1 s: one segment per RTT below the target, half the window far above it.
    let mut flow = steady(&[], 34_000_000, 1_000_000);
    flow.per_ack = 10_000;
    flow.round(1_000_000);
    assert_eq!(flow.cwnd(), 34_000_001);
    flow.round(3_000_000);
    near(f64::from(flow.cwnd()), 17_000_000.0, 0.2);
    flow.ack(34_000_000, i32::MAX);
    assert!((2..20_000).contains(&flow.cwnd()), "one ACK for all takes half of what it acknowledges: {}", flow.cwnd());
}
