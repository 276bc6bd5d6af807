//! FAST against the window equation of Jin, Wei, Low: W = (1 - gamma) W + gamma (baseRTT / RTT W + alpha), at most 2 W.

use crate::common::{near, Flow};
use congestion::{find, CaState, INFINITE_SSTHRESH};

const BASE: u64 = 100_000;

/// In congestion avoidance at `cwnd`, with a least RTT of 100 ms known and a new round begun.
fn settled(values: &[(&str, i64)], cwnd: u32) -> Flow {
    let mut flow = Flow::new("fast", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.control.sock_mut().snd_cwnd = cwnd;
    flow.ack(1, BASE as i32);
    // Recovery and back: nothing under way, a round of measuring begins.
    flow.control.set_state(CaState::Recovery);
    flow.control.set_state(CaState::Open);
    flow
}

/// The window once what was measured over a window of ACKs at `rtt_us` has been acted upon.
fn updated(values: &[(&str, i64)], cwnd: u32, rtt_us: u64) -> u32 {
    let mut flow = settled(values, cwnd);
    for _ in 0..2 * cwnd + 4 {
        flow.ack(1, rtt_us as i32);
    }
    flow.cwnd()
}

fn equation(cwnd: u32, rtt_us: u64, alpha: f64, gamma: f64) -> f64 {
    let w = f64::from(cwnd);
    ((1.0 - gamma) * w + gamma * (BASE as f64 / rtt_us as f64 * w + alpha)).min(2.0 * w)
}

#[test]
fn an_update_is_the_equation() {
    // 1000 segments, 110 ms: 90.9 queued; alpha 200, gamma 1/2: 1054.5.
    assert_eq!(updated(&[("alpha", 200)], 1000, 110_000), 1054);
    for (cwnd, rtt, alpha, gamma) in [
        (1000, 110_000, 200, 500),
        (1000, 125_000, 100, 500),
        (1000, 100_000, 100, 1000),
        (1000, 180_000, 100, 1000),
        (5000, 101_000, 100, 100),
        (10, 100_000, 100, 500),
        (30, 100_000, 60, 500),
        (3, 900_000, 1, 1000),
    ] {
        let expected = equation(cwnd, rtt, alpha as f64, gamma as f64 / 1000.0).max(2.0);
        let got = f64::from(updated(&[("alpha", alpha), ("gamma", gamma)], cwnd, rtt));
        // Rounded down to a segment; the fraction waits for the next update.
        assert!(expected - 1.0 <= got && got <= expected, "{cwnd} at {rtt}: {got} instead of {expected}");
    }
}

#[test]
fn with_alpha_queued_the_window_rests() {
    // W base / RTT + alpha = W at RTT = base W / (W - alpha): 1000 of 900 + 100.
    let mut flow = settled(&[], 1000);
    for _ in 0..20 {
        flow.round(111_111);
    }
    assert_eq!(flow.cwnd(), 1000);
}

#[test]
fn the_approach_is_exponential() {
    // A path of 900 segments: RTT = base W / 900. The distance to 900 + alpha falls by a factor per update.
    for (gamma, at_most) in [(500, 0.80), (200, 0.90)] {
        let mut flow = settled(&[("gamma", gamma)], 1800);
        let mut distances = vec![];
        for _ in 0..5 {
            for _ in 0..2 {
                let rtt = (BASE * u64::from(flow.cwnd()) / 900).max(BASE);
                flow.round(rtt);
            }
            distances.push(f64::from(flow.cwnd()) - 1000.0);
        }
        for pair in distances.windows(2).filter(|p| p[0] > 20.0) {
            assert!(pair[1] < at_most * pair[0], "gamma {gamma}: {distances:?}");
        }
        assert!(distances[4] > -20.0, "gamma {gamma} overshoots: {distances:?}");
    }
}

#[test]
fn a_small_gamma_arrives_too() {
    // Fractions are kept: at gamma 0.01 and 20 segments to go each update is 0.2 of a segment.
    let mut flow = settled(&[("gamma", 10), ("alpha", 100)], 1000);
    // 80 queued: RTT = base 1000 / 920.
    for _ in 0..60 {
        flow.round(108_695);
    }
    // 30 updates or so.
    assert!((1003..=1008).contains(&flow.cwnd()), "{}", flow.cwnd());
}

#[test]
fn growth_is_spread_over_a_round_and_never_faster_than_doubling() {
    let mut flow = settled(&[("alpha", 1_000_000)], 100);
    let mut largest = 0;
    for _ in 0..1000 {
        let before = flow.cwnd();
        flow.ack(1, BASE as i32);
        largest = largest.max(flow.cwnd() - before);
    }
    assert!(largest <= 2, "{largest} segments for one");
    assert!(flow.cwnd() >= 200, "{}", flow.cwnd());
}

#[test]
fn slow_start_ends_when_alpha_are_queued() {
    let mut flow = Flow::new("fast", &[("alpha", 50)], 10);
    for window in [20, 40, 80, 160] {
        flow.round(BASE);
        assert_eq!(flow.cwnd(), window);
    }
    // 25 % of queue: 64 of 320 segments.
    flow.round(125_000);
    flow.round(125_000);
    flow.round(125_000);
    assert_ne!(flow.ssthresh(), INFINITE_SSTHRESH);
    assert!(flow.cwnd() < 400, "{}", flow.cwnd());
}

#[test]
fn a_loss_halves_and_the_equation_goes_on() {
    for (before, after) in [(1000, 500), (101, 50), (3, 2), (1, 2), (34_000_000, 17_000_000)] {
        assert_eq!(Flow::new("fast", &[], before).control.ssthresh(), after);
    }
    assert_eq!(Flow::new("fast", &[("reduction", 125_000)], 1000).control.ssthresh(), 875);
    // Nothing queued afterwards: gamma alpha = 50 per two rounds.
    let mut flow = settled(&[], 1000);
    flow.lose(BASE);
    assert_eq!(flow.cwnd(), 500);
    for _ in 0..20 {
        flow.round(BASE);
    }
    near(f64::from(flow.cwnd()), 1000.0, 6.0);
}

#[test]
fn after_a_time_out_it_is_slow_start_to_the_threshold() {
    let mut flow = settled(&[], 400);
    flow.time_out(300_000);
    for window in [2, 4, 8, 16, 32, 64, 128, 200] {
        flow.round(BASE);
        assert_eq!(flow.cwnd(), window);
    }
}

#[test]
fn the_application_as_the_limit_lets_nothing_grow() {
    let after = |limited: u8| {
        let mut flow = settled(&[], 100);
        for _ in 0..2_000 {
            flow.control.sock_mut().is_cwnd_limited = limited;
            flow.ack(1, BASE as i32);
        }
        flow.cwnd()
    };
    assert_eq!(after(0), 100);
    assert!(after(1) > 300);
}

#[test]
fn it_says_what_may_be_set() {
    let fast = find("fast").expect("built in");
    let defaults: Vec<_> = fast.params().iter().map(|p| (p.name.as_str(), p.text(p.default))).collect();
    let expected = [("alpha", "100"), ("gamma", "0.5"), ("reduction", "0.5")];
    assert_eq!(defaults, expected.map(|(name, value)| (name, value.to_owned())));
}
