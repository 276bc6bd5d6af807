//! HighSpeed TCP against RFC 3649: its table row for row, its worked numbers, its response function.

use crate::common::{near, Flow};

const RTT: u64 = 100_000;

/// Appendix B: w and 100 b(w); a(w) is the number of the row. What a program of the RFC prints, not what ours uses.
const TABLE: [(u32, u32); 73] = [
    (38, 50),
    (118, 44),
    (221, 41),
    (347, 38),
    (495, 37),
    (663, 35),
    (851, 34),
    (1058, 33),
    (1284, 32),
    (1529, 31),
    (1793, 30),
    (2076, 29),
    (2378, 28),
    (2699, 28),
    (3039, 27),
    (3399, 27),
    (3778, 26),
    (4177, 26),
    (4596, 25),
    (5036, 25),
    (5497, 24),
    (5979, 24),
    (6483, 23),
    (7009, 23),
    (7558, 22),
    (8130, 22),
    (8726, 22),
    (9346, 21),
    (9991, 21),
    (10661, 21),
    (11358, 20),
    (12082, 20),
    (12834, 20),
    (13614, 19),
    (14424, 19),
    (15265, 19),
    (16137, 19),
    (17042, 18),
    (17981, 18),
    (18955, 18),
    (19965, 17),
    (21013, 17),
    (22101, 17),
    (23230, 17),
    (24402, 16),
    (25618, 16),
    (26881, 16),
    (28193, 16),
    (29557, 15),
    (30975, 15),
    (32450, 15),
    (33986, 15),
    (35586, 14),
    (37253, 14),
    (38992, 14),
    (40808, 14),
    (42707, 13),
    (44694, 13),
    (46776, 13),
    (48961, 13),
    (51258, 13),
    (53677, 12),
    (56230, 12),
    (58932, 12),
    (61799, 12),
    (64851, 11),
    (68113, 11),
    (71617, 11),
    (75401, 10),
    (79517, 10),
    (84035, 10),
    (89053, 10),
    (94717, 9),
];

/// 256 b(w) of Linux's rows, up to 89053.
const SHARES: [u32; 72] = [
    128, 112, 104, 98, 93, 89, 86, 83, 81, 78, 76, 74, 72, 71, 69, 68, 66, 65, 64, 62, 61, 60, 59, 58, 57, 56, 55, 54,
    53, 52, 52, 51, 50, 49, 48, 48, 47, 46, 45, 45, 44, 43, 43, 42, 41, 41, 40, 39, 39, 38, 38, 37, 36, 36, 35, 35, 34,
    33, 33, 32, 32, 31, 30, 30, 29, 28, 28, 27, 26, 26, 25, 24,
];

/// In congestion avoidance at `cwnd`.
fn avoiding(algorithm: &str, cwnd: u32) -> Flow {
    let mut flow = Flow::new(algorithm, &[], cwnd);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow
}

/// a(w): what a window's worth of acknowledged segments adds, with its fraction.
fn increase(flow: &mut Flow, w: u32) -> f64 {
    let sock = flow.control.sock_mut();
    sock.snd_cwnd = w;
    sock.snd_cwnd_cnt = 0;
    flow.control.cong_avoid(0, w);
    let whole = f64::from(flow.cwnd() - w);
    // The rest counts towards the next segment, in units of 2^-16 segments acknowledged.
    let left = f64::from(flow.control.sock().snd_cwnd_cnt) / 65536.0;
    f64::from(w) / ((f64::from(w) - left) / whole)
}

/// 1 - ssthresh / w: b(w), up to 1 / w more.
fn decrease(flow: &mut Flow, w: u32) -> f64 {
    flow.control.sock_mut().snd_cwnd = w;
    1.0 - f64::from(flow.control.ssthresh()) / f64::from(w)
}

/// The RFC's equations in floating point.
fn by_the_rfc(w: f64) -> (f64, f64) {
    let b = (0.1 - 0.5) * (w / 38.0).ln() / (83000.0_f64 / 38.0).ln() + 0.5;
    (w * w * (1.0 / 12.8) / w.powf(1.2) * 2.0 * b / (2.0 - b), b)
}

#[test]
fn the_rfcs_table_follows_row_for_row() {
    // Appendix B prints a row whenever a(w) is more than 1 above that of the row before.
    let mut flow = avoiding("highspeed", 38);
    let mut last = 1.0;
    let mut rows = vec![38];
    for w in 39..100_000 {
        let a = increase(&mut flow, w);
        if a > last + 1.0 {
            rows.push(w);
            assert_eq!(a as usize, rows.len(), "a({w})");
            last = a;
        }
    }
    assert_eq!(rows, TABLE.map(|(w, _)| w));
    for (w, hundredths) in TABLE {
        let (least, given_up) = (f64::from(hundredths) / 100.0 - 0.005, decrease(&mut flow, w));
        assert!(given_up >= least && given_up <= least + 0.01 + 1.0 / f64::from(w), "b({w}) = {given_up}");
    }
}

#[test]
fn increase_and_decrease_are_the_equations_to_six_digits() {
    let mut flow = avoiding("highspeed", 38);
    for w in (41..100_000).step_by(7) {
        let (a, b) = by_the_rfc(f64::from(w));
        near(increase(&mut flow, w), a, 1e-4);
        assert_eq!(
            w - (f64::from(w) * decrease(&mut flow, w)).round() as u32,
            (f64::from(w) * (1.0 - b)) as u32,
            "{w}"
        );
    }
}

#[test]
fn worked_numbers() {
    let mut flow = avoiding("highspeed", 38);
    for (w, a, b) in [(38, 1.0, 0.5), (1500, 9.912, 0.3088), (10_000, 29.067, 0.2101), (83_000, 70.848, 0.1)] {
        near(increase(&mut flow, w), a, 0.01);
        let given_up = decrease(&mut flow, w);
        assert!((given_up - b).abs() <= 5e-5 + 1.0 / f64::from(w), "b({w}) = {given_up}");
    }
    // 1.2 and 1 / 12.8 are the RFC's rounding of the line through (38, 1e-3) and (83000, 1e-7).
    let slope = 1e4_f64.ln() / (83000.0_f64 / 38.0).ln();
    assert_eq!(format!("{slope:.1}"), "1.2");
    assert_eq!(format!("{:.1}", 1.0 / (1e-3 * 38.0_f64.powf(slope))), "12.8");
}

#[test]
fn up_to_38_segments_it_is_reno() {
    for cwnd in 1..=38 {
        let (mut ours, mut reno) = (avoiding("highspeed", cwnd), avoiding("reno", cwnd));
        assert_eq!(ours.control.ssthresh(), reno.control.ssthresh(), "at {cwnd}");
        for _ in 0..cwnd {
            assert_eq!(ours.cwnd(), reno.cwnd());
            ours.ack(1, 100_000);
            reno.ack(1, 100_000);
        }
        assert_eq!((ours.cwnd(), reno.cwnd()), (cwnd + 1, cwnd + 1));
    }
}

#[test]
fn the_response_function_is_the_rfcs() {
    // Every 1 / p-th segment is lost; the RFC's table: 263, 1795, 12279, 83981 segments, 0.12 / p^0.835.
    for (p, window, per_ack) in [(1e-4, 263.0, 2), (1e-5, 1795.0, 10), (1e-6, 12279.0, 100), (1e-7, 83981.0, 500)] {
        let mut flow = avoiding("highspeed", window as u32);
        flow.per_ack = per_ack;
        let (mut sent, mut losses, mut rounds, mut windows) = (0.0, 0, 0_u32, 0.0);
        while losses < 40 {
            sent += f64::from(flow.cwnd());
            if losses >= 10 {
                rounds += 1;
                windows += f64::from(flow.cwnd());
            }
            flow.round(RTT);
            if sent * p >= 1.0 {
                sent -= 1.0 / p;
                losses += 1;
                flow.lose(RTT);
            }
        }
        near(windows / f64::from(rounds), window, 6.0);
    }
}

#[test]
fn the_largest_windows_stay_in_range() {
    let mut flow = avoiding("highspeed", 38);
    let (mut last_a, mut last_b) = (1.0, 0.5);
    for w in [38, 39, 100, 1000, 100_000, 567_000, 1_000_000, 34_000_000, 1 << 30] {
        let (a, b) = (increase(&mut flow, w), decrease(&mut flow, w));
        assert!(a >= last_a && b <= last_b + 1.0 / f64::from(w), "a({w}) = {a}, b({w}) = {b}");
        (last_a, last_b) = (a, b);
    }
    // 400 Gbit/s x 1 s: p(w) continued, with b at 100000 segments.
    let b = by_the_rfc(100_000.0).1;
    near(increase(&mut flow, 34_000_000), 34e6_f64.powf(0.8) / 12.8 * 2.0 * b / (2.0 - b), 1e-4);
    near(decrease(&mut flow, 34_000_000), b, 1e-4);
    // Any window at all: w / a(w) stays below 2^14, so that 16 bits behind the point leave room in u32.
    flow.control.sock_mut().snd_cwnd = u32::MAX;
    flow.control.cong_avoid(0, 1);
    assert_eq!(flow.cwnd(), u32::MAX);
    assert!(flow.control.ssthresh() > 3_900_000_000);
    assert!(flow.control.sock().snd_cwnd_cnt < 1 << 30);
    let per = (flow.control.sock().private[3] >> 32) as u32;
    near(f64::from(per) / 65536.0, 6.4 * 2f64.powf(32.0 / 5.0) * (2.0 - b) / b, 1e-4);
}

/// Linux's a(w), as what `w` ACKs add; and 1 - b(w) as it then is.
fn by_linux(w: u32) -> (u32, u32) {
    let mut flow = Flow::new("highspeed", &[("variant", 1)], w);
    flow.control.sock_mut().snd_ssthresh = 2;
    flow.control.cong_avoid(0, 1);
    (flow.control.sock().snd_cwnd_cnt, flow.control.ssthresh())
}

#[test]
fn linux_takes_the_tables_next_row() {
    for (i, (w, _)) in TABLE.iter().take(72).enumerate() {
        let a = i as u32 + 1;
        let share = SHARES[i];
        assert_eq!(by_linux(*w), (a, w - ((w * share) >> 8)), "at {w}");
        let next = (w + 1) - (((w + 1) * SHARES[(i + 1).min(71)]) >> 8);
        assert_eq!(by_linux(w + 1), ((a + 1).min(72), next), "at {}", w + 1);
    }
    assert_eq!(by_linux(1 << 30).0, 72);
    // Up to 38 segments Reno; half of 3 rounded up, as W - W / 2.
    assert_eq!([by_linux(3), by_linux(10), by_linux(38)], [(1, 2), (1, 5), (1, 19)]);
}

#[test]
fn linux_counts_acks_and_answers_a_loss_by_the_row_that_it_grew_by() {
    // 10661 segments are row 30: 30 per RTT with an ACK for each, half with delayed ACKs.
    for (per_ack, grown) in [(1, 30), (2, 15)] {
        let mut flow = Flow::new("highspeed", &[("variant", 1)], 10_000);
        flow.control.sock_mut().snd_ssthresh = 2;
        flow.per_ack = per_ack;
        flow.round(RTT);
        assert!((grown - 1..=grown).contains(&(flow.cwnd() - 10_000)), "{}", flow.cwnd());
    }
    // The first loss comes out of slow start: the first row's half.
    let mut flow = Flow::new("highspeed", &[("variant", 1)], 10_000);
    assert_eq!(flow.control.ssthresh(), 5000);
    flow.lose(RTT);
    flow.round(RTT);
    flow.control.sock_mut().snd_cwnd = 10_000;
    // 5000 segments are below 5036, row 20: 62/256.
    assert_eq!(flow.control.ssthresh(), 10_000 - ((10_000 * 62) >> 8));
}
