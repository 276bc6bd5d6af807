//! Scalable TCP against Kelly's paper: recovery in a number of round trips, a / (b p) under loss, Reno below.

use crate::common::{near, Flow};
use congestion::CaEvent;

const RTT: u64 = 200_000;

fn avoiding(values: &[(&str, i64)], cwnd: u32) -> Flow {
    let mut flow = Flow::new("scalable", values, cwnd);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow
}

#[test]
fn every_hundred_segments_acknowledged_add_one_at_any_window() {
    for cwnd in [17, 100, 1000, 34_000_000] {
        let mut flow = avoiding(&[], cwnd);
        for gained in 1..=10 {
            flow.ack(99, 200_000);
            assert_eq!(flow.cwnd(), cwnd + gained - 1, "at {cwnd}");
            flow.ack(1, 200_000);
            assert_eq!(flow.cwnd(), cwnd + gained, "at {cwnd}");
        }
    }
}

#[test]
fn an_eighth_is_given_up_above_the_legacy_window_and_half_below() {
    for (before, after) in [(1000, 875), (17, 14), (16, 8), (10, 5), (3, 2), (1, 2), (34_000_000, 29_750_000)] {
        assert_eq!(avoiding(&[], before).control.ssthresh(), after, "at {before}");
    }
    let mut always = avoiding(&[("legacy_window", 0)], 10);
    assert_eq!(always.control.ssthresh(), 8);
    let mut half = avoiding(&[("b", 500_000)], 1000);
    assert_eq!(half.control.ssthresh(), 500);
}

#[test]
fn up_to_the_legacy_window_it_is_reno() {
    for legacy in [16, 100, 1_000_000] {
        let mut ours = avoiding(&[("legacy_window", legacy)], 5);
        let mut reno = Flow::new("reno", &[], 5);
        reno.control.sock_mut().snd_ssthresh = 2;
        for round in 0..40 {
            if i64::from(reno.cwnd()) > legacy {
                break;
            }
            assert_eq!(ours.cwnd(), reno.cwnd());
            assert_eq!(ours.control.ssthresh(), reno.control.ssthresh());
            if round == 20 {
                ours.lose(RTT);
                reno.lose(RTT);
            }
            ours.round(RTT);
            reno.round(RTT);
        }
    }
}

#[test]
fn recovery_takes_as_many_round_trips_at_any_window() {
    // log(1 - b) / log(1 + a) = 13.4 round trips: under 3 s at 200 ms, where Reno needs half an hour for 10 Gbit/s.
    for window in [1000, 10_000, 100_000] {
        let mut flow = avoiding(&[], window);
        flow.per_ack = window / 500;
        flow.lose(RTT);
        let mut rounds = 0;
        while flow.cwnd() < window {
            flow.round(RTT);
            rounds += 1;
        }
        assert_eq!(rounds, 14, "{window}");
    }
}

#[test]
fn the_window_under_loss_is_a_over_b_p() {
    // Every 1 / p-th segment is lost. The window before a loss is a / (b p); the mean over round trips of an
    // exponential between 1 - b and 1 is b / -ln(1 - b) of that.
    for (a, b, p) in [(0.01, 0.125, 1e-4), (0.01, 0.125, 1e-6), (0.02, 0.125, 1e-5), (0.005, 0.5, 1e-5)] {
        let mut flow = avoiding(&[("a", (a * 1e6) as i64), ("b", (b * 1e6) as i64)], 1000);
        let highest = a / (b * p);
        flow.per_ack = (highest / 200.0) as u32;
        let (mut sent, mut losses, mut rounds, mut windows) = (0.0, 0, 0_u32, 0.0);
        while losses < 200 {
            let before = flow.cwnd();
            flow.round(RTT);
            sent += f64::from(before);
            if losses >= 100 {
                rounds += 1;
                windows += f64::from(before);
            }
            if sent * p >= 1.0 {
                sent -= 1.0 / p;
                losses += 1;
                flow.lose(RTT);
            }
        }
        near(windows / f64::from(rounds), highest * b / -(1.0 - b).ln(), 8.0);
    }
}

#[test]
fn credit_of_one_regime_is_worth_at_most_a_segment_in_the_other() {
    let mut flow = avoiding(&[], 17);
    flow.ack(99, 200_000);
    // The window restarts after idle time, with 0.99 of a segment in the account.
    flow.control.sock_mut().snd_cwnd = 10;
    flow.ack(1, 200_000);
    assert_eq!((flow.cwnd(), flow.control.sock().snd_cwnd_cnt), (11, 1));
}

#[test]
fn linux_is_reno_up_to_a_hundred_segments_and_gives_up_an_eighth() {
    let values = [("variant", 1)];
    for cwnd in [5, 50, 99] {
        let (mut ours, mut reno) = (avoiding(&values, cwnd), Flow::new("reno", &[], cwnd));
        reno.control.sock_mut().snd_ssthresh = 2;
        ours.round(RTT);
        reno.round(RTT);
        assert_eq!(ours.cwnd(), reno.cwnd());
    }
    for cwnd in [100, 1000, 34_000_000] {
        let mut flow = avoiding(&values, cwnd);
        flow.ack(99, 200_000);
        assert_eq!(flow.cwnd(), cwnd);
        flow.ack(1, 200_000);
        assert_eq!(flow.cwnd(), cwnd + 1);
    }
    // W - (W >> 3).
    for (before, after) in [(1000, 875), (17, 15), (16, 14), (10, 9), (7, 7), (2, 2), (1, 2)] {
        assert_eq!(avoiding(&values, before).control.ssthresh(), after, "at {before}");
        // Linux 2.6 halves the window while the loss is repaired, and lets slow start lift it to the same threshold.
        let mut old = avoiding(&[("variant", 2)], before);
        let halved = old.control.ssthresh();
        assert_eq!(halved, (before / 2).max(2), "at {before}");
        let sock = old.control.sock_mut();
        (sock.prior_cwnd, sock.snd_ssthresh, sock.snd_cwnd) = (before, halved, halved);
        old.control.cwnd_event(CaEvent::CompleteCwr);
        assert_eq!((old.cwnd(), old.ssthresh()), (halved, after), "at {before}");
    }
    // A value given is the variant's no more.
    assert_eq!(avoiding(&[("variant", 1), ("legacy_window", 16)], 10).control.ssthresh(), 5);
    let mut faster = avoiding(&[("variant", 1), ("a", 20_000)], 1000);
    faster.ack(50, 200_000);
    assert_eq!(faster.cwnd(), 1001);
}

#[test]
fn linux_2_6_counts_51_acks() {
    // 1 / 51 of the window per RTT with an ACK for each segment: 1.96 %; half of that with delayed ACKs.
    for (per_ack, share) in [(1, 1.0 / 51.0), (2, 0.5 / 51.0)] {
        let mut flow = avoiding(&[("variant", 2)], 10_000);
        flow.per_ack = per_ack;
        flow.round(RTT);
        near(f64::from(flow.cwnd() - 10_000), 10_000.0 * share, 1.0);
    }
    let mut flow = avoiding(&[("variant", 2)], 10);
    for _ in 0..10 {
        flow.ack(1, 200_000);
    }
    assert_eq!(flow.cwnd(), 10);
    flow.ack(1, 200_000);
    assert_eq!(flow.cwnd(), 11);
}
