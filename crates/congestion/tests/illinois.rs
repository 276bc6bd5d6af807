//! Illinois against Liu, Basar, Srikant: alpha(da), beta(da), and what they do to the window.

use crate::common::{near, Flow};
use congestion::{find, CaState};

/// Base RTT 100 ms, largest 200 ms: dm = 100 ms, d1 = 1 ms, d2 = 10 ms, d3 = 80 ms.
const BASE: u64 = 100_000;
const MOST: u64 = 200_000;

/// The paper's alpha with its kappa 1 and 2; da and dm in ms.
fn alpha(da: f64, dm: f64) -> f64 {
    let d1 = 0.01 * dm;
    if da <= d1 {
        return 10.0;
    }
    let k1 = (dm - d1) * 0.3 * 10.0 / (10.0 - 0.3);
    let k2 = (dm - d1) * 0.3 / (10.0 - 0.3) - d1;
    k1 / (k2 + da)
}

/// The paper's beta with its kappa 3 and 4.
fn beta(da: f64, dm: f64) -> f64 {
    let (d2, d3) = (0.1 * dm, 0.8 * dm);
    if da <= d2 {
        0.125
    } else if da >= d3 {
        0.5
    } else {
        (0.125 * d3 - 0.5 * d2) / (d3 - d2) + (0.5 - 0.125) / (d3 - d2) * da
    }
}

/// In congestion avoidance at `cwnd`, with both RTTs known, then `rounds` at `rtt_us` with the window held.
fn held(values: &[(&str, i64)], cwnd: u32, rtt_us: u64, rounds: u32) -> Flow {
    let mut flow = Flow::new("illinois", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.ack(1, BASE as i32);
    flow.ack(1, MOST as i32);
    for _ in 0..rounds {
        flow.control.sock_mut().snd_cwnd = cwnd;
        flow.round(rtt_us);
    }
    flow.control.sock_mut().snd_cwnd = cwnd;
    flow
}

#[test]
fn growth_is_alpha_of_the_delay() {
    for ms in [0, 1, 2, 5, 10, 25, 50, 75, 99] {
        let rtt = BASE + ms * 1000;
        let mut flow = held(&[], 1000, rtt, 8);
        for _ in 0..20 {
            flow.round(rtt);
        }
        let per_rtt = f64::from(flow.cwnd() - 1000) / 20.0;
        let expected = alpha(ms as f64, 100.0);
        assert!((per_rtt - expected).abs() <= 0.06 + 0.02 * expected, "{ms} ms: {per_rtt}, not {expected}");
    }
}

#[test]
fn the_reduction_is_beta_of_the_delay() {
    for ms in [0, 5, 10, 20, 45, 60, 79, 80, 100] {
        let mut flow = held(&[], 10_000, BASE + ms * 1000, 4);
        let kept = f64::from(flow.control.ssthresh()) / 10_000.0;
        near(1.0 - kept, beta(ms as f64, 100.0), 1.5);
    }
    // The values of the paper's figure: 1/8 below a tenth of the longest queue, 1/2 above eight tenths, between in a
    // line.
    assert_eq!(held(&[], 1000, BASE, 4).control.ssthresh(), 875);
    assert_eq!(held(&[], 1000, MOST, 4).control.ssthresh(), 500);
    assert_eq!(held(&[("beta_min", 250)], 1000, BASE, 4).control.ssthresh(), 750);
}

#[test]
fn the_curves_hold_on_other_paths_and_with_other_bounds() {
    for (alpha_max, alpha_min) in [(20_000, 300), (5_000, 1_000)] {
        let values = [("alpha_max", alpha_max), ("alpha_min", alpha_min)];
        let per_rtt = |rtt| {
            let mut flow = held(&values, 2000, rtt, 8);
            for _ in 0..20 {
                flow.round(rtt);
            }
            f64::from(flow.cwnd() - 2000) / 20.0
        };
        near(per_rtt(BASE), alpha_max as f64 / 1000.0, 2.0);
        let least = per_rtt(MOST);
        assert!((least - alpha_min as f64 / 1000.0).abs() <= 0.06, "{least}");
    }
}

#[test]
fn one_round_without_a_queue_is_no_sign() {
    // After a round with a queue, alpha is the largest again in the fifth round without one.
    let mut flow = held(&[], 1000, BASE + 50_000, 4);
    let slow = alpha(50.0, 100.0);
    let mut grown = vec![];
    for _ in 0..12 {
        let before = flow.cwnd();
        flow.control.sock_mut().snd_cwnd_cnt = 0;
        flow.round(BASE);
        grown.push(flow.cwnd() - before);
    }
    assert!(grown[..4].iter().all(|&g| f64::from(g) <= slow + 1.0), "{grown:?}");
    assert!(grown[7..].iter().all(|&g| (9..=10).contains(&g)), "{grown:?}");
    // A round with a queue in between starts the count anew.
    let mut again = held(&[], 1000, BASE + 50_000, 4);
    for round in 0..16 {
        again.round(if round % 4 == 3 { BASE + 50_000 } else { BASE });
    }
    assert!(again.cwnd() < 1000 + 16, "{}", again.cwnd());
}

#[test]
fn a_small_window_is_renos() {
    // Slow start to 8 segments; then one per RTT up to 15.
    let mut flow = Flow::new("illinois", &[], 2);
    flow.control.sock_mut().snd_ssthresh = 8;
    flow.round(BASE);
    flow.round(BASE);
    let before = flow.cwnd();
    assert_eq!(before, 8);
    for more in 1..=6 {
        flow.round(BASE);
        assert!(flow.cwnd() <= before + more && flow.cwnd() + 1 >= before + more);
    }
    flow.control.sock_mut().snd_cwnd = 10;
    assert_eq!(flow.control.ssthresh(), 5);
}

#[test]
fn a_time_out_makes_it_reno_until_a_round_is_measured() {
    let mut flow = held(&[], 1000, BASE, 8);
    assert_eq!(flow.control.ssthresh(), 875);
    flow.control.set_state(CaState::Loss);
    assert_eq!(flow.control.ssthresh(), 500);
}

#[test]
fn before_anything_is_known_a_loss_halves() {
    for (before, after) in [(1000, 500), (101, 51), (3, 2), (1, 2), (34_000_000, 17_000_000)] {
        assert_eq!(Flow::new("illinois", &[], before).control.ssthresh(), after);
    }
}

#[test]
fn the_mean_window_under_random_loss_is_that_of_its_aimd() {
    // Without a queue alpha 10 and beta 1/8: a loss every 1 / p segments gives W = sqrt((2 - b) a / (2 b p)) = 866 at
    // 1e-4.
    let mut flow = held(&[], 866, BASE, 8);
    // The long RTT is of the past: what counts is that none is queued now.
    flow.per_ack = 4;
    let (mut segments, mut rounds, mut since, mut losses) = (0.0, 0.0, 0.0, 0);
    while losses < 60 {
        since += f64::from(flow.cwnd());
        if losses >= 20 {
            segments += f64::from(flow.cwnd());
            rounds += 1.0;
        }
        flow.round(BASE);
        if since >= 10_000.0 {
            since = 0.0;
            losses += 1;
            flow.lose(BASE);
        }
    }
    near(segments / rounds, 866.0, 4.0);
}

/// ns-2 2.35 over 40 ms: 0.12 of the window is left by the median loss.
#[test]
fn as_in_linux_2_6_22_a_loss_keeps_what_the_paper_gives_up() {
    let old = [("variant", 1)];
    assert_eq!(held(&old, 1000, BASE, 4).control.ssthresh(), 125);
    assert_eq!(held(&old, 1000, MOST, 4).control.ssthresh(), 500);
    // Five rounds without a queue in all, with another between.
    let mut flow = held(&old, 1000, BASE + 50_000, 4);
    for round in 0..7 {
        flow.round(if round % 4 == 3 { BASE + 50_000 } else { BASE });
    }
    let before = flow.cwnd();
    flow.round(BASE);
    assert!((8..=10).contains(&(flow.cwnd() - before)), "{}", flow.cwnd() - before);
    // From 21 segments on three ACKs grow the window by one; what is beyond is dropped.
    let grown = |variant| {
        let mut flow = held(&[("variant", variant), ("win_thresh", 2)], 19, BASE, 8);
        flow.round(BASE);
        flow.cwnd() - 19
    };
    assert_eq!((grown(0), grown(1)), (9, 7));
}

#[test]
fn the_widest_window_does_not_overflow() {
    let mut flow = Flow::new("illinois", &[("alpha_max", 1_000_000)], 34_000_000);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.per_ack = 340_000;
    flow.round(1_000_000);
    // 1000 segments per RTT.
    assert!((34_000_990..=34_001_000).contains(&flow.cwnd()), "{}", flow.cwnd());
}

#[test]
fn it_says_what_may_be_set() {
    let illinois = find("illinois").expect("built in");
    let defaults: Vec<_> = illinois.params().iter().map(|p| (p.name.as_str(), p.text(p.default))).collect();
    let expected = [
        ("variant", "published"),
        ("alpha_min", "0.3"),
        ("alpha_max", "10"),
        ("beta_min", "0.125"),
        ("beta_max", "0.5"),
        ("eta1", "0.01"),
        ("eta2", "0.1"),
        ("eta3", "0.8"),
        ("theta", "5"),
        ("win_thresh", "15"),
    ];
    assert_eq!(defaults, expected.map(|(name, value)| (name, value.to_owned())));
}
