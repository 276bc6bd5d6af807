//! H-TCP against its equations (Leith and Shorten 2004): alpha(d), beta = RTT_min / RTT_max, the throughput switch.

use crate::common::{near, Flow};
use congestion::CaState;

/// Growth per RTT `d` s after a loss, in multiples of Reno's: f of the paper, delta_l = 1 s.
fn f(d: f64) -> f64 {
    if d <= 1.0 {
        1.0
    } else {
        1.0 + 10.0 * (d - 1.0) + 0.25 * (d - 1.0).powi(2)
    }
}

/// In congestion avoidance after a loss at `cwnd`; the RTT has always been `rtt_us`.
fn after_loss(values: &[(&str, i64)], cwnd: u32, rtt_us: u64) -> Flow {
    let mut flow = Flow::new("htcp", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = cwnd;
    flow.ack(1, rtt_us as i32);
    flow.lose(rtt_us);
    flow
}

/// A growth of whole segments is within one segment, or 2 %, of `expected`.
#[track_caller]
fn grows(segments: f64, expected: f64) {
    assert!((segments - expected).abs() <= f64::max(1.0, expected * 0.02), "{segments}, by the equation {expected}");
}

/// Growth in one RTT.
fn growth(flow: &mut Flow, rtt_us: u64) -> f64 {
    let before = flow.cwnd();
    flow.round(rtt_us);
    f64::from(flow.cwnd() - before)
}

/// Growth in one RTT, `d` s after a loss, nothing having happened in between.
fn growth_after(values: &[(&str, i64)], d: f64, cwnd: u32, rtt_us: u64) -> f64 {
    let mut flow = after_loss(values, cwnd, rtt_us);
    // A round so that alpha is that of the time at which the growth is measured.
    flow.now_us += (d * 1e6) as u64 - 2 * rtt_us;
    flow.round(rtt_us);
    growth(&mut flow, rtt_us)
}

#[test]
fn alpha_follows_the_paper() {
    // beta is 0.5 at the first loss, so that alpha is f; 100 ms is the RTT that scaling leaves alone.
    for (d, alpha) in [(0.5, 1.0), (1.0, 1.0), (2.0, 11.25), (3.0, 22.0), (11.0, 126.0), (61.0, 1501.0)] {
        assert_eq!(f(d), alpha);
        // The RTT before d s to d s after: the mean is at half an RTT before.
        grows(growth_after(&[], d, 400_000, 100_000), f(d - 0.05));
    }
}

#[test]
fn the_window_follows_the_integral_of_alpha() {
    // W(d) = W0 + (d + 5 (d - 1)^2 + (d - 1)^3 / 12) / RTT, for d > 1 s.
    let rtt = 100_000;
    let mut flow = after_loss(&[], 20_000, rtt);
    let (start, w0) = (flow.now_us, f64::from(flow.cwnd()));
    assert_eq!(w0, 10_000.0);
    for d in [1_u64, 2, 5, 10, 20] {
        flow.run_for(start + d * 1_000_000 - flow.now_us, rtt);
        let x = d as f64 - 1.0;
        near(f64::from(flow.cwnd()) - w0, (d as f64 + 5.0 * x.powi(2) + x.powi(3) / 12.0) / 0.1, 3.0);
    }
}

#[test]
fn delta_l_is_how_long_it_is_reno() {
    let reno_for = |delta_l: i64, seconds: f64| growth_after(&[("delta_l", delta_l)], seconds, 1000, 100_000);
    assert_eq!(reno_for(5_000, 4.9), 1.0);
    grows(reno_for(5_000, 7.0), f(2.95));
    grows(reno_for(0, 1.0), f(1.95));
}

#[test]
fn scaling_makes_growth_per_second_alike() {
    // R = RTT / 0.1 s, 0.1 to 2. f(5 s) is 45 per RTT at 100 ms.
    for (rtt, r) in [(10_000, 0.1), (50_000, 0.5), (100_000, 1.0), (200_000, 2.0), (5_000, 0.1), (400_000, 2.0)] {
        let d = 5.0;
        let mean = f(d - 0.5e-6 * rtt as f64);
        grows(growth_after(&[], d, 10_000, rtt), mean * r);
        grows(growth_after(&[("rtt_scaling", 0)], d, 10_000, rtt), mean);
    }
    // Never slower than Reno, and in the first second just that, also on a long path (Linux: twice).
    assert_eq!(growth_after(&[], 1.2, 1000, 10_000), 1.0);
    assert_eq!(growth_after(&[], 0.9, 1000, 200_000), 1.0);
}

/// A flow that has lost often enough on a steady path for its backoff to adapt. `queued_us` stand in the queue at a
/// loss. The threshold of each loss as a share of the window.
fn losses(values: &[(&str, i64)], rtt_us: u64, queued_us: u64, count: usize) -> Vec<f64> {
    let mut flow = Flow::new("htcp", values, 1000);
    flow.control.sock_mut().snd_ssthresh = 1000;
    (0..count)
        .map(|_| {
            // The same window before each loss is the same throughput, for 8 RTTs.
            flow.control.sock_mut().snd_cwnd = 1000;
            for _ in 0..4 {
                flow.round(rtt_us);
                flow.control.sock_mut().snd_cwnd = 1000;
            }
            // The queue fills by less than 20 ms at a time.
            for step in 1..=4 {
                flow.ack(1, (rtt_us + queued_us * step / 4) as i32);
            }
            flow.control.sock_mut().snd_cwnd = 1000;
            flow.lose(rtt_us);
            f64::from(flow.ssthresh()) / 1000.0
        })
        .collect()
}

#[test]
fn backoff_gives_back_what_stood_in_the_queue() {
    // RTT_min / RTT_max = 40 / 60; from the third loss on, when two epochs have shown the same throughput.
    let shares = losses(&[], 40_000, 20_000, 5);
    assert_eq!(shares[..2], [0.5, 0.5]);
    for share in &shares[2..] {
        near(*share, 40.0 / 60.0, 0.5);
    }
    // Within its bounds: no queue, and a deep one.
    near(losses(&[], 40_000, 2_000, 4)[3], 0.8, 0.2);
    near(losses(&[("beta_max", 922)], 40_000, 2_000, 4)[3], 0.9, 0.2);
    near(losses(&[], 40_000, 60_000, 4)[3], 0.5, 0.2);
    near(losses(&[("beta_min", 410)], 40_000, 60_000, 4)[3], 0.4, 0.2);
    // 5 ms: Linux, which counts ticks, does not adapt below 10.
    near(losses(&[], 5_000, 2_000, 4)[3], 5.0 / 7.0, 0.5);
    assert_eq!(losses(&[("adaptive_backoff", 0)], 40_000, 20_000, 4), [0.5; 4]);
}

#[test]
fn alpha_makes_up_for_the_smaller_backoff() {
    // 2 (1 - beta): 0.4 at beta = 0.8, in the first second as well; 5 segments take 12.5 RTTs.
    let mut flow = Flow::new("htcp", &[("throughput_switch", 0), ("beta_min", 819)], 1000);
    flow.control.sock_mut().snd_ssthresh = 1000;
    flow.ack(1, 10_000);
    flow.lose(10_000);
    assert_eq!(flow.cwnd(), 799);
    for _ in 0..50 {
        flow.round(10_000);
    }
    assert_eq!(flow.cwnd(), 819);
}

#[test]
fn a_change_of_throughput_halves_the_window() {
    let shares = |values: &[(&str, i64)], second: u32| {
        let mut flow = Flow::new("htcp", values, 1000);
        let mut shares = vec![];
        for window in [1000, 1000, 1000, second, second, second] {
            flow.control.sock_mut().snd_ssthresh = window;
            for _ in 0..8 {
                flow.control.sock_mut().snd_cwnd = window;
                flow.round(40_000);
            }
            flow.ack(1, 50_000);
            flow.control.sock_mut().snd_cwnd = window;
            flow.lose(40_000);
            shares.push((f64::from(flow.ssthresh()) / f64::from(window) * 10.0).round() / 10.0);
        }
        shares
    };
    assert_eq!(shares(&[], 1000), [0.5, 0.5, 0.8, 0.8, 0.8, 0.8]);
    // A quarter more or less: once for the change, once until it is known to last.
    assert_eq!(shares(&[], 1250), [0.5, 0.5, 0.8, 0.5, 0.5, 0.8]);
    assert_eq!(shares(&[], 750), [0.5, 0.5, 0.8, 0.5, 0.5, 0.8]);
    // A tenth is within 0.2.
    assert_eq!(shares(&[], 1100), [0.5, 0.5, 0.8, 0.8, 0.8, 0.8]);
    assert_eq!(shares(&[("throughput_switch", 50)], 1100), [0.5, 0.5, 0.8, 0.5, 0.5, 0.8]);
    // Off: only the first loss, of which nothing is known.
    assert_eq!(shares(&[("throughput_switch", 0)], 1250), [0.5, 0.8, 0.8, 0.8, 0.8, 0.8]);
}

#[test]
fn the_clock_of_growth_starts_when_a_loss_is_repaired() {
    let mut flow = after_loss(&[], 10_000, 100_000);
    flow.run_for(10_000_000, 100_000);
    assert!(growth(&mut flow, 100_000) > 90.0);
    flow.lose(5_000_000);
    assert_eq!(growth(&mut flow, 100_000), 1.0);
}

#[test]
fn a_spurious_loss_changes_nothing() {
    let mut flow = after_loss(&[], 10_000, 100_000);
    flow.run_for(10_000_000, 100_000);
    let before = flow.cwnd();
    let fast = growth(&mut flow, 100_000);
    let control = &mut flow.control;
    control.sock_mut().prior_cwnd = control.sock().snd_cwnd;
    let threshold = control.ssthresh();
    control.set_state(CaState::Recovery);
    control.sock_mut().snd_cwnd = threshold;
    let window = control.undo_cwnd();
    assert_eq!(f64::from(window), f64::from(before) + fast);
    control.sock_mut().snd_cwnd = window;
    control.set_state(CaState::Open);
    assert!(growth(&mut flow, 100_000) > fast);
}

#[test]
fn the_widest_window_does_not_overflow() {
    // 400 Gbit/s x 1 s; an hour after the loss f x 2 is 6.5 million segments per RTT, held to 2 million.
    let mut flow = after_loss(&[], 34_000_000, 1_000_000);
    flow.per_ack = 100_000;
    flow.now_us += 3_600_000_000;
    flow.round(1_000_000);
    near(growth(&mut flow, 1_000_000), 2_097_152.0, 6.0);
    // Never faster than slow start.
    let mut small = after_loss(&[], 100, 1_000_000);
    small.now_us += 3_600_000_000;
    small.round(1_000_000);
    let before = small.cwnd();
    small.ack(3, 1_000_000);
    assert_eq!(small.cwnd(), before + 3);
}
