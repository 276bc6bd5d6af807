//! BIC. Published: the paper's equations and constants, S_max = 32 and S_min = 0.01. Linux: B = 4, S_max = 16, 20 RTTs
//! for the last 4 segments, and the segments per ACK that it multiplies growth by.

use crate::common::{near, parameters, Flow};
use congestion::{find, Controller};

const RTT: u64 = 100_000;

/// Linux's growth as its constants say, without what it estimates of ACKs.
const LINUX: [(&str, i64); 2] = [("variant", 1), ("delayed_ack", 0)];

/// ns-2's TCP-Linux.
const LINUX_2_6_22: [(&str, i64); 1] = [("variant", 2)];

/// `LINUX` with more.
fn linux<'a>(more: &[(&'a str, i64)]) -> Vec<(&'a str, i64)> {
    LINUX.iter().chain(more).copied().collect()
}

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
fn a_loss_keeps_the_variants_share_and_half_of_a_small_window() {
    // 819/1024 is Linux's 0.8; up to low_window, 14, it is Reno.
    for (before, after) in [(1000, 799), (100, 79), (15, 11), (14, 7), (5, 2), (2, 2), (1, 2), (34_000_000, 27_193_359)]
    {
        assert_eq!(Flow::new("bic", &LINUX, before).control.ssthresh(), after);
        assert_eq!(Flow::new("bic", &LINUX_2_6_22, before).control.ssthresh(), after);
    }
    // Published: beta = 1/8 given up, 0.875 kept.
    for (before, after) in [(1000, 875), (16, 14), (15, 13), (14, 7), (2, 2), (34_000_000, 29_750_000)] {
        assert_eq!(Flow::new("bic", &[], before).control.ssthresh(), after);
    }
    // A value given is the variant's no more.
    assert_eq!(Flow::new("bic", &[("variant", 1), ("beta", 896)], 1000).control.ssthresh(), 875);
    assert_eq!(Flow::new("bic", &[("beta", 819)], 1000).control.ssthresh(), 799);
    assert_eq!(Flow::new("bic", &[("low_window", 100)], 100).control.ssthresh(), 50);
}

#[test]
fn far_below_w_max_growth_is_s_max_per_round() {
    // W_max 10000, kept 7998: additive increase of 16 until 64 below W_max; (2002 - 64) / 16 = 121 RTTs.
    let mut flow = after_loss(&LINUX, 10_000);
    assert_eq!(flow.cwnd(), 7998);
    for _ in 0..119 {
        let grown = growth(&mut flow, 1);
        assert!((15..=17).contains(&grown), "{grown} at {}", flow.cwnd());
    }
    near(f64::from(10_000 - flow.cwnd()), 2002.0 - 119.0 * 16.0, 30.0);
    assert_eq!(growth(&mut searching(&linux(&[("max_increment", 32)]), 10_000, 8000), 1), 32);
}

#[test]
fn the_whole_search_takes_the_rounds_that_its_three_parts_add_up_to() {
    // From 7998 to 10000: 121 RTTs of additive increase, 4 ln(64 / 8) = 8.3 of binary search, 8 / 0.2 = 40 for the
    // rest.
    let mut flow = after_loss(&LINUX, 10_000);
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
    let mut flow = searching(&LINUX, 10_000, 10_000 - 64);
    let mut distance = 64.0_f64;
    for _ in 0..7 {
        growth(&mut flow, 1);
        distance *= (-0.25_f64).exp();
        let measured = f64::from(10_000 - flow.cwnd());
        assert!((measured - distance).abs() <= 1.5, "{measured}, by the equation {distance}");
    }
    // 64 x 0.779^7 = 11: near the 8 at which the search ends.
    assert!((9..=13).contains(&(10_000 - flow.cwnd())), "{}", flow.cwnd());
    // As Linux's integers have it, D / 4 rounded down, and times 31/16 segments per ACK.
    for distance in [64, 50, 31, 12, 11, 8_u32] {
        let mut flow = searching(&[("variant", 1)], 10_000, 10_000 - distance);
        let per = (10_000 - distance) / (distance / 4) * 16 / 31;
        for _ in 1..per {
            flow.ack(1, RTT as i32);
        }
        assert_eq!(flow.cwnd(), 10_000 - distance);
        flow.ack(1, RTT as i32);
        assert_eq!(flow.cwnd(), 10_000 - distance + 1);
    }
}

#[test]
fn the_last_and_the_first_segments_take_smooth_part() {
    // S_min = 0.01 gives ln(100) / ln(4/3) + 4 = 20 RTTs for B = 4 segments (Linux's smooth_part): 0.2 per RTT.
    assert_eq!(((0.01_f64.recip().ln() / (4.0_f64 / 3.0).ln()) + 4.0).round() as u32, 20);
    assert_eq!(growth(&mut searching(&LINUX, 1000, 996), 20), 4);
    assert_eq!(growth(&mut searching(&LINUX, 1000, 1000), 20), 4);
    assert_eq!(growth(&mut searching(&linux(&[("smooth_part", 40)]), 1000, 996), 40), 4);
    // B / 1000 would be 0.004 per RTT: S_min is the floor, 0.01.
    let floor = |thousandths| linux(&[("smooth_part", 1000), ("min_increment", thousandths)]);
    assert_eq!(growth(&mut searching(&floor(10), 100, 97), 100), 1);
    assert_eq!(growth(&mut searching(&floor(1), 100, 97), 100), 0);
    assert_eq!(growth(&mut searching(&floor(50), 100, 97), 40), 2);
}

#[test]
fn beyond_w_max_the_steps_grow_up_to_s_max() {
    // Max probing: D / 3 per RTT from 4 beyond W_max, e^(1/3) = 1.396 of it one round later; at 48 it is S_max.
    let mut flow = searching(&LINUX, 10_000, 10_004);
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
    for values in [&[][..], &LINUX[..]] {
        let mut flow = after_loss(values, 14);
        assert_eq!(flow.cwnd(), 7);
        for window in 8..=14 {
            assert_eq!(growth(&mut flow, 1), 1);
            assert_eq!(flow.cwnd(), window);
        }
    }
    // Delayed ACKs make no difference: segments are counted.
    let mut flow = after_loss(&[], 14);
    flow.per_ack = 2;
    assert_eq!(growth(&mut flow, 6), 6);
}

#[test]
fn fast_convergence_aims_lower() {
    let plateau = |fast: i64| {
        let mut flow = after_loss(&linux(&[("fast_convergence", fast)]), 1000);
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
    let mut flow = after_loss(&LINUX, 1000);
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
    for values in [&linux(&[("max_increment", 100_000)])[..], &[("max_increment", 100_000), ("beta", 819)]] {
        let mut flow = after_loss(values, 34_000_000);
        flow.per_ack = 100_000;
        let mut last = flow.cwnd();
        for _ in 0..64 {
            flow.round(1_000_000);
            let grown = f64::from(flow.cwnd() - last);
            last = flow.cwnd();
            // A whole number of segments per segment of growth, 272 to 340.
            near(grown, 100_000.0, 1.0);
        }
    }
    assert_eq!(Flow::new("bic", &linux(&[("low_window", 0)]), u32::MAX).control.ssthresh(), 3_435_134_975);
    let mut widest = searching(&[("max_increment", 100_000)], u32::MAX, u32::MAX - 1);
    widest.ack(u32::MAX - 1, 1_000_000);
    assert_eq!(widest.cwnd(), u32::MAX - 1);
    let credit = widest.control.sock().private[0];
    near(credit as f64, (2f64.powi(32) - 2.0) * 500.0, 0.1);
}

#[test]
fn the_published_search_halves_what_is_left() {
    // 32 per RTT until 64 below W_max: (1250 - 64) / 32 = 37 RTTs.
    let mut flow = after_loss(&[], 10_000);
    assert_eq!(flow.cwnd(), 8750);
    near(f64::from(growth(&mut flow, 37)), 37.0 * 32.0, 0.5);
    // D / 2 per RTT, while D shrinks: 0.607 of it one RTT later.
    let mut distance = f64::from(10_000 - flow.cwnd());
    for _ in 0..6 {
        growth(&mut flow, 1);
        distance *= (-0.5_f64).exp();
        let measured = f64::from(10_000 - flow.cwnd());
        assert!((measured - distance).abs() <= 1.0, "{measured}, by the equation {distance}");
    }
    // The last segment: 2 ln(1 / 0.02) = 7.8 RTTs of ever smaller steps, 0.02 / S_min = 2 more.
    let mut flow = searching(&[], 10_000, 9_999);
    assert_eq!(growth(&mut flow, 9), 0);
    assert_eq!(growth(&mut flow, 1), 1);
    assert_eq!(growth(&mut searching(&[("min_increment", 500)], 10_000, 9_999), 2), 1);
}

#[test]
fn published_probing_begins_with_s_min_and_grows_to_s_max() {
    // D = S_min after one RTT, and e times itself with each more: ln(1 / 0.01) = 4.6 RTTs to a segment, 3.5 to 32.
    let mut flow = searching(&[], 10_000, 10_000);
    assert_eq!(growth(&mut flow, 5), 0);
    assert_eq!(growth(&mut flow, 1), 1);
    assert!((25..=32).contains(&growth(&mut flow, 3)), "{}", flow.cwnd());
    growth(&mut flow, 2);
    for _ in 0..5 {
        assert_eq!(growth(&mut flow, 1), 32);
    }
    // After a time-out nothing is known, and nothing but S_max bounds it.
    let mut flow = after_loss(&[], 1000);
    flow.time_out(300_000);
    while flow.cwnd() < flow.ssthresh() {
        flow.round(RTT);
    }
    near(f64::from(growth(&mut flow, 10)), 320.0, 2.0);
}

#[test]
fn published_fast_convergence_is_by_the_share_given_up() {
    // W_max = W (2 - 1/8) / 2 where a loss comes below the last one.
    let mut flow = after_loss(&[], 10_000);
    growth(&mut flow, 10);
    let second = f64::from(flow.cwnd());
    near(second, 9070.0, 0.1);
    flow.lose(RTT);
    // (0.9375 - 0.875) W = 567: 16 RTTs of 32, 2 ln(3200) = 16 more.
    growth(&mut flow, 30);
    near(f64::from(flow.cwnd()), second * 0.9375, 0.02);
}

#[test]
fn linux_multiplies_growth_by_the_segments_per_ack_that_it_estimates() {
    // Two at first, 31/16 when an ACK comes for every segment: 16 x 2 = 32 segments per RTT where S_max is 16.
    for (per_ack, expected) in [(1, 31.0), (2, 32.0), (10, 160.0)] {
        let mut flow = searching(&[("variant", 1)], 1_000_000, 100_000);
        flow.per_ack = per_ack;
        growth(&mut flow, 1);
        near(f64::from(growth(&mut flow, 1)), expected, 1.0);
    }
    // ns-2's TCP-Linux counts ACKs, one more of them than it means to: W / (16 W / (31 x 16) + 1) per RTT, 30 to 31.
    for (cwnd, acks) in [(500, 17), (1000, 33), (10_000, 323)] {
        let mut flow = searching(&LINUX_2_6_22, 1_000_000, cwnd);
        flow.ack(1, RTT as i32);
        for _ in 0..3 {
            let before = flow.cwnd();
            let mut counted = 0;
            while flow.cwnd() == before {
                flow.ack(1, RTT as i32);
                counted += 1;
            }
            assert!((acks - 1..=acks).contains(&counted), "{counted} ACKs at {cwnd}");
        }
    }
    let mut delayed = searching(&LINUX_2_6_22, 1_000_000, 2000);
    delayed.per_ack = 2;
    assert!((15..=16).contains(&growth(&mut delayed, 1)));
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
