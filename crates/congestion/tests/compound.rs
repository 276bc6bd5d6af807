//! Compound TCP against the equations of Tan et al.: alpha 1/8, k 3/4, beta 1/2, gamma 30, zeta 1.

use crate::common::{near, Flow};
use congestion::find;

const BASE: u64 = 100_000;

/// In congestion avoidance at `cwnd`, all of it loss window, with a least RTT of 100 ms known.
fn settled(values: &[(&str, i64)], cwnd: u32) -> Flow {
    let mut flow = Flow::new("compound", values, cwnd);
    for _ in 0..3 {
        flow.control.sock_mut().is_cwnd_limited = 0;
        flow.control.sock_mut().snd_ssthresh = 2;
        flow.ack(1, BASE as i32);
    }
    assert_eq!(flow.cwnd(), cwnd);
    flow
}

/// So large a queue for a round or two that nothing of the delay window is left: what remains is the loss window.
fn loss_window(flow: &mut Flow) -> u32 {
    for _ in 0..4 {
        flow.round(1_000_000);
    }
    flow.cwnd()
}

#[test]
fn without_a_queue_growth_is_alpha_w_to_the_k() {
    // dW = alpha W^(3/4) per RTT, the 1 of the loss window included: W(n)^(1/4) = W(0)^(1/4) + alpha n / 4.
    for (start, rounds) in [(1_000, 20), (5_000, 20), (200, 40)] {
        let mut flow = settled(&[], start);
        flow.round(BASE);
        let first = f64::from(flow.cwnd());
        for _ in 0..rounds {
            flow.round(BASE);
        }
        let expected = (first.powf(0.25) + f64::from(rounds) / 32.0).powi(4);
        // Steps instead of a curve, and a round that ends an ACK late: of 40 rounds one is missing in the end.
        near(f64::from(flow.cwnd()), expected, 3.0);
    }
}

#[test]
fn any_power_is_taken_right() {
    // One RTT of growth, alpha W^k with alpha 1: up to TCP's widest window.
    for (k, window) in [(750, 20_000_u32), (500, 20_000), (900, 20_000), (100, 20_000), (750, 700_000)] {
        let mut flow = settled(&[("alpha", 1000), ("k", k)], window);
        flow.per_ack = window / 100;
        flow.round(BASE);
        let before = f64::from(flow.cwnd());
        flow.round(BASE);
        let grown = f64::from(flow.cwnd()) - before;
        let expected = before.powf(k as f64 / 1000.0);
        assert!((grown - expected).abs() <= 2.0 + 0.03 * expected, "W {window}, k {k}: {grown}, not {expected}");
    }
}

#[test]
fn a_small_window_is_renos() {
    // alpha W^(3/4) <= 1 up to 16 segments.
    let mut flow = settled(&[], 5);
    let start = flow.cwnd();
    for round in 1..=10 {
        flow.round(BASE);
        assert_eq!(flow.cwnd(), start + round);
    }
}

/// ACKs at this RTT until the window falls: the window before and after.
fn falls(flow: &mut Flow, rtt_us: i32) -> (f64, f64) {
    for _ in 0..10_000 {
        let before = flow.cwnd();
        flow.ack(1, rtt_us);
        if flow.cwnd() < before {
            return (f64::from(before), f64::from(flow.cwnd()));
        }
    }
    panic!("{} segments, and no decrease", flow.cwnd());
}

#[test]
fn the_delay_window_gives_up_what_is_queued() {
    let mut flow = settled(&[], 1000);
    for _ in 0..20 {
        flow.round(BASE);
    }
    // Some 1500 segments at 110 ms: diff = 1500 x 10 / 110 = 136.
    let (before, after) = falls(&mut flow, 110_000);
    assert_eq!(before - after, (before * 10.0 / 110.0).floor());
    // Below gamma it grows on: 1 % is 14 segments.
    let low = flow.cwnd();
    for _ in 0..4 {
        flow.round(101_000);
    }
    assert!(flow.cwnd() > low + 40, "{low} to {}", flow.cwnd());
}

#[test]
fn zeta_scales_what_is_given_up() {
    for zeta in [500, 1000, 2000] {
        let mut flow = settled(&[("zeta", zeta)], 1000);
        for _ in 0..20 {
            flow.round(BASE);
        }
        let (before, after) = falls(&mut flow, 104_000);
        let diff = (before * 4.0 / 104.0).floor();
        assert_eq!(before - after, (diff * zeta as f64 / 1000.0).floor());
    }
}

#[test]
fn it_is_never_less_than_reno() {
    // For every delay the loss window grows by a segment per RTT and makes up what the delay window gives up.
    let mut flow = settled(&[], 1000);
    let start = flow.cwnd();
    for round in 1..=50_u32 {
        let rtt = if round % 3 == 0 { BASE } else { 300_000 };
        flow.round(rtt);
        // L grows by acked / W: with D in W, by a little less than one.
        assert!(f64::from(flow.cwnd()) >= f64::from(start) + 0.9 * f64::from(round) - 1.0, "{round}: {}", flow.cwnd());
    }
}

#[test]
fn a_loss_halves_the_whole_and_the_loss_window() {
    for (before, after) in [(1000, 500), (101, 50), (3, 2), (1, 2), (34_000_000, 17_000_000)] {
        assert_eq!(Flow::new("compound", &[], before).control.ssthresh(), after);
    }
    let mut flow = settled(&[], 400);
    for _ in 0..40 {
        flow.round(BASE);
    }
    let whole = flow.cwnd();
    assert!(whole > 900, "{whole}");
    // 400 plus somewhat less than one per RTT, since each ACK counts 1 / W.
    let mut copy = settled(&[], 400);
    for _ in 0..40 {
        copy.round(BASE);
    }
    let loss = loss_window(&mut copy);
    assert!((420..=446).contains(&loss), "{loss}");
    flow.lose(BASE);
    assert_eq!(flow.cwnd(), whole / 2);
    let left = loss_window(&mut flow);
    assert!((loss / 2 - 12..=loss / 2 + 6).contains(&left), "{left} of {loss}");
}

#[test]
fn beta_is_the_share_given_up() {
    let mut flow = settled(&[("beta", 200)], 1000);
    // All of it loss window: 1000 x 0.8 = 500 + 300 of delay window.
    assert_eq!(flow.control.ssthresh(), 800);
    let mut steep = settled(&[("beta", 900)], 1000);
    // The loss window gives up no more than half.
    assert_eq!(steep.control.ssthresh(), 500);
}

#[test]
fn a_time_out_ends_the_delay_window() {
    let mut flow = settled(&[], 400);
    for _ in 0..40 {
        flow.round(BASE);
    }
    let half = flow.cwnd() / 2;
    flow.time_out(300_000);
    assert_eq!((flow.cwnd(), flow.ssthresh()), (1, half));
    for window in [2, 4, 8, 16] {
        flow.round(BASE);
        assert_eq!(flow.cwnd(), window);
    }
    // Back at the threshold it is all loss window: a queue takes nothing away.
    for _ in 0..6 {
        flow.round(BASE);
    }
    flow.control.set_state(congestion::CaState::Open);
    let back = flow.cwnd();
    assert!(loss_window(&mut flow) >= back);
}

#[test]
fn an_uncalled_for_reduction_brings_the_delay_window_back() {
    let mut flow = settled(&[], 400);
    for _ in 0..40 {
        flow.round(BASE);
    }
    let whole = flow.cwnd();
    flow.lose(BASE);
    let window = flow.control.undo_cwnd();
    assert_eq!(window, whole);
    flow.control.sock_mut().snd_cwnd = window;
    let left = loss_window(&mut flow);
    assert!((420..=450).contains(&left), "the loss window alone is some 435, not {left}");
}

#[test]
fn the_mean_window_follows_the_published_response() {
    // A loss every 1 / p segments on an empty path. W_max^1.25 = 1.25 / 8 / (p (1 - 2^-1.25)), and a cycle takes
    // W_max^0.25 (1 - 2^-0.25) 32 RTTs: 404 segments at 1e-4, 2553 at 1e-5.
    for (p, mean) in [(1e-4_f64, 404.7), (1e-5, 2553.0)] {
        let mut flow = settled(&[], mean as u32);
        flow.per_ack = 4;
        let (mut segments, mut rounds, mut since) = (0.0, 0.0, 0.0);
        let mut losses = 0;
        while losses < 24 {
            since += f64::from(flow.cwnd());
            if losses >= 4 {
                segments += f64::from(flow.cwnd());
                rounds += 1.0;
            }
            flow.round(BASE);
            if since >= 1.0 / p {
                since = 0.0;
                losses += 1;
                flow.lose(BASE);
            }
        }
        // A little less: each cycle begins with a round that measures before the delay window grows.
        near(segments / rounds, mean, 5.0);
    }
}

#[test]
fn gamma_follows_what_reno_would_queue() {
    // Little of the window is loss window: Reno would have queued some 4 % of 60 segments when the loss came.
    let next_round = |adapt: i64| {
        let mut flow = settled(&[("adapt_gamma", adapt), ("gamma", 60)], 60);
        for _ in 0..60 {
            flow.round(BASE);
        }
        for _ in 0..4 {
            flow.round(104_000);
            flow.round(104_000);
            flow.lose(104_000);
            for _ in 0..30 {
                flow.round(BASE);
            }
        }
        // 3 % of queue, some 20 segments: too much for the adapted gamma, not for the fixed one.
        let before = f64::from(flow.cwnd());
        for _ in 0..8 {
            flow.round(103_000);
        }
        (before, f64::from(flow.cwnd()))
    };
    let (before, after) = next_round(0);
    assert!(after > before, "{before} to {after}: below 60 queued the window grows");
    let (before, after) = next_round(1);
    assert!(after < before, "{before} to {after}: gamma is far below 60");
}

#[test]
fn the_application_as_the_limit_lets_nothing_grow() {
    let after = |limited: u8| {
        let mut flow = settled(&[], 500);
        for _ in 0..5_000 {
            flow.control.sock_mut().is_cwnd_limited = limited;
            flow.ack(1, BASE as i32);
        }
        flow.cwnd()
    };
    assert_eq!(after(0), 500);
    assert!(after(1) > 600);
}

#[test]
fn it_says_what_may_be_set() {
    let compound = find("compound").expect("built in");
    let defaults: Vec<_> = compound.params().iter().map(|p| (p.name.as_str(), p.text(p.default))).collect();
    let expected = [
        ("alpha", "0.125"),
        ("k", "0.75"),
        ("beta", "0.5"),
        ("gamma", "30"),
        ("zeta", "1"),
        ("adapt_gamma", "0"),
        ("gamma_low", "5"),
    ];
    assert_eq!(defaults, expected.map(|(name, value)| (name, value.to_owned())));
}
