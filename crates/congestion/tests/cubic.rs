//! CUBIC against RFC 9438: numbers worked from its equations 1 and 2 with C = 0.4, beta = 0.7.

use crate::common::{near, parameters, Flow};
use congestion::{find, CaEvent, Controller, INFINITE_SSTHRESH};

/// W_cubic(t) of eq. 1, with K of eq. 2: segments; t in s.
fn w_cubic(t: f64, w_max: f64, start: f64) -> f64 {
    let k = ((w_max - start) / 0.4).cbrt();
    0.4 * (t - k).powi(3) + w_max
}

/// In congestion avoidance after a loss at `w_max`.
fn after_loss(values: &[(&str, i64)], w_max: u32, rtt_us: u64) -> Flow {
    let mut flow = Flow::new("cubic", values, w_max);
    flow.control.sock_mut().snd_ssthresh = w_max;
    flow.lose(rtt_us);
    flow
}

#[test]
fn a_loss_keeps_seven_tenths() {
    // 717/1024 is Linux's 0.7.
    for (before, after) in [(1000, 700), (100, 70), (10, 7), (3, 2), (2, 2), (1, 2), (34_000_000, 23_806_640)] {
        assert_eq!(Flow::new("cubic", &[], before).control.ssthresh(), after);
    }
    assert_eq!(Flow::new("cubic", &[("beta", 512)], 1000).control.ssthresh(), 500);
}

#[test]
fn the_window_follows_the_cubic_function() {
    // W_max 1000, W 700: K = cbrt(300 / 0.4) = 9.086 s; the curve passes 1000 there, and 1050 5 s later.
    let rtt = 100_000;
    let mut flow = after_loss(&[], 1000, rtt);
    let start = flow.now_us;
    for second in 1..=20 {
        flow.run_for(start + second * 1_000_000 - flow.now_us, rtt);
        near(f64::from(flow.cwnd()), w_cubic(second as f64, 1000.0, 700.0), 1.0);
    }
}

#[test]
fn k_is_right_over_three_decades() {
    // Time back to W_max (within 1 %: the curve is flat there) from the beginning of the epoch, against eq. 2.
    for w_max in [500_u32, 5_000, 50_000] {
        let mut flow = after_loss(&[("tcp_friendliness", 0)], w_max, 20_000);
        flow.per_ack = 64;
        let start = flow.now_us;
        while f64::from(flow.cwnd()) < 0.99 * f64::from(w_max) {
            flow.round(20_000);
        }
        let w = f64::from(w_max);
        let k = (w * (1.0 - 717.0 / 1024.0) / 0.4).cbrt();
        // W = 0.99 W_max at K - cbrt(0.01 W_max / 0.4). A whole number of segments per segment of growth, rounded
        // down, makes it a little early.
        near((flow.now_us - start) as f64 / 1e6, k - (0.01 * w / 0.4).cbrt(), 4.0);
    }
}

#[test]
fn fast_convergence_gives_room() {
    let plateau = |fast: i64| {
        let mut flow = after_loss(&[("fast_convergence", fast)], 1000, 100_000);
        while flow.cwnd() < 900 {
            flow.round(100_000);
        }
        let second = flow.cwnd();
        flow.lose(100_000);
        // RFC 9438, 4.7: W_max = 900 (1 + 0.7) / 2 = 765; without, 900. The curve is flat at W_max, K s on.
        let w_max = f64::from(second) * if fast == 1 { 0.85 } else { 1.0 };
        let k = ((w_max - f64::from(flow.cwnd())) / 0.4).cbrt();
        flow.run_for((k * 1e6) as u64, 100_000);
        near(f64::from(flow.cwnd()), w_max, 1.0);
        flow.cwnd()
    };
    assert!(plateau(1) < plateau(0));
}

#[test]
fn on_a_short_path_it_is_as_fast_as_reno() {
    // RTT 10 ms from 70: eq. 4 gives 3 x 0.3 / 1.7 = 0.53 segments per RTT, Linux 8/15; 100 RTTs later 123.
    // The cubic function alone is at 100 - 0.4 (4.22 - 1)^3 = 87 then.
    let window = |friendly: i64| {
        let mut flow = after_loss(&[("tcp_friendliness", friendly)], 100, 10_000);
        flow.run_for(1_000_000, 10_000);
        f64::from(flow.cwnd())
    };
    near(window(1), 70.0 + 100.0 * 8.0 / 15.0, 3.0);
    near(window(0), w_cubic(1.0, 100.0, 70.0), 3.0);
}

#[test]
fn at_most_half_again_per_round() {
    // RFC 9438, 4.4, far beyond W_max.
    let mut flow = after_loss(&[], 100, 200_000);
    flow.round(200_000);
    flow.now_us += 60_000_000;
    let mut steepest = 0.0_f64;
    for _ in 0..20 {
        let before = f64::from(flow.cwnd());
        flow.round(200_000);
        let after = f64::from(flow.cwnd());
        // One segment of credit may come from the round before.
        assert!(after <= 1.5 * before + 1.0, "{before} to {after}");
        steepest = steepest.max(after / before);
    }
    assert!(steepest > 1.2, "{steepest}");
}

#[test]
fn idle_time_is_not_part_of_the_epoch() {
    // RFC 9438, 4.2.
    let rtt = 100_000;
    let (mut busy, mut idle) = (after_loss(&[], 1000, rtt), after_loss(&[], 1000, rtt));
    busy.run_for(2_000_000, rtt);
    idle.run_for(2_000_000, rtt);
    idle.control.sock_mut().lsndtime_us = idle.now_us;
    idle.now_us += 30_000_000;
    idle.control.sock_mut().tcp_mstamp_us = idle.now_us;
    idle.control.cwnd_event(CaEvent::TxStart);
    busy.run_for(2_000_000, rtt);
    idle.run_for(2_000_000, rtt);
    near(f64::from(idle.cwnd()), f64::from(busy.cwnd()), 0.5);
}

#[test]
fn after_a_time_out_nothing_is_known() {
    let rtt = 100_000;
    let mut flow = after_loss(&[], 1000, rtt);
    flow.run_for(1_000_000, rtt);
    let before = flow.cwnd();
    flow.time_out(300_000);
    assert_eq!(flow.ssthresh(), before * 717 / 1024);
    while flow.cwnd() < flow.ssthresh() {
        flow.round(rtt);
    }
    // W_max is forgotten: at least one segment per 20 acknowledged, 5 % per RTT.
    let start = f64::from(flow.cwnd());
    for _ in 0..10 {
        flow.round(rtt);
    }
    near(f64::from(flow.cwnd()), start * 1.05_f64.powi(10), 5.0);
}

#[test]
fn the_widest_window_does_not_overflow() {
    // 400 Gbit/s x 1 s: 34 million segments; K = cbrt(0.3 x 34e6 / 0.4) = 294 s.
    let mut flow = after_loss(&[], 34_000_000, 1_000_000);
    flow.per_ack = 10_000;
    let (start, w_max) = (flow.now_us, 34_000_000.0);
    let w0 = f64::from(flow.cwnd());
    let mut last = flow.cwnd();
    for second in 1..=320 {
        flow.round(1_000_000);
        assert!(flow.cwnd() >= last);
        last = flow.cwnd();
        // The controller answers one RTT late while the curve is steep.
        near(f64::from(last), w_cubic(second as f64, w_max, w0), 2.0);
    }
    assert!(flow.now_us - start >= 320_000_000);
}

/// Slow start on a path of 50 ms, window 100, with the given signs; ACKs every 3 ms, too far apart for a train.
fn slow_start(detect: i64, values: &[(&str, i64)]) -> Flow {
    let mut all = vec![("hystart_detect", detect)];
    all.extend(values);
    let mut flow = Flow::new("cubic", &all, 100);
    flow.control.sock_mut().min_rtt_us = 50_000;
    flow
}

fn spaced_acks(flow: &mut Flow, count: u32, gap_us: u64, rtt_us: i32) {
    for _ in 0..count {
        flow.now_us += gap_us;
        flow.ack(1, rtt_us);
    }
}

#[test]
fn hystart_leaves_on_delay() {
    let mut flow = slow_start(2, &[]);
    spaced_acks(&mut flow, 20, 3_000, 50_000);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    // A new round begins when all that was in flight at the start of this one is acknowledged.
    spaced_acks(&mut flow, 81, 3_000, 50_000);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    // The margin is an eighth of 50 ms, 6.25 ms: 56 ms is within it, 57 ms is not, from the ninth sample on.
    spaced_acks(&mut flow, 201, 3_000, 56_000);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    let before = flow.cwnd();
    let mut acks = 0;
    while flow.ssthresh() == INFINITE_SSTHRESH {
        spaced_acks(&mut flow, 1, 3_000, 57_000);
        acks += 1;
        assert!(acks < 2000, "never left slow start");
    }
    assert!(flow.ssthresh() >= before);
    assert!(flow.ssthresh().abs_diff(flow.cwnd()) <= 1);
}

#[test]
fn hystart_leaves_when_a_train_is_half_an_rtt_long() {
    let mut flow = slow_start(1, &[]);
    // ACKs every ms from the start of the round: more than 25 ms of them is the sign.
    spaced_acks(&mut flow, 25, 1_000, 50_000);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    spaced_acks(&mut flow, 1, 1_000, 50_000);
    assert_eq!(flow.ssthresh(), 125);

    // A gap of more than hystart_ack_delta ends the train for the rest of the round.
    let mut gap = slow_start(1, &[]);
    spaced_acks(&mut gap, 10, 1_000, 50_000);
    spaced_acks(&mut gap, 1, 2_001, 50_000);
    spaced_acks(&mut gap, 80, 1_000, 50_000);
    assert_eq!(gap.ssthresh(), INFINITE_SSTHRESH);

    // A pacing sender spreads its flight itself: a whole RTT then.
    let mut paced = slow_start(1, &[]);
    paced.control.sock_mut().pacing_status = 1;
    spaced_acks(&mut paced, 50, 1_000, 50_000);
    assert_eq!(paced.ssthresh(), INFINITE_SSTHRESH);
    spaced_acks(&mut paced, 1, 1_000, 50_000);
    assert_eq!(paced.ssthresh(), 150);
}

#[test]
fn hystart_waits_for_its_low_window_and_obeys_its_switch() {
    for values in [vec![("hystart", 0)], vec![("hystart_low_window", 1000)]] {
        let mut flow = slow_start(3, &values);
        spaced_acks(&mut flow, 60, 1_000, 50_000);
        spaced_acks(&mut flow, 60, 1_000, 150_000);
        assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH, "{values:?}");
    }
}

/// Window `after_s` seconds after a loss at `w_max`, under CUBIC 2.1.
fn in_2_1(w_max: u32, rtt_us: u64, after_s: u64, per_ack: u32, values: &[(&str, i64)]) -> f64 {
    let mut all = vec![("variant", 1)];
    all.extend(values);
    let mut flow = after_loss(&all, w_max, rtt_us);
    flow.per_ack = per_ack;
    flow.run_for(after_s * 1_000_000, rtt_us);
    f64::from(flow.cwnd())
}

#[test]
fn variant_2_1_grows_linearly_beyond_w_max_whatever_the_rtt() {
    // 16 segments per 0.1 s, counted in ACKs for two. W_max 1000, K 9.1 s; the curve is steeper than 160 segments/s
    // from 11.5 s after that on.
    for rtt in [20_000, 100_000, 200_000] {
        for (from, values, per_s) in
            [(25, vec![], 160.0), (40, vec![], 160.0), (25, vec![("max_increment", 32)], 320.0)]
        {
            let grown = in_2_1(1000, rtt, from + 5, 2, &values) - in_2_1(1000, rtt, from, 2, &values);
            near(grown, 5.0 * per_s, 7.0);
        }
    }
    // Today's goes on with the curve: 0.4 (30.9^3 - 15.9^3) of it in these 15 s.
    let mut today = after_loss(&[], 1000, 100_000);
    today.run_for(25_000_000, 100_000);
    let before = f64::from(today.cwnd());
    today.run_for(15_000_000, 100_000);
    near(f64::from(today.cwnd()) - before, 0.4 * (30.9_f64.powi(3) - 15.9_f64.powi(3)), 3.0);
}

#[test]
fn variants_of_linux_2_6_leave_slow_start_above_the_threshold() {
    // tcp_cong_avoid of 2.6.22: slow start while cwnd <= ssthresh, a segment per ACK whatever it acknowledges.
    for (algorithm, variant) in [("cubic", 1), ("bic", 2), ("scalable", 2)] {
        let mut flow = Flow::new(algorithm, &[("variant", variant)], 20);
        flow.control.sock_mut().snd_ssthresh = 20;
        flow.ack(2, 100_000);
        assert_eq!(flow.cwnd(), 21, "{algorithm}");
        flow.ack(2, 100_000);
        assert_eq!(flow.cwnd(), 21, "{algorithm}");
    }
    let mut today = Flow::new("cubic", &[], 20);
    today.control.sock_mut().snd_ssthresh = 20;
    today.ack(2, 100_000);
    assert_eq!(today.cwnd(), 20);
}

#[test]
fn variant_2_1_divides_by_its_estimate_of_segments_per_ack() {
    // ns-2 2.35 with an ACK for each segment and 100 ms: 305 segments/s beyond W_max. The estimate stays at 31/16, and
    // a segment of growth takes an ACK more than it counts: 8000 / (floor(8000 / 16 x 16 / 31) + 1) per RTT at 8000.
    let grown = in_2_1(8000, 100_000, 45, 1, &[]) - in_2_1(8000, 100_000, 40, 1, &[]);
    near(grown, 5.0 * 305.0, 2.0);
    // With four segments per ACK the estimate is four, and what an ACK gives is four times as much.
    let grown = in_2_1(8000, 100_000, 45, 4, &[]) - in_2_1(8000, 100_000, 40, 4, &[]);
    near(grown, 5.0 * 160.0, 3.0);
}

#[test]
fn variant_2_1_follows_the_curve_up_to_w_max() {
    // The bound is beyond W_max only: 0.3 x 10000 segments are regained in K = 19.6 s, most of them in the first 5.
    for second in [1, 2, 5, 10, 19] {
        near(in_2_1(10_000, 50_000, second, 2, &[]), w_cubic(second as f64, 10_000.0, 7001.0), 1.0);
    }
}

#[test]
fn variant_2_1_grows_by_2_percent_while_no_loss_has_been_seen() {
    // A segment of growth for 50 x 16 / 32 + 1 ACKs for two segments, or 50 x 16 / 31 + 1 ACKs for one: 26 both.
    for (per_ack, share) in [(2, 1.0 / 52.0), (1, 1.0 / 26.0)] {
        let mut flow = Flow::new("cubic", &[("variant", 1), ("tcp_friendliness", 0)], 1000);
        flow.per_ack = per_ack;
        flow.control.sock_mut().snd_ssthresh = 500;
        for _ in 0..10 {
            flow.round(100_000);
        }
        near(f64::from(flow.cwnd()), 1000.0 * (1.0_f64 + share).powi(10), 1.0);
    }
}

/// A round of HyStart++: from the ACK that ends the last one to the one before what was then sent is acknowledged.
/// ACKs in it, and segments that the window grew by.
fn plus_plus_round(flow: &mut Flow, rtt_us: i32) -> (u32, u32) {
    let (end, before) = (flow.control.sock().snd_nxt, flow.cwnd());
    let mut acks = 0;
    while end.wrapping_sub(flow.control.sock().snd_una) > crate::common::MSS {
        flow.now_us += 3_000;
        flow.ack(1, rtt_us);
        acks += 1;
    }
    (acks, flow.cwnd() - before)
}

fn plus_plus() -> Flow {
    Flow::new("cubic", &[("hystart", 2)], 32)
}

#[test]
fn hystart_plus_plus_slows_down_before_it_leaves() {
    // RFC 9406, 4.2, on 80 ms: the alarm is 10 ms more.
    let mut flow = plus_plus();
    for _ in 0..2 {
        let (acks, grown) = plus_plus_round(&mut flow, 80_000);
        assert_eq!(acks, grown);
    }
    // It comes with the 8th sample. 7 segments in slow start, the others at a quarter.
    let (acks, grown) = plus_plus_round(&mut flow, 90_000);
    assert_eq!(grown, 7 + (acks - 7) / 4);
    // 5 rounds, of which that was the first; a higher RTT is nothing new.
    for rtt in [90_000, 90_000, 120_000, 120_000] {
        let (acks, grown) = plus_plus_round(&mut flow, rtt);
        assert!(grown.abs_diff(acks / 4) <= 1, "{grown} by {acks}");
        assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
    }
    // Then congestion avoidance from there.
    let before = flow.cwnd();
    let (acks, grown) = plus_plus_round(&mut flow, 90_000);
    assert_eq!(flow.ssthresh(), before);
    assert!(grown.abs_diff(acks / 20) <= 1, "{grown} by {acks}");
}

#[test]
fn hystart_plus_plus_goes_back_after_a_false_alarm() {
    let mut flow = plus_plus();
    for rtt in [80_000, 80_000, 95_000] {
        plus_plus_round(&mut flow, rtt);
    }
    // Below what raised the alarm: slow start again from the 8th sample on; 2 is what the 7 before it give.
    let (acks, grown) = plus_plus_round(&mut flow, 94_999);
    assert!(grown.abs_diff(acks - 7 + 7 / 4) <= 1, "{grown} by {acks}");
    let (acks, grown) = plus_plus_round(&mut flow, 94_999);
    assert_eq!(acks, grown);
    assert_eq!(flow.ssthresh(), INFINITE_SSTHRESH);
}

#[test]
fn hystart_plus_plus_bounds_the_alarm_from_below_and_above() {
    // The rise that alarms is an eighth of the last round's least RTT, within 4 to 16 ms.
    let alarms = |rtt: i32, rise: i32| {
        let mut flow = plus_plus();
        plus_plus_round(&mut flow, rtt);
        let (acks, grown) = plus_plus_round(&mut flow, rtt + rise);
        grown < acks
    };
    for (rtt, rise) in [(8_000, 4_000), (80_000, 10_000), (400_000, 16_000)] {
        assert!(alarms(rtt, rise), "{rise} us over {rtt}");
        assert!(!alarms(rtt, rise - 1), "{rise} us over {rtt}, less one");
    }
}

#[test]
fn hystart_plus_plus_needs_8_samples_of_a_round() {
    let mut few = Flow::new("cubic", &[("hystart", 2)], 8);
    for rtt in [80_000, 120_000] {
        let end = few.control.sock().snd_nxt;
        // 7 of them raise no alarm, whatever they say; one ACK without a sample for the rest.
        for _ in 0..7 {
            few.ack(1, rtt);
        }
        few.ack(end.wrapping_sub(few.control.sock().snd_una) / crate::common::MSS - 1, -1);
    }
    let before = few.cwnd();
    few.ack(4, 120_000);
    assert_eq!(few.cwnd(), before + 4);
}

#[test]
fn hystart_plus_plus_counts_8_segments_per_ack_at_most_unless_paced() {
    // 8 + 8 without pacing; all with it.
    for (paced, window) in [(0, 116), (1, 224)] {
        let mut flow = Flow::new("cubic", &[("hystart", 2)], 100);
        flow.control.sock_mut().pacing_status = paced;
        for acked in [100, 24] {
            flow.ack(acked, 80_000);
        }
        assert_eq!(flow.cwnd(), window, "paced {paced}");
    }
}

#[test]
fn hystart_plus_plus_is_for_the_first_slow_start() {
    let mut flow = Flow::new("cubic", &[("hystart", 2)], 100);
    flow.time_out(300_000);
    for rtt in [80_000, 80_000, 80_000, 95_000] {
        let before = flow.cwnd();
        flow.round(rtt);
        assert_eq!(flow.cwnd(), 2 * before);
    }
    assert_eq!(flow.ssthresh(), 70);
}

#[test]
fn choices_are_named() {
    let cubic = find("cubic").expect("built in");
    let hystart = cubic.params().iter().find(|p| p.name == "hystart").expect("a parameter");
    assert_eq!(hystart.choices(), ["off", "classic", "++"]);
    assert_eq!(hystart.text(hystart.default), "classic");
    let error = Controller::new(&cubic, &parameters(&[("variant", 2)])).expect_err("out of range");
    assert_eq!(error.to_string(), "cubic: variant = 2 is out of range: 0 to 1 for 2.3, 2.1");
}
