//! Vegas against Brakmo and Peterson's equations as Linux has them: diff = W (RTT - base) / base, alpha 2, beta 4,
//! gamma 1.

use crate::common::Flow;
use congestion::{find, CaEvent, CaState, INFINITE_SSTHRESH};

const BASE: u64 = 100_000;

/// In congestion avoidance at `cwnd`, with a least RTT of 100 ms known.
fn settled(values: &[(&str, i64)], cwnd: u32) -> Flow {
    let mut flow = Flow::new("vegas", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = cwnd;
    flow.round(BASE);
    flow.round(BASE);
    flow.control.sock_mut().snd_cwnd = cwnd;
    flow.round(BASE);
    flow.control.sock_mut().snd_cwnd = cwnd;
    flow
}

/// Change of the window over ten rounds at this RTT when one round cannot move it across a bound.
fn change(values: &[(&str, i64)], cwnd: u32, rtt_us: u64) -> i64 {
    let mut flow = settled(values, cwnd);
    // The round that began at the base RTT ends within the first of these.
    flow.round(rtt_us);
    flow.round(rtt_us);
    let before = i64::from(flow.cwnd());
    for _ in 0..10 {
        flow.round(rtt_us);
    }
    i64::from(flow.cwnd()) - before
}

#[test]
fn the_number_of_queued_segments_decides() {
    // W 1000 and base 100 ms: 1 ms of queue is 10 segments. Bounds far apart, so that ten rounds stay on one side.
    let wide = [("alpha", 40), ("beta", 80)];
    // diff = 20: faster, one segment per RTT. A round ends one ACK late as it is measured: 9 or 10 steps in 10 rounds.
    assert!((9..=10).contains(&change(&wide, 1000, 102_000)));
    // diff = 60: neither.
    assert_eq!(change(&wide, 1000, 106_000), 0);
    // diff = 100: slower.
    assert!((-10..=-9).contains(&change(&wide, 1000, 110_000)));
}

#[test]
fn the_bounds_are_two_and_four() {
    // W 100: each ms of queue is one segment. Linux's bounds: below 2 faster, above 4 slower.
    let step = |rtt_ms: u64| {
        let mut flow = settled(&[], 100);
        flow.round(rtt_ms * 1000);
        flow.control.sock_mut().snd_cwnd = 100;
        flow.round(rtt_ms * 1000);
        i64::from(flow.cwnd()) - 100
    };
    assert_eq!([100, 101, 102, 103, 104, 105, 120].map(step), [1, 1, 0, 0, 0, -1, -1]);
}

#[test]
fn slow_start_ends_at_what_the_acks_bore_out() {
    // Doubling while diff <= 1; at an RTT of 125 ms W base / RTT + 1 = 0.8 W + 1.
    let mut flow = Flow::new("vegas", &[], 10);
    let windows: Vec<_> = (0..3)
        .map(|_| {
            flow.round(BASE);
            flow.cwnd()
        })
        .collect();
    assert_eq!(windows, [20, 40, 80]);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    let mut before = flow.cwnd();
    while flow.ssthresh() == INFINITE_SSTHRESH {
        before = flow.cwnd();
        flow.ack(1, 125_000);
        assert!(flow.cwnd() <= 161, "the round ends");
    }
    assert_eq!(flow.cwnd(), before * 100_000 / 125_000 + 1);
    assert_eq!(flow.ssthresh(), flow.cwnd());
}

#[test]
fn a_little_queue_does_not_end_slow_start() {
    // diff = 80 x 1 / 100 = 0, then 160 x 1 / 100 = 1 = gamma; then 320 x 1 / 100 = 3.
    let mut flow = Flow::new("vegas", &[], 10);
    for _ in 0..3 {
        flow.round(BASE);
    }
    flow.round(101_000);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (160, INFINITE_SSTHRESH));
    flow.round(101_000);
    flow.round(101_000);
    assert_ne!(flow.ssthresh(), INFINITE_SSTHRESH);
    let mut patient = Flow::new("vegas", &[("gamma", 100)], 10);
    for _ in 0..3 {
        patient.round(BASE);
    }
    for _ in 0..3 {
        patient.round(101_000);
    }
    assert_eq!((patient.cwnd(), patient.ssthresh()), (640, INFINITE_SSTHRESH));
}

#[test]
fn a_loss_halves_and_recovery_is_renos() {
    for (before, after) in [(1000, 500), (101, 50), (3, 2), (1, 2), (34_000_000, 17_000_000)] {
        assert_eq!(Flow::new("vegas", &[], before).control.ssthresh(), after);
    }
    // After a time-out, while the losses are repaired, nothing is measured: slow start up to the threshold.
    let mut flow = settled(&[], 100);
    flow.time_out(200_000);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (1, 50));
    for _ in 0..6 {
        flow.round(300_000);
    }
    assert!(flow.cwnd() >= 50, "{}", flow.cwnd());
    // Then the queue of 200 ms counts, once a whole round has been measured.
    flow.control.set_state(CaState::Open);
    let recovered = flow.cwnd();
    for _ in 0..12 {
        flow.round(300_000);
    }
    assert!((8..=11).contains(&(recovered - flow.cwnd())), "{recovered} to {}", flow.cwnd());
}

#[test]
fn two_rtts_in_a_round_are_too_few() {
    // One ACK for the whole window: growth is Reno's, whatever the delay says.
    let mut flow = settled(&[], 100);
    flow.per_ack = 60;
    flow.round(300_000);
    let before = flow.cwnd();
    for _ in 0..8 {
        flow.round(300_000);
    }
    assert!(flow.cwnd() > before, "{before} to {}", flow.cwnd());
}

#[test]
fn after_idle_the_path_is_measured_anew() {
    for event in [CaEvent::TxStart, CaEvent::CwndRestart] {
        let mut flow = settled(&[], 100);
        flow.control.cwnd_event(event);
        let before = flow.cwnd();
        for _ in 0..10 {
            flow.round(150_000);
        }
        // 150 ms is the least RTT now: no queue, one segment per RTT.
        assert!((9..=10).contains(&(flow.cwnd() - before)), "{before} to {}", flow.cwnd());
    }
}

#[test]
fn the_application_as_the_limit_lets_nothing_grow() {
    let after_5000_acks = |limited_by_window: bool| {
        let mut flow = settled(&[], 100);
        for _ in 0..5_000 {
            flow.control.sock_mut().is_cwnd_limited = limited_by_window.into();
            flow.ack(1, BASE as i32);
        }
        flow.cwnd()
    };
    assert_eq!(after_5000_acks(false), 100);
    assert!(after_5000_acks(true) > 130);
}

#[test]
fn tcps_widest_window_and_a_second_of_queue_do_not_overflow() {
    // 2^30 bytes, RFC 7323's largest window, 1 s base, 2 s RTT: diff is 700,000, above beta. In 32 bits the product
    // W (RTT - base) = 7e11 would wrap, and diff be 4,215.
    let mut flow = Flow::new("vegas", &[("alpha", 5_000), ("beta", 5_000)], 700_000);
    flow.control.sock_mut().snd_ssthresh = 700_000;
    flow.per_ack = 10_000;
    flow.round(1_000_000);
    flow.round(1_000_000);
    let before = flow.cwnd();
    for _ in 0..5 {
        flow.round(2_000_000);
    }
    assert!((3..=5).contains(&(before - flow.cwnd())), "{before} to {}", flow.cwnd());
}

#[test]
fn it_says_what_may_be_set() {
    let vegas = find("vegas").expect("built in");
    let defaults: Vec<_> = vegas.params().iter().map(|p| (p.name.as_str(), p.default, p.unit.as_str())).collect();
    assert_eq!(defaults, [("alpha", 2, "segments"), ("beta", 4, "segments"), ("gamma", 1, "segments")]);
    assert!(vegas.code().contains("\n * Kernel: as BPF struct_ops"));
}
