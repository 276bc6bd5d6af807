//! storage_friendly's cap: growth without congestion avoidance, but not without bound
//! (evaluation/papers/dsan/README.md).

use crate::common::{near, Flow};

const RTT: u64 = 25_000;

/// The algorithm without congestion avoidance and with this cap, in avoidance at `cwnd`.
fn capped(cap: i64, cwnd: u32) -> Flow {
    let mut flow = Flow::new("storage_friendly", &[("congestion_avoidance", 0), ("cap", cap)], cwnd);
    flow.control.sock_mut().snd_ssthresh = cwnd;
    flow
}

#[test]
fn the_window_doubles_up_to_the_cap_and_gains_the_cap_per_round_above() {
    let mut flow = capped(100, 10);
    for window in [20, 40, 80] {
        flow.round(RTT);
        assert_eq!(flow.cwnd(), window);
    }
    for _ in 0..20 {
        let before = flow.cwnd();
        flow.round(RTT);
        // 100 per window acknowledged; the last ACKs of the round count against a window that has grown.
        let least = 100 * before / (before + 100);
        let gained = flow.cwnd() - before;
        assert!((least - 1..=100).contains(&gained), "{gained} at {before}");
    }
}

#[test]
fn no_ack_brings_more_than_its_part_of_the_cap() {
    for (cap, window, per_ack) in [(1, 1000, 1), (7, 1000, 2), (100, 1000, 44), (100, 101, 101), (5000, 34_000_000, 1)]
    {
        let mut flow = capped(cap, window);
        for acks in 1..=500_u64 {
            flow.ack(per_ack, 25_000);
            let (gained, acked) = (u64::from(flow.cwnd() - window), acks * u64::from(per_ack));
            assert!(gained <= acked * cap as u64 / u64::from(window), "{gained} by {acked} with {cap} at {window}");
        }
    }
}

#[test]
fn a_cap_of_one_segment_is_congestion_avoidance() {
    let mut capped = Flow::new("storage_friendly", &[("congestion_avoidance", 0), ("cap", 1)], 10);
    let mut avoiding = Flow::new("storage_friendly", &[], 10);
    for round in 0..400_u64 {
        for flow in [&mut capped, &mut avoiding] {
            // Slow start, then a loss now and then, once a time-out.
            match round {
                200 => flow.time_out(RTT),
                _ if round % 37 == 7 => flow.lose(RTT),
                _ => flow.round(RTT),
            }
        }
        assert_eq!(capped.control.sock().snd_cwnd_cnt, avoiding.control.sock().snd_cwnd_cnt, "round {round}");
        assert_eq!(capped.cwnd(), avoiding.cwnd(), "round {round}");
    }
}

#[test]
fn a_cap_leaves_slow_start_alone() {
    let mut flow = Flow::new("storage_friendly", &[("congestion_avoidance", 0), ("cap", 5)], 10);
    for window in [20, 40, 80, 160] {
        flow.round(RTT);
        assert_eq!(flow.cwnd(), window);
    }
    flow.control.sock_mut().snd_ssthresh = 200;
    // 40 up to the threshold, and of the other 120 segments 5 / 200 each.
    flow.ack(160, 25_000);
    assert_eq!(flow.cwnd(), 203);
}

#[test]
fn with_avoidance_on_the_cap_is_not_looked_at() {
    let mut flow = Flow::new("storage_friendly", &[("cap", 50)], 100);
    flow.control.sock_mut().snd_ssthresh = 100;
    flow.round(RTT);
    assert_eq!(flow.cwnd(), 101);
}

#[test]
fn the_mean_window_under_loss_is_the_root_of_the_cap_times_that_with_avoidance() {
    // Every 1 / p-th segment is lost: W = sqrt(c (2 - r) / (2 r p)).
    for (cap, reduction, p) in [(1, 0.125, 1e-5), (20, 0.125, 1e-6), (100, 0.125, 1e-7), (20, 0.5, 1e-6)] {
        let values = [("congestion_avoidance", 0), ("cap", cap), ("reduction", (reduction * 1e6) as i64)];
        let mut flow = Flow::new("storage_friendly", &values, 5000);
        flow.control.sock_mut().snd_ssthresh = 5000;
        flow.per_ack = 50;
        let (mut sent, mut rounds, mut windows) = (0.0, 0_u32, 0.0);
        for round in 0..4000 {
            sent += f64::from(flow.cwnd());
            if round >= 2000 {
                windows += f64::from(flow.cwnd());
                rounds += 1;
            }
            if sent * p >= 1.0 {
                sent -= 1.0 / p;
                flow.lose(RTT);
            } else {
                flow.round(RTT);
            }
        }
        let expected = (cap as f64 * (2.0 - reduction) / (2.0 * reduction * p)).sqrt();
        near(windows / f64::from(rounds), expected, 4.0);
    }
}
