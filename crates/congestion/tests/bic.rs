//! BIC against the paper's equations with Linux's constants: B = 4, S_max = 16, 20 RTTs for the last 4 segments.

use crate::common::{near, parameters, Flow};
use congestion::{find, Controller};

const RTT: u64 = 100_000;

/// In congestion avoidance after a loss at `w_max`.
fn after_loss(values: &[(&str, i64)], w_max: u32) -> Flow {
    let mut flow = Flow::new("bic", values, w_max);
    flow.control.sock_mut().snd_ssthresh = w_max;
    flow.lose(RTT);
    flow
}

/// In congestion avoidance at `cwnd`, with W_max of `w_max`.
fn searching(values: &[(&str, i64)], w_max: u32, cwnd: u32) -> Flow {
    let mut flow = after_loss(values, w_max);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.control.sock_mut().snd_cwnd = cwnd;
    flow
}

/// Growth in the next `rounds` RTTs.
fn growth(flow: &mut Flow, rounds: u32) -> u32 {
    let before = flow.cwnd();
    for _ in 0..rounds {
        flow.round(RTT);
    }
    flow.cwnd() - before
}

#[test]
fn a_loss_keeps_four_fifths_and_half_of_a_small_window() {
    // 819/1024 is Linux's 0.8; up to low_window, 14, it is Reno.
    for (before, after) in [(1000, 799), (100, 79), (15, 11), (14, 7), (5, 2), (2, 2), (1, 2), (34_000_000, 27_193_359)]
    {
        assert_eq!(Flow::new("bic", &[], before).control.ssthresh(), after);
    }
    // The paper: beta = 1/8 given up, 0.875 kept.
    assert_eq!(Flow::new("bic", &[("beta", 896)], 1000).control.ssthresh(), 875);
    assert_eq!(Flow::new("bic", &[("low_window", 100)], 100).control.ssthresh(), 50);
}

#[test]
fn far_below_w_max_growth_is_s_max_per_round() {
    // W_max 10000, kept 7998: additive increase of 16 until 64 below W_max; (2002 - 64) / 16 = 121 RTTs.
    let mut flow = after_loss(&[], 10_000);
    assert_eq!(flow.cwnd(), 7998);
    for _ in 0..119 {
        let grown = growth(&mut flow, 1);
        assert!((15..=17).contains(&grown), "{grown} at {}", flow.cwnd());
    }
    near(f64::from(10_000 - flow.cwnd()), 2002.0 - 119.0 * 16.0, 30.0);
    assert_eq!(growth(&mut searching(&[("max_increment", 32)], 10_000, 8000), 1), 32);
}

#[test]
fn the_whole_search_takes_the_rounds_that_its_three_parts_add_up_to() {
    // From 7998 to 10000: 121 RTTs of additive increase, 4 ln(64 / 8) = 8.3 of binary search, 8 / 0.2 = 40 for the
    // rest.
    let mut flow = after_loss(&[], 10_000);
    let mut rounds = 0;
    while flow.cwnd() < 10_000 {
        flow.round(RTT);
        rounds += 1;
    }
    near(f64::from(rounds), 121.0 + 8.3 + 40.0, 3.0);
}

#[test]
fn within_64_segments_of_w_max_the_distance_shrinks_by_a_quarter_per_round() {
    // D / 4 per RTT, spread over the round's ACKs as D itself shrinks: e^(-1/4) = 0.779 of it one round later.
    let mut flow = searching(&[], 10_000, 10_000 - 64);
    let mut distance = 64.0_f64;
    for _ in 0..7 {
        growth(&mut flow, 1);
        distance *= (-0.25_f64).exp();
        let measured = f64::from(10_000 - flow.cwnd());
        assert!((measured - distance).abs() <= 1.5, "{measured}, by the equation {distance}");
    }
    // 64 x 0.779^7 = 11: near the 8 at which the search ends.
    assert!((9..=13).contains(&(10_000 - flow.cwnd())), "{}", flow.cwnd());
}

#[test]
fn the_last_and_the_first_segments_take_smooth_part() {
    // S_min = 0.01 gives ln(100) / ln(4/3) + 4 = 20 RTTs for B = 4 segments (Linux's smooth_part): 0.2 per RTT.
    assert_eq!(((0.01_f64.recip().ln() / (4.0_f64 / 3.0).ln()) + 4.0).round() as u32, 20);
    assert_eq!(growth(&mut searching(&[], 1000, 996), 20), 4);
    assert_eq!(growth(&mut searching(&[], 1000, 1000), 20), 4);
    assert_eq!(growth(&mut searching(&[("smooth_part", 40)], 1000, 996), 40), 4);
    // B / 1000 would be 0.004 per RTT: S_min is the floor, 0.01.
    let floor = |thousandths| [("smooth_part", 1000), ("min_increment", thousandths)];
    assert_eq!(growth(&mut searching(&floor(10), 100, 97), 100), 1);
    assert_eq!(growth(&mut searching(&floor(1), 100, 97), 100), 0);
    assert_eq!(growth(&mut searching(&floor(50), 100, 97), 40), 2);
}

#[test]
fn beyond_w_max_the_steps_grow_up_to_s_max() {
    // Max probing: D / 3 per RTT from 4 beyond W_max, e^(1/3) = 1.396 of it one round later; at 48 it is S_max.
    let mut flow = searching(&[], 10_000, 10_004);
    let mut distance = 4.0_f64;
    while distance < 40.0 {
        growth(&mut flow, 1);
        distance *= (1.0_f64 / 3.0).exp();
        near(f64::from(flow.cwnd() - 10_000), distance, 20.0);
    }
    growth(&mut flow, 3);
    for _ in 0..5 {
        let grown = growth(&mut flow, 1);
        assert!((15..=17).contains(&grown), "{grown}");
    }
}

#[test]
fn up_to_the_low_window_it_is_reno() {
    let mut flow = after_loss(&[], 14);
    assert_eq!(flow.cwnd(), 7);
    for window in 8..=14 {
        assert_eq!(growth(&mut flow, 1), 1);
        assert_eq!(flow.cwnd(), window);
    }
    // Delayed ACKs make no difference: segments are counted.
    let mut flow = after_loss(&[], 14);
    flow.per_ack = 2;
    assert_eq!(growth(&mut flow, 6), 6);
}

#[test]
fn fast_convergence_aims_lower() {
    let plateau = |fast: i64| {
        let mut flow = after_loss(&[("fast_convergence", fast)], 1000);
        while flow.cwnd() < 900 {
            flow.round(RTT);
        }
        let second = f64::from(flow.cwnd());
        flow.lose(RTT);
        // 0.9 of W_max with it; the search ends within 8 of W_max and creeps from there.
        let w_max = second * if fast == 1 { 0.9 } else { 1.0 };
        growth(&mut flow, 20);
        near(f64::from(flow.cwnd()), w_max - 8.0, 1.0);
        flow.cwnd()
    };
    assert!(plateau(1) < plateau(0));
}

#[test]
fn after_a_time_out_growth_is_5_percent_per_round() {
    let mut flow = after_loss(&[], 1000);
    flow.time_out(300_000);
    assert_eq!(flow.ssthresh(), 639);
    while flow.cwnd() < flow.ssthresh() {
        flow.round(RTT);
    }
    let start = f64::from(flow.cwnd());
    growth(&mut flow, 10);
    near(f64::from(flow.cwnd()), start * 1.05_f64.powi(10), 3.0);
}

#[test]
fn the_widest_window_does_not_overflow() {
    // 400 Gbit/s x 1 s, S_max at its most: 6.8 million segments to regain, 100,000 per RTT.
    let mut flow = after_loss(&[("max_increment", 100_000)], 34_000_000);
    flow.per_ack = 100_000;
    let mut last = flow.cwnd();
    for _ in 0..64 {
        flow.round(1_000_000);
        let grown = f64::from(flow.cwnd() - last);
        last = flow.cwnd();
        // A whole number of segments per segment of growth, 272 to 340.
        near(grown, 100_000.0, 1.0);
    }
    assert_eq!(Flow::new("bic", &[("low_window", 0)], u32::MAX).control.ssthresh(), 3_435_134_975);
}

#[test]
fn wrong_parameters_are_named_with_what_would_be_right() {
    let error = |name, value| {
        let bic = find("bic").expect("built in");
        Controller::new(&bic, &parameters(&[(name, value)])).expect_err("out of range").to_string()
    };
    assert_eq!(error("beta", 100), "bic: beta = 0.09765625 is out of range: 0.5 to 0.990234375");
    assert_eq!(error("min_increment", 1001), "bic: min_increment = 1.001 is out of range: 0.001 to 1 segments");
    assert_eq!(error("smooth_part", 0), "bic: smooth_part = 0 is out of range: 1 to 10000 RTTs");
}
