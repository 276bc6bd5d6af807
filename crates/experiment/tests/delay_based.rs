//! Congestion controls that react to delay, on a path: their queues and their rates under loss, against their
//! equations.

use crate::common::*;
use experiment::Outcome;
use serde_json::{json, Value};

const RATE: u64 = 100_000_000;

/// `flows` of one transport from the start over 100 Mbit/s and `rtt_ms`, with a buffer that holds them. They begin
/// gently, so that each sees the path's own RTT before there is a queue: what all of them add to it is all that is
/// looked at.
fn run(congestion: &str, parameters: Value, flows: usize, rtt_ms: u64) -> Outcome {
    let mut run = Dumbbell::new(RATE, rtt_ms * MS);
    for i in 0..flows {
        let gently = json!({"parameters": parameters, "initial_cwnd": 2, "initial_ssthresh": 20});
        run = run.flow(&format!("f{i}"), transport(congestion, gently), bulk());
    }
    let queue = json!({"kind": "drop_tail", "limit_bytes": 3_000_000, "limit_packets": null});
    Dumbbell { queue, duration_ns: 60 * S, warmup_ns: 30 * S, series_interval_ns: Some(7 * MS), ..run }.run()
}

/// Mean queue of the bottleneck over the second half, packets; the one being sent counts.
fn queued(outcome: &Outcome) -> f64 {
    let series = &outcome.link_series;
    let bottleneck = (0..series.time_s.len()).filter(|&i| series.link[i] == 0 && series.time_s[i] > 30.0);
    let packets: Vec<f64> = bottleneck.map(|i| series.queue_packets[i] as f64).collect();
    assert!(packets.len() > 1000);
    packets.iter().sum::<f64>() / packets.len() as f64
}

/// Greatest difference between two windows of flow 0 in the second half.
fn swing(outcome: &Outcome) -> u32 {
    let series = &outcome.flow_series;
    let mine = (0..series.time_s.len()).filter(|&i| series.flow[i] == 0 && series.time_s[i] > 30.0);
    let windows: Vec<u32> = mine.map(|i| series.cwnd_packets[i]).collect();
    windows.iter().max().expect("samples") - windows.iter().min().expect("samples")
}

#[test]
fn fast_keeps_alpha_segments_queued_per_flow() {
    // Jin, Wei, Low: at equilibrium each flow has alpha segments in the queue, whatever the RTT. What is in the queue
    // besides: the second segment of each pair that a delayed ACK releases.
    for (alpha, flows, rtt_ms) in [(20, 1, 40), (100, 1, 40), (100, 1, 10), (400, 1, 40), (50, 2, 40), (50, 4, 40)] {
        let outcome = run("fast", json!({"alpha": alpha}), flows, rtt_ms);
        let (queue, expected) = (queued(&outcome), alpha as f64 * flows as f64);
        assert!(
            (queue - expected).abs() <= 2.0 + 0.05 * expected,
            "{flows} flows with alpha {alpha} at {rtt_ms} ms: {queue} packets queued"
        );
        assert!(swing(&outcome) <= 4, "the window rests: {}", swing(&outcome));
        assert!(real(&outcome, "goodput_bps") > 0.995 * 100e6 * 1448.0 / 1500.0);
    }
}

#[test]
fn fast_shares_alike() {
    let outcome = run("fast", json!({"alpha": 50}), 4, 40);
    let jain = real(&outcome, "jain_index");
    assert!(jain > 0.99, "{jain}");
}

#[test]
fn vegas_keeps_alpha_to_beta_segments_queued() {
    // Linux's diff is W (RTT - base) / base: at 2 .. 4 segments of 333 the same as the paper's.
    for (alpha, beta) in [(2, 4), (20, 30), (100, 110)] {
        let outcome = run("vegas", json!({"alpha": alpha, "beta": beta}), 1, 40);
        let queue = queued(&outcome);
        // diff = q (1 + q / 333) lies between alpha and beta; two more stand there for the delayed ACK.
        let q = |diff: f64| 333.0 / 2.0 * ((1.0 + 4.0 * diff / 333.0).sqrt() - 1.0);
        let (low, high) = (q(f64::from(alpha)), q(f64::from(beta)));
        assert!((low - 1.0..=high + 2.0).contains(&queue), "{queue} outside {low} .. {high}");
        assert!(swing(&outcome) <= 1, "the window rests: {}", swing(&outcome));
    }
}

/// Mean window on a path with room, 1 Gbit/s and 50 ms, with a random loss of 1e-4; segments.
fn mean_under_loss(congestion: &str) -> f64 {
    let run = Dumbbell::new(1_000_000_000, 50 * MS).flow("f", transport(congestion, json!({})), bulk());
    let loss = json!({"kind": "independent", "probability_e12": 100_000_000u64});
    let outcome = Dumbbell { loss, duration_ns: 130 * S, warmup_ns: 30 * S, ..run }.run();
    real(&outcome, "goodput_bps") * 0.05 / (1448.0 * 8.0)
}

#[test]
fn on_an_empty_path_loss_alone_sets_the_window() {
    // Tan et al.: 0.25 / p^0.8, 404 segments. Liu et al.: additive 10, 1/8 given up, sqrt(75 / p), 866. Vegas is Reno
    // there, sqrt(1.5 / p), 122; FAST with gamma alpha per two RTTs sqrt(37.5 / p), 612.
    for (congestion, segments) in
        [("compound", 404.7), ("illinois", 866.0), ("vegas", 122.5), ("fast", 612.4), ("reno", 122.5)]
    {
        let mean = mean_under_loss(congestion);
        assert!((mean / segments - 1.0).abs() < 0.15, "{congestion}: {mean} segments, not {segments}");
    }
}

#[test]
fn westwood_gives_up_next_to_nothing_where_there_is_no_queue() {
    // The line limits its window, not the loss: Reno gets 122 segments of 333, and stays there. The round trip of a
    // repair has half of the window, as in Linux: 0.955 to 0.97 of the line over seeds 1 to 5.
    let goodput = |congestion: &str| {
        let run = Dumbbell::new(RATE, 40 * MS).flow("f", transport(congestion, json!({})), bulk());
        let loss = json!({"kind": "independent", "probability_e12": 100_000_000u64});
        real(&Dumbbell { loss, duration_ns: 120 * S, warmup_ns: 60 * S, ..run }.run(), "goodput_bps")
    };
    let (westwood, reno) = (goodput("westwood"), goodput("reno"));
    assert!(westwood > 0.95 * 100e6 * 1448.0 / 1500.0, "{westwood}");
    assert!(reno < 0.5 * westwood, "{reno} beside {westwood}");
}

#[test]
fn illinois_is_concave_and_keeps_the_line_full() {
    // A buffer of one path: from half of the most to the most, and half of the way within a quarter of the time.
    let run = Dumbbell::new(RATE, 40 * MS).flow("f", transport("illinois", json!({})), bulk());
    let outcome = Dumbbell { duration_ns: 100 * S, warmup_ns: 30 * S, series_interval_ns: Some(20 * MS), ..run }.run();
    assert!(real(&outcome, "goodput_bps") > 0.995 * 100e6 * 1448.0 / 1500.0);
    let windows: Vec<f64> = outcome.flow_series.cwnd_packets.iter().map(|&w| f64::from(w)).collect();
    // Recovery takes an RTT or two, so that a loss shows within 200 ms; a cycle is one between two losses.
    let falls: Vec<usize> = (1500..windows.len()).filter(|&i| windows[i] < 0.7 * windows[i - 10]).collect();
    let from = falls[0] + 20;
    let to = falls.iter().find(|&&i| i > from).expect("a second loss") - 10;
    let (least, most) = (windows[from], windows[to]);
    let quarter = windows[from + (to - from) / 4];
    assert!((quarter - least) / (most - least) > 0.45, "{least} to {most}: {quarter} after a quarter");
}

#[test]
fn compound_leaves_reno_its_share() {
    let run = Dumbbell::new(RATE, 40 * MS).flow("c", transport("compound", json!({})), bulk()).flow(
        "r",
        transport("reno", json!({})),
        bulk(),
    );
    let outcome = Dumbbell { duration_ns: 120 * S, warmup_ns: 20 * S, ..run }.run();
    let jain = real(&outcome, "jain_index");
    assert!(jain > 0.97, "{jain}");
}
