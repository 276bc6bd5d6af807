//! Windows over time on a path, against the papers of BIC, CUBIC and H-TCP.

use crate::common::*;
use experiment::Outcome;
use serde_json::{json, Value};

/// Windows of the first flow from `from_s` on, with their times, s.
fn windows(outcome: &Outcome, from_s: f64) -> Vec<(f64, f64)> {
    let series = &outcome.flow_series;
    let mine = (0..series.time_s.len()).filter(|&i| series.flow[i] == 0 && series.time_s[i] >= from_s);
    mine.map(|i| (series.time_s[i], f64::from(series.cwnd_packets[i]))).collect()
}

fn at(windows: &[(f64, f64)], time_s: f64) -> f64 {
    let near = windows.iter().min_by(|a, b| (a.0 - time_s).abs().total_cmp(&(b.0 - time_s).abs()));
    near.expect("samples").1
}

fn one_flow(congestion: &str, parameters: Value, queue_bytes: u64) -> Dumbbell {
    let queue = json!({"kind": "drop_tail", "limit_bytes": queue_bytes, "limit_packets": null});
    let run = Dumbbell::new(100_000_000, 40 * MS);
    let run = run.flow("f", transport(congestion, json!({"parameters": parameters})), bulk());
    Dumbbell { queue, duration_ns: 60 * S, warmup_ns: 30 * S, series_interval_ns: Some(10 * MS), ..run }
}

#[test]
fn htcp_empties_the_queue_at_a_loss_and_no_more() {
    // Leith and Shorten: RTT_min / RTT_max of the window is the line's capacity. A queue of a quarter of the product,
    // 83 packets beside 333: from 417 segments back to 333, with the line full throughout. Reno's half leaves it idle.
    let run = |parameters: Value| one_flow("htcp", parameters, 125_000).run();
    let adaptive = run(json!({}));
    let least = windows(&adaptive, 30.0).iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
    assert!((325.0..345.0).contains(&least), "{least} segments");
    let line = 100e6 * 1448.0 / 1500.0;
    let (full, halved) = (real(&adaptive, "goodput_bps"), real(&run(json!({"adaptive_backoff": 0})), "goodput_bps"));
    assert!(full > 0.99 * line, "{}", full / line);
    assert!(halved < 0.95 * line, "{}", halved / line);
}

#[test]
fn bic_rests_at_the_window_of_the_last_loss() {
    // Xu, Harfoush, Rhee: fast back to W_max, slow around it. Line and queue hold 667 segments.
    let linux = json!({"fast_convergence": 0, "variant": 1, "delayed_ack": 0});
    let outcome = one_flow("bic", linux, 500_000).run();
    let windows = windows(&outcome, 20.0);
    let near = windows.iter().filter(|w| (640.0..=680.0).contains(&w.1)).count() as f64 / windows.len() as f64;
    assert!(near > 0.6, "within 4 % of W_max for {near} of the time");
    let least = windows.iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
    assert!(least > 0.78 * 667.0, "{least} segments");
}

#[test]
fn cubic_2_1_takes_a_wider_line_in_a_straight_line() {
    // One loss at some 570 segments on a line that holds 16,667, RTT 200 ms. In 2.1: 160 segments/s once the curve
    // would be steeper. In 2.3 the cubic function: 0.4 (t - K)^3 above W_max.
    let run = |variant: u8| {
        let run = Dumbbell::new(1_000_000_000, 200 * MS);
        let change = json!({"parameters": {"variant": variant, "hystart": 0, "tcp_friendliness": 0},
                            "initial_ssthresh": 500});
        let run = run.flow("f", transport("cubic", change), bulk());
        let loss = json!({"kind": "list", "packets": [2000]});
        let outcome = Dumbbell { loss, duration_ns: 45 * S, series_interval_ns: Some(50 * MS), ..run }.run();
        assert_eq!(integer(&outcome, "retransmitted_segments"), 1);
        windows(&outcome, 2.0)
    };
    let (old, new) = (run(1), run(0));
    for second in [25.0, 30.0, 35.0, 40.0] {
        let grown = at(&old, second + 4.0) - at(&old, second);
        assert!((grown - 640.0).abs() < 20.0, "{grown} segments in the 4 s from {second} s on");
    }
    // The loss left 717/1024 of W_max; from there K = cbrt((W_max - W) / 0.4), 7.6 s.
    let &(start, least) = new.iter().filter(|w| w.0 < 10.0).min_by(|a, b| a.1.total_cmp(&b.1)).expect("samples");
    let plateau = start + (least * (1024.0 / 717.0 - 1.0) / 0.4).cbrt();
    let grown = at(&new, 40.0) - at(&new, 30.0);
    let curve = 0.4 * ((40.0 - plateau).powi(3) - (30.0 - plateau).powi(3));
    assert!((grown / curve - 1.0).abs() < 0.03, "{grown} segments, by the curve {curve}");
}
