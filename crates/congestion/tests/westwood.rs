//! Westwood+ against its equations: after a loss W = B RTTmin, B from two filters with weight 1/8 of RTT-long samples.

use crate::common::{near, Flow};
use congestion::{find, CaEvent};

/// In congestion avoidance with the window held at `cwnd`, so that `cwnd` segments arrive per RTT, for `rounds` RTTs.
fn hold(flow: &mut Flow, cwnd: u32, rtt_us: u64, rounds: u32) {
    for _ in 0..rounds {
        flow.control.sock_mut().snd_cwnd = cwnd;
        flow.control.sock_mut().snd_cwnd_cnt = 0;
        flow.round(rtt_us);
    }
    flow.control.sock_mut().snd_cwnd = cwnd;
}

/// The window after a loss that has been repaired.
fn after_a_loss(flow: &mut Flow) -> u32 {
    let window = flow.cwnd();
    let threshold = flow.control.ssthresh();
    assert_eq!(threshold, (window / 2).max(2), "Reno's, while the loss is repaired");
    let sock = flow.control.sock_mut();
    (sock.snd_ssthresh, sock.snd_cwnd) = (threshold, threshold);
    flow.control.cwnd_event(CaEvent::CompleteCwr);
    assert_eq!(flow.cwnd(), flow.ssthresh().min(flow.control.sock().snd_cwnd_clamp));
    flow.cwnd()
}

fn steady(values: &[(&str, i64)], cwnd: u32, rtt_us: u64) -> Flow {
    let mut flow = Flow::new("westwood", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = 2;
    hold(&mut flow, cwnd, rtt_us, 100);
    flow
}

#[test]
fn without_a_queue_a_loss_takes_nothing() {
    // 1000 segments per 100 ms, and 100 ms is the least RTT: B RTTmin = W.
    let mut flow = steady(&[], 1000, 100_000);
    near(f64::from(after_a_loss(&mut flow)), 1000.0, 1.0);
}

#[test]
fn a_queue_is_what_is_given_up() {
    // RTTmin 80 ms, then 1000 segments per RTT of 100, 160 and 240 ms: W RTTmin / RTT.
    for (rtt, expected) in [(100_000, 800.0), (160_000, 500.0), (240_000, 333.3)] {
        let mut flow = steady(&[], 1000, 80_000);
        hold(&mut flow, 1000, rtt, 100);
        near(f64::from(after_a_loss(&mut flow)), expected, 1.5);
    }
}

#[test]
fn the_two_filters_have_weight_one_eighth() {
    // From a steady rate, n samples of twice that: A - 2 = -(7/8)^n, B - 2 = -(7/8)^n (1 + n / 8).
    for n in [1, 4, 8, 30] {
        let mut flow = steady(&[], 1000, 100_000);
        flow.control.sock_mut().snd_cwnd = 2000;
        hold(&mut flow, 2000, 100_000, n);
        // A sample ends with the first ACK after a full RTT, so that the last one is still open.
        let b = |n: f64| 2.0 - 0.875_f64.powf(n) * (1.0 + n / 8.0);
        let got = f64::from(after_a_loss(&mut flow)) / 1000.0;
        let (low, high) = (b(f64::from(n) - 1.3), b(f64::from(n)));
        assert!(low - 0.01 <= got && got <= high + 0.01, "{n} samples: {got} outside {low} .. {high}");
    }
    let mut prompt = steady(&[("gain", 1000)], 1000, 100_000);
    hold(&mut prompt, 2000, 100_000, 3);
    near(f64::from(after_a_loss(&mut prompt)), 2000.0, 1.0);
}

#[test]
fn on_a_short_path_samples_take_50_ms() {
    // RTT 5 ms: a burst of one RTT is a tenth of a sample. With min_interval 1 ms it is one of its own.
    let after_a_burst = |values: &[(&str, i64)]| {
        let mut flow = steady(values, 100, 5_000);
        hold(&mut flow, 1000, 5_000, 2);
        hold(&mut flow, 100, 5_000, 9);
        flow.control.sock_mut().snd_cwnd = 5000;
        f64::from(after_a_loss(&mut flow))
    };
    assert!(after_a_burst(&[("gain", 500)]) < 300.0);
    assert!(after_a_burst(&[("gain", 1000), ("min_interval", 1_000)]) < 110.0);
    let mut quick = steady(&[("gain", 500), ("min_interval", 1_000)], 100, 5_000);
    hold(&mut quick, 1000, 5_000, 5);
    assert!(after_a_loss(&mut quick) > 600);
}

#[test]
fn before_the_first_sample_a_loss_halves() {
    for (before, after) in [(1000, 500), (101, 50), (3, 2), (1, 2), (34_000_000, 17_000_000)] {
        assert_eq!(after_a_loss(&mut Flow::new("westwood", &[], before)), after);
    }
}

#[test]
fn a_coarse_clock_rounds_the_least_rtt_up() {
    // 1000 segments per 81 ms: at HZ = 250 the least RTT is 84 ms, and Linux's window 1037.
    for (tick, expected) in [(1, 1000.0), (1_000, 1000.0), (4_000, 1037.0)] {
        let mut flow = steady(&[("tick", tick)], 1000, 81_000);
        near(f64::from(after_a_loss(&mut flow)), expected, 1.0);
    }
}

#[test]
fn losses_one_soon_after_another_do_not_add_up() {
    // Linux: the estimate is of what the path carried, so that the second and third loss take nothing more.
    let mut flow = steady(&[], 1000, 100_000);
    for _ in 0..3 {
        near(f64::from(after_a_loss(&mut flow)), 1000.0, 1.0);
        flow.control.sock_mut().snd_cwnd = 600;
    }
    flow.control.sock_mut().snd_cwnd_clamp = 700;
    assert_eq!(after_a_loss(&mut flow), 700);
}

#[test]
fn a_time_out_keeps_what_the_path_carried_as_threshold() {
    let mut flow = steady(&[], 1000, 100_000);
    let threshold = flow.control.ssthresh();
    flow.control.sock_mut().snd_ssthresh = threshold;
    flow.control.cwnd_event(CaEvent::Loss);
    near(f64::from(flow.ssthresh()), 1000.0, 1.0);
    assert_eq!(flow.cwnd(), 1000);
}

#[test]
fn a_time_out_forgets_the_least_rtt() {
    let mut flow = steady(&[], 1000, 80_000);
    flow.control.cwnd_event(CaEvent::Loss);
    hold(&mut flow, 1000, 160_000, 100);
    // The path is 160 ms now, and 1000 segments per 160 ms fill it.
    near(f64::from(after_a_loss(&mut flow)), 1000.0, 1.0);
}

#[test]
fn growth_is_renos() {
    let mut flow = Flow::new("westwood", &[], 2);
    for window in [4, 8, 16, 32] {
        flow.round(100_000);
        assert_eq!(flow.cwnd(), window);
    }
    flow.control.sock_mut().snd_ssthresh = 32;
    for more in 1..=20 {
        flow.round(100_000);
        assert_eq!(flow.cwnd(), 32 + more);
    }
}

#[test]
fn the_widest_path_does_not_overflow() {
    // 400 Gbit/s x 1 s: 34 million segments per RTT of 1 s, least RTT 1 s.
    let mut flow = Flow::new("westwood", &[], 34_000_000);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.per_ack = 340_000;
    hold(&mut flow, 34_000_000, 1_000_000, 40);
    near(f64::from(after_a_loss(&mut flow)), 34e6, 2.0);
}

#[test]
fn an_uncalled_for_reduction_is_taken_back() {
    let mut flow = steady(&[], 1000, 80_000);
    hold(&mut flow, 1000, 160_000, 100);
    flow.control.sock_mut().prior_cwnd = 1000;
    near(f64::from(after_a_loss(&mut flow)), 500.0, 2.0);
    assert_eq!(flow.control.undo_cwnd(), 1000);
}

#[test]
fn it_says_what_may_be_set() {
    let westwood = find("westwood").expect("built in");
    let defaults: Vec<_> = westwood.params().iter().map(|p| (p.name.as_str(), p.text(p.default))).collect();
    let expected = [("gain", "0.125"), ("min_interval", "50000"), ("tick", "1000")].map(|(n, v)| (n, v.to_owned()));
    assert_eq!(defaults, expected);
}
